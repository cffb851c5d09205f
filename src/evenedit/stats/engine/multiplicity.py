"""Many p-values at once."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment of one family of p-values: the chance of any false alarm."""
    adjusted = [0.0] * len(p)
    running = 0.0
    for rank, at in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        running = max(running, min(1.0, (len(p) - rank) * p[at]))
        adjusted[at] = running
    return adjusted


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's adjustment: the share of false alarms among what is found, for exploration."""
    adjusted = [0.0] * len(p)
    running = 1.0
    for rank, at in reversed(list(enumerate(sorted(range(len(p)), key=lambda i: p[i]), 1))):
        running = min(running, p[at] * len(p) / rank)
        adjusted[at] = running
    return adjusted
