"""The tests behind findings, against enumeration and loops."""

from itertools import product

import numpy as np
import pytest

from evenedit.stats.engine.multiplicity import holm, step_down
from evenedit.stats.findings.evidence import flipped


def test_of_faces_that_all_moved_one_way_every_sign_is_counted():
    assert flipped(np.array([1, 1, 1, 1, 1, 0, 0])) == pytest.approx(2 / 32)
    moves = np.array([3, 2, -1, 1])
    sums = [abs(sum(s * m for s, m in zip(signs, moves, strict=True))) for signs in product((1, -1), repeat=4)]
    assert flipped(moves) == sum(s >= 5 for s in sums) / 16
    assert flipped(np.ones(15, dtype=np.int64)) == 0


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
