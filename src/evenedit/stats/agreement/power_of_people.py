"""Before a study: how many labels by people show that judges err unequally, and how many tell agreement well enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from evenedit.stats.disparity.power import JUDGE_CORRELATION, Design, apart, reached

ERRORS = (0.25, 0.5, 0.75, 1.0, 1.5)
"""Points of the 1-5 scale by which judges err more for one group."""
SCORE_SD = 1.0
"""Of scores, in points."""
FACE_SHARE = 0.1
"""Of the variance of judges' errors, what faces bring."""
AXES, FACTORS = 5, 3
"""Holm's first step divides by the number of axes, and an axis has one test of all factors: the furthest apart."""
LABELS = (50, 100, 150, 200, 300, 400, 500, 750, 1000, 1500, 2000, 3000, 5000)
MOST_SPREADS, HALVINGS = 10.0, 8
"""Standard deviations that are tried at most, and how often they are halved to find the fewest."""
Whole = NDArray[np.int64]
RATERS, AGREEMENT = 3, 0.6
"""People of each item, and their agreement (intraclass correlation), which the target is."""


@dataclass(frozen=True, slots=True)
class ErrorPower:
    """Whether people's labels show that judges err more for one group."""

    labels: int
    """Edits that people rate."""
    errors: tuple[float, ...]
    power: tuple[float, ...]
    """Share of studies whose test finds it after Holm over axes."""
    detectable: float | None
    """The smallest difference found in 80 of 100 studies, in points; None where even the largest tried is not."""


def error_power(
    design: Design,
    labels: int,
    *,
    correlation: float = JUDGE_CORRELATION,
    studies: int = 300,
    relabellings: int = 60,
    target: float = 0.8,
    seed: int = 3,
) -> ErrorPower:
    """Simulate labels spread evenly over faces, one group's error apart, tested against relabelled faces."""
    share = min(1.0, labels / sum(design.faces))
    sizes = np.maximum(1, np.round(np.array(design.faces) * share)).astype(np.int64)
    each = max(1.0, labels / sizes.sum())
    variance = 2 * (1 - correlation) * SCORE_SD**2
    spread = float(np.sqrt(variance * (FACE_SHARE + (1 - FACE_SHARE) / each)))
    found = [_power(sizes, spread, gap, AXES * FACTORS, studies, relabellings, seed) for gap in ERRORS]
    return ErrorPower(labels, ERRORS, tuple(found), reached(ERRORS, found, target))


def detectable_error(sizes: Sequence[int], spread: float, tests: int, target: float = 0.8) -> float | None:
    """By how many points judges must err more for one group of so many faces each, to be found in 80 of 100 samples.

    `spread` is the standard deviation of faces' mean errors; the group is the one whose size is nearest the average.
    """
    average = sum(sizes) / len(sizes)
    needed = _spreads_needed(tuple(sorted(sizes, key=lambda size: (abs(size - average), size))), tests, target)
    return None if needed is None or needed * spread > ERRORS[-1] else needed * spread


@lru_cache(maxsize=256)
def _spreads_needed(sizes: tuple[int, ...], tests: int, target: float) -> float | None:
    """By how many standard deviations the first group must be apart; None where ten do not suffice."""
    low, high = 0.0, MOST_SPREADS
    groups = np.array(sizes, dtype=np.int64)
    if _power(groups, 1.0, high, tests) < target:
        return None
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _power(groups, 1.0, middle, tests) >= target else (middle, high)
    return high


def _power(
    sizes: Whole, spread: float, gap: float, tests: int, studies: int = 200, relabellings: int = 20, seed: int = 3
) -> float:
    """The share of samples in which the first group is found to be apart by so much."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    drawn = rng.normal(0, spread, (studies, int(sizes.sum())))
    drawn[:, : sizes[0]] += gap
    drawn /= drawn.std(axis=1, keepdims=True)  # a test relabels the faces of its own sample, the group apart among them
    chance = [apart(rng.permuted(drawn, axis=1), starts, sizes, 1) for _ in range(relabellings)]
    limit = float(np.quantile(np.concatenate(chance), 1 - 0.05 / tests))
    return float((apart(drawn, starts, sizes, 1) > limit).mean())


def labels_for_error(design: Design, points: float = 0.5, correlation: float = JUDGE_CORRELATION) -> int | None:
    """The fewest labels tried that show judges to err by this much more for one group; None where none does."""
    most = sum(design.faces) * design.prompts * design.seeds
    for labels in LABELS:
        if labels > most:
            return None
        shown = error_power(design, labels, correlation=correlation, studies=150, relabellings=40).detectable
        if shown is not None and shown <= points:
            return labels
    return None


def items_for_agreement(width: float, raters: int = RATERS, agreement: float = AGREEMENT) -> int:
    """Independent items for a 95 % interval so wide of people's intraclass correlation (Bonett 2002)."""
    z = NormalDist().inv_cdf(0.975)
    inside = (1 - agreement) ** 2 * (1 + (raters - 1) * agreement) ** 2
    return int(np.ceil(8 * z**2 * inside / (raters * (raters - 1) * width**2))) + 1
