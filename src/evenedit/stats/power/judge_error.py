"""Before a study: how many labels by people show that judges err unequally, and how many tell agreement well enough."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from evenedit.stats.power.gaps import JUDGE_CORRELATION, Design, between_group_variance, minimum_detectable

ERRORS = (0.25, 0.5, 0.75, 1.0, 1.5)
"""Points of the 1-5 scale by which judges err more for one group."""
SCORE_SD = 1.0
"""Of scores, in points."""
FACE_SHARE = 0.1
"""Of the variance of judges' errors, what faces bring."""
AXES, FACTORS = 5, 3
"""Holm's first step divides by the number of axes, and an axis has one test of all factors: the furthest apart."""
LABELS = (50, 100, 150, 200, 300, 400, 500, 750, 1000, 1500, 2000, 3000, 5000)
Integers = NDArray[np.int64]
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


def judge_error_power(
    design: Design,
    labels: int,
    *,
    correlation: float = JUDGE_CORRELATION,
    studies: int = 300,
    relabellings: int = 60,
    target: float = 0.8,
    seed: int = 3,
) -> ErrorPower:
    """Simulate labels spread evenly over faces, with a larger error in one group, and test relabelled faces."""
    share = min(1.0, labels / sum(design.faces))
    sizes = np.maximum(1, np.round(np.array(design.faces) * share)).astype(np.int64)
    each = max(1.0, labels / sizes.sum())
    variance = 2 * (1 - correlation) * SCORE_SD**2
    spread = float(np.sqrt(variance * (FACE_SHARE + (1 - FACE_SHARE) / each)))
    powers = [_power(sizes, spread, gap, AXES * FACTORS, studies, relabellings, seed) for gap in ERRORS]
    return ErrorPower(labels, ERRORS, tuple(powers), minimum_detectable(ERRORS, powers, target))


def _power(
    sizes: Integers, spread: float, gap: float, tests: int, studies: int = 200, relabellings: int = 20, seed: int = 3
) -> float:
    """Return the share of samples in which a difference of this size of the first group is detected."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    drawn = rng.normal(0, spread, (studies, int(sizes.sum())))
    drawn[:, : sizes[0]] += gap
    drawn /= drawn.std(axis=1, keepdims=True)  # a test relabels the faces of its own sample, the group apart among them
    chance = [between_group_variance(rng.permuted(drawn, axis=1), starts, sizes, 1) for _ in range(relabellings)]
    limit = float(np.quantile(np.concatenate(chance), 1 - 0.05 / tests))
    return float((between_group_variance(drawn, starts, sizes, 1) > limit).mean())


def labels_for_error(design: Design, points: float = 0.5, correlation: float = JUDGE_CORRELATION) -> int | None:
    """Return the fewest tried labels that detect a judge error this much larger in one group; None without one."""
    most = sum(design.faces) * design.prompts * design.seeds
    for labels in LABELS:
        if labels > most:
            return None
        detectable = judge_error_power(design, labels, correlation=correlation, studies=150, relabellings=40).detectable
        if detectable is not None and detectable <= points:
            return labels
    return None


def items_for_agreement(width: float, raters: int = RATERS, agreement: float = AGREEMENT) -> int:
    """Return the items for a 95 % interval of this width of people's intraclass correlation (Bonett 2002)."""
    z = NormalDist().inv_cdf(0.975)
    inside = (1 - agreement) ** 2 * (1 + (raters - 1) * agreement) ** 2
    return int(np.ceil(8 * z**2 * inside / (raters * (raters - 1) * width**2))) + 1
