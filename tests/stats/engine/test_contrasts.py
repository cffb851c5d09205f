"""Declared contrasts: by hand, beside the formulas of the design, and adjusted for a covariate."""

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import t as student

from evenedit.stats import AnalysisRules
from evenedit.stats.engine.contrasts import adjusted, contrast_test, everybody_test
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import GroupEstimates
from tests.support.panels import RACES, panel_of

RULES = AnalysisRules.default()
SIDES = {"White": -0.5, "Black": 0.5, "EastAsian": -0.5, "SoutheastAsian": 0.5}


def codes(seed: int, faces: int = 40, prompts: int = 12, groups: int = 4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(faces, 1)) + 0.5 * rng.normal(size=(1, prompts)) + rng.normal(size=(faces, prompts))
    return (hidden > 0.7).astype(int)


def pooled_by_hand(y: np.ndarray, group: np.ndarray, w: np.ndarray) -> tuple[float, float, float]:
    """The quasi-F test of a contrast on a complete panel: value, variance, degrees of freedom."""
    (f, p), k = y.shape, len(w)
    n = np.bincount(group, minlength=k)
    face, means = y.mean(axis=1), np.array([y[group == g].mean() for g in range(k)])
    by_prompt = np.array([y[group == g].mean(axis=0) for g in range(k)])
    ms_face = p * ((face - means[group]) ** 2).sum() / (f - k)
    overall = n @ by_prompt / f
    own = by_prompt - means[:, None] - (overall - overall.mean())
    ms_group = (n[:, None] * own**2).sum() / ((k - 1) * (p - 1))
    rest = y - face[:, None] - by_prompt[group] + means[group][:, None]
    ms_rest = (rest**2).sum() / ((f - k) * (p - 1))
    scale = (w**2 / n).sum() / p
    parts, df = scale * np.array([ms_face, ms_group, -ms_rest]), np.array([f - k, (k - 1) * (p - 1), (f - k) * (p - 1)])
    total = parts.sum()
    if total > max(parts[:2]):
        return float(w @ means), float(total), float(total**2 / (parts**2 / df).sum())
    first = int(np.argmax(parts[:2]))
    return float(w @ means), float(parts[first]), float(df[first])


@pytest.mark.parametrize("seed", range(6))
def test_a_contrast_is_the_pooled_test_of_a_complete_panel(seed):
    met, group = codes(seed), np.arange(40) * 4 // 40
    result = contrast_test(CrossedPanel(panel_of(met, 4)), "race", SIDES, 0, 0, RULES)
    value, variance, freedom = pooled_by_hand(met.astype(float), group, np.array([*SIDES.values()]))
    assert result is not None and result.value == pytest.approx(value)
    assert (float(result.sure.variance), float(result.sure.freedom)) == pytest.approx((variance, freedom))
    assert result.p == pytest.approx(2 * student.sf(abs(value) / np.sqrt(variance), freedom))
    assert result.low is not None and result.high is not None and result.low < value < result.high
    assert result.sides[0] - result.sides[1] == pytest.approx(value)


def test_two_groups_of_two_prompts_by_hand():
    """White faces 0 0 1, Black faces 1 1 2 of two prompts each: means 1/6 and 2/3."""
    met = np.array([[0, 0], [0, 0], [1, 0], [1, 0], [0, 1], [1, 1]])
    result = contrast_test(CrossedPanel(panel_of(met, 2)), "race", {"Black": 1.0, "White": -1.0}, 0, 0, RULES)
    assert result is not None and result.value == pytest.approx(2 / 3 - 1 / 6)
    assert result.sides == pytest.approx((2 / 3, 1 / 6))
    # between faces 2 x (1/6 + 1/6) / 4 = 1/6 per edit; times (1/3 + 1/3) / 2 is 1/18; no group x prompt to speak of
    assert float(result.sure.variance) == pytest.approx(1 / 18) and float(result.sure.freedom) == 4
    assert result.p == pytest.approx(2 * student.sf(0.5 / np.sqrt(1 / 18), 4))


