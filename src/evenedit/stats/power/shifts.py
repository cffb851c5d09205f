"""Before a study: how large a shift its design can show, and within which margin it can show that there is none.

A two-sided shift (lighter minus darker, older minus younger) is tested over all faces and prompts, both drawn at
random, as in the analysis: the variance over faces plus that over prompts, and a t. So few prompts limit it, however
many faces there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, stdtr

from evenedit.stats.engine.variance import Uncertainty, satterthwaite
from evenedit.stats.power.gaps import Design, Values, minimum_detectable

SHIFTS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)


@dataclass(frozen=True, slots=True)
class ShiftPower:
    """What a design can show about a shift."""

    shifts: tuple[float, ...]
    """Share above minus share below."""
    power: tuple[float, ...]
    """Share of studies whose shift passes the test after Holm's adjustment."""
    power_alone: tuple[float, ...]
    studies: int
    detectable: float | None
    """The smallest shift found in 80 of 100 studies; None where even the largest tried is not."""
    equivalence_margin: float
    """The margin within which the whole interval lies in 80 of 100 studies without a shift."""


def shift_power(design: Design, *, studies: int = 200, target: float = 0.8, seed: int = 2) -> ShiftPower:
    """Simulate studies with growing shifts; without a shift each direction is as frequent as the rate."""
    rng = np.random.default_rng(seed)
    after_holm, unadjusted = [], []
    for shift in SHIFTS:
        value, sure = _studies(design, shift, studies, rng)
        p = 2 * stdtr(sure.freedom, -np.abs(value) / np.sqrt(np.maximum(sure.variance, 1e-12)))
        after_holm.append(float(((p < 0.05 / design.tests) & (value > 0)).mean()))
        unadjusted.append(float(((p < 0.05) & (value > 0)).mean()))
    value, sure = _studies(design, 0.0, studies, rng)
    margin = float(np.quantile(np.abs(value) + sure.half_width(0.95), target))
    return ShiftPower(
        SHIFTS, tuple(after_holm), tuple(unadjusted), studies, minimum_detectable(SHIFTS, after_holm, target), margin
    )


def _studies(design: Design, shift: float, studies: int, rng: np.random.Generator) -> tuple[Values, Uncertainty]:
    """Return the estimated shifts of simulated studies and their uncertainty."""
    faces, prompts = sum(design.faces), design.prompts
    noise = np.sqrt(1 + design.rater_sd**2 / design.raters)
    total_sd = np.sqrt(noise**2 + design.face_sd**2 + design.prompt_sd**2)
    cut = -NormalDist().inv_cdf(min(design.rate, 0.45)) * total_sd
    mean = brentq(lambda m: ndtr((m - cut) / total_sd) - ndtr((-m - cut) / total_sd) - shift, 0, 10 * total_sd)
    values = np.empty((studies, faces, prompts))
    for at in range(studies):
        hidden = mean + rng.normal(0, design.face_sd, (faces, 1)) + rng.normal(0, design.prompt_sd, prompts)
        above, below = ndtr((hidden - cut) / noise), ndtr((-hidden - cut) / noise)
        up = rng.binomial(design.seeds, above)
        values[at] = (up - rng.binomial(design.seeds - up, np.minimum(1.0, below / (1 - above)))) / design.seeds
    shifts = values.mean(axis=(1, 2))
    away = (values - shifts[:, None, None]) / (faces * prompts)
    over_faces = (away.sum(axis=2) ** 2).sum(axis=1) * faces / max(faces - 1, 1)
    over_prompts = (away.sum(axis=1) ** 2).sum(axis=1) * (prompts / (prompts - 1) if prompts > 1 else 0.0)
    over_cells = (away**2).sum(axis=(1, 2))
    parts = (over_faces, faces - 1.0), (over_prompts, prompts - 1.0), (over_cells, (faces - 1.0) * (prompts - 1.0))
    first, second, third = ((variance, np.full(studies, freedom)) for variance, freedom in parts)
    return shifts, satterthwaite(first, second, third)
