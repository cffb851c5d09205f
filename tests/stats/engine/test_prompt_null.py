"""A gap that these prompts show need not hold for prompts like these."""

from dataclasses import replace

import numpy as np
import pytest
from evenedit.stats.engine.bootstrap import Bootstrap
from evenedit.stats.engine.prompt_null import prompt_noise

from evenedit.stats.engine import permutation
from evenedit.stats.engine.rules import AnalysisRules
from tests.support.panels import panel_of

RULES = replace(AnalysisRules.default(), draws=50, permutations=499)


def rated(
    rng: np.random.Generator, prompts: int, crossed: float = 0.0, apart: float = 0.0, groups: int = 3
) -> np.ndarray:
    """20 faces of each group; `crossed` is how differently prompts treat groups, `apart` how much the first differs."""
    group = np.repeat(np.arange(groups), 20)
    hidden = rng.normal(0, 0.5, (len(group), 1)) + rng.normal(0, 0.3, prompts) + apart * (group == 0)[:, None]
    hidden = hidden + rng.normal(0, crossed, (groups, prompts))[group] + rng.normal(size=(len(group), prompts))
    return (hidden > 0.6).astype(int)


def race_gap(met: np.ndarray, groups: int = 3):
    panel = panel_of(met, groups)
    return next(
        t
        for t in permutation.permutation_gap_tests(panel, RULES, Bootstrap(panel, RULES.draws, 1))
        if t.test.editor and t.test.factor == "race"
    )


def test_prompts_that_treat_groups_differently_raise_few_alarms_about_other_prompts():
    rng = np.random.default_rng(4)
    tests = [race_gap(rated(rng, 8, crossed=0.7)).test for _ in range(60)]
    assert np.mean([t.p < 0.05 for t in tests]) > 0.25  # of these prompts it is true
    assert np.mean([t.p_prompts < 0.05 for t in tests]) <= 0.1


def test_a_gap_on_every_prompt_is_shown_for_prompts_like_these():
    rng = np.random.default_rng(5)
    tests = [race_gap(rated(rng, 8, apart=0.8)).test for _ in range(20)]
    assert np.mean([t.p_prompts < 0.05 for t in tests]) >= 0.9 * np.mean([t.p < 0.05 for t in tests]) > 0.7


def test_the_claim_about_prompts_like_these_is_never_surer_than_that_about_these():
    rng = np.random.default_rng(6)
    assert all((t := race_gap(rated(rng, 6, crossed=0.3)).test).p_prompts >= t.p for _ in range(20))


def test_of_four_prompts_nothing_is_said_about_others():
    found = race_gap(rated(np.random.default_rng(7), 4, apart=0.8))
    assert found.test.p_prompts is None and not len(found.like_these.drawn) and len(found.these.drawn)


def test_what_prompts_add_has_the_variance_of_the_groups_means_over_prompts():
    """Without noise of single edits: every face of a group is met on the same prompts."""
    rng = np.random.default_rng(8)
    by_group = rng.integers(0, 2, (2, 12))
    met = np.repeat(by_group, 20, axis=0)
    panel = panel_of(met, 2)
    bootstrap = Bootstrap(panel, 10, 1)
    masks = [panel.axes.mask({"race": level}) for level in panel.axes.levels["race"]]
    noise = prompt_noise(bootstrap, masks, [0])
    rows = [met[mask][0] for mask in masks]
    difference = noise.by_prompt[:, 0, 0] - noise.by_prompt[:, 1, 0]
    assert (difference**2).sum() == pytest.approx((rows[0] - rows[1]).var(ddof=1) / 12)
    assert noise.freedom[0] == pytest.approx(11) and noise.prompts[0] == 12
