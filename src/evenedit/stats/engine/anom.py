"""Which groups differ, and by how much: analysis of means with simultaneous p-values and intervals.

Each group is compared with the unweighted mean of all groups (Nelson 1983; Bretz, Hothorn and Westfall 2010). The
variance is pooled over the groups. p-values and intervals hold for all groups at once: each t is mapped to a normal
deviate by its degrees of freedom and held against the largest of correlated normal deviates. The range of the true
group rates gets the simultaneous interval of all pairwise differences (Tukey 1953; Kramer 1956). The size of the range
is shrunken by empirical Bayes (Efron and Morris 1975), as highest minus lowest of noisy rates is too large by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import exp, lgamma

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from evenedit.protocol import Factor
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.variance import NEGLIGIBLE, Uncertainty, Values, difference, korn_graubard

DRAWS = 20_000
"""Draws of the largest of correlated normal deviates."""
RARE = 200
"""A p-value that rests on fewer draws is Bonferroni's instead, which is larger and close to it."""
SEED = 1983
DOMINANT_FACE, SEVERAL_FACES = 0.4, 6
"""A group of so many faces of which one holds more than this share of its events is not found to have more of them."""
FEWEST_FACES = 3
"""A group of fewer faces is not tested: its faces cannot be told from its label."""


def deviation_weights(groups: int) -> Values:
    """Return the weights [group, group] of each group minus the mean of all; of two groups, minus the other."""
    return np.array([[1.0, -1.0], [-1.0, 1.0]]) if groups == 2 else np.eye(groups) - 1 / groups


def slope_weights(factor: Factor, levels: Sequence[str]) -> list[float]:
    """Return the weight of each level's estimate in the least-squares slope over an ordered factor."""
    place = np.array([factor.codes.index(level) for level in levels], dtype=np.float64)
    centred = place - place.sum() / max(len(place), 1)
    return [float(w) for w in centred / max(float(np.square(centred).sum()), NEGLIGIBLE)]


@dataclass(frozen=True, slots=True)
class GroupTests:
    """The test of one measure of one editor over the groups of a factor."""

    levels: tuple[str, ...]
    """The groups with a valid score, in the factor's order."""
    rates: tuple[float, ...]
    deviations: tuple[float, ...]
    """Each group minus the unweighted mean of all groups; of two groups, minus the other group."""
    p: tuple[float | None, ...]
    """By group, adjusted for all groups; None where nothing varies or the group has too few faces, 1 where one face
    carries a group that has more events than others."""
    intervals: tuple[tuple[float, float] | None, ...]
    """Simultaneous intervals of the deviations."""
    t: tuple[float | None, ...]
    freedom: float
    tau: float
    """Standard deviation of the true group rates (method of moments)."""
    shrinkage: float
    """The part of the differences between groups that is not noise, 0 to 1."""
    range_interval: tuple[float, float] | None
    """Interval of the largest true difference between two groups; where nothing varies, faces are the units."""

    @property
    def smallest_p(self) -> float | None:
        """The p-value of the hypothesis that all groups are equal."""
        return min((p for p in self.p if p is not None), default=None)

    @property
    def gap(self) -> float:
        """Highest minus lowest rate."""
        return max(self.rates) - min(self.rates)


def group_tests(
    crossed: CrossedPanel,
    factor: str,
    confidence: float,
    variance_ratio: Values | None = None,
    values: Values | None = None,
) -> dict[tuple[int, int], GroupTests]:
    """Test every measure of every editor over the groups of a factor; keys are editor row and measure.

    Where judges improve people's labels, `variance_ratio` [group, editor, measure] scales each group's pooled variance
    and `values` are the estimates.
    """
    levels = crossed.panel.axes.levels[factor]
    sums = [crossed.of({factor: level}) for level in levels]
    unit = crossed.pooled((factor,)).scaled(1.0)
    value, counts, faces = (np.stack([getattr(g, name) for g in sums]) for name in ("value", "count", "faces"))
    face_variance, top_face = (np.stack([getattr(g, name) for g in sums]) for name in ("over_faces", "top_face"))
    tests: dict[tuple[int, int], GroupTests] = {}
    for row, at in np.ndindex(*value.shape[1:]):
        present = np.flatnonzero(counts[:, row, at] > 0)
        if len(present) < 2:
            continue
        scale = np.ones(len(present)) if variance_ratio is None else variance_ratio[present, row, at]
        rates, sizes = (value if values is None else values)[present, row, at], counts[present, row, at] / scale
        names, present_faces = tuple(levels[i] for i in present), faces[present, row, at]
        tested = (present_faces >= FEWEST_FACES) & ~np.isnan(face_variance[present, row, at])
        tests[row, at] = _tests(
            names, rates, sizes, present_faces, tested, unit.at(row, at), confidence, values is None
        )
        if crossed.panel.measures[at].is_share and values is None:
            carried = (top_face[present, row, at] > DOMINANT_FACE) & (present_faces >= SEVERAL_FACES)
            tests[row, at] = _without(tests[row, at], carried & (rates > rates.mean()))
    return tests


def _without(tests: GroupTests, carried: NDArray[np.bool_]) -> GroupTests:
    """Return the tests with p = 1 for groups whose events one face carries; of two groups, for both."""
    entire = len(carried) == 2 and carried.any()
    p = tuple(1.0 if one is not None and (entire or of) else one for one, of in zip(tests.p, carried, strict=True))
    return replace(tests, p=p)


