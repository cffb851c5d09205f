"""Intervals from draws and from counts."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Interval = tuple[float, float]
ENOUGH = 0.8
"""Share of draws that must be defined before their quantiles mean anything."""


def wilson(successes: int, n: int, confidence: float = 0.95) -> Interval | None:
    """Return Wilson's score interval of a share; rows are taken as independent."""
    if n == 0:
        return None
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return low, high


def percentile(draws: NDArray[np.float64], confidence: float) -> NDArray[np.float64]:
    """Return the central `confidence` interval [2, …] of draws along the first axis; NaN where too few are defined."""
    tail = (1 - confidence) / 2
    return quantiles(draws, [tail, 1 - tail])


def quantiles(draws: NDArray[np.float64], at: list[float]) -> NDArray[np.float64]:
    """Return quantiles [quantile, …] along the first axis; NaN where too few draws are defined."""
    shape = draws.shape[1:]
    flat = draws.reshape(len(draws), -1)
    undefined = np.isnan(flat).sum(axis=0)
    ends = np.full((len(at), flat.shape[1]), np.nan)
    complete = undefined == 0
    if complete.any():
        ends[:, complete] = np.quantile(flat[:, complete], at, axis=0)
    for column in np.flatnonzero((undefined > 0) & (undefined <= (1 - ENOUGH) * len(draws))):
        ends[:, column] = np.nanquantile(flat[:, column], at)
    return ends.reshape(len(at), *shape)


def as_interval(pair: NDArray[np.float64]) -> Interval | None:
    """Two numbers as an interval, or None where they are not defined."""
    low, high = float(pair[0]), float(pair[1])
    return None if np.isnan(low) or np.isnan(high) else (low, high)
