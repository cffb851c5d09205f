"""Errors clustered two ways."""

import numpy as np
import pytest
from scipy.stats import t as student
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.sandwich_covariance import cov_cluster, cov_cluster_2groups

from evenedit.stats.variance import clustered, difference, logit_interval, two_way


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
    found = clustered((y - y.mean()) / 160, face, prompt)
    assert float(found.variance) == pytest.approx(float(two_way(*parts, np.array(19.0), np.array(7.0)).variance))
    assert float(found.variance) == pytest.approx(expected, rel=0.15)


def test_degrees_of_freedom_are_satterthwaites():
    # 0.03 on 10 and 0.01 on 4 degrees of freedom: 0.04^2 / (0.0009 / 10 + 0.0001 / 4) = 13.913
    parts = [np.array(x) for x in (0.03, 0.01, 0.0, 10.0, 4.0)]
    found = two_way(*parts)
    assert float(found.freedom) == pytest.approx(0.0016 / 0.000115)
    assert float(found.reach(0.95)) == pytest.approx(0.2 * student.ppf(0.975, 0.0016 / 0.000115))


def test_the_larger_part_stands_where_the_difference_falls_below_it():
    assert float(two_way(*(np.array(x) for x in (0.02, 0.01, 0.05, 9.0, 9.0))).variance) == 0.02


def test_one_prompt_leaves_the_faces():
    face = np.arange(6)
    y = np.arange(6.0)
    found = clustered((y - y.mean()) / 6, face, np.zeros(6, dtype=np.int64))
    assert float(found.variance) == pytest.approx(y.var(ddof=1) / 6)
    assert float(found.freedom) == pytest.approx(5)


def test_logit_interval_of_a_hand_worked_example():
    # 0.2, standard error 0.04: log odds -1.3863 -/+ 2 * 0.04 / 0.16 = 0.5, so 0.1317 to 0.2919
    confidence = 2 * student.cdf(2, 12) - 1
    assert logit_interval(0.2, 0.0016, 12, confidence) == pytest.approx((0.1317, 0.2919), abs=1e-4)


def test_difference_of_independent_symmetric_intervals_is_the_usual_one():
    low, high = difference(0.6, 0.3, ((0.5, 0.7), (0.25, 0.35)), 0.0)
    assert (low, high) == pytest.approx((0.3 - np.hypot(0.1, 0.05), 0.3 + np.hypot(0.1, 0.05)))
    together = difference(0.6, 0.3, ((0.5, 0.7), (0.2, 0.4)), 1.0)
    assert together == pytest.approx((0.3, 0.3))
