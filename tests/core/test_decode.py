"""Every picture from outside is read alike: upright, 8 bits, sRGB, on white; or refused with a reason."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from evenedit import audit
from evenedit.cli.pictures import measure
from evenedit.core.decode import decode, to_rgb
from evenedit.core.errors import EvenEditError, Failed
from evenedit.core.images import ImageFolder, as_image, encode, read_image
from evenedit.core.records import ConditionKind, Outcome
from evenedit.providers.calls import to_image
from evenedit.sources.dataset import picture
from evenedit.sources.folder import Folder
from tests.support import odd_pictures as odd


@pytest.mark.parametrize("name", odd.READ)
def test_every_form_of_a_picture_is_read_as_the_same_picture(name, tmp_path):
    make, expected, near = odd.READ[name]
    content = make()
    (tmp_path / name).write_bytes(content)
    wanted = expected()
    readers = {
        "a file": read_image(tmp_path / name),
        "what an editor's service sent": to_image(content),
        "a dataset": picture(content),
        "a PIL image": as_image(Image.open(io.BytesIO(content))),
        "what an editor returned": Image.open(io.BytesIO(encode(Image.open(io.BytesIO(content))))),
    }
    for reader, found in readers.items():
        assert found.mode == "RGB", reader
        assert odd.far(found, wanted) <= near, reader


@pytest.mark.parametrize("name", odd.REFUSED)
def test_what_is_no_picture_is_refused_with_a_reason(name, tmp_path):
    make, reason = odd.REFUSED[name]
    (tmp_path / name).write_bytes(make())
    with pytest.raises(EvenEditError, match=reason) as error:
        read_image(tmp_path / name)
    assert name in str(error.value)
    with pytest.raises(Failed, match=reason):
        to_image(make())
    assert picture(make()) is None


def test_a_folder_and_a_file_that_is_not_there_are_refused(tmp_path):
    with pytest.raises(EvenEditError, match=r"[Dd]irectory"):
        read_image(tmp_path)
    with pytest.raises(EvenEditError, match="no such file"):
        read_image(tmp_path / "none.png")


def test_inks_are_read_by_their_profile():
    found = np.asarray(decode(odd.black_ink()))[0].astype(int)
    assert (np.ptp(found, axis=1) <= 2).all(), "the yellow that does not print leaves no colour"
    assert found[0].min() >= 250 and found[255].max() <= 5 and 110 <= found[128][0] <= 126, "L* 50 is 119"


def test_a_profile_that_changes_nothing_leaves_every_pixel_and_the_stored_file(tmp_path):
    from PIL import ImageCms

    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    marked = decode(odd.saved(odd.plain(), "PNG", icc_profile=profile))
    assert marked.tobytes() == odd.plain().tobytes()
    assert marked.info["icc_profile"] == profile, "stored as former releases stored it"


def test_a_plain_picture_is_not_copied_and_keeps_its_name(tmp_path):
    image = odd.plain()
    assert to_rgb(image) is image
    folder = ImageFolder(tmp_path)
    assert folder.put(decode(odd.saved(image, "PNG"))) == folder.put(image)


# The same through the commands


@pytest.mark.parametrize("name", odd.READ)
def test_measure_finds_nothing_changed_between_a_picture_and_itself_in_another_form(name, tmp_path):
    make, expected, _ = odd.READ[name]
    (tmp_path / name).write_bytes(make())
    expected().save(tmp_path / "wanted.png")
    said = CliRunner().invoke(measure, [str(tmp_path / "wanted.png"), str(tmp_path / name), "--json"])
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["changed_share"] == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("name", odd.REFUSED)
def test_measure_says_why_a_file_cannot_be_measured(name, tmp_path):
    make, reason = odd.REFUSED[name]
    (tmp_path / name).write_bytes(make())
    odd.plain().save(tmp_path / "source.png")
    said = CliRunner().invoke(measure, [str(tmp_path / "source.png"), str(tmp_path / name)])
    assert isinstance(said.exception, EvenEditError) and reason in str(said.exception)


def table(path: Path, columns: list[str], rows: list[list[str]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def test_an_audit_stores_every_form_as_the_same_picture(tmp_path):
    odd.plain().save(tmp_path / "face.png")
    for name, (make, *_) in odd.READ.items():
        (tmp_path / name).write_bytes(make())
    rows = [["face.png", name, f"Do as {name}.", "Latino", "Female", "30s"] for name in odd.READ]
    pairs = table(tmp_path / "edits.csv", ["source", "edited", "prompt", "race", "gender", "age"], rows)
    study = audit(pairs, instruments=(), out=tmp_path / "out")
    edits, requests = study.store.edits(), study.store.requests()
    assert {edit.outcome for edit in edits.values()} == {Outcome.EDITED}
    for ident, edit in edits.items():
        if requests[ident].condition.kind is ConditionKind.NULL_PAIR:
            continue
        name = requests[ident].instruction.removeprefix("Do as ").removesuffix(".")
        _, expected, near = odd.READ[name]
        assert odd.far(study.store.images.open(edit.image), expected()) <= near, name


def test_an_audit_names_every_file_that_is_no_picture_and_begins_nothing(tmp_path):
    odd.plain().save(tmp_path / "face.png")
    for name, (make, _) in odd.REFUSED.items():
        (tmp_path / name).write_bytes(make())
    rows = [["face.png", name, f"Do as {name}.", "Latino", "Female", "30s"] for name in odd.REFUSED]
    pairs = table(tmp_path / "edits.csv", ["source", "edited", "prompt", "race", "gender", "age"], rows)
    with pytest.raises(EvenEditError) as error:
        audit(pairs, out=tmp_path / "out")
    for line, (name, (_, reason)) in enumerate(odd.REFUSED.items(), 2):
        assert any(f"line {line}" in p and name in p and reason in p for p in error.value.problems), name
    assert not (tmp_path / "out").exists()


def test_a_folder_of_portraits_takes_every_form(tmp_path):
    for name, (make, *_) in odd.READ.items():
        (tmp_path / name).write_bytes(make())
    table(
        tmp_path / "labels.csv", ["file", "race", "gender", "age"], [[n, "Latino", "Female", "30s"] for n in odd.READ]
    )
    for _, _, name, found in Folder(path=str(tmp_path)).portraits():
        assert odd.far(found, odd.READ[name][1]()) <= odd.READ[name][2], name
    for name, (make, _) in odd.REFUSED.items():
        (tmp_path / name).write_bytes(make())
    rows = [[name, "Latino", "Female", "30s"] for name in odd.REFUSED]
    table(tmp_path / "labels.csv", ["file", "race", "gender", "age"], rows)
    with pytest.raises(EvenEditError) as error:
        list(Folder(path=str(tmp_path)).portraits())
    assert len(error.value.problems) == len(odd.REFUSED), "all at once"
