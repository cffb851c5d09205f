"""The difference of two editors' gaps: its interval holds the truth, also where neither has a gap."""

from dataclasses import replace

import numpy as np
import pytest
from proofs.compare import Both

from evenedit.stats.disparity.paired_editors import Difference, _adjusted, gap_differences
from evenedit.stats.engine.bootstrap import Bootstrap
from evenedit.stats.engine.rules import AnalysisRules

RULES = replace(AnalysisRules.default(), draws=100)
SMALL = {"groups": (8, 8, 8), "prompts": 6}


def race_gap(world: Both, rng: np.random.Generator) -> Difference:
    return next(d for d in gap_differences(Bootstrap(world.drawn(rng), 100, 1), RULES) if "race" in d.group)


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
    (d,) = gap_differences(Bootstrap(replace(panel, cells=cells, sums=sums), 100, 1), RULES)
    assert d.value == 0 and d.low <= 0 <= d.high


def test_two_families_share_the_chance_of_a_false_alarm():
    one = Difference("rate.skin_lighter", {}, 0.1, 0.2, 0.1, 0.03, 0.17, 100)
    alone, *_ = _adjusted([one], 0.95)
    assert alone.p_adjusted == pytest.approx(alone.p)
    both, _ = _adjusted([one, replace(one, group={"race": "Black"})], 0.95)
    assert both.p_adjusted == pytest.approx(2 * both.p)
