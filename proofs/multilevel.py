"""Simulation-based calibration of the multilevel model (Talts et al. 2018): are its posteriors those of the model?

`python -m proofs multilevel`; STUDIES in the environment sets another number of studies.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.stats import chi2

from evenedit.stats.multilevel.laplace import Effect, Laplace, ModelledRows, NotConverged
from evenedit.stats.multilevel.posterior import posterior
from proofs.page import Proof, size, table

SEED = 505
RACES, GENDERS, FACES, PROMPTS = 4, 2, 3, 8
"""Faces of each race and gender."""
SD, LABEL, CUT = 1.0, 0.7, 1.5
"""Priors that studies are drawn from and fitted with."""
BINS = 10
LEAST = 0.001
"""p of a test of uniform ranks below which they are not."""


def one_study(categories: int, rng: np.random.Generator) -> dict[str, float] | str:
    """The rank of each true value among the draws, as a share; or why there are none.

    A study with an empty category is left out: that depends on what was seen only, so ranks stay uniform.
    """
    faces = RACES * GENDERS * FACES
    face, prompt = np.divmod(np.arange(faces * PROMPTS), PROMPTS)
    race, gender = face // (GENDERS * FACES), face // FACES % GENDERS
    sds = np.abs(rng.normal(0, SD, 4))
    cuts = np.sort(rng.normal(0, CUT, categories - 1))
    places = {
        "race": (race, RACES, LABEL),
        "gender": (gender, GENDERS, LABEL),
        "race × gender": (race * GENDERS + gender, RACES * GENDERS, sds[0]),
        "prompt": (prompt, PROMPTS, sds[1]),
        "race × prompt": (race * PROMPTS + prompt, RACES * PROMPTS, sds[2]),
        "face": (face, faces, sds[3]),
    }
    true = {name: rng.normal(0, sd, count) for name, (_, count, sd) in places.items()}
    hidden = sum(true[name][at] for name, (at, _, _) in places.items()) + rng.logistic(size=len(face))
    category = np.digitize(hidden, cuts)
    if (np.bincount(category, minlength=categories) == 0).any():
        return "an empty category"
    *effects, last = (
        Effect(name, at, count, LABEL if name in ("race", "gender") else None)
        for name, (at, count, _) in places.items()
    )
    model = Laplace(ModelledRows(category, np.ones(len(face)), categories, tuple(effects), last, CUT))
    try:
        found = posterior(model, sd_scale=SD, seed=int(rng.integers(2**31)))
    except NotConverged as reason:
        return str(reason).partition(":")[0]

    def drawn(name: str) -> np.ndarray:
        return found.columns[:, model.slices[name]]

    cell = drawn("race")[:, 0] + drawn("gender")[:, 0] + drawn("race × gender")[:, 0]
    pairs = {
        "first cut": (cuts[0], found.columns[:, 0]),
        "race 1 - race 2": (np.subtract(*true["race"][:2]), drawn("race")[:, 0] - drawn("race")[:, 1]),
        "first intersection, whole": (
            true["race"][0] + true["gender"][0] + true["race × gender"][0] - cuts[0],
            cell - found.columns[:, 0],
        ),
        "first intersection, its own": (true["race × gender"][0], drawn("race × gender")[:, 0]),
        "first prompt": (true["prompt"][0], drawn("prompt")[:, 0]),
        "first race × prompt": (true["race × prompt"][0], drawn("race × prompt")[:, 0]),
    }
    pairs |= {
        f"sd of {name}": (sd, found.sds[:, at]) for at, (name, sd) in enumerate(zip(found.names, sds, strict=True))
    }
    return {name: float((values < value).mean()) for name, (value, values) in pairs.items()}


def calibrated(categories: int, studies: int, seed: int) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """The ranks of every quantity over studies, and how many studies have none, by reason."""
    rng = np.random.default_rng([seed, categories])
    ranks: dict[str, list[float]] = {}
    reasons: dict[str, int] = {}
    for _ in range(studies):
        found = one_study(categories, rng)
        if isinstance(found, str):
            reasons[found] = reasons.get(found, 0) + 1
            continue
        for name, rank in found.items():
            ranks.setdefault(name, []).append(rank)
    return {name: np.array(values) for name, values in ranks.items()}, reasons


def uniform_p(ranks: np.ndarray) -> float:
    """Chi-squared test that ranks are uniform over ten bins."""
    seen = np.histogram(ranks, bins=BINS, range=(0, 1))[0]
    return float(chi2.sf(((seen - len(ranks) / BINS) ** 2 / (len(ranks) / BINS)).sum(), BINS - 1))


def run(_folder: Path) -> Proof:
    """Ranks of rates (two categories) and of scores (four)."""
    studies = size("STUDIES", 300)
    rows, wrong, notes = [], [], []
    for categories, what in ((2, "logit"), (4, "cumulative logits")):
        ranks, reasons = calibrated(categories, studies, SEED)
        for name, values in ranks.items():
            p = uniform_p(values)
            inside = np.abs(values - 0.5) < 0.475
            bins = " ".join(str(n) for n in np.histogram(values, bins=BINS, range=(0, 1))[0])
            rows.append(
                {"model": what, "quantity": name, "studies": len(values), "ranks in ten bins": bins}
                | {"p uniform": f"{p:.3f}", "95 % interval holds it": f"{inside.mean():.3f}"}
            )
            if p < LEAST:
                wrong.append(f"{what}: ranks of {name} are not uniform (p = {p:.5f})")
        told = ", ".join(f"{count} ({reason})" for reason, count in reasons.items()) or "none"
        notes.append(f"Studies without a fit, {what}: {told}.")
    lines = [
        f"{RACES} races × {GENDERS} genders × {FACES} faces, {PROMPTS} prompts. For every study the standard "
        "deviations, cuts and effects are drawn from the priors, ratings from these, and the model is fitted to the "
        "ratings. If its posterior is right, the rank of the true value among the draws is uniform. A p below "
        f"{LEAST} would refute that; with {len(rows)} of them one below 0.05 is expected.",
        "",
        *table(rows),
        "",
        *notes,
    ]
    claim = "The multilevel model's posteriors are calibrated: ranks of true values among its draws are uniform."
    return Proof(claim, lines, SEED, {"studies per model": studies}, wrong)
