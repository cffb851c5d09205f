"""Adjustment of many p-values at once; a test whose outcome cannot vary has no p and is no part of a family."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Adjust one family by Holm's step-down method (1979), which controls the familywise error."""
    known = sorted((value, at) for at, value in enumerate(p) if value is not None)
    adjusted: list[float | None] = [None] * len(p)
    running = 0.0
    for rank, (value, at) in enumerate(known):
        running = max(running, min(1.0, (len(known) - rank) * value))
        adjusted[at] = running
    return adjusted


def benjamini_hochberg(p: Sequence[float | None], weights: Sequence[float] | None = None) -> list[float | None]:
    """Adjust one family by Benjamini and Hochberg's method (1995), which controls the false discovery rate.

    `weights` with a mean of 1 favour some tests (Genovese, Roeder and Wasserman 2006).
    """
    share = weights or [1.0] * len(p)
    known = sorted((value / share[at], at) for at, value in enumerate(p) if value is not None)
    adjusted: list[float | None] = [None] * len(p)
    running = 1.0
    for rank in range(len(known), 0, -1):
        value, at = known[rank - 1]
        running = min(running, value * len(known) / rank)
        adjusted[at] = running
    return adjusted
