"""`evenedit measure` prints numbers, draws the evidence, and gives a reason where there is no number."""

import json

import pytest
from PIL import Image

from evenedit.simulation.portraits.drawn import sample
from evenedit.simulation.portraits.portrait import lighten, render

PERSON = sample({"race": "Latino", "gender": "Female", "age": "30s"}, 5)


@pytest.fixture
def pair(tmp_path):
    render(PERSON).save(tmp_path / "source.png")
    render(lighten(PERSON, 8)).save(tmp_path / "edited.png")
    return tmp_path / "source.png", tmp_path / "edited.png"


def test_planted_lightening_is_measured(evenedit, pair, tmp_path):
    said = evenedit("measure", *pair, "--json", "--picture", tmp_path / "seen.png")
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)
    assert found["skin_delta_L"] == pytest.approx(8, abs=1.0)
    assert 0 <= found["changed_share"] <= 1
    assert {"skin_delta_ITA", "identity_distance", "reasons"} <= found.keys()
    with Image.open(tmp_path / "seen.png") as seen:
        assert seen.size[0] > 512


def test_without_a_face_there_is_a_reason_and_no_number(evenedit, pair, tmp_path):
    Image.new("RGB", (512, 512), "gray").save(tmp_path / "nothing.png")
    found = json.loads(evenedit("measure", pair[0], tmp_path / "nothing.png", "--json").stdout)
    assert found["skin_delta_L"] is None
    assert found["reasons"]["skin_delta_L"]


def test_a_table_for_people_and_a_message_for_a_bad_file(evenedit, pair, tmp_path):
    assert "skin_delta_L" in evenedit("measure", *pair).stdout
    (tmp_path / "bad.png").write_text("not a picture")
    said = evenedit("measure", pair[0], tmp_path / "bad.png")
    assert (said.returncode, "Traceback" in said.stderr) == (2, False)
