"""The models beside R's own, which tests/fixtures/r/models.R wrote down: lme4, ordinal and MASS."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenedit.stats.disparity.cumulative_logits import CumulativeLogits
from evenedit.stats.multilevel.laplace import Effect, Laplace, ModelledRows
from evenedit.stats.multilevel.posterior import posterior

R = Path(__file__).parents[2] / "fixtures" / "r"
SAYS = json.loads((R / "models.json").read_text())
RATINGS = pd.read_csv(R / "ratings.csv")
RACES, GENDERS, PROMPTS, FACES = 4, 2, 10, 48
KNOWN = 1e-7
"""A standard deviation so small that the mean is as good as known."""
FACE, RACE, GENDER, PROMPT = (pd.factorize(RATINGS[c], sort=True)[0] for c in ("face", "race", "gender", "prompt"))


def all_levels(fixed: dict[str, float], name: str, levels: int) -> np.ndarray:
    """Sum-to-zero contrasts with the last level."""
    told = np.array([fixed[f"{name}{i + 1}"] for i in range(levels - 1)])
    return np.append(told, -told.sum())


def crossed() -> tuple[Effect, ...]:
    return (
        Effect("race × gender", RACE * GENDERS + GENDER, RACES * GENDERS),
        Effect("prompt", PROMPT, PROMPTS),
        Effect("race × prompt", RACE * PROMPTS + PROMPT, RACES * PROMPTS),
    )


@pytest.mark.parametrize(
    ("package", "by_gender", "by_prompt", "close"),
    [("glmer", "race:gender", "race:prompt", 3e-3), ("clmm", "rg", "rp", 1e-5)],
)
def test_at_rs_estimates_the_likelihood_and_the_effects_are_rs(package, by_gender, by_prompt, close):
    """glmer's own likelihood is told to about 0.002: it stops its inner iterations early."""
    said = SAYS[package]
    ordinal = package == "clmm"
    category = RATINGS["score"].to_numpy() - 1 if ordinal else (RATINGS["score"] >= 4).to_numpy().astype(int)
    cuts = np.array(list(said["cuts"].values()) if ordinal else [-said["fixed"]["(Intercept)"]])
    labels = (
        Effect("race", RACE, RACES, KNOWN, all_levels(said["fixed"], "race", RACES)),
        Effect("gender", GENDER, GENDERS, KNOWN, all_levels(said["fixed"], "gender", GENDERS)),
    )
    faces = Effect("face", FACE, FACES)
    grid = ModelledRows(category, np.ones(len(FACE)), len(cuts) + 1, (*labels, *crossed()), faces, KNOWN, cuts)
    model = Laplace(grid)
    sds = said["sds"]
    peak = model.peak([sds[by_gender], sds["prompt"], sds[by_prompt], sds["face"]])
    assert peak.log_evidence == pytest.approx(said["logLik"], abs=close)
    effects = said["effects"]
    prompts = [effects["prompt"][f"p{i}"] for i in range(PROMPTS)]
    assert peak.values[model.slices["prompt"]] == pytest.approx(prompts, abs=1e-5)
    assert sds["face"] * peak.faces == pytest.approx([effects["face"][f"f{i:02}"] for i in range(FACES)], abs=1e-5)


@pytest.mark.parametrize("package", ["glmer", "clmm"])
def test_posteriors_hold_rs_estimates_well_inside(package):
    """Other priors and no maximum: not the same numbers, but R's lie where the posterior is."""
    said, ordinal = SAYS[package], package == "clmm"
    category = RATINGS["score"].to_numpy() - 1 if ordinal else (RATINGS["score"] >= 4).to_numpy().astype(int)
    labels = (Effect("race", RACE, RACES, 1.5), Effect("gender", GENDER, GENDERS, 1.5))
    faces = Effect("face", FACE, FACES)
    model = Laplace(ModelledRows(category, np.ones(len(FACE)), category.max() + 1, (*labels, *crossed()), faces, 5.0))
    found = posterior(model, sd_scale=1.5, seed=1)
    for name, theirs in (("prompt", "prompt"), ("face", "face"), ("race × prompt", "rp" if ordinal else "race:prompt")):
        draws = found.sds[:, found.names.index(name)]
        assert 0.1 < (draws < said["sds"][theirs]).mean() < 0.9, name
    race = found.columns[:, model.slices["race"]]
    contrast = race - race.mean(axis=1, keepdims=True)
    theirs = all_levels(said["fixed"], "race", RACES)
    assert (np.abs(contrast.mean(axis=0) - theirs) < 0.5 * contrast.std(axis=0)).all()


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
