"""What the rows say about effects and their standard deviations: nested Laplace.

The standard deviations have half-normal priors. Their posterior is weighed at points drawn around its mode, first from
a rough proposal, which is then fitted to what was found (adaptive importance sampling); at each point the effects
are normal around their own mode. So the uncertainty about standard deviations is in every interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from evenedit.stats.multilevel.laplace import Laplace, NotConverged, Peak, Values

STAGES = (64, 128)
"""Points of each proposal; the last stage's are kept."""
HEAVY = 5
"""Degrees of freedom of the proposal, a t, so that its tails are heavier than the posterior's."""
DRAWS = 8
"""Draws of the effects at each point."""
FEWEST = 30.0
"""Points that the kept ones must be worth; below, nothing is told."""
PROBE = 0.1
"""How far from the mode it is looked how fast the posterior falls."""
WIDTHS = (0.05, 0.6)
"""Least and largest width of the first proposal."""
FIRST = 0.4
"""Standard deviations from which the mode is sought."""


@dataclass(frozen=True, slots=True)
class Posterior:
    """Weighted draws."""

    names: tuple[str, ...]
    sds: Values
    """[draw, standard deviation]"""
    columns: Values
    """[draw, column]: cuts and effects but those of faces."""
    weights: Values
    """They sum to 1."""
    worth: float
    """Equally weighted points that the weighted ones are worth."""
    best: Values
    """The mode of the standard deviations."""
    peak: Peak
    """The effects there."""

    def interval(self, values: Values, confidence: float) -> tuple[Values, Values, Values]:
        """Mean, lower and upper end of [draw, …]."""
        flat = values.reshape(len(values), -1)
        low, high = weighted_quantiles(flat, self.weights, ((1 - confidence) / 2, (1 + confidence) / 2))
        mean = self.weights @ flat
        shape = values.shape[1:]
        return mean.reshape(shape), low.reshape(shape), high.reshape(shape)


def weighted_quantiles(values: Values, weights: Values, shares: Sequence[float]) -> list[Values]:
    """Of each column, the values below which these shares of the weight lie."""
    order = np.argsort(values, axis=0)
    ranked = np.take_along_axis(values, order, axis=0)
    below = np.cumsum(weights[order], axis=0) - weights[order] / 2
    at = range(values.shape[1])
    return [np.array([np.interp(share, below[:, j], ranked[:, j]) for j in at]) for share in shares]


def posterior(model: Laplace, *, sd_scale: float, seed: int, stages: Sequence[int] = STAGES) -> Posterior:
    """Weighted draws of everything; `sd_scale` is the scale of the half-normal priors."""
    rng = np.random.default_rng(seed)
    size = len(model.grid.free)
    best, peak = _mode(model, sd_scale)
    near = (peak.scaled, peak.faces)
    centre, spread = best, _spread(model, best, peak, sd_scale)
    for stage in stages:
        points = _points(rng, centre, spread, stage)
        peaks = [model.peak(point, near) for point in points]
        weights = _weights(points, peaks, centre, spread, sd_scale)
        worth = float(1 / (weights @ weights))
        trust = worth / (worth + 2 * size)
        found = weights @ points
        away = points - found
        centre = trust * found + (1 - trust) * centre
        spread = trust * (away * weights[:, None]).T @ away + (1 - trust) * spread
    if worth < FEWEST:
        raise NotConverged(f"{len(points)} points of the standard deviations are worth only {worth:.0f}")
    noise = rng.standard_normal((len(points), DRAWS, model.width))
    return Posterior(
        model.grid.free,
        np.repeat(points, DRAWS, axis=0),
        np.concatenate([p.draw(z) for p, z in zip(peaks, noise, strict=True)]),
        np.repeat(weights / DRAWS, DRAWS),
        worth,
        best,
        peak,
    )


def _log_prior(sds: Values, scale: float) -> Values:
    return np.asarray(-0.5 * (sds**2).sum(axis=-1) / scale**2)


def _mode(model: Laplace, scale: float) -> tuple[Values, Peak]:
    """The most likely standard deviations, and the effects there."""
    last: list[Peak] = []

    def loss(sds: Values) -> float:
        near = (last[-1].scaled, last[-1].faces) if last else None
        found = model.peak(sds, near)
        last[:] = [found]
        return -found.log_evidence - float(_log_prior(sds, scale))

    size = len(model.grid.free)
    found = minimize(
        loss,
        np.full(size, FIRST),
        method="L-BFGS-B",
        bounds=[(0.0, None)] * size,
        options={"eps": 1e-4, "ftol": 1e-6, "gtol": 1e-2, "maxiter": 40},
    )
    if not np.isfinite(found.fun) or not found.success:
        raise NotConverged("no mode of the standard deviations was found")
    best = np.asarray(found.x)
    return best, model.peak(best, (last[-1].scaled, last[-1].faces))


def _spread(model: Laplace, best: Values, peak: Peak, scale: float) -> Values:
    """Covariance of the first proposal: minus the inverse of the curvature above the mode, kept within limits."""
    size, near = len(best), (peak.scaled, peak.faces)

    def height(*raised: int) -> float:
        point = best + PROBE * np.bincount(raised, minlength=size)
        return model.peak(point, near).log_evidence + float(_log_prior(point, scale))

    top = peak.log_evidence + float(_log_prior(best, scale))
    once = [height(i) for i in range(size)]
    curvature = np.zeros((size, size))
    for i in range(size):
        for j in range(i + 1):
            curvature[i, j] = curvature[j, i] = -(height(i, j) - once[i] - once[j] + top) / PROBE**2
    sizes, directions = np.linalg.eigh(curvature)
    widths = np.clip(1 / np.sqrt(np.maximum(sizes, 1e-6)), *WIDTHS)
    return np.asarray((directions * widths**2) @ directions.T)


def _points(rng: np.random.Generator, centre: Values, spread: Values, size: int) -> Values:
    """Draws of a t around the centre that have no standard deviation below 0."""
    root = np.linalg.cholesky(spread)
    kept: list[NDArray[np.float64]] = []
    while sum(map(len, kept)) < size:
        z = rng.standard_normal((20 * size, len(centre))) @ root.T
        drawn = centre + z / np.sqrt(rng.chisquare(HEAVY, (20 * size, 1)) / HEAVY)
        kept.append(drawn[(drawn >= 0).all(axis=1)])
    return np.asarray(np.concatenate(kept)[:size])


def _weights(points: Values, peaks: Sequence[Peak], centre: Values, spread: Values, scale: float) -> Values:
    """Posterior over proposal at each point; they sum to 1."""
    away = np.linalg.solve(np.linalg.cholesky(spread), (points - centre).T)
    proposed = -0.5 * (HEAVY + len(centre)) * np.log1p((away**2).sum(axis=0) / HEAVY)
    told = np.array([p.log_evidence for p in peaks]) + _log_prior(points, scale) - proposed
    weights = np.exp(told - told.max())
    return np.asarray(weights / weights.sum())
