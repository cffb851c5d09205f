"""Instruments in a study: measured once, resumable, raters of their own that no ensemble mixes in."""

import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Kind, Status
from evenedit.instruments import identity as likeness
from evenedit.ratings import instruments as rating_instruments
from evenedit.ratings.combine import combine
from evenedit.ratings.table import QUESTION_IDS
from evenedit.report.contents import all_tables
from evenedit.report.render.index import Index
from evenedit.report.text.summary import summarise
from evenedit.run import measuring as measurements
from evenedit.run import measuring_process
from evenedit.stats.disparity.instruments import BOUNDS
from evenedit.storage.store import Store
from evenedit.study.analysis import analysis_rules, compute_results
from tests.support.studies import open_study, write_study

INSTRUMENTS = [
    {"id": "skin", "kind": "skin"},
    {"id": "change", "kind": "change", "settings": {"identity": False}},
]
SOURCES = {
    "kind": "drawn",
    "settings": {"seed": 3, "size": 192, "only": {"race": ["White", "Black"], "age": ["20s", "70plus"]}},
}
SKIN = QUESTION_IDS.index("skin_tone")
SUCCESS = QUESTION_IDS.index("edit_success")


def measured(folder, **changes):
    return open_study(folder, sources=SOURCES, **{"instruments": INSTRUMENTS, "judges": [], **changes})


@pytest.fixture(scope="module")
def lightening(tmp_path_factory):
    """Eight faces, two prompts, an editor that lightens portraits labelled Black; no judge at all."""
    loaded = measured(tmp_path_factory.mktemp("lightening"))
    loaded.run()
    return loaded


def test_planted_lightening_is_measured_without_a_judge(lightening):
    table = lightening.table()
    assert table.kinds == (Kind.INSTRUMENT, Kind.INSTRUMENT)
    truth = [e.detail["truth"]["skin_tone"] for e in lightening.store.edits().values()]
    assert Counter(truth)[3] < len(truth), "something is planted"
    answers = table.values[0, :, SKIN]
    edits = lightening.store.edits()
    planted = np.array([edits[i].detail["truth"]["skin_tone"] for i in table.edits["request_id"]])
    assert (answers[answers > 0] == planted[answers > 0]).mean() > 0.9
    assert (answers > 0).sum() >= 14


def test_a_second_run_measures_nothing_and_changed_cuts_need_no_measuring(lightening, monkeypatch):
    before = lightening.table()
    monkeypatch.setattr(measurements, "measure_pairs", lambda pairs: pytest.fail("measured again"))
    measured(lightening.store.folder).run()
    finer = [{"id": "skin", "kind": "skin", "settings": {"cuts": [-4.0, -1.0, 1.0, 4.0]}}, INSTRUMENTS[1]]
    again = measured(lightening.store.folder, instruments=finer)
    again.run()
    assert again.design.instruments(again.store.sources()).raters[0].revision != (
        lightening.design.instruments(again.store.sources()).raters[0].revision
    )
    assert (again.table().values[0] != before.values[0]).any()
    assert (lightening.table().values == before.values).all(), "the former cuts' ratings stay"


def test_the_ensemble_is_of_judges_only(lightening):
    table = lightening.table()
    scores = combine(table, analysis_rules(lightening.file).ensemble, "exclude")
    assert (table.values[0, :, SKIN] > 0).any()
    assert not scores.values.any()


def test_every_measurement_is_kept_with_its_reasons(lightening):
    version = lightening.design.instruments(lightening.store.sources()).version
    stored = lightening.store.measurements(version)
    assert len(stored) == 16
    for numbers, reasons in stored.values():
        assert {"skin_delta_L", "changed_share", "verdict", "regions"} <= numbers.keys()
        assert all(value is not None or name in reasons for name, value in numbers.items())


def test_a_report_without_judges_says_what_was_measured(lightening):
    table = lightening.table()
    results = compute_results(lightening, table)
    by_name = {m.rater: m for m in results.measured}
    skin = by_name["skin"]
    everybody = next(e for e in skin.estimates if e.measure == "mean.skin_delta_L" and not e.group and e.editor)
    values = next(r for r in table.readings if r.measure == "mean.skin_delta_L").values
    assert everybody.value == pytest.approx(np.nanmean(values), abs=1e-4)
    assert everybody.low < everybody.value < everybody.high
    black, white = (
        next(e for e in skin.estimates if e.measure == "rate.measured_skin_lighter" and e.group == {"race": race}).value
        for race in ("Black", "White")
    )
    assert black > white
    change = by_name["change"].estimates
    assert all(e.low >= 0 and e.high <= 1 for e in change if e.measure in BOUNDS and e.low is not None)
    index = Index(results)
    assert not index.rated
    tables = all_tables(index)
    assert {"measured", "measured_gaps", "measured_prompts", "coverage"} <= tables.keys()
    assert "table4" not in tables
    texts = [s.text for s in summarise(index)]
    assert any("No judge has rated" in text for text in texts)
    assert any("measured lighter in skin" in text for text in texts)


