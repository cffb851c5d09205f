"""Pictures in an object store: S3 by fsspec, against moto's server."""

import pytest
from PIL import Image

from evenedit.core import images as pictures
from evenedit.core.images import open_images
from evenedit.operations.plan import make_plan
from tests.support.studies import open_study

pytestmark = pytest.mark.filterwarnings("ignore")


def test_pictures_are_listed_not_asked_for_one_by_one(bucket, monkeypatch):
    images = open_images(bucket)
    stored = [images.put(Image.new("RGB", (8, 8), (n, 0, 0))) for n in range(20)]
    asked = []
    monkeypatch.setattr(images._files, "exists", lambda *a, **k: asked.append(a))
    assert images.present([*stored, "0" * 64]) == set(stored)
    assert not asked
    monkeypatch.undo()
    assert images.present(stored[:3]) == set(stored[:3])
    assert images.size(stored[0]) == len(images.read(stored[0]))
    assert open_images(f"{bucket}/nothing-here").present(f"{n:064x}" for n in range(pictures.FEW + 1)) == set()


def test_a_study_keeps_its_pictures_there_and_goes_on_from_there(bucket, tmp_path):
    loaded = open_study(tmp_path, store={"images": f"{bucket}/small"}, judges=[])
    assert loaded.run().complete
    before = loaded.store.run_of_edits()
    assert loaded.run().complete and loaded.store.run_of_edits() == before
    assert not (tmp_path / "images").exists()
    more = open_study(
        tmp_path, store={"images": f"{bucket}/small"}, judges=[], prompts={"include": ["O-01", "V-05", "V-02"]}
    )
    assert make_plan(more).disk > 0, "by the size of the pictures there"