def test_a_side_of_fewer_than_three_faces_is_not_tested_and_a_group_without_a_score_has_no_value():
    met = codes(1, faces=8)
    few = contrast_test(CrossedPanel(panel_of(met, 4)), "race", {"Black": 1.0, "White": -1.0}, 0, 0, RULES)
    assert few is not None and few.p is None and few.low is not None
    both = contrast_test(CrossedPanel(panel_of(met, 4)), "race", SIDES, 0, 0, RULES)
    assert both is not None and both.p is not None, "two groups of two on each side"
    assert contrast_test(CrossedPanel(panel_of(met, 4)), "race", {"Black": 1.0, "Latino": -1.0}, 0, 0, RULES) is None
    assert contrast_test(CrossedPanel(panel_of(0 * met, 4)), "race", SIDES, 0, 0, RULES).p is None, "nothing varies"


def test_everybody_is_tested_against_a_limit():
    crossed = CrossedPanel(panel_of(codes(2), 4))
    share = crossed.panel.cells[..., 0].sum() / (40 * 12)
    overall = GroupEstimates.of(crossed, {}, RULES.confidence)
    lower, higher = (everybody_test(overall, 0, 0, limit) for limit in (0.0001, 0.9))
    assert lower is not None and higher is not None and lower.value == pytest.approx(share)
    assert lower.p < 0.001 and higher.p == pytest.approx(1), "only values above the limit count"


@pytest.mark.parametrize("seed", range(4))
def test_the_adjustment_is_analysis_of_covariance(seed):
    """On one prompt, faces are the rows of a linear model with groups and the covariate."""
    rng = np.random.default_rng(seed)
    group, x = np.arange(40) * 4 // 40, rng.normal(size=40)
    met = rng.binomial(10, 1 / (1 + np.exp(-x - 0.2 * group))).reshape(-1, 1)
    crossed = CrossedPanel(panel_of(met, 4, seeds=10))
    changed = adjusted(crossed, "race", SIDES, 0, 0, x)
    assert changed is not None
    result = contrast_test(changed[0], "race", SIDES, 0, 0, RULES, changed[1])
    fit = sm.OLS(met[:, 0] / 10, np.column_stack([np.eye(4)[group], x])).fit()
    weights = np.array([*SIDES.values(), 0.0])
    assert result is not None and result.value == pytest.approx(float(weights @ fit.params))
    test = fit.t_test(weights)
    assert float(result.sure.freedom) == fit.df_resid == 35
    assert float(np.sqrt(result.sure.variance)) == pytest.approx(test.sd.item())
    assert result.p == pytest.approx(float(test.pvalue))


def test_faces_without_the_covariate_are_left_out_and_a_constant_one_adjusts_nothing():
    crossed, x = CrossedPanel(panel_of(codes(3), 4)), np.random.default_rng(3).normal(size=40)
    x[:2] = np.nan
    changed = adjusted(crossed, "race", SIDES, 0, 0, x)
    assert changed is not None and (changed[0].panel.cells[:2] == 0).all()
    kept = panel_of(codes(3)[2:], races=[RACES[i * 4 // 40] for i in range(2, 40)])
    alone = adjusted(CrossedPanel(kept), "race", SIDES, 0, 0, x[2:])
    assert alone is not None
    results = [contrast_test(c, "race", SIDES, 0, 0, RULES, extra) for c, extra in (changed, alone)]
    assert results[0].value == pytest.approx(results[1].value) and results[0].p == pytest.approx(results[1].p)
    assert adjusted(crossed, "race", SIDES, 0, 0, np.ones(40)) is None


def test_the_order_of_rows_changes_nothing():
    met, order = codes(4), np.random.default_rng(0).permutation(40 * 12)
    first, second = (contrast_test(CrossedPanel(panel_of(met, 4, order=o)), "race", SIDES, 0, 0, RULES)
                     for o in (None, order))  # fmt: skip
    assert first is not None and second is not None
    plain = [replace(r, sure=None) for r in (first, second)]
    assert plain[0] == plain[1]