def _tests(
    levels: tuple[str, ...],
    rates: Values,
    sizes: Values,
    faces: Values,
    tested: NDArray[np.bool_],
    unit: Uncertainty,
    confidence: float,
    exact: bool,
) -> GroupTests:
    k = len(levels)
    weights = deviation_weights(k)
    deviations = weights @ rates
    scales = (weights**2) @ (1 / sizes)
    single, freedom = float(unit.variance), float(unit.freedom)
    errors = np.sqrt(np.maximum(single, 0.0) * scales)
    varies = single > NEGLIGIBLE
    shares = tuple(sorted(np.round(sizes / sizes.sum(), 2).tolist()))  # in whichever order, the largest is the same
    p: list[float | None] = [None] * k
    t: list[float | None] = [None] * k
    intervals: list[tuple[float, float] | None] = [None] * k
    span: tuple[float, float] | None = None
    if varies:
        largest = _largest(shares)
        reach = float(stdtrit(freedom, ndtr(_quantile(shares, confidence, pairs=False))))
        for g in range(k):
            t[g] = float(deviations[g] / errors[g])
            intervals[g] = float(deviations[g] - reach * errors[g]), float(deviations[g] + reach * errors[g])
            if tested[g] and (k > 2 or tested.all()):
                p[g] = _adjusted(abs(float(deviations[g] / errors[g])), freedom, largest, k)
        span = _range(rates, sizes, single, freedom, shares, confidence)
    elif set(rates) <= {0.0, 1.0} and faces.min() > 1:
        ends = [korn_graubard(float(rate), float(n), confidence) for rate, n in zip(rates, faces, strict=True)]
        lows, highs = zip(*ends, strict=True)
        span = max(0.0, max(lows) - min(highs)), max(highs) - min(lows)
        if len(set(rates)) > 1 and tested.all() and exact:
            p = [_separation_p(faces)] * k
            intervals = [_separation_interval(g, rates, ends) for g in range(k)]
    noise = single / k * float((1 / sizes).sum())
    between = float(rates.var(ddof=1))
    tau2 = max(0.0, between - noise)
    return GroupTests(
        levels=levels,
        rates=tuple(map(float, rates)),
        deviations=tuple(map(float, deviations)),
        p=tuple(p),
        intervals=tuple(intervals),
        t=tuple(t),
        freedom=freedom,
        tau=tau2**0.5,
        shrinkage=tau2 / between if between > 0 else 0.0,
        range_interval=span,
    )


def _separation_p(faces: Values) -> float:
    """Return the exact permutation p (Fisher 1935) of groups whose faces are all alike within and differ between."""
    k = len(faces)
    ways = lgamma(faces.sum() + 1) - sum(lgamma(n + 1) for n in faces)
    return min(1.0, exp(lgamma(k + 1) - ways))


def _separation_interval(group: int, rates: Values, ends: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the interval of such a group's deviation from the intervals of all groups."""
    others = [at for at in range(len(rates)) if at != group]
    low, high = (float(np.mean([ends[at][side] for at in others])) for side in (0, 1))
    share = 1.0 if len(rates) == 2 else 1 - 1 / len(rates)
    interval = difference(float(rates[group]), float(rates[others].mean()), (ends[group], (low, high)), 0.0)
    return share * interval[0], share * interval[1]


def _adjusted(t: float, freedom: float, largest: Values, k: int) -> float:
    """Return the p-value of one group's t, adjusted for all groups."""
    one_sided = float(stdtr(freedom, -t))
    if k == 2:
        return 2 * one_sided
    reached = len(largest) - int(np.searchsorted(largest, -float(ndtri(max(one_sided, 1e-300)))))
    return reached / len(largest) if reached >= RARE else min(1.0, 2 * k * one_sided)


def _range(
    rates: Values, sizes: Values, single: float, freedom: float, shares: tuple[float, ...], confidence: float
) -> tuple[float, float]:
    """Return the interval of the largest difference between two groups."""
    first, second = np.triu_indices(len(rates), 1)
    distances = np.abs(rates[first] - rates[second])
    errors = np.sqrt(single * (1 / sizes[first] + 1 / sizes[second]))
    reach = float(stdtrit(freedom, ndtr(_quantile(shares, confidence, pairs=True))))
    return float(max(0.0, (distances - reach * errors).max())), float((distances + reach * errors).max())


@lru_cache(maxsize=512)
def _largest(shares: tuple[float, ...]) -> Values:
    """Return sorted draws of the largest |deviation| of groups with these shares of the scores, in standard errors."""
    size, k = _sizes(shares), len(shares)
    means = _normals(k) / np.sqrt(size)
    centred = means - means.mean(axis=1, keepdims=True)
    errors = np.sqrt(((np.eye(k) - 1 / k) ** 2) @ (1 / size))
    return np.asarray(np.sort(np.abs(centred / errors).max(axis=1)))


@lru_cache(maxsize=512)
def _largest_pair(shares: tuple[float, ...]) -> Values:
    """Return draws of the largest difference between two groups, in standard errors."""
    size = _sizes(shares)
    first, second = np.triu_indices(len(shares), 1)
    means = _normals(len(shares)) / np.sqrt(size)
    errors = np.sqrt(1 / size[first] + 1 / size[second])
    return np.asarray(np.abs((means[:, first] - means[:, second]) / errors).max(axis=1))


@lru_cache(maxsize=2048)
def _quantile(shares: tuple[float, ...], confidence: float, pairs: bool) -> float:
    return float(np.quantile((_largest_pair if pairs else _largest)(shares), confidence))


def _sizes(shares: tuple[float, ...]) -> Values:
    return np.asarray(np.maximum(np.array(shares), 0.005))


@lru_cache(maxsize=64)
def _normals(k: int) -> Values:
    return np.random.default_rng([SEED, k]).standard_normal((DRAWS, k))