def test_what_a_feature_prompt_changed_is_measured_over_pairs(tmp_path):
    experiments = {"diagnosis": {}, "mitigation": {"cases": 8, "extractor": {"kind": "simulated"}, "placebo": True}}
    loaded = measured(tmp_path, prompts={"include": ["O-01"]}, experiments=experiments)
    loaded.run()
    table = loaded.table()
    edits, values = table.edits, next(r for r in table.readings if r.measure == "mean.skin_delta_L").values
    arms = {}
    for arm, name in (("baseline", "diagnosis"), ("feature", "mitigation")):
        chosen = (edits["experiment"] == name) & (edits["condition"] == arm)
        arms[arm] = dict(zip(edits["source_id"][chosen], values[chosen.to_numpy()], strict=True))
    by_hand = np.array([arms["feature"][s] - arms["baseline"][s] for s in arms["feature"]])
    assert len(by_hand) == 8 and (np.abs(by_hand[~np.isnan(by_hand)]) > 1).any()

    results = compute_results(loaded, table)
    skin = Index(results).instruments["skin"]
    found = skin.find("delta.skin_delta_L", "simulated-lightening", experiment="mitigation", condition="feature")
    assert found.value == pytest.approx(np.nanmean(by_hand), abs=1e-3)
    assert (found.n, found.missing) == ((~np.isnan(by_hand)).sum(), np.isnan(by_hand).sum())
    before, after = (
        skin.find("mean.skin_delta_L", "simulated-lightening", experiment="mitigation", condition=arm).value
        for arm in ("baseline", "feature")
    )
    assert after - before == pytest.approx(found.value, abs=1e-3)
    shown = all_tables(Index(results))["measured_mitigation"]
    assert {c.id for c in shown.columns} >= {"baseline", "feature", "placebo", "change_feature", "change_placebo"}


def test_what_cannot_be_measured_is_counted_by_group_and_tested(lightening):
    table = lightening.table()
    black = (table.edits["race"] == "Black").to_numpy()
    reading = next(r for r in table.readings if r.measure == "mean.skin_delta_L")
    blind = replace(
        reading,
        values=np.where(black, np.nan, reading.values),
        reasons=tuple("edited picture: no face" if b else r for b, r in zip(black, reading.reasons, strict=True)),
    )
    readings = tuple(blind if r is reading else r for r in table.readings)
    results = compute_results(lightening, replace(table, readings=readings))
    gone = {
        s.group.get("race", ""): (s.count, s.edits)
        for m in results.measured
        for s in m.missing_reasons
        if s.reason == "edited picture: no face" and set(s.group) <= {"race"}
    }
    assert gone == {"": (8, 16), "White": (0, 8), "Black": (8, 8)}
    (test,) = (
        t
        for t in results.coverage_tests
        if (t.measure, t.factor, t.editor) == ("gap.unanswered.skin: skin_delta_L", "race", "simulated-lightening")
    )
    white = table.edits["race"] == "White"
    assert (test.value, test.highest) == (1 - np.isnan(reading.values[white]).mean(), "Black")
    assert "silences" in all_tables(Index(results))


def test_an_unchanged_output_is_answered_and_a_changed_one_has_a_reason(tmp_path):
    loaded = measured(tmp_path, editors=[{"id": "simulated-null"}, {"id": "simulated-even"}])
    loaded.run()
    table = loaded.table()
    change = table.raters.index("change")
    null = (table.edits["editor"] == "simulated-null").to_numpy()
    assert (table.values[change, null, SUCCESS] == 1).all()
    assert (table.values[change, ~null, SUCCESS] == 1).mean() < 0.5
    ratings = list(loaded.store.ratings("change", loaded.design.instruments(loaded.store.sources()).raters[1].revision))
    assert {r.status for r in ratings} == {Status.SCORED}
    assert all(r.value == 1 or r.reason.startswith("changed") for r in ratings)


