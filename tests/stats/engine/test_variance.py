"""Errors clustered two ways."""

import numpy as np
import pytest
from scipy.stats import t as student
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.sandwich_covariance import cov_cluster, cov_cluster_2groups

from evenedit.stats.engine.variance import (
    clustered_variance,
    difference,
    moderated_variance,
    two_way_variance,
    variance_prior,
    wilson_interval,
)


def test_variance_of_a_mean_agrees_with_statsmodels_two_way_clusters():
    rng = np.random.default_rng(1)
    face, prompt = np.repeat(np.arange(20), 8), np.tile(np.arange(8), 20)
    y = rng.normal(size=20)[face] + rng.normal(size=8)[prompt] + rng.normal(size=160)
    fit = OLS(y, np.ones((160, 1))).fit()
    expected = cov_cluster_2groups(fit, face, prompt, use_correction=False)[0].item()
    over_faces, over_prompts, over_cells = (
        cov_cluster(fit, key, use_correction=False).item() for key in (face, prompt, np.arange(160))
    )
    assert expected == pytest.approx(over_faces + over_prompts - over_cells)
    # ours corrects each part for the number of its clusters
    parts = [np.array(x) for x in (20 / 19 * over_faces, 8 / 7 * over_prompts, 160 / 159 * over_cells)]
    found = clustered_variance((y - y.mean()) / 160, face, prompt)
    assert float(found.variance) == pytest.approx(
        float(two_way_variance(*parts, np.array(19.0), np.array(7.0)).variance)
    )
    assert float(found.variance) == pytest.approx(expected, rel=0.15)


def test_faces_and_prompts_that_no_row_has_do_not_count():
    rng = np.random.default_rng(3)
    face, prompt = rng.integers(0, 9, 40), rng.integers(0, 5, 40)
    influence = rng.normal(size=(40, 2))
    close, far = (
        clustered_variance(influence, face, prompt),
        clustered_variance(influence, 7 * face + 2, 3 * prompt + 4),
    )
    assert (close.variance == far.variance).all() and (close.freedom == far.freedom).all()


def test_degrees_of_freedom_are_satterthwaites():
    # 0.03 on 10 and 0.01 on 4 degrees of freedom: 0.04^2 / (0.0009 / 10 + 0.0001 / 4) = 13.913
    parts = [np.array(x) for x in (0.03, 0.01, 0.0, 10.0, 4.0)]
    found = two_way_variance(*parts)
    assert float(found.freedom) == pytest.approx(0.0016 / 0.000115)
    assert float(found.half_width(0.95)) == pytest.approx(0.2 * student.ppf(0.975, 0.0016 / 0.000115))


def test_degrees_of_freedom_are_never_fewer_than_the_fewer_of_both():
    # 0.02 and 0.02 less 0.02: Satterthwaite alone would say 0.02^2 / (0.0004 / 11 + 0.0004 / 3) = 2.36
    found = two_way_variance(*(np.array(x) for x in (0.02, 0.02, 0.02, 11.0, 3.0)))
    assert float(found.freedom) == 3


def test_the_larger_part_stands_where_the_difference_falls_below_it():
    assert float(two_way_variance(*(np.array(x) for x in (0.02, 0.01, 0.05, 9.0, 9.0))).variance) == 0.02


def test_a_part_that_is_not_known_leaves_the_whole_unknown():
    found = two_way_variance(*(np.array(x) for x in (0.02, np.nan, 0.01, 9.0, 2.0)))
    assert np.isnan(found.variance)


def test_one_prompt_leaves_the_faces():
    face = np.arange(6)
    y = np.arange(6.0)
    found = clustered_variance((y - y.mean()) / 6, face, np.zeros(6, dtype=np.int64))
    assert float(found.variance) == pytest.approx(y.var(ddof=1) / 6)
    assert float(found.freedom) == pytest.approx(5)


def share_interval(share: float, variance: float, freedom: float, confidence: float) -> tuple[float, float]:
    """Wilson's with the rows that would have this variance, and Student's quantile."""
    return wilson_interval(share, student.ppf(0.5 + confidence / 2, freedom) ** 2 * variance / (share * (1 - share)))


