"""A small version of `python -m validation coverage`, whose table is docs/validation/coverage.md."""

import numpy as np
import pytest
from evenedit.stats.engine.bootstrap import Bootstrap

from validation.coverage import World, alarms, one_study, ppi_study, shares
from validation.few_prompts import covered, study


@pytest.mark.parametrize("shape", ["no gap", "one group higher"])
def test_headline_intervals_cover_the_truth_of_the_papers_design(shape):
    rng = np.random.default_rng(11)
    found = shares([one_study(World(shape=shape), rng, 200, seed) for seed in range(60)])
    # of 60 at 95 %, fewer than 52 have a chance below 1 in 200
    for name in ("rate, everybody", "rate, first race", "gap over races", "first race - rest"):
        assert found[name] >= 52 / 60, name
    assert found["rows as independent"] < 0.7


def test_an_even_editor_rarely_alarms():
    rng = np.random.default_rng(12)
    assert sum(alarms(World(), rng, 199, seed) for seed in range(30)) <= 5


def test_prediction_powered_intervals_cover_and_are_narrower():
    rng = np.random.default_rng(13)
    found = shares([ppi_study(World(), rng) for _ in range(80)])
    assert found["rate, with judges"] >= 70 / 80
    assert found["first race - rest, with judges"] >= 70 / 80
    assert found["rate, width ratio"] < 0.95
    assert found["first race - rest, width ratio"] < 0.95
    assert found["judges alone"] < 0.2  # a judge that leans is surely wrong


def test_intervals_over_everybody_hold_the_truth_with_four_prompts():
    """A small version of `python -m validation few_prompts`, on studies of another seed."""
    found = []
    for at in range(12):
        panel, truth = study(np.random.default_rng([77, at]), 4, (0.3,) * 6)
        found.append(covered(Bootstrap(panel, 200, 1), truth)[0])
    assert np.mean(found) > 0.88  # 288 intervals at 95 %
