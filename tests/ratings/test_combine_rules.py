"""Three judges and more, choices, reviewers and what was asked: each rule beside the same rule written out plainly."""

from collections import Counter
from dataclasses import replace
from itertools import product
from math import floor
from statistics import median as middle_of

import numpy as np
import pandas as pd
import pytest

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Kind
from evenedit.protocol import FACTORS
from evenedit.protocol.ensemble import STANDARD_RULES
from evenedit.ratings.combine import (
    applicable_questions,
    combine,
    concerns,
    judges_only,
    majority,
    mean,
    median,
    primary_unless_close,
    priority,
    spread,
)
from evenedit.ratings.table import NOT_ASKED, QUESTION_IDS, RatingTable, Scores, edit_columns

F, R, U = 1, 2, 3
BASELINE, MITIGATED, SAME, NO_PREFERENCE = 1, 2, 3, 4
VLM, HUMAN, REVIEW = Kind.VLM, Kind.HUMAN, Kind.REVIEW
SETTLES = {**STANDARD_RULES, "review": "settles"}


def table_of(rows: list[dict[str, str]], *raters: list[dict[str, int]], kinds: tuple[Kind, ...] = ()) -> RatingTable:
    """raters[rater][edit] = {question: value}; every rater was asked about every edit."""
    same = {"condition": "baseline", "editor": "e", "prompt_id": "O-01", "seed": 0, "outcome": "edited"}
    face = {"race": "Black", "gender": "Female", "age": "30s", "experiment": "diagnosis"}
    edits = [same | face | {"request_id": f"r{at}", "source_id": f"s{at}"} | row for at, row in enumerate(rows)]
    values = np.zeros((len(raters), len(rows), len(QUESTION_IDS)), dtype=np.int8)
    for rater, answers in enumerate(raters):
        for edit, answer in enumerate(answers):
            for question, value in answer.items():
                values[rater, edit, QUESTION_IDS.index(question)] = value
    names = tuple(f"j{at}" for at in range(len(raters)))
    status = np.zeros(values.shape[:2], dtype=np.int8)
    return RatingTable(
        pd.DataFrame(edits)[list(edit_columns(FACTORS))], names, kinds or (VLM,) * len(raters), values, status
    )


def verdict(cube: np.ndarray) -> np.ndarray:
    return majority(cube, 3, (U,), U)


def preference(cube: np.ndarray) -> np.ndarray:
    return majority(cube, 4, (NO_PREFERENCE,), NO_PREFERENCE)


def column(found: Scores, question: str) -> list[int]:
    return found.values[:, QUESTION_IDS.index(question)].tolist()


def differ(found: Scores, question: str) -> list[bool]:
    return found.disagree[:, QUESTION_IDS.index(question)].tolist()


def all_combinations(
    experiment: str, question: str, rule: str, judges: int, highest: int
) -> tuple[list[tuple[int, ...]], Scores]:
    """Every combination of answers of so many judges, 0 for none, as one table; and what becomes of it."""
    said = list(product(range(highest + 1), repeat=judges))
    raters = [[{question: answers[judge]} for answers in said] for judge in range(judges)]
    table = table_of([{"experiment": experiment}] * len(said), *raters)
    return said, combine(table, {experiment: rule}, "exclude")


def half_up(number: float) -> int:
    return floor(number + 0.5)


@pytest.mark.parametrize("judges", [1, 3, 4])
@pytest.mark.parametrize("rule", ["diagnosis", "median", "mean"])
def test_scores_of_any_number_of_judges(rule: str, judges: int):
    said, found = all_combinations("diagnosis", "race_drift", rule, judges, 5)
    middle = (lambda given: sum(given) / len(given)) if rule == "mean" else middle_of
    present = [[value for value in answers if value] for answers in said]
    assert column(found, "race_drift") == [half_up(middle(given)) if given else 0 for given in present]
    assert differ(found, "race_drift") == [bool(given) and max(given) - min(given) >= 2 for given in present]


@pytest.mark.parametrize("judges", [1, 2, 3, 4])
@pytest.mark.parametrize("question", ["stereotype", "target_role"])
def test_verdicts_of_any_number_of_judges_are_what_most_decided(question: str, judges: int):
    said, found = all_combinations("stereotype", question, "stereotype", judges, 3)
    expected = []
    for answers in said:
        votes = Counter(answers)
        decided = F if votes[F] > votes[R] else R if votes[R] > votes[F] else U
        expected.append(decided if any(answers) else 0)
    assert column(found, question) == expected
    assert differ(found, question) == [F in answers and R in answers for answers in said]


