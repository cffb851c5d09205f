"""Groups at zero borrow from the others, and an event more does not narrow an interval."""

from dataclasses import replace

import numpy as np
import pytest
from evenedit.stats.engine.bootstrap import Bootstrap
from evenedit.stats.engine.design_effects import shrink_design_effect
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evenedit.stats.engine.estimates import estimates
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.variance import wilson_interval
from tests.support.panels import panel_of

RULES = replace(AnalysisRules.default(), draws=400)
Z2 = stats.norm.ppf(0.975) ** 2


def white(met: np.ndarray, groups: int = 3):
    """The estimate of the first group."""
    found = estimates(Bootstrap(panel_of(met, groups), RULES.draws, 1), [{"race": "White"}], RULES)
    return next(e for e in found if e.editor)


def others_met(seed: int, faces: int, prompts: int, groups: int = 3) -> np.ndarray:
    """Groups whose faces differ much, the first without an event."""
    rng = np.random.default_rng(seed)
    met = (rng.random((faces * groups, prompts)) < rng.beta(0.5, 2, (faces * groups, 1))).astype(int)
    met[:faces] = 0
    return met


def test_without_any_event_faces_are_the_units_as_in_scipys_wilson():
    found = white(np.zeros((36, 20), dtype=int))
    ends = stats.binomtest(0, 12).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high), abs=1e-9)
    assert found.method == "wilson(sources)"


def test_a_group_at_zero_has_the_design_effect_of_the_other_group():
    met = others_met(3, 12, 20, groups=2)
    found = white(met, groups=2)
    bootstrap = Bootstrap(panel_of(met, 2), RULES.draws, 1)
    other = bootstrap.group(bootstrap.panel.axes.mask({"race": "Black"}))
    share, variance, freedom = (
        float(x[0, 0]) for x in (other.value, other.uncertainty.variance, other.uncertainty.freedom)
    )
    events = 240 * share * (1 - share)
    pull = stats.t.ppf(0.975, freedom) ** 2 * 240 * variance / (share * (1 - share))
    expected = (events * pull + 4 * Z2 * 20) / (events + 4)  # faces count as four events
    assert found.method == "wilson(design effect of others)"
    assert found.high == pytest.approx(expected / (240 + expected), rel=1e-9)
    assert found.high < stats.binomtest(0, 12).proportion_ci(method="wilson").high


@pytest.mark.parametrize(("faces", "prompts"), [(12, 20), (12, 10), (6, 20), (12, 4)])
def test_the_first_event_raises_both_ends_a_little(faces, prompts):
    for seed in range(4):
        met = others_met(seed, faces, prompts)
        none = white(met)
        met[seed % faces, seed % prompts] = 1
        one = white(met)
        assert none.low == 0 < one.low < 0.02
        assert none.high < one.high < none.high + 0.06


def test_a_gate_that_passes_with_one_event_of_120_passes_with_none():
    met = others_met(5, 12, 10)
    assert white(met).high < 0.3
    met[4, 4] = 1
    assert white(met).high > white(others_met(5, 12, 10)).high


def test_full_groups_mirror_empty_ones():
    met = others_met(2, 12, 20)
    empty, full = white(met), white(1 - met)
    assert (full.low, full.high) == pytest.approx((1 - empty.high, 1.0))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    n=st.integers(20, 5000),
    events=st.integers(0, 60),
    t2=st.floats(Z2, 12.0),
    own=st.floats(1.0, 20.0),
    effect=st.floats(1.0, 30.0),
)
def test_one_event_more_never_lowers_an_upper_end(n, events, t2, own, effect):
    """For any design effect of its own from 1 on and any borrowed one, up to half of the rows."""
    events = min(events, n // 2 - 1)

    def upper(k: int) -> float:
        shown = np.array(k * (1 - k / n))
        return wilson_interval(
            k / n, float(shrink_design_effect(np.array(own * t2 if k else 0.0), np.array(effect * t2), shown)) / n
        )[1]

    assert upper(events + 1) >= upper(events) - 1e-12


def test_on_real_panels_an_event_more_lowers_no_upper_end_while_events_are_few():
    """The design effect is the panel's own here; with many events, or of four prompts, it can fall by more."""
    rng = np.random.default_rng(2027)
    for seed in range(12):
        met = others_met(seed, (6, 12, 20)[seed % 3], (8, 20)[seed % 2])
        faces = len(met) // 3
        last = white(met).high
        for _ in range(7):
            free = np.argwhere(met[:faces] == 0)
            met[tuple(free[rng.integers(len(free))])] = 1
            found = white(met).high
            assert found > last
            last = found


def test_many_events_speak_for_themselves():
    met = others_met(1, 12, 20)
    met[:12] = (np.random.default_rng(9).random((12, 20)) < 0.4).astype(int)
    bootstrap = Bootstrap(panel_of(met, 3), RULES.draws, 1)
    draws = bootstrap.group(bootstrap.panel.axes.mask({"race": "White"}))
    share, sure = float(draws.value[0, 0]), draws.uncertainty
    own = stats.t.ppf(0.975, sure.freedom[0, 0]) ** 2 * 240 * sure.variance[0, 0] / (share * (1 - share))
    assert bootstrap.design_effects.of({"race": "White"}, 0.95)[0, 0] >= own - 1e-9
