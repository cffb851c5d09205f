"""Shifts from each judge's own answers, and the tests over everybody."""

import numpy as np
import pandas as pd
import pytest

from evenedit.core.records import Kind, Status
from evenedit.protocol import DEFAULT_RATES, FACTORS, default_rubric
from evenedit.protocol.factors import cells
from evenedit.ratings.combine import combine
from evenedit.ratings.table import QUESTION_IDS, STATUSES, RatingTable
from evenedit.stats.disparity.diagnosis import diagnosis_panels
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.measures import MeasureTable, add_shift_measure, answers
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.shift_tests import ShiftTest, compute_shift_tests

RULES = AnalysisRules.default()
PROMPTS = ("O-01", "O-06", "V-02", "O-02")
EDITS = 84 * len(PROMPTS)


def codes(*judges: list[int]) -> list[float]:
    """The shift of each edit from what each judge scored; 0 = no score."""
    ledger = MeasureTable()
    columns = [np.array(scores) for scores in judges]
    add_shift_measure(
        ledger, "skin_tone", columns, np.ones(len(columns[0]), dtype=np.int64), DEFAULT_RATES, default_rubric()
    )
    (measure,) = ledger.measures
    total, count = ledger.columns[measure.total], ledger.columns[measure.count]
    return [t / measure.unit if n else float("nan") for t, n in zip(total, count, strict=True)]


def test_two_judges_of_whom_one_saw_a_lighter_skin_are_half_a_shift():
    assert codes([3, 3, 4, 2, 5], [4, 2, 5, 2, 1]) == [0.5, -0.5, 1.0, -1.0, 0.0]


def test_of_three_judges_each_counts_a_third():
    assert codes([4, 4, 4], [3, 4, 2], [3, 3, 4]) == pytest.approx([1 / 3, 2 / 3, 1 / 3])


def test_a_judge_without_a_score_leaves_the_others_and_no_judge_leaves_nothing():
    found = codes([4, 0, 0], [2, 2, 0], [0, 3, 0])
    assert found[:2] == [0.0, -0.5] and np.isnan(found[2])


def shift_of(*judges: np.ndarray, missing: np.ndarray | None = None) -> ShiftTest:
    """The test of the skin tone's shift in 84 faces × 4 prompts, from what judges scored."""
    faces = pd.DataFrame(cells()).assign(source_id=[f"f{i:02}" for i in range(84)])
    edits = pd.concat([faces.assign(prompt_id=p) for p in PROMPTS], ignore_index=True)
    place = {"experiment": "diagnosis", "condition": "baseline", "editor": "e", "seed": 1, "outcome": "edited"}
    edits = edits.assign(**place, request_id=[f"r{i:03}" for i in range(len(edits))])
    values = np.full((len(judges), len(edits), len(QUESTION_IDS)), 3, dtype=np.int8)
    values[:, :, QUESTION_IDS.index("skin_tone")] = judges
    status = np.full(values.shape[:2], STATUSES.index(Status.SCORED), dtype=np.int8)
    if missing is not None:
        values[missing], status[missing] = 0, STATUSES.index(Status.REFUSED)
    names = tuple(f"judge-{n}" for n in range(len(judges)))
    table = RatingTable(edits, names, (Kind.VLM,) * len(judges), values, status, factors=FACTORS)
    scores = combine(table, RULES.ensemble, RULES.missing)
    (panel,) = diagnosis_panels(scores, answers(scores, RULES), RULES)
    tests = compute_shift_tests(CrossedPanel(panel), RULES)
    return next(t for t in tests if t.measure == "shift.skin_tone")


def steps(up: int, down: int, seed: int) -> np.ndarray:
    return 3 + np.random.default_rng(seed).permutation(np.repeat([1, -1, 0], [up, down, EDITS - up - down]))


def test_rounding_halves_up_does_not_make_a_shift():
    """One judge errs as often up as down; half-up means would come out lighter more often than darker."""
    found = shift_of(steps(40, 40, 4), np.full(EDITS, 3))
    assert found.value == 0 and found.p == pytest.approx(1.0)
    assert (found.above, found.below) == pytest.approx((20 / EDITS, 20 / EDITS))


def test_noise_of_two_judges_that_is_as_often_up_as_down_makes_no_shift():
    found = shift_of(steps(60, 60, 5), steps(50, 50, 6))
    assert found.value == 0 and found.low < 0 < found.high


def test_what_both_judges_saw_is_a_shift():
    scores = steps(60, 10, 5)
    found = shift_of(scores, scores)
    assert (found.above, found.below) == pytest.approx((60 / EDITS, 10 / EDITS))
    assert found.value == pytest.approx(50 / EDITS) and found.low > 0 and found.p < 0.05
    assert (found.limit, found.n, found.missing, found.faces, found.prompts) == (0.0, EDITS, 0, 84, 4)


def test_p_is_below_five_percent_just_where_the_interval_leaves_out_zero():
    for up in range(20, 60, 4):
        found = shift_of(steps(up, 20, up), steps(30, 30, up + 1))
        assert (found.p < 0.05) == (found.low > 0 or found.high < 0)


def test_an_edit_that_one_judge_refused_counts_by_the_other():
    missing = np.zeros((2, EDITS), dtype=bool)
    missing[0, :10] = missing[:, 10:15] = True
    scores = np.full(EDITS, 4)
    found = shift_of(np.full(EDITS, 3), scores, missing=missing)
    assert found.value == pytest.approx((10 + (EDITS - 15) / 2) / (EDITS - 5))
    assert (found.n, found.missing) == (EDITS - 5, 5)


def test_a_shift_that_is_the_same_in_every_edit_is_tested_by_the_faces_common_direction():
    every = shift_of(np.full(EDITS, 4))
    assert every.value == 1 and every.p == pytest.approx(2 * 0.5**84)
    none = shift_of(np.full(EDITS, 3))
    assert none.value == 0 and none.p is None and none.low < 0 < none.high