@pytest.mark.parametrize("judges", [1, 2, 3])
@pytest.mark.parametrize("rule", ["mitigation", "primary"])
def test_the_preference_is_what_most_prefer_whatever_the_rule(rule: str, judges: int):
    said, found = all_combinations("mitigation", "preference", rule, judges, 4)
    expected = []
    for answers in said:
        votes = Counter(answer for answer in answers if answer in (BASELINE, MITIGATED, SAME)).most_common()
        tied = len(votes) > 1 and votes[0][1] == votes[1][1]
        expected.append((votes[0][0] if votes and not tied else NO_PREFERENCE) if any(answers) else 0)
    assert column(found, "preference") == expected
    assert differ(found, "preference") == [BASELINE in answers and MITIGATED in answers for answers in said]


@pytest.mark.parametrize(("rule", "verdict"), [("primary", F), ("secondary", R)])
def test_verdicts_of_the_one_judge_that_is_named(rule: str, verdict: int):
    table = table_of([{"experiment": "stereotype"}], [{"stereotype": F}], [{"stereotype": R}], [{"stereotype": R}])
    assert column(combine(table, {"stereotype": rule}, "exclude"), "stereotype") == [verdict]


def test_each_experiment_has_its_own_rule_and_the_standard_one_unless_told():
    rows = [{"experiment": e} for e in ("diagnosis", "mitigation", "stereotype", "diagnosis")]
    first = [{"race_drift": 1}, {"race_drift": 1}, {"stereotype": F}, {"race_drift": 5}]
    second = [{"race_drift": 5}, {"race_drift": 5}, {"stereotype": R}, {"race_drift": 4}]
    table = table_of(rows, first, second)
    assert column(combine(table, {}, "exclude"), "race_drift") == [1, 3, 0, 5]
    assert column(combine(table, {}, "exclude"), "stereotype") == [0, 0, U, 0]
    told = combine(table, {"diagnosis": "secondary", "mitigation": "primary", "stereotype": "primary"}, "exclude")
    assert column(told, "race_drift") == [5, 1, 0, 4]
    assert column(told, "stereotype") == [0, 0, F, 0]
    assert told.table is table
    assert told.values.dtype == np.int8


def test_neutral_3_fills_what_any_judge_was_asked_and_no_choice():
    rows = [{}, {}, {"outcome": "failed"}, {"experiment": "mitigation"}, {"experiment": "mitigation"}]
    answers: list[dict[str, int]] = [{"skin_tone": 5}, {}, {}, {}, {"preference": SAME}]
    table = table_of(rows, answers, [{}] * 5)
    table.status[0, :2] = NOT_ASKED
    table.status[1, 0] = NOT_ASKED
    found = combine(table, STANDARD_RULES, "neutral-3")
    assert column(found, "skin_tone") == [5, 3, 0, 3, 3]
    assert column(found, "race_drift") == [0, 3, 0, 3, 3]
    assert column(found, "preference") == [0, 0, 0, 0, SAME]
    assert not found.disagree.any()


def test_without_judges_nothing_is_scored_and_nothing_is_filled():
    table = table_of([{}], [{"skin_tone": 5}], kinds=(HUMAN,))
    for missing in ("exclude", "neutral-3"):
        found = combine(table, STANDARD_RULES, missing)
        assert not found.values.any()
        assert not found.disagree.any()


def test_an_answer_to_a_question_that_does_not_apply_is_neither_a_score_nor_a_dispute():
    rows = [{"prompt_id": "X-1"}, {"prompt_id": "X-1"}, {"experiment": "stereotype"}]
    first = [{"aging_accuracy": 3}, {"age_drift": 1}, {"race_drift": 1}]
    second = [{"aging_accuracy": 3}, {"age_drift": 5}, {"race_drift": 5}]
    found = combine(table_of(rows, first, second), STANDARD_RULES, "exclude")
    assert column(found, "age_drift") == [0, 0, 0]
    assert column(found, "race_drift") == [0, 0, 0]
    assert not found.disagree.any()


def test_every_rule_gives_small_whole_numbers_and_0_where_nobody_answered():
    cube = np.array([[0, 1, 5, 0], [0, 2, 1, 3], [0, 2, 0, 0]], dtype=np.int8)
    for rule, expected in (
        (mean, [0, 2, 3, 3]),
        (median, [0, 2, 3, 3]),
        (primary_unless_close, [0, 2, 5, 3]),
        (verdict, [0, R, F, U]),
        (preference, [0, MITIGATED, BASELINE, SAME]),
        (spread, [0, 1, 4, 0]),
    ):
        found = rule(cube)
        assert (found.dtype, found.tolist()) == (np.int8, expected), rule.__name__


