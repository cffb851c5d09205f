"""Analysis of means against t-tests, numerical integration, Tukey's intervals and numbers worked by hand."""

import numpy as np
import pytest
from scipy import integrate, stats

from evenedit.stats.engine.anom import GroupTests, _largest, group_tests
from evenedit.stats.engine.crossed import CrossedPanel
from tests.support.panels import RACES, panel_of


def anom(met: np.ndarray, groups: int = 1, confidence: float = 0.95, **how: object) -> GroupTests:
    return group_tests(CrossedPanel(panel_of(met, groups, **how)), "race", confidence)[0, 0]


def one_prompt(*hits: tuple[int, int]) -> tuple[np.ndarray, list[str]]:
    """One score per face: so many events of so many faces in each group."""
    met = np.concatenate([np.arange(n) < k for k, n in hits]).astype(int)[:, None]
    return met, [race for race, (_, n) in zip(RACES, hits, strict=False) for _ in range(n)]


def drawn(rng: np.random.Generator, groups: int, faces: int = 84, prompts: int = 10, gap: float = 0.0) -> np.ndarray:
    """[face, prompt] with face and prompt effects, the first group apart by `gap` in the latent."""
    latent = rng.normal(0, 0.5, (faces, 1)) + rng.normal(0, 0.5, (1, prompts)) + rng.normal(size=(faces, prompts))
    latent[: faces // groups] += gap
    return latent > 0.8


def test_two_groups_on_one_prompt_are_the_t_test_with_pooled_variance():
    met, races = one_prompt((3, 12), (13, 20))
    found = anom(met, races=races)
    expected = stats.ttest_ind(met[:12, 0], met[12:, 0])
    ends = expected.confidence_interval(0.95)
    assert found.p == pytest.approx((expected.pvalue, expected.pvalue))
    assert found.t == pytest.approx((expected.statistic, -expected.statistic))
    assert found.freedom == expected.df == 30
    assert found.deviations[0] == pytest.approx(3 / 12 - 13 / 20)
    assert found.intervals[0] == pytest.approx((ends.low, ends.high), abs=0.01)  # the quantile is from draws


def test_p_of_three_equal_groups_is_the_integral_over_three_correlated_deviates():
    def exceeds(limit: float) -> float:
        """P(any of three deviations from their mean > limit), each with variance 1 and correlation -1/2."""
        density = stats.multivariate_normal([0, 0], [[1, -0.5], [-0.5, 1]]).pdf
        inside, _ = integrate.dblquad(
            lambda y, x: float(density([x, y])),
            -limit,
            limit,
            lambda x: max(-limit, -limit - x),
            lambda x: min(limit, limit - x),
        )
        return 1 - inside

    largest = _largest((0.33, 0.33, 0.33))
    for limit in (1.0, 1.7, 2.34):
        assert (largest > limit).mean() == pytest.approx(exceeds(limit), abs=0.011)


def test_p_of_unequal_groups_is_that_of_draws_of_their_own():
    rng = np.random.default_rng(7)
    sizes = np.array([0.1, 0.2, 0.3, 0.4])
    means = rng.normal(size=(200_000, 4)) / np.sqrt(sizes)
    centred = np.abs(means - means.mean(axis=1, keepdims=True))
    errors = np.array([np.sqrt(((np.eye(4)[g] - 0.25) ** 2 / sizes).sum()) for g in range(4)])
    expected = (centred / errors).max(axis=1)
    for share in (0.5, 0.9, 0.95, 0.99):
        assert np.quantile(_largest(tuple(sizes)), share) == pytest.approx(np.quantile(expected, share), rel=0.02)


def test_a_p_too_small_for_the_draws_is_bonferronis():
    met, races = one_prompt((0, 12), (12, 12), (0, 12), (1, 12))
    found = anom(met, races=races)
    t = max(abs(x) for x in found.t)
    assert found.smallest_p == pytest.approx(2 * 4 * stats.t.sf(t, 44)) and found.smallest_p < 0.001


@pytest.mark.parametrize("groups", [2, 3, 7])
def test_an_interval_leaves_out_zero_just_where_p_is_below_five_percent(groups):
    rng = np.random.default_rng(groups)
    disagree = 0
    for _ in range(60):
        found = anom(drawn(rng, groups, gap=rng.uniform(0, 1)), groups)
        for p, (low, high) in zip(found.p, found.intervals, strict=True):
            disagree += ((p < 0.05) != (low > 0 or high < 0)) and abs(p - 0.05) > 0.004
    assert disagree == 0


def test_the_range_of_groups_on_one_prompt_has_tukeys_interval():
    met, races = one_prompt((2, 12), (7, 12), (4, 12), (11, 12))
    groups = [met[np.array(races) == race, 0] for race in RACES[:4]]
    ends = stats.tukey_hsd(*groups).confidence_interval(0.95)
    found = anom(met, races=races)
    assert found.gap == pytest.approx(0.75)
    assert found.range_interval == pytest.approx((ends.low.max(), ends.high.max()), abs=0.012)


def test_of_equal_rates_the_range_reaches_down_to_none():
    met, races = one_prompt((5, 12), (5, 12), (5, 12))
    low, high = anom(met, races=races).range_interval
    assert low == 0 < high < 0.6


def test_shrinkage_of_a_worked_example():
    # rates 1/8, 4/8, 7/8; squares within groups 0.875 + 2 + 0.875 on 21 df, over 8 faces: noise 0.0223214
    # variance of the rates 0.140625, so tau^2 = 0.1183036 and 0.841270 of the gap of 0.75 is not noise
    met, races = one_prompt((1, 8), (4, 8), (7, 8))
    found = anom(met, races=races)
    assert found.tau == pytest.approx(np.sqrt(0.1183036), abs=1e-6)
    assert found.shrinkage == pytest.approx(0.841270, abs=1e-6)


def test_differences_that_noise_explains_shrink_to_nothing():
    met, races = one_prompt((3, 8), (4, 8), (5, 8))
    found = anom(met, races=races)
    assert (found.tau, found.shrinkage) == (0.0, 0.0) and found.gap == 0.25


def test_where_nothing_varies_there_is_no_test_and_faces_bound_the_range():
    met, races = one_prompt((0, 10), (0, 20), (0, 30))
    found = anom(met, races=races)
    assert found.p == found.t == found.intervals == (None, None, None) and found.smallest_p is None
    assert found.range_interval == pytest.approx((0.0, stats.binomtest(0, 10).proportion_ci().high))


def test_a_group_at_zero_is_tested_by_the_variance_of_all():
    met, races = one_prompt((0, 20), (8, 20), (9, 20), (7, 20))
    found = anom(met, races=races)
    within = sum(20 * r * (1 - r) for r in found.rates) / 76
    assert found.t[0] == pytest.approx((0 - 0.3) / np.sqrt(within * 0.75 / 20))
    assert found.p[0] is not None and found.p[0] < 0.05


def test_a_group_of_two_faces_is_not_tested_but_has_an_interval():
    met, races = one_prompt((1, 2), (8, 20), (9, 20))
    found = anom(met, races=races)
    assert found.p[0] is None and found.p[1] is not None and found.intervals[0] is not None
    met, races = one_prompt((1, 2), (8, 20))
    assert anom(met, races=races).p == (None, None)


def test_a_group_whose_events_are_mostly_of_one_face_is_not_found_to_differ():
    met, races = one_prompt((0, 12), (0, 12), (0, 12))
    met = np.repeat(met, 10, axis=1)
    met[12:36:5, 0] = 1
    met[0] = 1  # ten of ten events of the first group
    found = anom(met, races=races)
    assert found.p[0] == 1.0 and found.p[1] != 1.0
    met[1:8, 0] = 1
    met[8:12, :2] = 1  # ten of twenty-five
    assert anom(met, races=races).p[0] < 0.05


def test_a_group_without_a_score_takes_no_part():
    met, races = one_prompt((3, 12), (6, 12), (9, 12))
    count = np.ones_like(met)
    count[24:] = met[24:] = 0
    found = anom(met, races=races, count=count)
    without = anom(met[:24], races=races[:24])
    assert found.levels == RACES[:2] and found.p == without.p


def test_equal_groups_alarm_as_often_as_they_should():
    rng = np.random.default_rng(11)
    cube = np.stack([drawn(rng, 7) for _ in range(400)], axis=2)
    found = group_tests(CrossedPanel(panel_of(cube, 7)), "race", 0.95)
    alarms = np.mean([found[row, 0].smallest_p < 0.05 for row in range(400)])
    assert 0.02 <= alarms <= 0.08  # of 400 at 5 %, both ends have a chance below 1 in 200


def test_people_who_halve_the_variance_of_a_group_count_as_twice_its_scores():
    met, races = one_prompt((3, 12), (6, 12), (9, 12))
    crossed = CrossedPanel(panel_of(met, races=races))
    ratio = np.full((3, 2, 1), 0.5)
    plain, halved = (group_tests(crossed, "race", 0.95, r)[0, 0] for r in (None, ratio))
    assert halved.t == pytest.approx(np.multiply(plain.t, np.sqrt(2)))
