"""What people answered about each item, as one number: mean, median or majority, kept exact."""

from __future__ import annotations

from math import lcm

import numpy as np
from numpy.typing import NDArray

from evenedit.ratings.combine import half_up, median
from evenedit.stats.agreement.inter_rater import LEVELS, Ratings, counts
from evenedit.stats.engine.ranks import Integers


def balanced_ratings(ratings: Ratings) -> Ratings:
    """Return equally many ratings per item: those of the first k raters in rater order, 0 for all others.

    k is the number of ratings that most items have (the larger one of two); items with fewer are emptied.
    """
    rated = ratings > 0
    sizes = rated.sum(axis=1)
    if not sizes.any():
        return np.zeros_like(ratings)
    tally = np.bincount(sizes[sizes > 0])
    k = int(np.flatnonzero(tally == tally.max())[-1])
    used = rated & (np.cumsum(rated, axis=1) <= k) & (sizes >= k)[:, None]
    return np.where(used, ratings, 0).astype(ratings.dtype)


def integer_means(total: NDArray[np.integer], count: NDArray[np.integer]) -> tuple[Integers, int]:
    """Return means as integers of a common unit, so that equal means are equal, and the number of units per point."""
    parts = lcm(*(int(c) for c in np.unique(count) if c)) if count.any() else 1
    scaled = [int(t) * (parts // int(c)) if c else 0 for t, c in zip(total, count, strict=True)]
    return np.array(scaled, dtype=np.int64 if parts < 2**50 else object), parts


def totals(ratings: Ratings) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each item's sum of ratings and their number."""
    return ratings.sum(axis=1, dtype=np.int64), (ratings > 0).sum(axis=1, dtype=np.int64)


def means(ratings: Ratings) -> NDArray[np.float64]:
    """Return each item's mean rating."""
    total, count = totals(ratings)
    return np.asarray(total / np.maximum(count, 1))


def rounded_mean(ratings: Ratings) -> NDArray[np.int8]:
    """Return each item's mean rating, half up."""
    return half_up(*totals(ratings))


def rounded_median(ratings: Ratings) -> NDArray[np.int8]:
    """Return each item's median rating, half up."""
    return median(ratings.T.astype(np.int8))


def doubled_median(ratings: Ratings) -> NDArray[np.int64]:
    """Twice each item's median rating."""
    ordered = np.sort(ratings, axis=1).astype(np.int64)
    missing = (ratings == 0).sum(axis=1)
    count = ratings.shape[1] - missing
    lower, upper = (np.minimum(missing + at, ratings.shape[1] - 1) for at in ((count - 1) // 2, count // 2))
    rows = np.arange(len(ratings))
    return np.asarray(ordered[rows, lower] + ordered[rows, upper])


def majority(ratings: Ratings, levels: int = LEVELS) -> NDArray[np.int8]:
    """Return the most frequent rating of each item; the median, half up, where several are equally frequent."""
    tally = counts(ratings, levels)
    top = tally.max(axis=1, keepdims=True)
    unique = (tally == top).sum(axis=1) == 1
    return np.where(unique & (top[:, 0] > 0), tally.argmax(axis=1) + 1, rounded_median(ratings)).astype(np.int8)