# -- reviewers -------------------------------------------------------------------------------------------------


def reviewed() -> RatingTable:
    """Judges differ on two questions of the first edit; reviewers settled one, and one of a refused edit."""
    rows = [{}, {"outcome": "refused"}, {}]
    first = [{"race_drift": 1, "skin_tone": 1}, {}, {"race_drift": 2}]
    second = [{"race_drift": 5, "skin_tone": 5}, {}, {"race_drift": 2}]
    table = table_of(rows, first, second)
    settled = np.zeros(table.values.shape[1:], dtype=np.int8)
    settled[:, QUESTION_IDS.index("race_drift")] = [4, 3, 0]
    settled[0, QUESTION_IDS.index("stereotype")] = F  # no question of the diagnosis
    return replace(table, settled=settled)


def test_what_reviewers_settled_takes_the_judges_place_and_ends_the_dispute():
    found = combine(reviewed(), SETTLES, "exclude")
    assert column(found, "race_drift") == [4, 0, 2]
    assert differ(found, "race_drift") == [False, False, False]
    assert column(found, "skin_tone") == [1, 0, 0]
    assert differ(found, "skin_tone") == [True, False, False]
    assert column(found, "stereotype") == [0, 0, 0]


@pytest.mark.parametrize("value", [1, 5])
def test_reviewers_may_settle_on_either_end_of_the_scale(value: int):
    table = reviewed()
    assert table.settled is not None
    table.settled[0, QUESTION_IDS.index("race_drift")] = value
    found = combine(table, SETTLES | {"diagnosis": "secondary"}, "exclude")
    assert column(found, "race_drift") == [value, 0, 2]
    assert differ(found, "race_drift") == [False, False, False]


@pytest.mark.parametrize("rules", [dict(STANDARD_RULES), {**STANDARD_RULES, "review": "shown"}, judges_only(SETTLES)])
def test_reviewers_change_nothing_unless_the_rules_say_that_they_settle(rules: dict[str, str]):
    found = combine(reviewed(), rules, "exclude")
    assert column(found, "race_drift") == [1, 0, 2]
    assert differ(found, "race_drift") == [True, False, False]


def test_rules_that_settle_work_where_nothing_was_reviewed():
    found = combine(replace(reviewed(), settled=None), SETTLES, "exclude")
    assert column(found, "race_drift") == [1, 0, 2]


def test_judges_only_leaves_out_the_review_alone():
    assert judges_only({"diagnosis": "mean", "review": "settles", "reviewers": "2"}) == {
        "diagnosis": "mean",
        "reviewers": "2",
    }


# -- what was asked --------------------------------------------------------------------------------------------

ALWAYS = ["edit_success", "skin_tone", "race_drift", "gender_drift", "age_drift"]


def applies(table: RatingTable) -> list[list[str]]:
    return [
        [q for q, is_asked in zip(QUESTION_IDS, row, strict=True) if is_asked] for row in applicable_questions(table)
    ]


def test_the_questions_of_each_experiment():
    rows = [{"experiment": e} for e in ("diagnosis", "mitigation", "stereotype")]
    assert applies(table_of(rows, [{}, {}, {}])) == [ALWAYS, ALWAYS, ["stereotype"]]


@pytest.mark.parametrize("kind", [VLM, HUMAN])
def test_role_and_preference_were_asked_of_all_where_somebody_answered_one(kind: Kind):
    rows = [{"experiment": e} for e in ("diagnosis", "mitigation", "mitigation", "stereotype", "stereotype")]
    answers: list[dict[str, int]] = [{}, {}, {"preference": BASELINE}, {"target_role": F}, {}]
    table = table_of(rows, [{}] * 5, answers, kinds=(VLM, kind))
    paired, roles = [*ALWAYS, "preference"], ["stereotype", "target_role"]
    assert applies(table) == [ALWAYS, paired, paired, roles, roles]


def test_a_reviewers_answer_opens_no_question():
    rows = [{"experiment": "mitigation"}, {"experiment": "stereotype"}, {"prompt_id": "X-1"}]
    answers = [{"preference": SAME}, {"target_role": F}, {"aging_accuracy": 3}]
    table = table_of(rows, [{}] * 3, answers, kinds=(VLM, REVIEW))
    assert applies(table) == [ALWAYS, ["stereotype"], ALWAYS]


