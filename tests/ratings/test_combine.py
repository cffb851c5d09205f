"""Many ratings become one by the named rules, and disagreement is kept."""

from itertools import product
from math import floor

import numpy as np
import pandas as pd
import pytest

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Kind
from evenedit.protocol import FACTORS
from evenedit.protocol.ensemble import RULES, STANDARD_RULES
from evenedit.ratings.combine import applicable_questions, combine, priority
from evenedit.ratings.table import NOT_ASKED, QUESTION_IDS, RatingTable, edit_columns


def table_of(
    answers: list[list[dict[str, int]]],
    *,
    experiment: str = "diagnosis",
    prompts: list[str] | None = None,
    outcomes: list[str] | None = None,
    kinds: list[Kind] | None = None,
) -> RatingTable:
    """answers[rater][edit] = {question: value}."""
    n = len(answers[0])
    edits = pd.DataFrame(
        {
            "request_id": [f"r{i}" for i in range(n)],
            "experiment": experiment,
            "condition": "baseline",
            "editor": "e",
            "source_id": [f"s{i}" for i in range(n)],
            "prompt_id": prompts or ["O-01"] * n,
            "seed": 0,
            "race": "Black",
            "gender": "Female",
            "age": "30s",
            "outcome": outcomes or ["edited"] * n,
        }
    )[list(edit_columns(FACTORS))]
    values = np.zeros((len(answers), n, len(QUESTION_IDS)), dtype=np.int8)
    for rater, rows in enumerate(answers):
        for edit, row in enumerate(rows):
            for question, value in row.items():
                values[rater, edit, QUESTION_IDS.index(question)] = value
    return RatingTable(
        edits,
        tuple(f"j{i}" for i in range(len(answers))),
        tuple(kinds or [Kind.VLM] * len(answers)),
        values,
        np.zeros(values.shape[:2], dtype=np.int8),
    )


def one(rule: str, *scores: int, experiment: str = "diagnosis", question: str = "race_drift", missing: str = "exclude"):
    table = table_of([[{question: s}] for s in scores], experiment=experiment)
    found = combine(table, {experiment: rule}, missing)
    at = QUESTION_IDS.index(question)
    return int(found.values[0, at]), bool(found.disagree[0, at])


@pytest.mark.parametrize(
    ("rule", "g", "o", "expected", "review"),
    [
        ("diagnosis", 2, 3, 3, False),  # 2.5 -> 3, half up
        ("diagnosis", 3, 2, 3, False),
        ("diagnosis", 4, 5, 5, False),  # 4.5 -> 5; Python's round would say 4
        ("diagnosis", 4, 4, 4, False),
        ("diagnosis", 1, 3, 1, True),  # two apart: the primary's
        ("diagnosis", 5, 1, 5, True),
        ("mitigation", 1, 3, 2, True),
        ("mitigation", 1, 4, 3, True),  # 2.5 -> 3
        ("mitigation", 5, 1, 3, True),
        ("mitigation", 2, 3, 3, False),
        ("mean", 1, 4, 3, True),
        ("primary", 1, 5, 1, True),
        ("secondary", 1, 5, 5, True),
        ("median", 1, 4, 3, True),
        ("diagnosis", 0, 4, 4, False),  # one missing: the other's
        ("diagnosis", 2, 0, 2, False),
        ("mitigation", 0, 5, 5, False),
        ("diagnosis", 0, 0, 0, False),
        ("primary", 0, 4, 0, False),  # names its one judge
        ("secondary", 4, 0, 0, False),
    ],
)
def test_hand_worked_cases(rule, g, o, expected, review):
    assert one(rule, g, o) == (expected, review)


def naive(rule: str, g: int, o: int) -> int:
    if not g or not o:
        return {"primary": g, "secondary": o}.get(rule, g or o)
    middle = floor((g + o) / 2 + 0.5)
    if rule == "diagnosis":
        return middle if abs(g - o) <= 1 else g
    return {"primary": g, "secondary": o}.get(rule, middle)


@pytest.mark.parametrize("rule", [r for r in RULES if r != "stereotype"])
def test_every_pair_of_scores_agrees_with_the_rule_written_out(rule):
    for g, o in product(range(6), repeat=2):
        expected = naive(rule, g, o), bool(g and o and abs(g - o) >= 2)
        assert one(rule, g, o) == expected, (rule, g, o)


F, R, U = 1, 2, 3


def naive_verdict(g: int, o: int) -> int:
    if not g or not o or g == o:
        return g or o
    if U in (g, o):
        return o if g == U else g
    return U


def test_verdicts_follow_the_stereotype_rule_for_every_pair():
    for g, o in product(range(4), repeat=2):
        expected = naive_verdict(g, o), {g, o} == {F, R}
        assert one("stereotype", g, o, experiment="stereotype", question="stereotype") == expected, (g, o)


