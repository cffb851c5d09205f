"""How unequal judges would have to err to explain a gap away."""

import pytest
from scipy import stats

from evenedit.core.records import Estimate
from evenedit.results.results import GapTest
from evenedit.stats.robustness.error_sensitivity import boundary, error_explaining_gap

TEST = GapTest("gap.x", "diagnosis", "baseline", "e", "race", 0.24, "Black", "White", 0.01, 0.01, 24, "permutation")


def rate(value: float, low: float, high: float, n: int = 240) -> Estimate:
    return Estimate("rate.x", "diagnosis", "baseline", "e", {}, value, low, high, n, 0, "bootstrap")


def test_every_point_of_the_boundary_gives_the_seen_rates_from_equal_true_ones():
    a, b = 0.40, 0.16
    for called, missed in boundary(a, b):
        true = (a - called) / (1 - called)
        assert true + (1 - true) * called == pytest.approx(a)
        assert true * (1 - missed) == pytest.approx(b)
    points = list(boundary(a, b))
    assert points[0] == pytest.approx((0.0, 0.6)) and points[-1] == pytest.approx((0.24 / 0.84, 0.0))


def test_the_labels_that_settle_it_are_those_of_two_shares_times_the_design_effect():
    z = stats.norm.ppf(0.975)
    errors = [(p * (1 - p) * 2 / 240) ** 0.5 for p in (0.40, 0.16)]  # twice the variance of independent rows
    high, low = (rate(p, p - z * e, p + z * e) for p, e in zip((0.40, 0.16), errors, strict=True))
    found = error_explaining_gap(TEST, high, low, 0.95)
    assert found is not None and (found.false_calls, found.misses) == pytest.approx((0.24 / 0.84, 0.6))
    independent = (z + stats.norm.ppf(0.8)) ** 2 * (0.4 * 0.6 + 0.16 * 0.84) / 0.24**2
    assert found.labels == pytest.approx(2 * independent, abs=1)


def test_equal_rates_need_no_explanation():
    assert error_explaining_gap(TEST, rate(0.2, 0.1, 0.3), rate(0.2, 0.1, 0.3), 0.95) is None
