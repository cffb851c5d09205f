"""Intervals of shares, means and shifts: which variance they rest on, and at the ends of the scale."""

import numpy as np
import pytest
from scipy.stats import binomtest
from scipy.stats import t as student

from evenedit.core.records import Estimate
from evenedit.protocol.measures import Measure
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import estimates
from evenedit.stats.engine.panel import RatioMeasure
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.variance import effective_size, korn_graubard
from tests.support.panels import RACES, panel_of

RULES = AnalysisRules.default()
SHIFT = RatioMeasure(Measure.shift("skin_tone"), "met", "n", "asked", signed=True)
MEAN = RatioMeasure(Measure.mean("skin_tone"), "met", "n", "asked", bounds=(1.0, 5.0))


def estimate(crossed: CrossedPanel, **group: str) -> Estimate:
    return next(e for e in estimates(crossed, [group], RULES) if e.editor)


def drawn(shape: tuple[int, int], rate: float = 0.3, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.random(shape) < rng.beta(1, (1 - rate) / rate, (shape[0], 1))).astype(int)


def exact(events: float, rows: float) -> tuple[float, float]:
    ends = binomtest(round(events), round(rows)).proportion_ci(method="exact")
    return ends.low, ends.high


def test_a_rate_has_the_interval_of_its_effective_size():
    crossed = CrossedPanel(panel_of(drawn((40, 10))))
    found = estimate(crossed)
    sure = crossed.uncertainty([crossed.all_faces], [1.0])
    size = effective_size(found.value, sure.variance[0, 0], sure.freedom[0, 0], 400, 0.95)
    assert (found.low, found.high) == pytest.approx(korn_graubard(found.value, size, 0.95))
    assert found.method == "korn-graubard(source x prompt)" and found.n == 400
    assert size < 200, "edits of one face are alike"


def test_a_group_without_an_event_takes_the_design_effect_of_its_factor():
    met = drawn((40, 10))
    met[:10] = 0
    crossed = CrossedPanel(panel_of(met, 4))
    effect = crossed.pooled(("race",)).design_effect(0)[0, 0]
    found = estimate(crossed, race=RACES[0])
    assert effect > 1 and found.low == 0
    assert found.high == pytest.approx(1 - 0.025 ** (effect / 100)), "the exact interval of none of 100 / effect rows"


def test_groups_with_and_without_any_event_mirror_each_other():
    met = drawn((40, 10))
    met[:10] = 0
    none, every = (estimate(CrossedPanel(panel_of(m, 4)), race=RACES[0]) for m in (met, 1 - met))
    assert (every.low, every.high) == pytest.approx((1 - none.high, 1.0))


def test_where_nothing_ever_happens_faces_are_the_units():
    nothing = CrossedPanel(panel_of(np.zeros((40, 10), dtype=int), 4))
    assert (estimate(nothing).low, estimate(nothing).high) == pytest.approx(exact(0, 40))
    found = estimate(nothing, race=RACES[0])
    assert (found.low, found.high) == pytest.approx(exact(0, 10))


def test_few_prompts_and_rare_events_are_a_statement_about_these_prompts():
    met = np.zeros((40, 7), dtype=int)
    met[range(0, 40, 4), [0, 1, 2, 3, 4, 5, 6, 0, 1, 2]] = 1  # 10 of 280
    rare = CrossedPanel(panel_of(met))
    sums = rare.all_faces
    found = estimate(rare)
    size = effective_size(10 / 280, sums.over_faces[0, 0], sums.face_freedom[0, 0], 280, 0.95)
    assert found.method == "korn-graubard(source)"
    assert (found.low, found.high) == pytest.approx(korn_graubard(10 / 280, size, 0.95))
    eight = np.concatenate([met, np.zeros((40, 1), dtype=int)], axis=1)
    assert estimate(CrossedPanel(panel_of(eight))).method == "korn-graubard(source x prompt)"
    assert estimate(CrossedPanel(panel_of(drawn((40, 7))))).method == "korn-graubard(source x prompt)", "not rare"


def test_a_rate_of_which_one_prompt_holds_most_is_a_statement_about_these_prompts():
    met = drawn((40, 10), 0.05)
    met[:, 3] = 1
    dominated = CrossedPanel(panel_of(met))
    assert dominated.all_faces.top_prompt[0, 0] == 40 / met.sum() > 0.5
    assert estimate(dominated).method == "korn-graubard(source)"


def test_means_and_shifts_have_students_interval_within_their_scale():
    values = 3 + drawn((12, 6)) - drawn((12, 6), seed=2)
    for measure, y in ((MEAN, values), (SHIFT, values - 3)):
        crossed = CrossedPanel(panel_of(y, measure=measure))
        sure = crossed.uncertainty([crossed.all_faces], [1.0])
        reach = student.ppf(0.975, sure.freedom[0, 0]) * np.sqrt(sure.variance[0, 0])
        found = estimate(crossed)
        assert (found.low, found.high) == pytest.approx((y.mean() - reach, y.mean() + reach))
        assert found.method == "t(source x prompt)"
    top = np.ones((4, 3), dtype=int)
    top[0, 0] = 0
    assert estimate(CrossedPanel(panel_of(top, measure=SHIFT))).high == 1.0


def test_a_shift_that_is_the_same_in_every_edit_is_bounded_by_its_faces():
    for value in (-1, 0, 1):
        found = estimate(CrossedPanel(panel_of(np.full((12, 5), value), measure=SHIFT)))
        end = exact(0, 12)[1]
        expected = {-1: (-1.0, 2 * end - 1), 0: (-end, end), 1: (1 - 2 * end, 1.0)}[value]
        assert (found.low, found.high) == pytest.approx(expected)


def test_one_face_and_no_score_have_no_interval():
    assert estimate(CrossedPanel(panel_of(drawn((1, 6))))).method == "none: one source"
    met = np.zeros((4, 3), dtype=int)
    found = estimate(CrossedPanel(panel_of(met, count=met)))
    assert (found.value, found.low, found.missing, found.method) == (None, None, 12, "none: no valid score")


def test_one_prompt_counts_faces():
    found = estimate(CrossedPanel(panel_of(np.arange(20)[:, None] % 4 == 0)))
    assert found.method == "korn-graubard(source)"
    assert (found.low, found.high) == pytest.approx(exact(5, 20), abs=0.02)
