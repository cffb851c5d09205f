"""Samples with even margins, and every case's chance of being chosen."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Source
from evenedit.design.requests import pair_portraits
from evenedit.design.sampling import balanced
from evenedit.protocol import load_prompts
from evenedit.protocol.factors import cells

FACTORS = ("editor", "race", "gender", "age")


@pytest.fixture(scope="module")
def published() -> pd.DataFrame:
    """All 5,040 cases of the published design."""
    prompts = [p.id for p in load_prompts("diagnostic")]
    return pd.DataFrame(
        [{**cell, "prompt": p, "editor": e} for e, cell, p in product(("flux", "step1x", "qwen"), cells(), prompts)]
    )


@pytest.mark.parametrize("seed", [42, 1, 2])
def test_the_published_sample_has_the_published_margins(published, seed):
    rows, chances = balanced(published, 500, within="prompt", factors=FACTORS, seed=seed)
    chosen = published.iloc[rows]
    assert len(set(rows)) == 500
    assert set(chosen["prompt"].value_counts()) == {25}
    assert chosen["prompt"].str[0].value_counts().to_dict() == {"O": 250, "V": 250}
    for factor, low, high in (("race", 71, 72), ("gender", 250, 250), ("age", 83, 84), ("editor", 166, 167)):
        counts = chosen[factor].value_counts()
        assert counts.min() >= low and counts.max() <= high, (factor, counts.to_dict())
    assert np.allclose(chances, 25 / 252)


def test_the_stated_inclusion_probability_is_the_observed_one():
    frame = pd.DataFrame(
        [{"prompt": p, "race": r, "gender": g} for p, r, g in product("ab", ("W", "B", "L"), ("M", "F"))]
    )
    counts = np.zeros(len(frame))
    draws = 3000
    for seed in range(draws):
        rows, chances = balanced(frame, 4, within="prompt", factors=("race", "gender"), seed=seed)
        counts[rows] += 1
    # each case has chance 2/6; the standard error of a share over 3,000 draws is 0.0086
    assert np.allclose(chances, 1 / 3)
    assert np.abs(counts / draws - 1 / 3).max() < 4 * 0.0086


def test_the_same_seed_draws_the_same_cases(published):
    first, second = (balanced(published, 60, within="prompt", factors=FACTORS, seed=5)[0] for _ in range(2))
    assert (first == second).all()


def test_more_cases_than_there_are_is_refused(published):
    with pytest.raises(EvenEditError, match="only 5040"):
        balanced(published, 6000, within="prompt", factors=FACTORS, seed=1)


def test_pairs_have_one_of_each_gender_and_use_races_and_ages_evenly():
    sources = {"_".join(c.values()): Source("_".join(c.values()), "", c, "") for c in cells()}
    pairs = pair_portraits(sources, 50, seed=42)
    assert len(pairs) == 50
    for side, gender in enumerate(("Male", "Female")):
        chosen = [sources[pair[side]].attributes for pair in pairs]
        assert {a["gender"] for a in chosen} == {gender}
        for factor in ("race", "age"):
            counts = pd.Series([a[factor] for a in chosen]).value_counts()
            assert counts.max() - counts.min() <= 1, counts.to_dict()
