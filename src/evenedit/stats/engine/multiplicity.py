"""Many p-values at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

TIE = 1e-9
"""Statistics closer than this are the same, rounded differently."""


def holm(p: Sequence[float]) -> list[float]:
    """Adjust one family of p-values by Holm's step-down method, which controls the family-wise error."""
    adjusted = [0.0] * len(p)
    running = 0.0
    for rank, at in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        running = max(running, min(1.0, (len(p) - rank) * p[at]))
        adjusted[at] = running
    return adjusted


def holm_testable(p: Sequence[float], live: Sequence[bool]) -> list[float]:
    """Adjust by Holm over the tests that can reject; the p of the others is 1."""
    adjusted = iter(holm([value for value, can in zip(p, live, strict=True) if can]))
    return [next(adjusted) if can else 1.0 for can in live]


def step_down(observed: NDArray[np.float64], null: NDArray[np.float64]) -> NDArray[np.float64]:
    """Adjust one family of statistics by Westfall and Young's step-down method.

    `observed` is [test] and `null` [draw, test], on one scale. The largest statistic is held against the largest of
    each draw, the second against the largest of the rest, and so on: what the tests share is taken into account, and
    a large family costs less than it does with Holm.
    """
    order = np.argsort(-observed, kind="stable")
    highest = np.maximum.accumulate(null[:, order[::-1]], axis=1)[:, ::-1]  # over a test and all smaller ones
    reached = (highest >= observed[order] - TIE).sum(axis=0)
    adjusted = np.empty(len(observed))
    adjusted[order] = np.maximum.accumulate((1 + reached) / (1 + len(null)))
    return adjusted