def test_share_interval_of_independent_rows_is_wilsons():
    for share, rows in ((1 / 48, 48), (0.2, 100), (0.95, 60)):
        low, high = proportion_confint(round(share * rows), rows, 0.05, method="wilson")
        share = round(share * rows) / rows
        found = share_interval(share, share * (1 - share) / rows, 1e9, 0.95)
        assert found == pytest.approx((low, high), abs=1e-6)


def test_share_interval_of_a_hand_worked_example():
    # 0.2, variance 0.0016: 100 rows' worth; t = 2: pull 0.04, centre 0.22 / 1.04, half sqrt(0.0064 + 0.0004) / 1.04
    confidence = 2 * student.cdf(2, 12) - 1
    assert share_interval(0.2, 0.0016, 12, confidence) == pytest.approx((0.13225, 0.29083), abs=1e-5)


def test_one_edit_of_few_prompts_does_not_say_that_half_of_them_may_be_met():
    # one of 12 faces x 4 prompts, and no sign that faces or prompts differ: 3 degrees of freedom for prompts
    met = np.zeros((12, 4))
    met[3, 1] = 1
    face, prompt = np.divmod(np.arange(48), 4)
    sure = clustered_variance((met.ravel() - 1 / 48) / 48, face, prompt)
    low, high = share_interval(1 / 48, float(sure.variance), float(sure.freedom), 0.95)
    assert 0 < low < 1 / 48
    assert high == pytest.approx(0.209, abs=0.002)


def test_difference_of_independent_symmetric_intervals_is_the_usual_one():
    low, high = difference(0.6, 0.3, ((0.5, 0.7), (0.25, 0.35)), 0.0)
    assert (low, high) == pytest.approx((0.3 - np.hypot(0.1, 0.05), 0.3 + np.hypot(0.1, 0.05)))
    together = difference(0.6, 0.3, ((0.5, 0.7), (0.2, 0.4)), 1.0)
    assert together == pytest.approx((0.3, 0.3))


RATIOS = np.array([0.3, 1.2, 2.5, 0.8, 0.05, 1.7, 4.1, 0.6, 9.0, 0.9])


def test_variances_drawn_towards_each_other_are_those_of_limma():
    # squeezeVar(x, 3) of limma 3.54.1 for R: var.post, and df.prior = 2.5828235248
    expected = [0.6030930525, 1.0867193015, 1.7852905500, 0.8717743019, 0.4687524278]
    expected += [1.3554005509, 2.6450705482, 0.7643018021, 5.2781467926, 0.9255105518]
    cells = np.linspace(0.1, 1.0, 10)
    found = moderated_variance(RATIOS * cells, cells, np.full(10, 3.0), np.ones(10, dtype=bool))
    assert found.variance / cells == pytest.approx(expected, abs=1e-9)
    assert found.freedom == pytest.approx(5.5828235248)


def test_where_variances_differ_no_more_than_by_chance_they_are_one_as_limma_has_it():
    # fitFDist(c(0.9, 1.1, 1.05, 0.95, 1.2), c(3, 3, 3, 19, 19)): scale 1.04, df2 = Inf
    freedom = np.array([3.0, 3, 3, 19, 19])
    ratios = np.array([0.9, 1.1, 1.05, 0.95, 1.2])
    assert variance_prior(ratios, freedom) == pytest.approx((1.04, np.inf))
    found = moderated_variance(ratios, np.ones(5), freedom, np.ones(5, dtype=bool))
    assert found.variance == pytest.approx(1.04)
    assert found.freedom == pytest.approx(47)  # as many as all have together, no more


def test_too_few_ratios_change_nothing():
    freedom = np.full(10, 3.0)
    telling = np.arange(10) < 2
    found = moderated_variance(RATIOS, np.ones(10), freedom, telling)
    assert (found.variance == RATIOS).all() and (found.freedom == freedom).all()
