"""Is a difference smaller than matters? Two one-sided t-tests: absence of evidence is not evidence of absence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

MARGIN = 0.5
"""Half a point of the 1–5 scale: means closer than this round to the same score."""


class Equivalence(NamedTuple):
    """Whether a mean difference lies within ± margin."""

    difference: float
    p: float
    """The larger of both one-sided p-values: below 0.05, the difference is smaller than the margin."""
    df: float


def tost(values: NDArray[np.floating], margin: float = MARGIN) -> Equivalence | None:
    """Is the mean of one number per unit within ± margin of 0? None below two units."""
    n = len(values)
    if n < 2:
        return None
    return _tost(float(np.mean(values)), float(np.var(values, ddof=1)) / n, n - 1.0, margin)


def tost_two(a: NDArray[np.floating], b: NDArray[np.floating], margin: float = MARGIN) -> Equivalence | None:
    """Are the means of two groups within ± margin of one another (Welch)? None below two units in either."""
    if min(len(a), len(b)) < 2:
        return None
    one, two = (float(np.var(x, ddof=1)) / len(x) for x in (a, b))
    spread = one**2 / (len(a) - 1) + two**2 / (len(b) - 1)
    df = (one + two) ** 2 / spread if spread > 0 else float(len(a) + len(b) - 2)
    return _tost(float(np.mean(a) - np.mean(b)), one + two, df, margin)


def _tost(difference: float, variance: float, df: float, margin: float) -> Equivalence:
    if variance <= 0:  # every unit alike: the difference is known
        return Equivalence(difference, 0.0 if abs(difference) < margin else 1.0, df)
    t = (margin - abs(difference)) / variance**0.5
    return Equivalence(difference, float(special.stdtr(df, -t)), df)
