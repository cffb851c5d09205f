"""Wilson, percentile and gap intervals."""

import numpy as np
import pytest
from scipy.stats import binomtest

from evenedit.stats.disparity.gaps import gap_intervals
from evenedit.stats.engine.intervals import as_interval, percentile, quantiles, wilson


def test_wilson_of_a_hand_worked_example():
    # 8 of 10, z = 1.96: centre (0.8 + 0.19207) / 1.38415 = 0.71674, half width
    # 1.96 / 1.38415 * sqrt(0.016 + 0.0096035) = 0.22657
    low, high = wilson(8, 10) or (0, 0)
    assert (low, high) == (pytest.approx(0.49016, abs=1e-4), pytest.approx(0.94332, abs=1e-4))


@pytest.mark.parametrize(("k", "n"), [(0, 12), (1, 12), (12, 12), (38, 45), (225, 1674)])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_wilson_agrees_with_scipy(k, n, confidence):
    expected = binomtest(k, n).proportion_ci(confidence, method="wilson")
    assert wilson(k, n, confidence) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_no_rows_give_no_wilson_interval():
    assert wilson(0, 0) is None


def test_quantiles_ignore_a_few_undefined_draws_and_refuse_many():
    draws = np.arange(100.0)[:, None].repeat(3, axis=1)
    draws[:10, 1] = np.nan
    draws[:50, 2] = np.nan
    found = quantiles(draws, [0.5])[0]
    assert found[:2].tolist() == [49.5, 54.5]
    assert np.isnan(found[2])
    assert as_interval(percentile(draws, 0.95)[:, 2]) is None


def test_two_groups_give_the_interval_of_their_difference():
    # rates 0.6 and 0.3, standard errors 0.03: 0.3 -/+ 1.96 * sqrt(2) * 0.03 = 0.217 to 0.383
    none = np.zeros((20_000, 1, 2))
    found = gap_intervals(np.array([[0.6, 0.3]]), np.full((1, 2), 0.03), none, np.full((1, 2), 999.0), 0.95, 1)
    assert found[:, 0] == pytest.approx([0.217, 0.383], abs=0.006)


def test_a_gap_that_chance_gives_reaches_down_to_none():
    rates = np.array([[0.20, 0.22, 0.25], [0.20, 0.20, 0.20]])
    found = gap_intervals(rates, np.full((2, 3), 0.05), np.zeros((2000, 2, 3)), np.full((2, 3), 200.0), 0.95, 1)
    assert (found[0] == 0).all()
    assert (found[1] > [0.1, 0.1]).all()  # equal rates do not say that the truth is equal


def test_noise_that_all_groups_share_hardly_widens_a_gap():
    rng = np.random.default_rng(1)
    rates, own, sizes = np.array([[0.5, 0.3]]), np.full((1, 2), 0.02), np.full((1, 2), 999.0)
    shared = np.repeat(rng.normal(0, 0.06, (4000, 1, 1)), 2, axis=2)
    apart = rng.normal(0, 0.06, (4000, 1, 2))
    width = [float(np.ptp(gap_intervals(rates, own, noise, sizes, 0.95, 1))) for noise in (shared, apart)]
    assert width[0] < 0.6 * width[1]
