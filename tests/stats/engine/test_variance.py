"""Variances with degrees of freedom, and the intervals that follow from them."""

import numpy as np
import pytest
from scipy.stats import binomtest
from scipy.stats import t as student
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.sandwich_covariance import cov_cluster

from evenedit.stats.engine.variance import (
    Uncertainty,
    clustered_variance,
    difference,
    effective_size,
    korn_graubard,
    satterthwaite,
    share_p,
)


def combined(faces: tuple[float, float], prompts: tuple[float, float], cells: tuple[float, float]) -> Uncertainty:
    return satterthwaite(*((np.array(v), np.array(df)) for v, df in (faces, prompts, cells)))


def test_degrees_of_freedom_are_satterthwaites():
    # 0.03 on 10 and 0.02 on 4 less 0.01 on 40: 0.04^2 / (0.0009 / 10 + 0.0004 / 4 + 0.0001 / 40) = 8.3117
    found = combined((0.03, 10), (0.02, 4), (0.01, 40))
    assert float(found.variance) == pytest.approx(0.04)
    assert float(found.freedom) == pytest.approx(8.3117, abs=1e-4)
    assert float(found.half_width(0.95)) == pytest.approx(0.2 * student.ppf(0.975, 0.0016 / 0.0001925))


def test_the_larger_part_stands_with_its_degrees_of_freedom_where_the_sum_falls_below_it():
    found = combined((0.02, 9), (0.01, 4), (0.05, 36))
    assert (float(found.variance), float(found.freedom)) == (0.02, 9)
    found = combined((0.01, 9), (0.02, 4), (0.05, 36))
    assert (float(found.variance), float(found.freedom)) == (0.02, 4)


def test_one_prompt_leaves_the_faces():
    found = combined((0.02, 9), (0.0, 0), (0.0, 0))
    assert (float(found.variance), float(found.freedom)) == (0.02, 9)


def test_p_is_that_of_students_t_and_none_where_nothing_varies():
    sure = Uncertainty(np.array([0.04, 0.0]), np.array([7.0, 7.0]))
    p = sure.p(np.array([-0.5, 0.5]))
    assert p[0] == pytest.approx(2 * student.sf(2.5, 7)) and np.isnan(p[1])


def test_the_larger_of_two_variances_keeps_its_degrees_of_freedom_and_an_unknown_one_stays_unknown():
    first = Uncertainty(np.array([0.1, 0.3, np.nan]), np.array([3.0, 3.0, 3.0]))
    second = Uncertainty(np.array([0.2, 0.2, 0.2]), np.array([9.0, 9.0, 9.0]))
    found = first.larger(second)
    assert found.variance[:2].tolist() == [0.2, 0.3] and found.freedom[:2].tolist() == [9.0, 3.0]
    assert np.isnan(found.variance[2])


def test_clustered_variance_sums_influences_as_statsmodels_does():
    rng = np.random.default_rng(1)
    face, prompt = np.repeat(np.arange(20), 8), np.tile(np.arange(8), 20)
    y = rng.normal(size=20)[face] + rng.normal(size=8)[prompt] + rng.normal(size=160)
    fit = OLS(y, np.ones((160, 1))).fit()
    faces, prompts, cells = (
        cov_cluster(fit, key, use_correction=False).item() for key in (face, prompt, np.arange(160))
    )
    expected = combined((20 / 19 * faces, 19), (8 / 7 * prompts, 7), (160 / 159 * cells, 159))
    found = clustered_variance((y - y.mean()) / 160, face, prompt)
    assert float(found.variance) == pytest.approx(float(expected.variance))
    assert float(found.freedom) == pytest.approx(float(expected.freedom))


def test_faces_and_prompts_that_no_row_has_do_not_count():
    rng = np.random.default_rng(3)
    face, prompt = rng.integers(0, 9, 40), rng.integers(0, 5, 40)
    influence = rng.normal(size=(40, 2))
    close = clustered_variance(influence, face, prompt)
    far = clustered_variance(influence, 7 * face + 2, 3 * prompt + 4)
    assert (close.variance == far.variance).all() and (close.freedom == far.freedom).all()


@pytest.mark.parametrize(("events", "n"), [(0, 12), (1, 12), (12, 12), (38, 45), (225, 1674)])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_the_interval_of_independent_rows_is_the_exact_binomial_one(events, n, confidence):
    expected = binomtest(events, n).proportion_ci(confidence, method="exact")
    assert korn_graubard(events / n, n, confidence) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_the_effective_size_of_a_worked_example():
    # 0.2 with variance 0.0016 is worth 0.16 / 0.0016 = 100 rows, fewer by the ratio of the quantiles squared
    ratio = (student.ppf(0.975, 399) / student.ppf(0.975, 12)) ** 2
    assert effective_size(0.2, 0.0016, 12, 400, 0.95) == pytest.approx(100 * ratio)


def test_the_effective_size_lies_between_one_and_the_number_of_rows():
    assert effective_size(0.2, 1e-6, 12, 400, 0.95) == 400
    assert effective_size(0.2, 9.0, 1, 400, 0.95) == 1
    assert effective_size(0.0, 0.0, 12, 400, 0.95) == 400


@pytest.mark.parametrize("two_sided", [True, False])
def test_p_of_a_share_is_below_five_percent_just_where_the_interval_leaves_out_the_limit(two_sided):
    rng = np.random.default_rng(5)
    for _ in range(300):
        share, size, limit = rng.random(), rng.uniform(3, 300), rng.random()
        low, high = korn_graubard(share, size, 0.95)
        outside = limit < low or (two_sided and limit > high)
        assert (share_p(share, size, limit, two_sided) < 0.05) == outside


def test_p_of_a_share_of_independent_rows_is_twice_the_exact_tail():
    assert share_p(9 / 12, 12, 0.5, True) == pytest.approx(2 * binomtest(9, 12, 0.5, "greater").pvalue)
    assert share_p(9 / 12, 12, 0.6, False) == pytest.approx(2 * binomtest(9, 12, 0.6, "greater").pvalue)
    assert share_p(0.0, 12, 0.02, False) == share_p(0.5, 12, 0.5, True) == 1.0


def test_difference_of_independent_symmetric_intervals_is_the_usual_one():
    low, high = difference(0.6, 0.3, ((0.5, 0.7), (0.25, 0.35)), 0.0)
    assert (low, high) == pytest.approx((0.3 - np.hypot(0.1, 0.05), 0.3 + np.hypot(0.1, 0.05)))
    together = difference(0.6, 0.3, ((0.5, 0.7), (0.2, 0.4)), 1.0)
    assert together == pytest.approx((0.3, 0.3))


def test_a_difference_keeps_the_asymmetry_of_its_intervals():
    # down: sqrt(0.04^2 + 0.03^2 - 2 * 0.5 * 0.04 * 0.03) = 0.036056; up: sqrt(0.08^2 + 0.01^2 - 0.0008) = 0.075498
    found = difference(0.10, 0.02, ((0.06, 0.18), (0.01, 0.05)), 0.5)
    assert found == pytest.approx((0.08 - 0.036056, 0.08 + 0.075498), abs=1e-6)


def test_two_way_clustered_variance_is_never_below_that_of_one_way():
    rng = np.random.default_rng(2)
    influence, one, two = rng.normal(size=200), rng.integers(0, 12, 200), rng.integers(0, 20, 200)
    single = [clustered_variance(influence, units, units).variance for units in (one, two)]
    assert clustered_variance(influence, one, two).variance >= max(single) - 1e-12
