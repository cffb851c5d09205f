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

from evenedit.stats.disparity.power import Design, Values, reached
from evenedit.stats.engine.variance import Uncertainty, two_way

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
    even_margin: float
    """The margin within which the whole interval lies in 80 of 100 studies without a shift."""


def shift_power(design: Design, *, studies: int = 200, target: float = 0.8, seed: int = 2) -> ShiftPower:
    """Simulate studies with larger and larger shifts, each direction as frequent as the rate where there is none."""
    rng = np.random.default_rng(seed)
    found, alone = [], []
    for shift in SHIFTS:
        value, sure = _studies(design, shift, studies, rng)
        p = 2 * stdtr(sure.freedom, -np.abs(value) / np.sqrt(np.maximum(sure.variance, 1e-12)))
        found.append(float(((p < 0.05 / design.tests) & (value > 0)).mean()))
        alone.append(float(((p < 0.05) & (value > 0)).mean()))
    value, sure = _studies(design, 0.0, studies, rng)
    margin = float(np.quantile(np.abs(value) + sure.reach(0.95), target))
    return ShiftPower(SHIFTS, tuple(found), tuple(alone), studies, reached(SHIFTS, found, target), margin)


def _studies(design: Design, shift: float, studies: int, rng: np.random.Generator) -> tuple[Values, Uncertainty]:
    """The shifts that studies find, and how sure each is of it."""
    faces, prompts = sum(design.faces), design.prompts
    noise = np.sqrt(1 + design.rater_sd**2 / design.raters)
    whole = np.sqrt(noise**2 + design.face_sd**2 + design.prompt_sd**2)
    cut = -NormalDist().inv_cdf(min(design.rate, 0.45)) * whole
    mean = brentq(lambda m: ndtr((m - cut) / whole) - ndtr((-m - cut) / whole) - shift, 0, 10 * whole)
    values = np.empty((studies, faces, prompts))
    for at in range(studies):
        hidden = mean + rng.normal(0, design.face_sd, (faces, 1)) + rng.normal(0, design.prompt_sd, prompts)
        above, below = ndtr((hidden - cut) / noise), ndtr((-hidden - cut) / noise)
        up = rng.binomial(design.seeds, above)
        values[at] = (up - rng.binomial(design.seeds - up, np.minimum(1.0, below / (1 - above)))) / design.seeds
    found = values.mean(axis=(1, 2))
    away = (values - found[:, None, None]) / (faces * prompts)
    over_faces = (away.sum(axis=2) ** 2).sum(axis=1) * faces / max(faces - 1, 1)
    over_prompts = (away.sum(axis=1) ** 2).sum(axis=1) * (prompts / (prompts - 1) if prompts > 1 else 0.0)
    over_cells = (away**2).sum(axis=(1, 2))
    freedom = np.full(studies, faces - 1.0), np.full(studies, prompts - 1.0)
    return found, two_way(over_faces, over_prompts, over_cells, *freedom)