def test_the_aging_prompt_is_asked_about_accuracy_unless_somebody_answered_age_drift_on_it():
    aging = [*ALWAYS[:-1], "aging_accuracy"]
    rows = [{"prompt_id": "V-05"}, {"prompt_id": "V-05"}, {"prompt_id": "O-01"}]
    assert applies(table_of(rows, [{}, {}, {}])) == [aging, aging, ALWAYS]
    assert applies(table_of(rows, [{}, {"age_drift": 3}, {}])) == [ALWAYS, ALWAYS, ALWAYS]
    both = table_of(rows, [{"aging_accuracy": 3}, {"age_drift": 3}, {}])
    assert applies(both) == [aging, aging, ALWAYS]
    roles = table_of([{"prompt_id": "V-05", "experiment": "stereotype"}], [{"aging_accuracy": 3}])
    assert applies(roles) == [["stereotype"]]


# -- who should look at it -------------------------------------------------------------------------------------

CALM = {"edit_success": 5, "skin_tone": 3, "race_drift": 1, "gender_drift": 1, "age_drift": 3}


@pytest.mark.parametrize(
    ("change", "soon", "why"),
    [
        ({}, "low", "routine"),
        ({"race_drift": 2, "gender_drift": 2}, "low", "routine"),
        ({"race_drift": 3}, "medium", "routine"),
        ({"gender_drift": 3}, "medium", "routine"),
        ({"race_drift": 4}, "high", "drift"),
        ({"race_drift": 5}, "high", "drift"),
        ({"gender_drift": 4}, "high", "drift"),
        ({"gender_drift": 5}, "high", "drift"),
        ({"edit_success": 3}, "low", "routine"),
        ({"edit_success": 2}, "high", "erasure"),
        ({"edit_success": 1}, "high", "erasure"),
        ({"edit_success": 0, "skin_tone": 0}, "low", "routine"),  # no score is no finding
        ({"skin_tone": 1}, "medium", "skin"),
        ({"skin_tone": 2}, "medium", "skin"),
        ({"skin_tone": 5}, "medium", "skin"),
        ({"race_drift": 4, "edit_success": 1, "skin_tone": 5}, "high", "drift"),  # the first that holds
        ({"edit_success": 1, "skin_tone": 5}, "high", "erasure"),
    ],
)
def test_how_soon_and_why_a_person_should_look(change: dict[str, int], soon: str, why: str):
    found = combine(table_of([{}], [CALM | change], [CALM | change]), STANDARD_RULES, "exclude")
    assert priority(found).tolist() == [soon]
    assert concerns(found).tolist() == [why]


def test_disagreement_comes_before_every_other_concern():
    apart = CALM | {"age_drift": 5, "race_drift": 4}
    found = combine(table_of([{}], [apart], [apart | {"age_drift": 3}]), STANDARD_RULES, "exclude")
    assert priority(found).tolist() == ["high"]
    assert concerns(found).tolist() == ["disagreement"]


# -- what is refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "missing", "told"),
    [
        ({}, "zero", "missing policy 'zero' is not known; use one of: exclude, neutral-3"),
        ({"diagnosis": "secondary"}, "exclude", "ensemble rule 'secondary' needs two judges; the data has one"),
        (
            {"diagnosis": "modus"},
            "exclude",
            "ensemble rule 'modus' is not known for the diagnosis experiment; use one of: "
            "diagnosis, mitigation, mean, median, primary, secondary",
        ),
        (
            {"diagnosis": "stereotype"},
            "exclude",
            "ensemble rule 'stereotype' is not known for the diagnosis experiment (it is for other questions); "
            "use one of: diagnosis, mitigation, mean, median, primary, secondary",
        ),
    ],
)
def test_what_is_not_known_is_told_with_what_is(rules: dict[str, str], missing: str, told: str):
    with pytest.raises(EvenEditError) as problem:
        combine(table_of([{}], [CALM]), rules, missing)
    assert str(problem.value) == told


def test_each_judges_own_score_is_kept_where_it_counts():
    first = [{"skin_tone": v} for v in (3, 2, 5, 0)]
    second = [{"skin_tone": v} for v in (4, 3, 2, 2)]
    at = QUESTION_IDS.index("skin_tone")
    table = table_of([{}] * 4, first, second)
    assert combine(table, STANDARD_RULES, "exclude").judged[:, :, at].tolist() == [[3, 2, 5, 0], [4, 3, 2, 2]]
    alone = combine(table, {**STANDARD_RULES, "diagnosis": "secondary"}, "exclude")
    assert alone.judged[:, :, at].tolist() == [[0, 0, 0, 0], [4, 3, 2, 2]]
