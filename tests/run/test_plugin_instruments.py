"""Instruments of others: installed packages and Python objects read pictures, and what they read outlives them."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import ImageFilter

import evenedit as ee
from evenedit.core.records import Status
from evenedit.instruments.measure import measure
from evenedit.run import measuring_process
from evenedit.simulation.portraits.drawn import Drawn
from tests.support.studies import open_study

SOURCES = {
    "kind": "drawn",
    "settings": {"seed": 3, "size": 192, "only": {"race": ["White", "Black"], "age": ["20s", "70plus"]}},
}
BLURRED = ("60s", "70plus")


class Brightness:
    """An instrument that counts what it reads and breaks where it is told to."""

    id = "brightness"
    answers = (
        "skin_tone",
        {
            "id": "made_darker",
            "kind": "yes-no",
            "title": "Made darker",
            "text": "Is the picture darker?",
            "rates": {"made_darker": {"is": ["yes"], "phrase": "came back darker"}},
        },
    )
    numbers = {"brightness": {"title": "Brightness", "unit": "levels", "tolerance": 3}}  # noqa: RUF012

    def __init__(self, version="1", breaks=()):
        self.version, self.breaks, self.calls = version, breaks, 0

    def read(self, source, edited, context):
        self.calls += 1
        if self.calls in self.breaks:
            raise ZeroDivisionError("made up")
        change = float(edited.rgb.mean() - source.rgb.mean())
        darker = change < -3
        return {
            "brightness": ee.Read(change),
            "skin_tone": ee.Read(2 if darker else 3),
            "made_darker": ee.Read("yes" if darker else "no"),
        }


def study(folder, **changes):
    return open_study(folder, sources=SOURCES, **{"judges": [], "prompts": {"include": ["O-01"]}, **changes})


def states(made, ident):
    (rater,) = (r for r in made.design.instruments(made.store.sources()).raters if r.id == ident)
    return list(made.store.answered(ident, rater.revision).values())


def values_of(made, measure):
    (reading,) = (r for r in made.table().readings if r.measure == measure)
    return reading.values


def test_an_object_reads_each_pair_once_and_its_readings_are_shown_without_it(tmp_path):
    made, instrument = study(tmp_path), Brightness()
    made.run(instruments={"mine": instrument})
    assert instrument.calls == 8
    made.run(instruments={"mine": instrument})
    made.run()
    assert instrument.calls == 8
    again = study(tmp_path)
    assert [(i.id, i.kind) for i in again.file.sections.instruments] == [("mine", "python")]
    changes = values_of(again, "mean.brightness")
    assert (changes < -3).any() and (changes > -3).any()
    assert (values_of(again, "rate.brightness_below") == (changes < -3)).all()
    answers = again.table().values[0, :, again.file.rubric.at("made_darker")]
    assert (answers == np.where(changes < -3, 1, 2)).all()
    results = again.results()
    (mine,) = results.measured
    assert {"mean.brightness", "rate.brightness_below", "rate.measured_skin_darker", "rate.measured_made_darker"} <= {
        e.measure for e in mine.estimates
    }
    assert mine.readings[0].title == "Brightness"
    other = Brightness("2")
    made.run(instruments={"mine": other})
    assert other.calls == 8, "another version reads anew"


def test_one_that_fails_on_a_pair_fails_there_only_and_reads_it_again(tmp_path):
    made = study(tmp_path, instruments=[{"id": "skin", "kind": "skin"}])
    made.run(instruments={"mine": Brightness(breaks=(3,))})
    assert states(made, "mine").count(Status.FAILED) == 1
    assert set(states(made, "skin")) == {Status.SCORED}
    assert np.isnan(values_of(made, "mean.brightness")).sum() == 1
    instrument = Brightness()
    made.run(instruments={"mine": instrument})
    assert instrument.calls == 1
    assert states(made, "mine").count(Status.FAILED) == 0


def test_one_that_keeps_failing_is_stopped_and_the_summary_says_so(tmp_path):
    made = study(tmp_path, instruments=[{"id": "skin", "kind": "skin"}], executor={"max_failures": 2})
    instrument = Brightness(breaks=range(99))
    summary = made.run(instruments={"mine": instrument})
    assert instrument.calls < 8
    assert summary.stopped == (
        "instrument 'mine' was stopped: 2 failures in a row (crash): ZeroDivisionError: made up",
    )
    assert set(states(made, "skin")) == {Status.SCORED}


def test_a_shared_measurement_that_fails_leaves_other_instruments_alone(tmp_path, monkeypatch):
    def broken(*args, **kwargs):
        raise ZeroDivisionError("made up")

    made = study(tmp_path, instruments=[{"id": "skin", "kind": "skin"}, {"id": "people", "kind": "people"}])
    monkeypatch.setattr(measuring_process, "measure", broken)
    made.run()
    assert set(states(made, "skin")) == {Status.FAILED}
    assert set(states(made, "people")) == {Status.SCORED}
    monkeypatch.setattr(measuring_process, "measure", measure)
    made.run()
    assert set(states(made, "skin")) == {Status.SCORED}


def test_what_only_reads_pictures_needs_no_shared_measurement(tmp_path, monkeypatch):
    monkeypatch.setattr(measuring_process, "measure", lambda *a, **k: pytest.fail("measured"))
    made = study(tmp_path, instruments=[{"id": "people", "kind": "people"}])
    made.run()
    assert (values_of(made, "rate.not_one_person") == 0).all()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Brightness, "is the class Brightness; give an instance"),
        (7, "neither a function nor an object with a method .read"),
        (Brightness(""), "has no attribute 'revision'"),
    ],
)
def test_what_is_no_instrument_is_refused_before_anything_is_made(tmp_path, value, message):
    made = study(tmp_path)
    with pytest.raises(ee.EvenEditError, match=message):
        made.run(instruments={"mine": value})
    assert not made.store.edits()


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """A table of edits: faces of the oldest come back blurred, all others as they were."""
    folder, rows = tmp_path_factory.mktemp("pairs"), []
    for ident, labels, _, image in Drawn(seed=3, size=192, only={"race": ["White", "Black"]}).portraits():
        image.save(folder / f"{ident}.png")
        for number, prompt in enumerate(("Make the person a pilot.", "Make the person a chef.")):
            name = f"{ident}_{number}.png"
            (image.filter(ImageFilter.GaussianBlur(3)) if labels["age"] in BLURRED else image).save(folder / name)
            rows.append({"source": f"{ident}.png", "edited": name, "prompt": prompt, **labels})
    with (folder / "edits.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return folder / "edits.csv"


def evenedit(*arguments, environment=None):
    command = [sys.executable, "-m", "evenedit", *map(str, arguments)]
    return subprocess.run(command, env=environment or dict(os.environ), capture_output=True, text=True, timeout=600)


def test_an_installed_package_reads_in_processes_and_is_not_needed_afterwards(plugin, pairs, tmp_path):
    folder = tmp_path / "audit"
    command = ("audit", "--pairs", pairs, "--instruments", "sharpness,people", "--out", folder)
    refused = evenedit(*command)
    assert refused.returncode == 2 and "instrument kind 'sharpness' is not installed" in refused.stderr
    assert not folder.exists()
    done = evenedit(*command, environment=plugin)
    assert done.returncode == 0, done.stderr
    results = ee.load_results(folder / "report")
    clear = {(f.measure, f.factor, f.level) for f in results.findings if f.rater == "sharpness" and f.factor == "age"}
    assert ("gap.sharpness_log2_below", "age", "clear") in clear
    assert ("gap.measured_face_blurred", "age", "clear") in clear
    assert any("show a face less than half as sharp as before" in f.text for f in results.findings)
    below = results.estimate("rate.sharpness_log2_below", group={"age": "70plus"})
    assert (below.value, below.n) == (1.0, 8)
    assert any("in sharpness of the face" in f.text for f in results.findings)
    assert "Sharpness of the face" in (folder / "report" / "report.html").read_text()
    first = json.loads((folder / "report" / "results.json").read_text())

    for step in (("run", folder), ("status", folder), ("report", folder), ("bundle", folder, "--out", tmp_path / "b")):
        done = evenedit(*step)
        assert done.returncode == 0, done.stderr
    again = json.loads((folder / "report" / "results.json").read_text())
    assert {name for name in first if first[name] != again[name]} <= {"provenance"}
    assert evenedit("verify", tmp_path / "b").returncode == 0
    rescored = evenedit("rescore", tmp_path / "b", "--out", tmp_path / "rescored")
    assert rescored.returncode == 0 and "identical" in rescored.stdout
    gate = evenedit("gate", folder, "--rule", "mean.sharpness_log2 >= -0.5")
    assert gate.returncode == 1, gate.stdout


def test_an_audit_takes_kinds_and_objects(pairs, tmp_path):
    instrument = Brightness()
    made = ee.audit(pairs, instruments=["people", instrument], out=tmp_path / "audit")
    assert instrument.calls == 48 + 48, "edits and null pairs"
    assert [r.rater for r in made.results().measured] == ["people", "brightness"]


def test_the_page_shows_the_package_that_is_tested():
    root = Path(__file__).parents[2]
    code = (root / "tests/instrument_plugin/src/evenedit_sharpness.py").read_text()
    assert code in (root / "docs/add-an-instrument.md").read_text()
