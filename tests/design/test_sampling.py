"""Samples with even margins, and every case's chance of being chosen."""

import numpy as np
import pandas as pd
import pytest

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Source
from evenedit.design.requests import pair_portraits
from evenedit.design.sampling import Balance, balanced, crossed_of, drawn, even_chances, filled, greedy_fill
from evenedit.protocol import FACTORS
from evenedit.protocol.factors import cells
from validation.sampling import by_chance, incomplete_frames, observed, published_grid, uneven

CROSSED = crossed_of(FACTORS)


@pytest.fixture(scope="module")
def published() -> pd.DataFrame:
    """All 5,040 cases of the published design."""
    return published_grid()


@pytest.mark.parametrize("rules", ["default", "published"])
@pytest.mark.parametrize("seed", [42, 1])
def test_the_published_sample_has_the_published_margins_and_cells(published, rules, seed):
    rows, chances = drawn(published, 500, "balanced", FACTORS, seed=seed, published=rules == "published")
    assert len(set(rows)) == 500
    assert uneven(published.iloc[rows]) == []
    assert np.allclose(chances, 500 / 5040, rtol=1e-12)


@pytest.mark.parametrize("at", range(3))
def test_in_incomplete_frames_the_stated_inclusion_probability_is_the_observed_one(at):
    _, frame, size = list(incomplete_frames())[at]
    draws, stated = 300, even_chances(frame, size, CROSSED)
    assert stated.sum() == pytest.approx(size) and stated.min() > 0
    share = observed(Balance.of(frame, CROSSED), stated, draws)
    # as the largest of many differences: each law is binomial
    assert np.abs(share - stated).max() < 1.3 * by_chance(stated, draws)
    rows, chances = balanced(frame, size, crossed=CROSSED, seed=1)
    assert len(set(rows)) == size and np.array_equal(chances, stated[rows])


def test_a_small_group_is_drawn_more_often_and_prompts_stay_even():
    _, frame, size = next(incomplete_frames())
    chosen = frame.iloc[balanced(frame, size, crossed=CROSSED, seed=3)[0]]
    assert set(chosen["prompt"].value_counts()) == {10}
    assert (chosen["race"] == "East Asian").sum() >= 14, "20 of 177, and half of an even sample"
    by_race = pd.Series(even_chances(frame, size, CROSSED)).groupby(frame["race"]).mean()
    assert by_race["East Asian"] > 3 * by_race["Black"]


def test_the_greedy_fill_of_an_incomplete_frame_states_the_shares_of_simulated_draws():
    _, frame, size = list(incomplete_frames())[1]
    even_over = [("editor",), ("race",), ("gender",)]
    told, seen, draws = np.full(len(frame), np.nan), np.zeros(len(frame)), 400
    for row in greedy_fill(frame, size, even_over, np.random.default_rng(5), within="prompt", draws=draws):
        seen[row] += 1
    for seed in range(3):
        rows, chances = filled(frame, size, within="prompt", even_over=even_over, seed=seed)
        told[rows] = chances
    known = ~np.isnan(told)
    assert np.abs(told - seen / draws)[known].max() < 4 * np.sqrt(0.25 / draws)


def test_many_draws_of_the_greedy_fill_follow_the_rule_of_one(published):
    few = published[published["prompt"].isin(published["prompt"].unique()[:2])].reset_index(drop=True)
    for rows in greedy_fill(few, 42, [("race",), ("gender",)], np.random.default_rng(1), within="prompt", draws=5):
        assert len(set(rows)) == 42
        assert set(few.iloc[rows]["race"].value_counts()) == {6} and set(few.iloc[rows]["gender"].value_counts()) == {
            21
        }


def test_the_same_seed_draws_the_same_cases(published):
    first, second, other = (balanced(published, 60, crossed=CROSSED, seed=seed)[0] for seed in (5, 5, 6))
    assert (first == second).all() and (first != other).any()


def test_more_cases_than_there_are_is_refused(published):
    with pytest.raises(EvenEditError, match="only 5040"):
        balanced(published, 6000, crossed=CROSSED, seed=1)


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


def test_a_factor_that_nobody_labelled_changes_nothing():
    _, frame, size = next(incomplete_frames())
    rows, chances = balanced(frame.assign(age=""), size, crossed=CROSSED, seed=1)
    assert len(set(rows)) == size and chances.min() > 0 and chances.max() <= 1