def test_an_instrument_can_be_kept_to_some_editors(tmp_path):
    some = [{**INSTRUMENTS[0], "editors": ["simulated-even"]}]
    loaded = measured(
        tmp_path,
        instruments=some,
        editors=[{"id": "simulated-null"}, {"id": "simulated-even"}],
        prompts={"include": ["O-01"]},
    )
    loaded.run()
    table = loaded.table()
    asked = table.status[0] >= 0
    assert set(table.edits["editor"][asked]) == {"simulated-even"}
    with pytest.raises(EvenEditError, match="no editor 'simulated-eve'; did you mean"):
        measured(tmp_path / "b", instruments=[{**INSTRUMENTS[0], "editors": ["simulated-eve"]}])


def test_a_pair_that_cannot_be_measured_fails_alone_and_is_tried_again(tmp_path, monkeypatch):
    loaded = measured(tmp_path, prompts={"include": ["O-01"]})
    real, seen = measuring_process.measure, []

    def breaks_once(*args, **kwargs):
        seen.append(1)
        if len(seen) == 2:
            raise ZeroDivisionError("made up")
        return real(*args, **kwargs)

    monkeypatch.setattr(measuring_process, "measure", breaks_once)
    loaded.run()
    states = Counter(
        loaded.store.answered("skin", loaded.design.instruments(loaded.store.sources()).raters[0].revision).values()
    )
    assert states[Status.FAILED] == 1
    loaded.run()
    assert len(seen) == 9, "only the broken one again"
    assert not (loaded.table().status == list(Status).index(Status.FAILED)).any()


def test_identity_without_the_extra_is_a_reason_in_every_row(tmp_path, monkeypatch):
    monkeypatch.setattr(likeness, "available", lambda: False)
    monkeypatch.setattr(measurements, "available", lambda: False)
    monkeypatch.setattr(rating_instruments, "available", lambda: False)
    loaded = measured(tmp_path, instruments=[{"id": "change", "kind": "change"}], prompts={"include": ["O-01"]})
    loaded.run()
    reading = next(r for r in loaded.table().readings if r.measure == "rate.another_person")
    assert np.isnan(reading.values).all()
    assert all("evenedit[faces]" in reason for reason in reading.reasons)


@pytest.mark.skipif(not likeness.available(), reason="the extra 'faces' is not installed")
def test_the_identity_reference_is_computed_once_and_its_bias_printed(tmp_path, monkeypatch):
    only = {"seed": 3, "size": 192, "only": {"race": ["White"], "gender": ["Male"]}}
    loaded = open_study(
        tmp_path,
        sources={"kind": "drawn", "settings": only},
        instruments=[{"id": "change", "kind": "change"}],
        judges=[],
        prompts={"include": ["O-01"]},
        editors=[{"id": "simulated-null"}],
    )
    loaded.run()
    monkeypatch.setattr(measurements, "embed_reference_face", lambda person: pytest.fail("computed again"))
    other = [{"id": "simulated-null"}, {"id": "simulated-even"}]
    again = open_study(
        tmp_path,
        sources={"kind": "drawn", "settings": only},
        instruments=[{"id": "change", "kind": "change"}],
        judges=[],
        prompts={"include": ["O-01"]},
        editors=other,
    )
    again.run()
    results = compute_results(again, again.table())
    assert results.measured[0].notes == (likeness.BIAS,)
    assert likeness.BIAS in all_tables(Index(results))["measured"].notes
    same = next(
        e for e in results.measured[0].estimates if (e.measure, e.editor) == ("rate.another_person", "simulated-null")
    )
    assert (same.value, same.n) == (0.0, 6)


STOPPED = """
import os, signal, sys
from evenedit.cli import main
from evenedit.storage.store import Store

save = Store.save_measurements

def save_and_stop(self, *arguments):
    save(self, *arguments)
    if len(self.run_of_measurements()) >= 4:
        os.kill(os.getpid(), signal.SIGINT)

Store.save_measurements = save_and_stop
sys.argv = ["evenedit", "run", sys.argv[1]]
main()
"""
"""Ctrl-C as soon as four measurements are stored."""


def test_an_interrupted_measuring_goes_on_where_it_stopped(tmp_path):
    """In processes, as a larger study is measured: Ctrl-C keeps what is done, leaves nobody behind, repeats nothing."""
    write_study(
        tmp_path,
        sources={"kind": "drawn", "settings": {**SOURCES["settings"], "only": {"race": ["White", "Black"]}}},
        instruments=INSTRUMENTS,
        judges=[],
    )
    stopped = subprocess.run([sys.executable, "-c", STOPPED, str(tmp_path)], capture_output=True, text=True)
    assert stopped.returncode == 130, stopped.stderr
    command = [sys.executable, "-m", "evenedit", "run", str(tmp_path)]

    def done():
        return Store(tmp_path).run_of_measurements()

    first = done()
    assert 4 <= len(first) < 48
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    second = done()
    assert len(second) == 48
    assert first.items() <= second.items()
