"""Before a study: within which margin it can show that groups are even, by the interval that a report gives a gap."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from evenedit.stats.disparity.gaps import gap_intervals
from evenedit.stats.engine.variance import two_way_variance
from evenedit.stats.power.gaps import Design

DRAWS = 200
"""Of prompts, and of the groups' noise."""


def equivalence_margin(design: Design, *, studies: int = 60, target: float = 0.8, seed: int = 4) -> float | None:
    """Return the margin that contains the gap's interval in 80 of 100 studies without a gap; None without one."""
    rng = np.random.default_rng(seed)
    prompts, groups = design.prompts, len(design.faces)
    noise = np.sqrt(1 + design.rater_sd**2 / design.raters)
    total_sd = np.sqrt(noise**2 + design.face_sd**2 + design.prompt_sd**2)
    cut = -NormalDist().inv_cdf(design.rate) * total_sd
    if min(design.faces) < 2:
        return None
    rates, separate, known = np.empty((3, studies, groups))
    shared = np.empty((DRAWS, studies, groups))
    drawn = rng.multinomial(max(prompts - 1, 1), np.full(prompts, 1 / prompts), DRAWS) / max(prompts - 1, 1)
    for study in range(studies):
        of_prompts = rng.normal(0, design.prompt_sd, prompts)
        for group, faces in enumerate(design.faces):
            hidden = rng.normal(0, design.face_sd, (faces, 1)) + of_prompts
            met = rng.binomial(design.seeds, 1 - ndtr((cut - hidden) / noise)) / design.seeds
            rate = met.mean()
            away = (met - rate) / met.size
            over_faces = (away.sum(axis=1) ** 2).sum() * faces / (faces - 1)
            over_prompts = (away.sum(axis=0) ** 2).sum() * (prompts / (prompts - 1) if prompts > 1 else 0.0)
            parts = (over_faces, over_prompts, (away**2).sum(), faces - 1.0, prompts - 1.0)
            sure = two_way_variance(*(np.array(part) for part in parts))
            stretch = float(stdtrit(sure.freedom, 0.975) / ndtri(0.975))
            rates[study, group], known[study, group] = rate, sure.variance
            separate[study, group] = np.sqrt(max(float(sure.variance) - over_prompts, 0.0)) * stretch
            shared[:, study, group] = (drawn @ met.mean(axis=0) - rate) * stretch
    varies = (known > 0).all(axis=1)
    if varies.mean() < target:
        return None
    sizes = np.broadcast_to(np.array(design.faces) * prompts * design.seeds, rates.shape).astype(np.float64)
    ends = gap_intervals(rates[varies], separate[varies], shared[:, varies], sizes[varies], 0.95, seed)[1]
    margin = float(np.quantile(np.concatenate([ends, np.ones(int((~varies).sum()))]), target))
    return margin if margin < 1 else None