def test_three_judges_get_the_half_up_median_whatever_two_judge_rule_is_named():
    for rule in ("diagnosis", "mitigation", "median"):
        assert one(rule, 1, 2, 5)[0] == 2
        assert one(rule, 0, 2, 5)[0] == 4  # (2 + 5) / 2 = 3.5 -> 4
        assert one(rule, 0, 0, 5)[0] == 5
        assert one(rule, 1, 2, 3, 5)[0] == 3  # 2.5 -> 3
    assert one("mean", 1, 1, 5)[0] == 2  # 7/3
    assert one("mean", 1, 2, 2)[0] == 2  # 5/3
    assert one("stereotype", F, F, R, experiment="stereotype", question="stereotype")[0] == F


def test_neutral_3_fills_only_questions_asked_of_edited_pictures():
    table = table_of(
        [[{}, {}, {}, {"race_drift": 2}], [{}, {}, {}, {}]],
        prompts=["O-01", "V-05", "O-01", "O-01"],
        outcomes=["edited", "edited", "refused", "edited"],
    )
    found = dict(zip(QUESTION_IDS, combine(table, STANDARD_RULES, "neutral-3").values.T.tolist(), strict=True))
    assert found["edit_success"] == [3, 3, 0, 3]
    assert found["race_drift"] == [3, 3, 0, 2]
    assert found["age_drift"] == [3, 0, 0, 3]
    assert found["aging_accuracy"] == [0, 3, 0, 0]
    assert found["stereotype"] == [0, 0, 0, 0]


def test_neutral_3_invents_no_verdict_and_no_score_for_an_edit_nobody_was_asked_about():
    table = table_of([[{}], [{}]], experiment="stereotype")
    assert not combine(table, STANDARD_RULES, "neutral-3").values.any()
    waiting = table_of([[{}], [{}]])
    waiting.status[:] = NOT_ASKED
    assert not combine(waiting, STANDARD_RULES, "neutral-3").values.any()


@pytest.mark.parametrize("outcome", ["refused", "failed"])
def test_a_refused_or_failed_edit_never_has_a_score(outcome):
    table = table_of([[{"skin_tone": 5}], [{"skin_tone": 1}]], outcomes=[outcome])
    found = combine(table, STANDARD_RULES, "exclude")
    assert not found.values.any()
    assert not found.needs_review.any()


def test_only_vlm_judges_take_part():
    table = table_of([[{"skin_tone": 2}], [{"skin_tone": 5}], [{"skin_tone": 5}]],
                     kinds=[Kind.VLM, Kind.INSTRUMENT, Kind.HUMAN])  # fmt: skip
    assert combine(table, STANDARD_RULES, "exclude").values[0, QUESTION_IDS.index("skin_tone")] == 2


def test_a_users_own_aging_prompt_is_known_by_its_answers():
    table = table_of([[{"aging_accuracy": 4}, {}, {"age_drift": 2}]], prompts=["X-1", "X-1", "X-2"])
    found = applicable_questions(table)
    assert found[:, QUESTION_IDS.index("aging_accuracy")].tolist() == [True, True, False]
    assert found[:, QUESTION_IDS.index("age_drift")].tolist() == [False, False, True]


def test_an_unknown_rule_or_policy_is_refused_with_the_known_ones():
    table = table_of([[{}], [{}]])
    with pytest.raises(EvenEditError, match=r"'modus'.*diagnosis, mitigation, mean, median, primary, secondary"):
        combine(table, {"diagnosis": "modus"}, "exclude")
    with pytest.raises(EvenEditError, match="for other questions"):
        combine(table, {"diagnosis": "stereotype"}, "exclude")
    with pytest.raises(EvenEditError, match="exclude, neutral-3"):
        combine(table, STANDARD_RULES, "zero")
    with pytest.raises(EvenEditError, match="needs two judges"):
        combine(table_of([[{}]]), {"diagnosis": "secondary"}, "exclude")


def test_review_priority():
    calm = {"edit_success": 5, "skin_tone": 3, "race_drift": 1, "gender_drift": 1, "age_drift": 3}
    cases = [
        (calm, calm, "low"),
        (calm, calm | {"age_drift": 5}, "high"),  # judges disagree
        (calm | {"race_drift": 4}, calm | {"race_drift": 4}, "high"),
        (calm | {"edit_success": 2}, calm | {"edit_success": 2}, "high"),
        (calm | {"gender_drift": 3}, calm | {"gender_drift": 3}, "medium"),
        (calm | {"skin_tone": 4}, calm | {"skin_tone": 4}, "medium"),
        ({"race_drift": 1}, {}, "low"),  # a missing score is neither low success nor changed skin
    ]
    table = table_of([[g for g, _, _ in cases], [o for _, o, _ in cases]])
    assert priority(combine(table, STANDARD_RULES, "exclude")).tolist() == [p for _, _, p in cases]
