"""Do answers about a frozen set move more than repeats do? An exact paired permutation test within each anchor.

Every anchor has some replies from then and some from now. If nothing changed, they are repeats of one another, so
which of them came now is arbitrary: "then" and "now" are dealt out anew within each anchor, whole replies at a time.
No distribution is assumed, and a judge's own noise is in the test by construction. Two statistics per question: the
mean shift (a change one way) and the mean distance (changes that cancel out); Holm over all tests of a check, so that
a check without any change raises an alarm in at most `ALPHA` of cases.

The smallest shift that would have been seen (with 80 % probability, at Holm's strictest level) is the larger of two:
by the normal approximation from the repeats' variance (scores are whole, so a mean shift is some anchors moved by a
point); and, since few anchors cannot give small p-values however steady the judge, the share of anchors that must move
by a point before any dealing out is that rare. Seen in 150 simulated changes as large as stated, 24 anchors:

| share of scores off by one | 2 repeats: stated, seen | 3 repeats: stated, seen |
|----------------------------|-------------------------|-------------------------|
| none                       | 0.17, 100 %             | 0.12, 100 %             |
| 10 %                       | 0.32, 94 %              | 0.24, 97 %              |
| 30 %                       | 0.49, 87 %              | 0.38, 93 %              |
| 50 %                       | 0.61, 82 %              | 0.48, 83 %              |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, comb, log, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from evenedit.results.judge_checks import AnchorDrift
from evenedit.stats.engine.families import holm

ALPHA = 0.05
POWER = 0.8
PERMUTATIONS = 9999
CHUNK = 250
"""Permutations made at once. Changing it changes the random numbers."""
TIE = 1e-12
"""Shifts closer than this are the same, rounded differently."""
ANSWERED = "answered"

Replies = NDArray[np.float64]
"""[anchor, reply, question]; NaN where there is no answer."""


def drifts(
    before: Mapping[str, Replies],
    after: Mapping[str, Replies],
    questions: tuple[str, ...],
    *,
    seed: int,
    permutations: int = PERMUTATIONS,
) -> list[AnchorDrift]:
    """Return the drift of every judge in every question; both mappings are by judge."""
    tests = 2 * len(questions) * len(before)
    results: list[AnchorDrift] = []
    varies: list[bool] = []
    for number, (judge, then) in enumerate(before.items()):
        rng = np.random.default_rng([seed, number])
        results += _of_judge(judge, then, after[judge], questions, tests, permutations, rng)
        varies += _varies(np.concatenate([then, after[judge]], axis=1))
    # Where no anchor's replies differ there is nothing to deal out: no test. This looks at no reply's time.
    tested = [d for d, v in zip(results, varies, strict=True) if v]
    adjusted = iter(holm([p for d in tested for p in (d.p_shift, d.p_distance)]))
    for at, v in enumerate(varies):
        if v:
            p = min(next(adjusted) or 0.0, next(adjusted) or 0.0)
            results[at] = replace(results[at], p_holm=p, moved=p < ALPHA)
    return results


def _of_judge(
    judge: str,
    then: Replies,
    now: Replies,
    questions: tuple[str, ...],
    tests: int,
    permutations: int,
    rng: np.random.Generator,
) -> list[AnchorDrift]:
    pooled = np.concatenate([then, now], axis=1)
    first = then.shape[1]
    shift, distance, n = _statistics(pooled[None], first)
    reached = np.zeros((2, len(questions)), dtype=np.int64)
    for start in range(0, permutations, CHUNK):
        size = min(CHUNK, permutations - start)
        order = rng.random((size, *pooled.shape[:2])).argsort(axis=2)
        dealt = np.take_along_axis(pooled[None], order[..., None], axis=2)
        drawn_shift, drawn_distance, _ = _statistics(dealt, first)
        reached[0] += (np.abs(drawn_shift) >= np.abs(shift) - TIE).sum(axis=0)
        reached[1] += (drawn_distance >= distance - TIE).sum(axis=0)
    p = (1 + reached) / (1 + permutations)
    noise = _noise(then, now)
    results = []
    for at, question in enumerate(questions):
        count = int(n[0, at])
        both = ~np.isnan(then[..., at]).all(axis=1) & ~np.isnan(now[..., at]).all(axis=1)
        means = [float(np.nanmean(x[both, :, at], axis=1).mean()) if count else None for x in (then, now)]
        results.append(
            AnchorDrift(
                judge=judge,
                question=question,
                n=count,
                before=means[0],
                after=means[1],
                shift=float(shift[0, at]) if count else None,
                distance=float(distance[0, at]) if count else None,
                noise=noise[at],
                p_shift=float(p[0, at]) if count else 1.0,
                p_distance=float(p[1, at]) if count else 1.0,
                p_holm=1.0,
                moved=False,
                least=least_shift(noise[at] or 0.0, count, first, now.shape[1], tests),
            )
        )
    return results


def _varies(replies: Replies) -> list[bool]:
    """Return, per question, whether replies differ on any anchor."""
    highest = np.where(np.isnan(replies), -np.inf, replies).max(axis=1)
    lowest = np.where(np.isnan(replies), np.inf, replies).min(axis=1)
    return [bool(v) for v in (highest > lowest).any(axis=0)]


def _statistics(
    dealt: NDArray[np.float64], first: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return mean shift, mean distance and anchors with both, each [dealing, question]."""
    known = ~np.isnan(dealt)
    filled = np.where(known, dealt, 0.0)
    means = []
    for part in (slice(None, first), slice(first, None)):
        count = known[:, :, part].sum(axis=2)
        total = filled[:, :, part].sum(axis=2)
        means.append(np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0))
    difference = means[1] - means[0]
    defined = ~np.isnan(difference)
    n = defined.sum(axis=1)
    differences = np.where(defined, difference, 0.0)
    safe = np.maximum(n, 1)
    return differences.sum(axis=1) / safe, np.abs(differences).sum(axis=1) / safe, n


def _noise(then: Replies, now: Replies) -> list[float | None]:
    """Pooled standard deviation of repeats of one round, per question."""
    squares = np.zeros(then.shape[2])
    freedom = np.zeros(then.shape[2])
    for replies in (then, now):
        known = ~np.isnan(replies)
        count = known.sum(axis=1)
        filled = np.where(known, replies, 0.0)
        mean = filled.sum(axis=1) / np.maximum(count, 1)
        squares += (np.where(known, replies - mean[:, None], 0.0) ** 2).sum(axis=(0, 1))
        freedom += np.maximum(count - 1, 0).sum(axis=0)
    return [sqrt(s / f) if f else None for s, f in zip(squares, freedom, strict=True)]


def least_shift(noise: float, anchors: int, before: int, after: int, tests: int) -> float | None:
    """Return the smallest mean shift detected with 80 % power at Holm's strictest level; None without one."""
    if not anchors:
        return None
    level = ALPHA / tests
    spread = (1 / before + 1 / after) / anchors  # variance of the mean shift, per variance of a reply
    reach = NormalDist().inv_cdf(1 - level / 2) ** 2 * spread
    error = NormalDist().inv_cdf(POWER) * noise * sqrt(spread)
    # An anchor that moved by a point also widens what dealing out can give, by this much of its variance:
    widened = before * after / ((before + after) * (before + after - 1))
    # so shift = error + sqrt(reach * (noise^2 + widened * shift)), solved for the shift
    half = reach * widened / 2
    by_noise = error + half + sqrt(half**2 + reach * (noise**2 + widened * error))
    needed = ceil(log(2 / level) / log(comb(before + after, before)))
    if needed > anchors:
        return None
    return max(by_noise, needed / anchors)
