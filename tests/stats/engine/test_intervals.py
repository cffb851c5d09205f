"""Intervals from counts and from draws."""

import numpy as np
import pytest
from scipy.stats import binomtest

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
