"""Ids and revisions are pinned: a study that was begun goes on after an upgrade."""

import json
from pathlib import Path
from typing import Any

import pytest

from evenedit.api.study import Study
from evenedit.core import plugins
from evenedit.core.hashing import digest
from evenedit.core.records import Condition, ConditionKind, Experiment, Request, Source
from evenedit.design.requests import diagnosis
from evenedit.judges.feature_prompts import extractor_id
from tests.support.studies import open_study

PINNED = json.loads((Path(__file__).parents[1] / "fixtures" / "pinned-ids.json").read_text())
SOURCE = Source("White_Male_20s", "0" * 64, {"race": "White", "gender": "Male", "age": "20s"}, "x")
SOURCES = {SOURCE.id: SOURCE}
GIVEN: dict[str, dict[str, Any]] = {
    "command": {"command": ["python", "edit.py", "{source}", "{instruction}", "{output}"]},
    "folder": {"path": "edited"},
    "gemini-images": {"model": "gemini-2.5-flash-image"},
    "openai-images": {"model": "gpt-image-1"},
    "step1x-edit-v1p2": {"python": "/opt/step1x/bin/python"},
}
"""What the study file said of an editor; the other editors, and all other settings, were left at their defaults."""
JUDGES = {
    "g": {"kind": "gemini", "settings": {"model": "gemini-3-flash-preview"}},
    "o": {"kind": "openai", "settings": {"model": "gpt-5-mini"}},
    "simulated-a": {"kind": "simulated"},
}
EXTRACTORS: dict[str, dict[str, str]] = {
    "simulated": {},
    "vlm": {"provider": "gemini", "model": "gemini-3-flash-preview"},
}


def request(folder: Path, kind: str, **settings: Any) -> Request:
    """The one request of a study with one portrait, one prompt and this editor."""
    editor = {"id": kind, "kind": kind, "seeds": [42], "settings": settings}
    study = open_study(folder, editors=[editor], prompts={"include": ["O-01"]}).file
    (only,) = diagnosis(study, SOURCES)
    return only


def measured(folder: Path) -> Study:
    return open_study(folder, instruments=[{"id": name, "kind": name} for name in PINNED["instruments"]])


def test_every_built_in_editor_is_held_to_its_ids():
    assert set(PINNED["request_ids"]) <= set(plugins.installed("editors"))


@pytest.mark.parametrize("kind", PINNED["request_ids"])
def test_an_editors_settings_and_its_requests_id_are_pinned(tmp_path, kind):
    made = request(tmp_path, kind, **GIVEN.get(kind, {}))
    assert json.loads(json.dumps(dict(made.settings))) == PINNED["settings"][kind]
    assert made.id == PINNED["request_ids"][kind]


@pytest.mark.parametrize("kind", PINNED["request_ids"])
def test_a_default_that_is_written_out_gives_the_same_id(tmp_path, kind):
    settings = {name: value for name, value in PINNED["settings"][kind].items() if name != "kind"}
    assert request(tmp_path, kind, **settings).id == PINNED["request_ids"][kind]


def test_the_conditions_text_is_part_of_the_id():
    texts = [*(kind.value for kind in ConditionKind if kind is not ConditionKind.TRANSLATED), "in_ko", "in_pt-BR"]
    for text in texts:
        request = Request(Experiment.DIAGNOSIS, Condition.parse(text), ("a",), "O-01", "Do it.", "e", {"steps": 4}, 1)
        assert request.id == digest(["diagnosis", text, ["a"], "O-01", "Do it.", "e", {"steps": 4}, 1])


def test_another_setting_gives_another_id(tmp_path):
    assert request(tmp_path, "flux2-dev", steps=28).id != PINNED["request_ids"]["flux2-dev"]


def test_judges_revisions_are_pinned(tmp_path):
    study = open_study(tmp_path, judges=[{"id": ident, **section} for ident, section in JUDGES.items()])
    assert {rater.id: rater.revision for rater in study.design.judges()} == PINNED["judges"]


def test_instruments_revisions_are_pinned_for_a_version_of_what_they_measure(tmp_path, monkeypatch):
    """A later version reads other numbers and says so by its version only."""
    monkeypatch.setattr("evenedit.ratings.instruments.VERSION", 2)
    instruments = measured(tmp_path).design.instruments(SOURCES)
    assert instruments.version == PINNED["instruments_version"]
    assert {rater.id: rater.revision for rater in instruments.raters} == PINNED["instruments"]


@pytest.mark.parametrize("kind", EXTRACTORS)
def test_extractors_ids_are_pinned(kind):
    assert extractor_id(kind, EXTRACTORS[kind]) == PINNED["extractors"][kind]
