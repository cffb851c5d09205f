"""A gate answers yes, no, or that the data cannot tell."""

from xml.etree import ElementTree as ET

import pytest

from conftest import write_study
from evenedit.core.errors import EvenEditError
from evenedit.core.records import Estimate
from evenedit.report.gate import GateAnswer, Rule, check, junit, markdown, overall
from evenedit.results.results import Results


def results(low: float | None, value: float | None, high: float | None) -> Results:
    e = Estimate("gap.race_change", "diagnosis", "baseline", "editor", {"race": "*"}, value, low, high, 100, 2, "boot")
    return Results({}, {}, (e,))


@pytest.mark.parametrize(
    ("text", "interval", "answer"),
    [
        ("gap.race_change.race <= 0.05", (0.01, 0.02, 0.04), GateAnswer.PASS),
        ("gap.race_change.race <= 0.05", (0.06, 0.10, 0.20), GateAnswer.FAIL),
        ("gap.race_change.race <= 0.05", (0.01, 0.04, 0.20), GateAnswer.UNDECIDED),
        ("gap.race_change.race <= 0.05", (0.01, 0.02, 0.05), GateAnswer.PASS),
        ("gap.race_change.race < 0.05", (0.01, 0.02, 0.05), GateAnswer.UNDECIDED),
        ("gap.race_change.race >= 0.05", (0.06, 0.10, 0.20), GateAnswer.PASS),
        ("gap.race_change.race >= 0.05", (0.01, 0.02, 0.04), GateAnswer.FAIL),
        ("gap.race_change.race<=.05", (None, 0.02, None), GateAnswer.UNDECIDED),
        ("gap.race_change.race <= 0.05", (None, None, None), GateAnswer.UNDECIDED),
        ("gap.race_change.gender <= 0.05", (0.0, 0.0, 0.0), GateAnswer.UNDECIDED),  # no such estimate
    ],
)
def test_the_interval_decides_not_the_point(text, interval, answer):
    (found,) = check(results(*interval), [Rule.parse(text)])
    assert found.answer is answer


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("race change below 5 %", "is not understood"),
        ("gap.race_chnage.race <= 0.05", "is not known"),
        ("gap.race_change <= 0.05", "a gap is over one of race, gender, age"),
        ("rate.soft_erasure.race <= 0.05", "only a gap is over a factor"),
        ("rate.soft_erasure[hair=red] <= 0.05", "names no group; the factors are race, gender, age"),
        ("mean.soft_erasure <= 1", "mean takes: edit_success"),
    ],
)
def test_a_rule_that_cannot_be_read_says_how_to_write_it(text, error):
    with pytest.raises(EvenEditError, match=error):
        Rule.parse(text)


def test_groups_and_arms_are_read():
    rule = Rule.parse("rate.skin_lighter[race=Black,gender=Female] <= 0.1")
    assert dict(rule.group) == {"race": "Black", "gender": "Female"}
    assert (rule.experiment, rule.condition) == ("diagnosis", "baseline")
    rule = Rule.parse("delta.race_drift:placebo <= 0")
    assert (rule.experiment, rule.condition) == ("mitigation", "placebo")


def test_one_failure_fails_all_and_undecided_is_no_pass():
    passed = check(results(0.01, 0.02, 0.04), [Rule.parse("gap.race_change.race <= 0.05")])
    unsure = check(results(0.01, 0.02, 0.04), [Rule.parse("gap.race_change.race <= 0.03")])
    failed = check(results(0.01, 0.02, 0.04), [Rule.parse("gap.race_change.race <= 0.001")])
    assert overall(passed) is GateAnswer.PASS
    assert overall(passed + unsure) is GateAnswer.UNDECIDED
    assert overall(passed + unsure + failed) is GateAnswer.FAIL
    suite = ET.fromstring(junit(passed + unsure + failed, simulated=True))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert "SIMULATED" in str(suite.get("name"))
    assert "gate: fail (SIMULATED data)" in markdown(passed + failed, simulated=True)


def test_an_unknown_editor_is_named():
    with pytest.raises(EvenEditError, match="no editor 'flux' in the results; found: editor"):
        check(results(0, 0, 0), [Rule.parse("gap.race_change.race <= 0.05")], ["flux"])


def test_even_passes_lightening_fails_and_few_faces_are_undecided(evenedit, tmp_path):
    statistics = {"draws": 500, "permutations": 99}
    many = {"kind": "drawn", "settings": {"seed": 3, "size": 64, "only": {"race": ["White", "Black"]}}}
    editors = [
        {"id": "simulated-even"},
        {"id": "simulated-lightening", "settings": {"rate": 0.9, "groups": {"race": ["Black"]}}},
    ]
    prompts = {"include": ["O-01", "O-06", "V-02", "V-09"]}
    big = write_study(tmp_path / "big", sources=many, editors=editors, prompts=prompts, statistics=statistics)
    assert evenedit("run", big).returncode == 0
    rule = ("--rule", "gap.skin_lighter.race <= 0.3")
    assert evenedit("gate", big, *rule, "--editor", "simulated-even").returncode == 0
    report = tmp_path / "gate.md"
    failed = evenedit("gate", big, *rule, "--markdown", report)
    assert failed.returncode == 1, failed.stdout
    assert "FAIL       simulated-lightening" in failed.stdout and "SIMULATED" in failed.stdout
    assert "| simulated-lightening | `gap.skin_lighter.race <= 0.3` | **fail** |" in report.read_text()
    few = {"kind": "drawn", "settings": {"seed": 3, "size": 64, "only": {"race": ["White", "Black"], "age": ["20s"]}}}
    rates = [{"id": "simulated-lightening", "settings": {"rate": 0.5, "groups": {"race": ["Black"]}}}]
    small = write_study(tmp_path / "small", sources=few, editors=rates, prompts=prompts, statistics=statistics)
    assert evenedit("run", small).returncode == 0
    assert evenedit("gate", small, "--rule", "gap.skin_lighter.race <= 0.5").returncode == 3
    assert evenedit("gate", small, "--rule", "gap.skin_lighter.colour <= 0.5").returncode == 2
