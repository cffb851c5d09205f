"""Photographs with other tones of skin: certified or refused, confirmed once, and never published."""

import csv
import json

import numpy as np
import pytest
from PIL import Image

from evenedit.bundle.study_facts import may_show_pictures, refuse_unlicensed
from evenedit.core.color import MONK
from evenedit.core.errors import EvenEditError
from evenedit.curation import recolour
from evenedit.curation.recolour import STATEMENT, certified, write_twins
from evenedit.instruments.face import Face, find_face
from evenedit.instruments.picture import Picture, pixels
from evenedit.instruments.tone import tone
from evenedit.simulation.portraits.drawn import Drawn
from evenedit.sources.twins import Twins
from tests.sources.test_twins import MONK as MONK_FACTOR
from tests.support.studies import open_study, write_study

PEOPLE = {"race": ["Indian"], "gender": ["Female"], "age": ["30s", "50s"]}


@pytest.fixture(scope="module")
def drawn():
    return list(Drawn(seed=3, size=384, only=PEOPLE).portraits())


@pytest.mark.parametrize("number", [6, 7, 8])
def test_a_version_has_the_tone_that_was_aimed_at_and_the_same_background(drawn, number):
    photograph = Picture(pixels(drawn[0][3]))
    version, certificate = certified(photograph, number)
    assert not certificate.refused and abs(certificate.read - certificate.aimed) <= 2
    face = find_face(version)
    assert isinstance(face, Face) and abs(tone(version, face)[0] - MONK[number - 1][0]) < 4
    assert np.array_equal(version[:40], photograph.rgb[:40])


def test_a_reading_that_misses_its_aim_is_refused(drawn, monkeypatch):
    too_little = lambda rgb, lab, face: 0.5 * recolour_mask(rgb, lab, face)  # noqa: E731
    recolour_mask = recolour.skin_mask
    monkeypatch.setattr(recolour, "skin_mask", too_little)
    _, certificate = certified(Picture(pixels(drawn[0][3])), 8)
    assert certificate.refused == "the reading misses the aim by more than its interval, or by more than 2 L*"


def test_a_tone_far_from_the_portrait_is_refused(drawn):
    assert certified(Picture(pixels(drawn[0][3])), 1)[1].refused == "the tone is more than 20 L* away"


def test_a_picture_without_a_face_has_no_versions():
    version, certificate = certified(Picture(np.full((64, 64, 3), 128, np.uint8)), 5)
    assert version is None and "no face" in certificate.refused


def test_a_set_keeps_what_was_confirmed_and_no_names(drawn, tmp_path):
    out = tmp_path / "twins"
    made = write_twins(drawn, out, [6, 7], ["race", "gender", "age"], "CC-BY-4.0")
    assert made.complete == 2 == made.bases
    body = json.loads((out / "twins.json").read_text())
    assert (body["confirmed"]["statement"], body["confirmed"]["licence"]) == (STATEMENT, "CC-BY-4.0")
    assert set(body["versions"]) == {"face-001_6", "face-001_7", "face-002_6", "face-002_7"}
    rows = list(csv.DictReader((out / "labels.csv").read_text().splitlines()))
    assert [(r["base"], r["monk"]) for r in rows] == [(f"face-00{n}", tone) for n in (1, 2) for tone in "67"]
    assert [r["race"] for r in rows] == [labels["race"] for _, labels, *_ in drawn for _ in range(2)]
    names = {ident for ident, *_ in drawn}
    assert not any(name in (out / file).read_text() for name in names for file in ("labels.csv", "twins.json"))
    assert len(list(Twins(path=str(out), factors=[MONK_FACTOR]).portraits())) == 4
    (out / "twins.json").unlink()
    with pytest.raises(EvenEditError, match=r"no twins.json, which says that licence and consent allow them"):
        list(Twins(path=str(out), factors=[MONK_FACTOR]).portraits())


def test_pictures_of_a_recoloured_set_are_in_no_bundle_whatever_the_study_says(drawn, tmp_path):
    write_twins(drawn, tmp_path / "twins", [6, 7], ["race"], "CC-BY-4.0")
    sources = {"kind": "twins", "settings": {"path": "twins"}, "licence": "CC-BY-4.0", "publish": True}
    factors = [{"name": "monk", "levels": [str(n) for n in range(1, 11)], "ordered": True}]
    study = open_study(tmp_path, sources=sources, factors=factors, editors=[])
    study.runner().load_sources()
    assert not may_show_pictures(study)
    with pytest.raises(EvenEditError, match="recoloured photographs, which never leave the study"):
        refuse_unlicensed(study)


def test_the_command_asks_for_the_licence_and_a_confirmation(drawn, tmp_path, evenedit):
    folder = tmp_path / "faces"
    folder.mkdir()
    lines = ["file,race,gender,age"]
    for ident, labels, _, image in drawn:
        Image.fromarray(np.asarray(image)).save(folder / f"{ident}.png")
        lines.append(",".join([f"{ident}.png", *labels.values()]))
    (folder / "labels.csv").write_text("\n".join(lines))
    settings = {"kind": "folder", "settings": {"path": "../faces"}}
    study = write_study(tmp_path / "study", sources=settings)
    command = ("sources", "recolour", study, "--out", tmp_path / "twins", "--tones", "6,7")
    for options in ((), ("--derivatives-allowed",)):
        refused = evenedit(*command, *options)
        assert refused.returncode == 2 and "need the licence in [sources]" in refused.stderr
    write_study(tmp_path / "study", sources={**settings, "licence": "CC-BY-4.0"})
    assert evenedit(*command).returncode == 2 and not (tmp_path / "twins").exists()
    made = evenedit(*command, "--derivatives-allowed")
    assert made.returncode == 0, made.stderr
    assert "Monk  6:    2 of 2 certified" in made.stdout and "2 of 2 portraits have every version" in made.stdout
    assert evenedit(*command, "--derivatives-allowed").returncode == 2
    wrong = evenedit(*command[:-1], "6,6", "--derivatives-allowed")
    assert wrong.returncode == 2 and "at least two different Monk tones" in wrong.stderr
