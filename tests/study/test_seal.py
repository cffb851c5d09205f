"""A plan that is sealed before the first edit: what is changed later is told on top."""

import json
import re
import sqlite3

import pytest

from evenedit.api.study import Study
from evenedit.core.errors import EvenEditError
from evenedit.storage.study_history import StudyHistory, chain_breaks, parse_history
from evenedit.study.preregistration.adherence import PlanAdherence
from evenedit.study.preregistration.seal import seal_study
from tests.support.bundles import SEALED, sealed_study
from tests.support.studies import write_study


@pytest.fixture
def study(tmp_path) -> Study:
    return sealed_study(tmp_path, **(SEALED | {"instruments": []}))


def edited(study: Study, old: str, new: str) -> Study:
    path = study.folder / "study.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return Study.load(study.folder)


def changes(study: Study) -> dict[str, tuple[str, str]]:
    kept = PlanAdherence.of(Study.load(study.folder))
    assert kept is not None
    return {change.what: (change.before, change.after) for change in kept.changes}


def test_a_kept_plan_has_no_changes_and_makes_findings_confirmatory(study):
    results = study.results()
    plan = results.preregistration
    assert plan is not None and plan.changes == ()
    assert {h.rule for h in plan.hypotheses} == {one["rule"] for one in SEALED["hypotheses"]}
    standing = {(f.measure, f.factor): f.standing for f in results.findings if f.kind in ("gap", "shift")}
    assert (
        standing["shift.skin_tone", None] == "confirmatory" and standing["gap.skin_lighter", "race"] == "confirmatory"
    )
    assert "exploratory" in standing.values(), "what no hypothesis names"


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("editors = ", "thresholds = {race_change = {at_least = 4}}\neditors = ", "thresholds.race_change"),
        ('"O-01", ', "", "prompts.include"),
        ("skin_lighter.race <= 0.2", "skin_lighter.race <= 0.9", "hypotheses[1].rule"),
        ("draws = 100", "draws = 200", "statistics.draws"),
        ('"simulated-judge-b"', '"simulated-judge-c"', "judges[2].id"),
    ],
)
def test_a_later_change_is_told_with_before_and_after(study, old, new, what):
    edited(study, old, new)
    found = changes(study)
    assert what in found and found[what][0] != found[what][1]


def test_the_report_tells_changes_on_top_and_calls_findings_exploratory(study):
    page = edited(study, "editors = ", "findings = {tolerance = 0.5}\neditors = ").report()
    text = page.read_text()
    assert re.search(r"Plan changed.*findings\.tolerance</th><td>0\.1</td><td>0\.5", text, re.DOTALL)
    assert text.index("Plan changed") < text.index('id="findings"')
    assert "confirmatory" not in text


def test_data_that_were_changed_outside_of_runs_are_told(study):
    study.store.close()
    with sqlite3.connect(study.folder / "study.db") as db:
        db.execute("UPDATE ratings SET value = 1 + value % 5 WHERE rater = 'simulated-judge-a'")
    found = changes(study)
    assert any(part.startswith("ratings of simulated-judge-a") for part in found)
    Study.load(study.folder).run()
    assert any("began" in after for _, after in changes(study).values()), "a later run does not cover it up"


def test_a_dropped_edit_is_told(study):
    study.store.close()
    with sqlite3.connect(study.folder / "study.db") as db:
        db.execute("DELETE FROM edits WHERE rowid = 1")
    assert changes(study)["planned edits"][1] == "15 there, 1 missing"


def test_a_seal_cannot_be_moved(study):
    path = study.folder / "seal.json"
    body = json.loads(path.read_text())
    body["plan"]["findings"]["tolerance"] = 0.5
    path.write_text(json.dumps(body))
    with pytest.raises(EvenEditError, match="changed after it was sealed"):
        study.results()
    path.unlink()
    with pytest.raises(EvenEditError, match="is missing"):
        study.results()
    with pytest.raises(EvenEditError, match="edits are made already"):
        seal_study(study)


def test_a_plan_is_sealed_once_and_its_hypotheses_must_be_rules(tmp_path):
    study = Study.load(write_study(tmp_path / "a"))
    seal_study(study)
    with pytest.raises(EvenEditError, match="sealed already"):
        seal_study(study)
    with pytest.raises(EvenEditError, match="is not understood"):
        seal_study(Study.load(write_study(tmp_path / "b", hypotheses=[{"rule": "all is well"}])))


def test_each_line_of_the_history_holds_the_next(study):
    history = StudyHistory(study.folder)
    assert [line.event for line in history.lines()] == ["sealed", "run began", "run ended"]
    assert not list(chain_breaks(history.lines()))
    lines = history.text().splitlines(keepends=True)
    for tampered in (lines[1:], [lines[0], lines[2]], [lines[0], lines[1].replace('"run": 1', '"run": 2'), lines[2]]):
        assert list(chain_breaks(parse_history("".join(tampered))))


def test_a_study_that_was_never_sealed_says_nothing_of_a_plan(tmp_path):
    study = Study.load(write_study(tmp_path))
    study.run()
    results = study.results()
    assert results.preregistration is None and {f.standing for f in results.findings} == {""}


def test_pictures_that_hold_other_bytes_are_told(study):
    source = next(iter(study.store.sources().values()))
    path = study.store.images.path(source.image)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    assert changes(study)["pictures"][1] == "1 hold other bytes"


def test_a_last_run_without_an_end_is_told(study):
    path = study.folder / "history.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    assert "has none" in changes(study)["history"][1]


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("UPDATE runs SET started = '2020-01-01T00:00:00+00:00'", "run 1"),
        ("DELETE FROM runs", "run 1"),
        ("UPDATE sources SET origin = 'a studio'", "origins of sources"),
        ("UPDATE edits SET seconds = 0.001", "edits"),
    ],
)
def test_facts_about_runs_portraits_and_edits_are_held_too(study, statement, what):
    with sqlite3.connect(study.folder / "study.db") as db:
        assert db.execute(statement).rowcount
    assert "outside of any run" in changes(study)[what][1]
