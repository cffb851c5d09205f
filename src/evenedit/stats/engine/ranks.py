"""Rank tests. Values are whole numbers, so that ties are ties; groups and pairs may be small, so p can be exact."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

Integers = NDArray[Any]
"""Whole numbers of any size."""
SMALL_GROUP, SMALL_BOTH = 20, 100
"""Mann and Whitney's p is exact up to so many units in the smaller group and in both."""
SMALL_PAIRS = 25
"""Wilcoxon's p is exact up to so many pairs that differ."""
NORMAL = "normal approximation, ties corrected"
EXACT = "exact, given the ties"


class KruskalWallis(NamedTuple):
    """Do several groups differ in rank?"""

    statistic: float
    """H, corrected for ties."""
    p: float
    """From chi-square."""
    df: int
    epsilon_squared: float
    """H / (n - 1): from 0, no difference, to 1."""


class MannWhitney(NamedTuple):
    """Does one group rank above another?"""

    statistic: float
    """U of the first group: pairs in which its member is higher, ties half."""
    p: float
    cliffs_delta: float
    """Share of pairs in which the first is higher minus share in which it is lower."""
    method: str


class Wilcoxon(NamedTuple):
    """Do pairs differ in one direction?"""

    statistic: float
    """T: the smaller of both rank sums."""
    p: float
    v_plus: float
    """Rank sum of positive differences."""
    z: float
    nonzero: int
    rank_biserial: float
    """(positive - negative rank sum) / their total."""
    method: str


def midranks(values: Integers) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return ranks from 1, with the mean rank for ties, and the number of ties at each value."""
    _, at, size = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(size) - (size - 1) / 2)[at.ravel()], size.astype(np.int64)


def kruskal_wallis(values: Integers, groups: NDArray[Any]) -> KruskalWallis | None:
    """Compute Kruskal and Wallis's H over the groups; None with one group or where all values are equal."""
    names, group = np.unique(groups, return_inverse=True)
    n = len(values)
    ranks, ties = midranks(values)
    correction = 1 - float((ties**3 - ties).sum()) / (n**3 - n) if n > 1 else 0.0
    if len(names) < 2 or correction <= 0:
        return None
    sums, sizes = np.bincount(group, weights=ranks), np.bincount(group)
    h = (12 / (n * (n + 1)) * float((sums**2 / sizes).sum()) - 3 * (n + 1)) / correction
    df = len(names) - 1
    return KruskalWallis(h, float(special.chdtrc(df, max(h, 0.0))), df, h / (n - 1))


def mann_whitney(
    first: Integers, second: Integers, *, exact: bool | None = None, continuity: bool = False
) -> MannWhitney | None:
    """Compute Mann and Whitney's U of the first group, two-sided; None for an empty group or equal values."""
    m, n = len(first), len(first) + len(second)
    if not 0 < m < n:
        return None
    ranks, ties = midranks(np.concatenate([first, second]))
    if len(ties) < 2:
        return None
    u = float(ranks[:m].sum()) - m * (m + 1) / 2
    delta = 2 * u / (m * (n - m)) - 1
    if exact is None:
        exact = min(m, n - m) <= SMALL_GROUP and n <= SMALL_BOTH
    if exact:
        doubled = np.rint(2 * ranks).astype(np.int64)
        return MannWhitney(u, _chosen_p(doubled, m), delta, EXACT)
    variance = m * (n - m) / 12 * (n + 1 - float((ties**3 - ties).sum()) / (n * (n - 1)))
    z = max(abs(u - m * (n - m) / 2) - 0.5 * continuity, 0.0) / variance**0.5
    return MannWhitney(u, float(2 * special.ndtr(-z)), delta, NORMAL)


def wilcoxon(
    differences: Integers,
    *,
    zeros: Literal["drop", "pratt", "split"] = "drop",
    exact: bool | None = None,
    continuity: bool = False,
) -> Wilcoxon | None:
    """Run Wilcoxon's signed-rank test, two-sided; None where no pair differs.

    Pairs without a difference are dropped (as in R and scipy), or ranked and then dropped (Pratt), or ranked and
    split between both signs.
    """
    nonzero = int(np.count_nonzero(differences))
    if nonzero == 0:
        return None
    used = differences[differences != 0] if zeros == "drop" else differences
    ranks, ties = midranks(np.abs(used))
    same, n = len(used) - nonzero, len(used)
    positive, negative = float(ranks[used > 0].sum()), float(ranks[used < 0].sum())
    biserial = (positive - negative) / (positive + negative)
    if exact is None:
        exact = nonzero <= SMALL_PAIRS
    if exact:
        doubled = np.rint(2 * ranks[used != 0]).astype(np.int64)
        p = _signed_p(doubled, round(2 * positive))
    centre, variance = n * (n + 1) / 4, n * (n + 1) * (2 * n + 1) / 24
    if zeros == "pratt":
        centre -= same * (same + 1) / 4
        variance -= same * (same + 1) * (2 * same + 1) / 24
        ties = ties[1:] if same else ties
    if zeros == "split":
        half = float(ranks[used == 0].sum()) / 2
        positive, negative = positive + half, negative + half
    variance -= float((ties**3 - ties).sum()) / 48
    z = max(abs(positive - centre) - 0.5 * continuity, 0.0) / variance**0.5
    if not exact:
        p = float(2 * special.ndtr(-z))
    return Wilcoxon(min(positive, negative), p, positive, z, nonzero, biserial, EXACT if exact else NORMAL)


def _chosen_p(doubled: NDArray[np.int64], m: int) -> float:
    """Return the share of choices of m units whose rank sum is at least as far from its mean as that of the first m."""
    observed = int(doubled[:m].sum())
    if 2 * m > len(doubled):  # the rest says the same, with fewer to choose
        doubled, m, observed = doubled[::-1], len(doubled) - m, int(doubled.sum()) - observed
    most = int(np.sort(doubled)[-m:].sum())
    ways = np.zeros((m + 1, most + 1))
    ways[0, 0] = 1
    for rank in doubled:
        ways[1:, rank:] += ways[:-1, : most + 1 - rank]
    far = np.abs(np.arange(most + 1) * len(doubled) - m * int(doubled.sum()))
    reached = far >= abs(observed * len(doubled) - m * int(doubled.sum()))
    return float(min(1.0, ways[m, reached].sum() / ways[m].sum()))


def _signed_p(doubled: NDArray[np.int64], observed: int) -> float:
    """Return the share of signs whose positive rank sum is at least as far from its mean as the observed one."""
    total = int(doubled.sum())
    share = np.zeros(total + 1)
    share[0] = 1
    for rank in doubled:
        share = (share + np.concatenate([np.zeros(rank), share[: total + 1 - rank]])) / 2
    reached = np.abs(2 * np.arange(total + 1) - total) >= abs(2 * observed - total)
    return float(min(1.0, share[reached].sum()))
