"""The difference of two editors' gaps: its interval holds the truth, also where neither has a gap."""

from dataclasses import replace

import numpy as np
import pytest
from evenedit.stats.engine.bootstrap import Bootstrap

from evenedit.stats.disparity.paired_editors import Difference, DrawnDifference, adjusted, gap_differences
from evenedit.stats.engine.rules import AnalysisRules
from validation.compare import Both

RULES = replace(AnalysisRules.default(), draws=100)
ONE = Difference("rate.skin_lighter", {}, 0.1, 0.2, 0.1, 0.03, 0.17, 100)
SMALL = {"groups": (8, 8, 8), "prompts": 6}


def race_gap(world: Both, rng: np.random.Generator) -> Difference:
    return next(d for d, _ in gap_differences(Bootstrap(world.drawn(rng), 100, 1), RULES) if "race" in d.group)


@pytest.mark.parametrize("apart", [(0.0, 0.0), (1.2, 0.0), (1.0, 1.0)])
def test_the_interval_holds_the_true_difference(apart):
    world, rng = Both("", apart, **SMALL), np.random.default_rng(2)
    held = [d.low <= world.truth() <= d.high for d in (race_gap(world, rng) for _ in range(40)) if d.low is not None]
    assert len(held) > 35 and np.mean(held) >= 0.9


def test_an_editor_does_not_differ_from_itself():
    world = Both("", (0.9, 0.9), shared=1.0, **SMALL)
    panel = world.drawn(np.random.default_rng(3))
    cells = panel.cells.copy()
    cells[:, :, 1] = cells[:, :, 0]
    sums = {name: np.stack([x[0], x[0]]) for name, x in panel.sums.items()}
    ((d, _),) = gap_differences(Bootstrap(replace(panel, cells=cells, sums=sums), 100, 1), RULES)
    assert d.value == 0 and d.low <= 0 <= d.high


def test_two_families_share_the_chance_of_a_false_alarm():
    moved = np.random.default_rng(1).normal(size=4000)
    alone, *_ = adjusted([DrawnDifference(ONE, moved)], 0.95)
    assert alone.p == pytest.approx(0.0051, abs=1e-4) and alone.p_adjusted == pytest.approx(alone.p, abs=1e-3)
    of_group = DrawnDifference(replace(ONE, group={"race": "Black"}), moved)
    both, _ = adjusted([DrawnDifference(ONE, moved), of_group], 0.95)
    assert both.p_adjusted == pytest.approx(2 * both.p, abs=2e-3)


def test_measures_that_move_together_cost_nothing_and_others_as_much_as_with_holm():
    rng = np.random.default_rng(2)
    moved = rng.normal(size=4000)
    same = adjusted([DrawnDifference(replace(ONE, measure=f"rate.{k}"), moved * (k + 1)) for k in range(40)], 0.95)
    assert max(d.p_adjusted for d in same) == pytest.approx(same[0].p, abs=1e-3)
    apart = adjusted([DrawnDifference(ONE, rng.standard_t(2, size=4000)) for _ in range(8)], 0.95)
    assert apart[0].p_adjusted == pytest.approx(8 * apart[0].p, abs=0.01), "long tails of single draws do not matter"


def test_what_has_no_interval_is_no_test():
    still = replace(ONE, value=0.0, low=None, high=None)
    first, second = adjusted([DrawnDifference(ONE, np.arange(50.0)), DrawnDifference(still, np.zeros(50))], 0.95)
    assert second.p is None and second.p_adjusted is None
    assert first.p_adjusted == adjusted([DrawnDifference(ONE, np.arange(50.0))], 0.95)[0].p_adjusted
