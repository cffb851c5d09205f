"""The models beside R's own, which tests/fixtures/r/models.R wrote down: ordinal and MASS."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenedit.stats.disparity.cumulative_logits import CumulativeLogits

R = Path(__file__).parents[2] / "fixtures" / "r"
SAYS = json.loads((R / "models.json").read_text())
RATINGS = pd.read_csv(R / "ratings.csv")
RACES, GENDERS, PROMPTS, FACES = 4, 2, 10, 48
FACE, RACE, GENDER, PROMPT = (pd.factorize(RATINGS[c], sort=True)[0] for c in ("face", "race", "gender", "prompt"))


def coded(codes: np.ndarray, levels: int) -> np.ndarray:
    return np.eye(levels)[codes][:, :-1] - np.eye(levels)[codes][:, -1:]


def cumulative(column: str) -> CumulativeLogits:
    between = np.zeros((FACES, RACES + GENDERS - 2))
    between[FACE] = np.concatenate([coded(RACE, RACES), coded(GENDER, GENDERS)], axis=1)
    met = np.zeros((FACES, PROMPTS, 4), dtype=np.int64)
    met[FACE, PROMPT] = RATINGS[column].to_numpy()[:, None] > np.arange(1, 5)
    return CumulativeLogits(between, met, np.ones((FACES, PROMPTS), dtype=np.int64))


COLUMNS = ("race1", "race2", "race3", "gender1")


def test_proportional_odds_are_those_of_clm_and_polr():
    fit = cumulative("score")
    assert fit.coefficients == pytest.approx([SAYS["clm"]["coefficients"][c] for c in COLUMNS], abs=1e-6)
    # polr stops when the likelihood hardly changes
    assert fit.coefficients == pytest.approx([SAYS["polr"]["coefficients"][c] for c in COLUMNS], abs=3e-4)
    errors = np.sqrt(np.diag(fit.covariance()))
    clustered = np.array([SAYS["polr"]["clustered_errors"][c] for c in COLUMNS])
    # sandwich::vcovCL without a correction for few clusters; ours has one, which only widens
    assert (errors > clustered).all() and (errors < 1.2 * clustered).all()


def test_the_test_of_proportional_odds_agrees_with_rs_likelihood_ratio():
    """R's takes rows as independent, ours faces: alike where faces add little, and of the same opinion here."""
    for column, key in (("score", "nominal_p"), ("uneven", "nominal_p_uneven")):
        fit = cumulative(column)
        for factor, block in (("race", slice(0, 3)), ("gender", slice(3, 4))):
            theirs, ours = SAYS["clm"][key][factor], fit.p_proportional(block)
            assert ours is not None and (ours < 0.01) == (theirs < 0.01), (column, factor)
    assert cumulative("uneven").p_proportional(slice(3, 4)) < 1e-4
