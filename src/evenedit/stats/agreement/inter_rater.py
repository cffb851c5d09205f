"""How far people agree with one another. Ratings are [item, rater]: 1, 2, 3 …, or 0 where a rater gave none."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from evenedit.stats.engine.additive import Additive, Array, divide, ratio

Ratings = NDArray[np.integer]
LEVELS = 5
"""Levels of the scale, fixed: one nobody used is still a level."""
ALIKE = "all ratings are alike"
FEW = "no item has two ratings"


def counts(ratings: Ratings, levels: int = LEVELS) -> Array:
    """[item, level]: how many raters chose each level."""
    return np.stack([(ratings == level).sum(axis=1) for level in range(1, levels + 1)], axis=1).astype(np.float64)


def linear(levels: int = LEVELS) -> Array:
    """Distance of two levels."""
    at = np.arange(levels, dtype=np.float64)
    return np.abs(at[:, None] - at)


def _agreement_parts(levels: int, ratings: Ratings) -> Array:
    """Return each item's agreement among its pairs, whether it has pairs, its shares of levels, whether it is rated.

    Agreement is over items with two ratings or more; the shares are those of each item, averaged over items, so an
    item with many raters does not count for more (Gwet 2014). With equal raters this is the form of Fleiss (1971).
    """
    n = counts(ratings, levels)
    raters = n.sum(axis=1)
    pairs = raters * (raters - 1)
    agreeing = (n * (n - 1)).sum(axis=1)
    shares = n / np.maximum(raters, 1)[:, None]
    paired, rated = (pairs > 0).astype(np.float64), (raters > 0).astype(np.float64)
    return np.concatenate(
        [np.stack([agreeing / np.maximum(pairs, 1) * paired, paired], axis=1), shares, rated[:, None]], axis=1
    )


def _fleiss(sums: Array) -> Array:
    observed = ratio(sums)
    shares = sums[:, 2:-1] / np.maximum(sums[:, -1:], 1e-300)
    chance = (shares**2).sum(axis=1)
    return divide(observed - chance, 1 - chance)


def _coincidences(levels: int, ratings: Ratings) -> Array:
    """Return each item's pairs of ratings by level × level, each rating counted once (Krippendorff 2011)."""
    n = counts(ratings, levels)
    raters = n.sum(axis=1)
    pairs = n[:, :, None] * n[:, None, :] - n[:, :, None] * np.eye(levels)
    return np.where(raters > 1, 1 / np.maximum(raters - 1, 1), 0.0)[:, None, None] * pairs


def _alpha(distance: Callable[[Array], Array], sums: Array) -> Array:
    each = sums.sum(axis=2)
    n = each.sum(axis=1)
    squared = distance(each)
    observed = (sums * squared).sum(axis=(1, 2))
    expected = (each[:, :, None] * each[:, None, :] * squared).sum(axis=(1, 2))
    return 1 - divide((n - 1) * observed, expected)


def _nominal(each: Array) -> Array:
    return 1 - np.eye(each.shape[1])[None]


def _interval(each: Array) -> Array:
    return linear(each.shape[1])[None] ** 2


def _ordinal(each: Array) -> Array:
    """Squared number of ratings from one level to the other, half of each end."""
    middle = np.cumsum(each, axis=1) - each / 2
    return np.asarray((middle[:, :, None] - middle[:, None, :]) ** 2)


def _crossed_parts(ratings: Ratings) -> Array:
    """Return, per set of raters: 1, the k scores, their squared sum and the sum of their squares."""
    rated = ratings > 0
    k = int(rated.sum(axis=1).max(initial=0))
    if k < 2 or not (rated.sum(axis=1) == k).all():
        return np.zeros((len(ratings), 1, 3))
    block = np.unique(rated, axis=0, return_inverse=True)[1].ravel()
    scores = ratings[rated].reshape(-1, k).astype(np.float64)
    terms = np.concatenate([np.ones((len(scores), 1)), scores, scores.sum(1, keepdims=True) ** 2,
                          (scores**2).sum(1, keepdims=True)], axis=1)  # fmt: skip
    parts = np.zeros((len(scores), int(block.max()) + 1, k + 3))
    parts[np.arange(len(scores)), block] = terms
    return parts


def _icc(mean_of_k: bool, sums: Array) -> Array:
    """Return ICC(2,1) and ICC(2,k) (Shrout and Fleiss) from mean squares within sets of items with the same raters."""
    k = sums.shape[2] - 3
    if k < 2:
        return np.full(len(sums), np.nan)
    n = np.where(sums[:, :, 0] >= 2, sums[:, :, 0], 0.0)
    sums = sums * (n > 0)[:, :, None]
    n_safe = np.maximum(n, 1)
    columns = sums[:, :, 1:-2]
    correction = columns.sum(axis=2) ** 2 / (n_safe * k)
    rows_ss = (sums[:, :, -2] / k - correction).sum(axis=1)
    columns_ss = ((columns**2).sum(axis=2) / n_safe - correction).sum(axis=1)
    error_ss = (sums[:, :, -1] - correction).sum(axis=1) - rows_ss - columns_ss
    blocks = (n > 0).sum(axis=1)
    freedom = np.maximum(n - 1, 0).sum(axis=1)
    rows, error = divide(rows_ss, freedom), divide(error_ss, freedom * (k - 1))
    raters = divide(columns_ss, blocks * (k - 1.0))
    bias = (raters - error) / np.maximum(n.sum(axis=1) / np.maximum(blocks, 1), 1)
    return divide(rows - error, rows + bias) if mean_of_k else divide(rows - error, rows + (k - 1) * error + k * bias)


FLEISS = "Fleiss' kappa, Gwet's form for unequal raters"
SETS = "two-way random raters, absolute agreement, pooled within sets of items that share their raters"
UNCROSSED = "items have unequal numbers of raters, no two share theirs, or all ratings are alike"


@cache
def _identical(levels: int) -> Callable[..., Array]:
    """Return one cached function per number of levels, so that statistics can share it."""
    return partial(_agreement_parts, levels)


@cache
def _pairs(levels: int) -> Callable[..., Array]:
    return partial(_coincidences, levels)


def fleiss(levels: int) -> Additive:
    """Return Fleiss' kappa over this number of levels."""
    return Additive("fleiss_kappa", _identical(levels), _fleiss, f"{ALIKE}, or {FEW}", FLEISS)


def alpha_nominal(levels: int) -> Additive:
    """Return Krippendorff's alpha over this number of unordered levels."""
    undefined = f"{ALIKE}, or {FEW}"
    return Additive("krippendorff_alpha_nominal", _pairs(levels), partial(_alpha, _nominal), undefined)


def pairwise_agreement(levels: int) -> Additive:
    """Return the share of pairs of ratings of one item that are equal."""
    return Additive("percent_agreement", _identical(levels), ratio, FEW)


icc2_1 = Additive("icc2_1", _crossed_parts, partial(_icc, False), UNCROSSED, SETS)
icc2_k = Additive("icc2_k", _crossed_parts, partial(_icc, True), UNCROSSED, SETS)


@cache
def ordered(levels: int = LEVELS) -> tuple[Additive, ...]:
    """Return the statistics of a question with so many ordered answers; `icc2_1` is for the published preset only."""
    undefined = f"{ALIKE}, or {FEW}"
    ordinal = Additive("krippendorff_alpha_ordinal", _pairs(levels), partial(_alpha, _ordinal), undefined)
    interval = Additive("krippendorff_alpha_interval", _pairs(levels), partial(_alpha, _interval), undefined)
    return fleiss(levels), alpha_nominal(levels), ordinal, interval, icc2_k
