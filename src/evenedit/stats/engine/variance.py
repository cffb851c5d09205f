"""Variances with degrees of freedom, and the intervals and p-values that follow from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, stdtr, stdtrit

from evenedit.stats.engine.intervals import Interval

Values = NDArray[np.float64]
Part = tuple[Values, Values]
"""A variance and its degrees of freedom."""
NEGLIGIBLE = 1e-15
"""A variance below this is rounding."""


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """Variance of an estimate with its degrees of freedom; arrays of one shape."""

    variance: Values
    freedom: Values

    def at(self, row: int, column: int) -> Uncertainty:
        """Return the uncertainty of one estimate."""
        return Uncertainty(self.variance[row, column], self.freedom[row, column])

    def half_width(self, confidence: float) -> Values:
        """Return the half-width of the t interval."""
        return np.asarray(np.sqrt(self.variance) * stdtrit(self.freedom, 0.5 + confidence / 2))

    def interval(self, value: Values, confidence: float) -> tuple[Values, Values]:
        """Return the ends of the t interval; NaN where nothing varies."""
        reach = np.where(self.variance > NEGLIGIBLE, self.half_width(confidence), np.nan)
        return value - reach, value + reach

    def p(self, value: Values | float) -> Values:
        """Return the two-sided p of a distance from the hypothesis; NaN where nothing varies."""
        known = self.variance > NEGLIGIBLE
        t = np.divide(np.abs(value), np.sqrt(np.where(known, self.variance, 1.0)))
        return np.where(known, 2 * stdtr(self.freedom, -t), np.nan)

    def larger(self, other: Uncertainty) -> Uncertainty:
        """Return the larger variance of two, with its degrees of freedom."""
        takes = np.nan_to_num(other.variance, nan=np.inf) > np.nan_to_num(self.variance, nan=np.inf)
        takes |= np.isnan(other.variance)
        return Uncertainty(np.where(takes, other.variance, self.variance), np.where(takes, other.freedom, self.freedom))


def satterthwaite(faces: Part, prompts: Part, cells: Part) -> Uncertainty:
    """Return faces + prompts - cells, at least the larger of the first two; without several prompts, faces alone."""
    (face, face_freedom), (prompt, prompt_freedom), (cell, cell_freedom) = faces, prompts, cells
    total = face + prompt - cell
    largest = np.maximum(face, prompt)
    several = prompt_freedom >= 1
    parts = (
        face**2 / np.maximum(face_freedom, 1.0)
        + prompt**2 / np.maximum(prompt_freedom, 1.0)
        + cell**2 / np.maximum(cell_freedom, 1.0)
    )
    of_sum = np.divide(total**2, parts, out=np.ones_like(total), where=parts > 0)
    freedom = np.where(total > largest, of_sum, np.where(face >= prompt, face_freedom, prompt_freedom))
    variance = np.where(several, np.maximum(total, largest), face)
    freedom = np.where(several, freedom, face_freedom)
    balanced = (variance <= NEGLIGIBLE) & (cell > NEGLIGIBLE)  # faces and prompts are alike, single cells are not
    return Uncertainty(np.where(balanced, cell, variance), np.maximum(np.where(balanced, cell_freedom, freedom), 1.0))


def clustered_variance(influence: Values, face: NDArray[np.int64], prompt: NDArray[np.int64]) -> Uncertainty:
    """Return the two-way clustered variance of estimates from their influences [row] or [row, estimate]."""
    rows = influence.reshape(len(influence), -1)
    parts: list[Part] = []
    for key in (face, prompt, face * (prompt.max(initial=0) + 1) + prompt):
        occurs = np.bincount(key) > 0
        units = int(occurs.sum())
        sums = np.stack([np.bincount(key, weights=column)[occurs] for column in rows.T], axis=1)
        squares = (sums**2).sum(axis=0) * (units / (units - 1) if units > 1 else 0.0)
        parts.append((squares, np.full(rows.shape[1], units - 1.0)))
    uncertainty = satterthwaite(parts[0], parts[1], parts[2])
    shape = influence.shape[1:]
    return Uncertainty(uncertainty.variance.reshape(shape), uncertainty.freedom.reshape(shape))


def effective_size(share: float, variance: float, freedom: float, n: float, confidence: float) -> float:
    """Return the number of independent rows that a share rests on (Korn and Graubard 1998)."""
    inside = share * (1 - share)
    if n <= 1 or not variance > NEGLIGIBLE or inside <= 0:
        return max(1.0, float(n))
    tail = 0.5 + confidence / 2
    ratio = float(stdtrit(n - 1, tail) / stdtrit(freedom, tail)) ** 2
    return min(float(n), max(1.0, inside / variance * ratio))


def korn_graubard(share: float, size: float, confidence: float) -> Interval:
    """Return the exact binomial interval of a share of so many independent rows."""
    share = min(max(share, 0.0), 1.0)
    events, tail = share * size, (1 - confidence) / 2
    low = 0.0 if events <= 0 else float(betaincinv(events, size - events + 1, tail))
    high = 1.0 if events >= size else float(betaincinv(events + 1, size - events, 1 - tail))
    return low, high


def share_p(share: float, size: float, limit: float, two_sided: bool) -> float:
    """Return p of a share against a limit, from the same binomial tails as the interval.

    Against a tolerance only larger shares count; p < 0.05 then means that the 95 % interval lies above it.
    """
    events = min(max(share, 0.0), 1.0) * size
    above = 1.0 if events <= 0 else float(betainc(events, size - events + 1, limit))
    below = 1.0 if events >= size else float(1 - betainc(events + 1, size - events, limit))
    return min(1.0, 2 * (min(above, below) if two_sided else above))


def difference(first: float, second: float, ends: tuple[Interval, Interval], correlation: float) -> Interval:
    """Return the interval of first - second from both intervals (Zou and Donner 2008), which keeps their asymmetry."""
    (low_1, high_1), (low_2, high_2) = ends

    def reach(a: float, b: float) -> float:
        return float(np.sqrt(max(0.0, a * a + b * b - 2 * correlation * a * b)))

    value = first - second
    return value - reach(first - low_1, high_2 - second), value + reach(high_1 - first, second - low_2)
