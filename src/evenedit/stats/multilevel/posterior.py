"""What the rows say about effects and their standard deviations, which have half-normal priors.

Laplace's approximation finds where the posterior is and how wide; Hamiltonian chains draw from the posterior itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from evenedit.stats.multilevel.chains import Density, RoundCoordinates, sample
from evenedit.stats.multilevel.laplace import Laplace, NotConverged, Peak, Values

PROBE = 0.1
"""How far from the mode it is looked how fast the posterior of standard deviations falls."""
WIDTHS = (0.05, 1.0)
"""Least and largest width of that posterior."""
FIRST, LEAST = 0.4, 0.15
"""Standard deviations from which the mode is sought, and the least around which chains are laid out."""
UNSETTLED = 1.1
"""Potential scale reduction (R-hat) above which chains have not met, and nothing is told."""


@dataclass(frozen=True, slots=True)
class Posterior:
    """Draws, all of the same weight."""

    names: tuple[str, ...]
    sds: Values
    """[draw, standard deviation]"""
    columns: Values
    """[draw, column]: cuts and effects but those of faces."""
    reduction: float
    """The largest R-hat of standard deviations and cuts."""
    best: Values
    """The mode of the standard deviations."""

    @staticmethod
    def interval(values: Values, confidence: float) -> tuple[Values, Values, Values]:
        """Mean, lower and upper end of [draw, …]."""
        low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
        return values.mean(axis=0), low, high


def posterior(model: Laplace, *, sd_scale: float, seed: int) -> Posterior:
    """Draws of everything; `sd_scale` is the scale of the half-normal priors."""
    frame = _frame(model, sd_scale)
    sds, columns, reduction = sample(Density(model, frame, sd_scale), np.random.default_rng(seed))
    if not reduction < UNSETTLED:
        raise NotConverged(f"the chains have not met: R-hat is {reduction:.2f}")
    return Posterior(model.grid.free, sds, columns, reduction, frame.centre)


def _frame(model: Laplace, scale: float) -> RoundCoordinates:
    """The mode of the standard deviations, the effects there, and how curved it is."""
    last: list[Peak] = []

    def height(sds: Values) -> float:
        near = (last[0].scaled, last[0].faces) if last else None
        last[:] = [model.peak(sds, near)]
        return last[0].log_evidence - float(sds @ sds) / (2 * scale**2)

    size = len(model.grid.free)
    found = minimize(
        lambda sds: -height(sds),
        np.full(size, FIRST),
        method="L-BFGS-B",
        bounds=[(LEAST, None)] * size,
        options={"eps": 1e-3, "ftol": 1e-5, "gtol": 3e-2, "maxiter": 30},
    )
    centre = np.asarray(found.x)
    top = height(centre)
    peak = last[0]
    mode = np.concatenate([peak.scaled, peak.faces])
    raised, drift = np.empty((2, size)), np.empty((len(mode), size))
    for at in range(size):
        ends = []
        for way, sign in enumerate((1, -1)):
            raised[way, at] = height(centre + sign * PROBE * np.eye(size)[at])
            ends.append(np.concatenate([last[0].scaled, last[0].faces]))
        drift[:, at] = (ends[0] - ends[1]) / (2 * PROBE)
    curvature = np.diag((2 * top - raised[0] - raised[1]) / PROBE**2)
    for i in range(size):
        for j in range(i):
            both = height(centre + PROBE * (np.eye(size)[i] + np.eye(size)[j]))
            curvature[i, j] = curvature[j, i] = -(both - raised[0, i] - raised[0, j] + top) / PROBE**2
    sizes, directions = np.linalg.eigh(curvature)
    widths = np.clip(1 / np.sqrt(np.maximum(sizes, 1e-6)), *WIDTHS)
    return RoundCoordinates(peak, centre, np.linalg.cholesky((directions * widths**2) @ directions.T), drift)
