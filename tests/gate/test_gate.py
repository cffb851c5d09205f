"""A gate answers yes, no, or that the data cannot tell."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Estimate
from evenedit.gate.gate import GateAnswer, Rule, check, junit, markdown, overall, parse_rule, parse_rule_for
from evenedit.gate.regression import regressions
from evenedit.protocol.rubric import shipped_rubric
from evenedit.results.directions import Direction
from evenedit.results.results import Finding, PredictionPowered, Results
from tests.support.studies import write_study


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
        ("gap.race_change[race] within 0.05", (0.00, 0.02, 0.05), GateAnswer.PASS),
        ("gap.race_change[race] within 0.05", (0.00, 0.02, 0.06), GateAnswer.UNDECIDED),
        ("gap.race_change[race] within 0.05", (0.06, 0.07, 0.08), GateAnswer.FAIL),
        ("gap.race_change[race] within 0.05", (-0.04, 0.02, 0.03), GateAnswer.PASS),
        ("gap.race_change[race] within 0.05", (-0.06, -0.02, 0.03), GateAnswer.UNDECIDED),
    ],
)
def test_the_interval_decides_not_the_point(text, interval, answer):
    (found,) = check(results(*interval), [Rule.parse(text)])
    assert found.answer is answer


@pytest.mark.parametrize(
    ("text", "value", "there"),
    [
        ("gap.race_change.gender <= 0.05", 0.0, "there is gap.race_change of: race"),
        ("rate.soft_erasure <= 0.05", 0.0, "there are: gap.race_change"),
        ("delta.race_drift <= 0", 0.0, "there is no mitigation:feature, only diagnosis:baseline"),
        ("gap.race_change.race <= 0.05", None, "there is no diagnosis:baseline, only nothing"),
    ],
)
def test_a_rule_that_no_editor_has_an_estimate_for_is_a_mistake_and_names_what_there_is(text, value, there):
    with pytest.raises(EvenEditError, match="no editor has such an estimate") as error:
        check(results(value, value, value), [Rule.parse(text)])
    assert there in str(error.value)


def test_without_answers_in_words_a_rule_on_missing_pictures_is_decided_by_refusals():
    refused = replace(results(0.01, 0.02, 0.04).estimates[0], measure="gap.refused")
    (found,) = check(Results({}, {}, (refused,)), [Rule.parse("gap.no_picture[race] <= 0.05")])
    assert found.answer is GateAnswer.PASS
    both = replace(refused, measure="gap.no_picture", value=0.2, low=0.1, high=0.3)
    (found,) = check(Results({}, {}, (refused, both)), [Rule.parse("gap.no_picture[race] <= 0.05")])
    assert found.answer is GateAnswer.FAIL


def test_an_editor_without_the_estimate_that_another_has_is_undecided():
    some = results(0.01, 0.02, 0.04)
    other = replace(some.estimates[0], editor="other", measure="gap.older")
    found = check(replace(some, estimates=(*some.estimates, other)), [Rule.parse("gap.race_change.race <= 0.05")])
    assert [(o.editor, o.answer) for o in found] == [("editor", GateAnswer.PASS), ("other", GateAnswer.UNDECIDED)]


def shifted(value: float, low: float, high: float, measure: str = "shift.skin_tone") -> Results:
    e = Estimate(measure, "diagnosis", "baseline", "editor", {}, value, low, high, 100, 2, "boot")
    return Results({}, {}, (e,))


def test_a_shift_is_held_against_a_limit_on_either_side():
    rules = [Rule.parse("shift.skin_tone <= 0.05"), Rule.parse("shift.skin_tone >= -0.05")]
    assert [o.answer for o in check(shifted(0.3, 0.2, 0.4), rules)] == [GateAnswer.FAIL, GateAnswer.PASS]
    assert [o.answer for o in check(shifted(-0.3, -0.4, -0.2), rules)] == [GateAnswer.PASS, GateAnswer.FAIL]
    # a rate that cannot cancel out is a shift of its own where no prompt asks for the change
    rate = check(shifted(0.02, 0.01, 0.04, "rate.race_change"), [Rule.parse("shift.race_change <= 0.05")])
    assert rate[0].answer is GateAnswer.PASS


def finding(kind: str, level: str, editor: str | None = "editor", factor: str | None = None, **more: str) -> Finding:
    rest = dict.fromkeys(("experiment", "condition", "measure", "rater", "group", "against", "value", "low", "high"))
    rest |= dict.fromkeys(("p", "p_raw", "n", "faces"))
    return Finding(
        kind=kind, level=level, editor=editor, factor=factor, text=f"a {level} {kind}", **(rest | {"id": level} | more)
    )


@pytest.mark.parametrize(
    ("rule", "findings", "answer"),
    [
        ("no clear finding of kind gap", [finding("gap", "clear")], GateAnswer.FAIL),
        ("no clear finding of kind gap", [finding("shift", "clear")], GateAnswer.PASS),
        ("no clear finding", [finding("shift", "clear")], GateAnswer.FAIL),
        ("no clear finding", [finding("gap", "suggestive")], GateAnswer.PASS),
        ("no clear or suggestive finding", [finding("gap", "suggestive")], GateAnswer.FAIL),
        ("no clear finding", [finding("gap", "clear", "another")], GateAnswer.PASS),
        ("no clear finding of kind gap", [finding("design", "cannot_tell", None, "race")], GateAnswer.UNDECIDED),
        ("no clear finding of kind shift", [finding("design", "cannot_tell", None, "race")], GateAnswer.PASS),
        ("no clear finding", [finding("design", "cannot_tell", None)], GateAnswer.UNDECIDED),
        ("no clear finding", [finding("gap", "clear_to_judges")], GateAnswer.FAIL),
        ("no clear finding", [finding("gap", "clear_to_judge")], GateAnswer.FAIL),
        ("no suggestive finding", [finding("gap", "clear_to_judges")], GateAnswer.PASS),
        ("no clear or suggestive finding", [finding("gap", "clear_to_judge")], GateAnswer.FAIL),
        ("no clear finding", [finding("gap", "cannot_tell", evidence="none")], GateAnswer.UNDECIDED),
        (
            "no clear finding",
            [finding("gap", "cannot_tell", evidence="none"), finding("shift", "observed", evidence="judges")],
            GateAnswer.PASS,
        ),
    ],
)
def test_a_rule_on_findings(rule, findings, answer):
    (found,) = check(replace(results(0, 0, 0), findings=tuple(findings)), [parse_rule(rule)])
    assert found.answer is answer


def test_findings_of_judges_alone_are_named_and_can_be_ignored():
    judges = [
        finding("gap", "clear_to_judges", factor="race", measure="gap.skin_lighter"),
        finding("shift", "clear_to_judge", measure="shift.skin_tone"),
    ]
    names = "gap.skin_lighter[race] (clear_to_judges), shift.skin_tone (clear_to_judge)"
    rule = parse_rule("no clear finding")
    some = replace(results(0, 0, 0), findings=tuple(judges))
    (counted,) = check(some, [rule])
    assert (counted.answer, counted.evidence) == (
        GateAnswer.FAIL,
        f"a clear_to_judges gap (and 1 more); not checked by people, counted: {names}",
    )
    (ignored,) = check(some, [rule], ignore_judges_only=True)
    assert (ignored.answer, ignored.evidence) == (
        GateAnswer.PASS,
        f"no such finding among 2; not checked by people, ignored: {names}",
    )
    (failed,) = check(replace(some, findings=(*judges, finding("gap", "clear"))), [rule], ignore_judges_only=True)
    assert (failed.answer, failed.evidence) == (
        GateAnswer.FAIL,
        f"a clear gap; not checked by people, ignored: {names}",
    )


def test_a_limit_is_held_against_the_number_that_people_corrected():
    judged = results(0.2, 0.3, 0.4)
    e = judged.estimates[0]
    place = (e.measure, e.experiment, e.condition, e.editor, e.group)
    people = PredictionPowered(
        *place, 0.3, 0.2, 0.4, 0.02, 0.0, 0.05, 0.02, 0.01, 0.04, 0.5, 100, 90, "ppi++", enough=True
    )
    rule = Rule.parse("gap.race_change.race <= 0.05")
    (found,) = check(replace(judged, powered=(people,)), [rule])
    assert found.answer is GateAnswer.PASS
    assert found.evidence.startswith("0.02 [0.01, 0.04]") and "judges alone: 0.3 [0.2, 0.4]" in found.evidence
    (few,) = check(replace(judged, powered=(replace(people, enough=False),)), [rule])
    assert few.answer is GateAnswer.FAIL, "too few labels correct nothing"


def test_a_rule_on_findings_needs_findings_and_a_kind_that_there_is():
    with pytest.raises(EvenEditError, match="these results have no findings"):
        check(results(0, 0, 0), [parse_rule("no clear finding")])
    with pytest.raises(EvenEditError, match="there is no kind 'bias'; use shift, gap"):
        parse_rule("no clear finding of kind bias")


def test_findings_stand_in_the_summary_in_their_order():
    several = [finding("gap", "clear"), finding("design", "caution", None)]
    text = markdown(check(results(0, 0, 0), [Rule.parse("gap.race_change.race <= 1")]), False, several)
    assert "1. [clear] editor: a clear gap\n2. [caution] a caution design" in text


@pytest.mark.parametrize(
    ("before", "after", "answer"),
    [
        ((0.02, 0.0, 0.04), (0.3, 0.25, 0.35), GateAnswer.FAIL),
        ((0.3, 0.25, 0.35), (0.02, 0.0, 0.04), GateAnswer.PASS),
        ((0.02, 0.0, 0.1), (0.08, 0.0, 0.2), GateAnswer.PASS),
        ((0.3, 0.25, 0.35), (-0.02, -0.04, 0.0), GateAnswer.PASS),
        ((0.02, 0.0, 0.04), (-0.3, -0.35, -0.25), GateAnswer.FAIL),
    ],
)
def test_a_baseline_fails_on_a_clear_regression_only(before, after, answer):
    (found,) = regressions(shifted(*after), shifted(*before), ["editor"])
    assert found.answer is answer
    assert "after Holm" in found.evidence


def test_less_success_is_a_regression_and_what_is_not_shared_is_refused():
    worse = shifted(0.5, 0.45, 0.55, "rate.edit_success"), shifted(0.9, 0.85, 0.95, "rate.edit_success")
    assert regressions(*worse, ["editor"])[0].answer is GateAnswer.FAIL
    assert regressions(*worse[::-1], ["editor"])[0].answer is GateAnswer.PASS
    with pytest.raises(EvenEditError, match="no estimate in common"):
        regressions(worse[0], shifted(0.1, 0.0, 0.2), ["editor"])


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


def test_rules_on_direction_are_decided_by_the_results_directions():
    flow = Direction(
        "race", "flow.race_seen[White>Indian]", "White", "Indian", "diagnosis", "baseline", "editor",
        -0.04, -0.06, -0.02, -8, 200, 0, 20, 6,
    )  # fmt: skip
    directed = replace(results(0, 0, 0), directions=(flow,))
    for rule, answer in {
        "flow.race_seen[Indian>White] <= 0.03": GateAnswer.UNDECIDED,
        "flow.race_seen[Indian>White] <= 0.01": GateAnswer.FAIL,
        "flow.race_seen[White>Indian] <= 0": GateAnswer.PASS,
    }.items():
        (found,) = check(directed, [parse_rule_for(rule, directed)])
        assert found.answer is answer, found
    with pytest.raises(EvenEditError, match="no editor has such an estimate"):
        check(directed, [parse_rule_for("toward.race_seen[White] within 0.02", directed)])


def test_a_baseline_that_asked_differently_is_refused():
    other = replace(shifted(0.1, 0.0, 0.2), rubric=tuple(shipped_rubric("short-002").to_tables()))
    with pytest.raises(EvenEditError, match="race_change is asked differently: 1–5 against yes-no"):
        regressions(shifted(0.1, 0.0, 0.2), other, ["editor"])
