"""The tests behind findings, against enumeration and loops."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from evenedit.stats.engine.bootstrap import Bootstrap
from evenedit.stats.engine.multiplicity import holm, step_down

from evenedit.core.records import Kind
from evenedit.protocol import FACTORS
from evenedit.protocol.factors import cells
from evenedit.ratings.combine import combine
from evenedit.ratings.table import QUESTION_IDS, RatingTable
from evenedit.stats.disparity.diagnosis import diagnosis_panels
from evenedit.stats.engine.measures import answers
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.shift_tests import ShiftTest, compute_shift_tests, sign_flip_p


def test_of_faces_that_all_moved_one_way_every_sign_is_counted():
    assert sign_flip_p(np.array([1, 1, 1, 1, 1, 0, 0])) == pytest.approx(2 / 32)
    moves = np.array([3, 2, -1, 1])
    sums = [abs(sum(s * m for s, m in zip(signs, moves, strict=True))) for signs in product((1, -1), repeat=4)]
    assert sign_flip_p(moves) == sum(s >= 5 for s in sums) / 16
    assert sign_flip_p(np.ones(15, dtype=np.int64)) == 0


def test_one_test_is_not_adjusted_and_copies_of_it_cost_nothing():
    null = np.random.default_rng(1).normal(size=(999, 1))
    alone = step_down(np.array([2.0]), null)
    assert alone[0] == (1 + (null[:, 0] >= 2.0).sum()) / 1000
    assert (step_down(np.full(4, 2.0), np.tile(null, 4)) == alone[0]).all()


def test_step_down_agrees_with_a_loop_and_is_no_larger_than_holm():
    rng = np.random.default_rng(2)
    null = rng.normal(size=(499, 5))
    observed = np.array([0.5, 3.2, 2.4, -1.0, 2.9])
    order = np.argsort(-observed)
    expected, running = np.empty(5), 0.0
    for rank, at in enumerate(order):
        rest = null[:, order[rank:]].max(axis=1)
        running = max(running, (1 + (rest >= observed[at] - 1e-9).sum()) / 500)
        expected[at] = running
    found = step_down(observed, null)
    assert found == pytest.approx(expected)
    alone = [(1 + (null[:, at] >= observed[at]).sum()) / 500 for at in range(5)]
    assert all(a <= b + 0.02 for a, b in zip(found, holm(alone), strict=True))


def test_the_chance_of_any_false_alarm_is_kept():
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(200):
        shared = rng.normal(size=(200, 1))
        drawn = 0.7 * shared + 0.7 * rng.normal(size=(200, 10))
        alarms += bool((step_down(drawn[0], drawn[1:]) < 0.05).any())
    assert alarms <= 19  # of 200 at 5 %, more than 19 have a chance below 1 in 200


def skin_test(first: np.ndarray, second: np.ndarray) -> ShiftTest:
    """The test of the skin tone's shift in 84 faces × 4 prompts, from what two judges scored."""
    faces = pd.DataFrame(cells()).assign(source_id=[f"f{i:02}" for i in range(84)])
    edits = pd.concat([faces.assign(prompt_id=p) for p in ("O-01", "O-06", "V-02", "V-05")], ignore_index=True)
    place = {"experiment": "diagnosis", "condition": "baseline", "editor": "e", "seed": 1, "outcome": "edited"}
    edits = edits.assign(**place, request_id=[f"r{i:03}" for i in range(len(edits))])
    values = np.full((2, len(edits), len(QUESTION_IDS)), 3, dtype=np.int8)
    values[0, :, QUESTION_IDS.index("skin_tone")], values[1, :, QUESTION_IDS.index("skin_tone")] = first, second
    status = np.zeros((2, len(edits)), dtype=np.int8)
    table = RatingTable(edits, ("a", "b"), (Kind.VLM, Kind.VLM), values, status, factors=FACTORS)
    rules = AnalysisRules.default()
    scores = combine(table, rules.ensemble, rules.missing)
    (panel,) = diagnosis_panels(scores, answers(scores, rules), rules)
    return next(t for t in compute_shift_tests(Bootstrap(panel, 200, 1), rules) if t.measure == "shift.skin_tone")


def test_rounding_halves_up_does_not_make_a_shift():
    """One judge errs as often up as down; half-up means then come out lighter more often than darker."""
    rng = np.random.default_rng(4)
    steps = rng.permutation(np.repeat([1, -1, 0], [40, 40, 256]))
    found = skin_test(3 + steps, np.full(336, 3))
    assert (found.above, found.below) == (40, 0)
    assert found.value == pytest.approx(40 / 336)
    assert found.p is not None and found.p > 0.9


def test_what_both_judges_saw_is_a_shift_however_halves_are_rounded():
    steps = np.random.default_rng(5).permutation(np.repeat([1, -1, 0], [60, 10, 266]))
    found = skin_test(3 + steps, 3 + steps)
    assert (found.above, found.below) == (60, 10)
    assert found.p is not None and found.p < 0.05  # from four prompts of one measure alone
    assert found.p_faces is not None and found.p_faces < 1e-6
