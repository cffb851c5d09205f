"""Permutation tests for statistics without a closed form: labels move over faces, and a face keeps all its edits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import lgamma, log
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Label = TypeVar("Label", np.int8, np.int64)
CHUNK = 250
"""Permutations made at once. Changing it changes the random numbers."""
TIE = 1e-12
"""Variances closer than this are the same, rounded differently."""


def strata(labels: Mapping[str, NDArray[np.str_]], factor: str, permutations: int) -> tuple[NDArray[np.int64], str]:
    """Return the strata in which labels of `factor` are permuted, and their name: the finest with enough room.

    Permuting within levels of the other factors keeps their gaps out of this one's test. It needs at least
    two levels in every stratum, and more arrangements than permutations are asked for.
    """
    others = [f for f in labels if f != factor]
    for held in ([others] if others else []) + ([[f] for f in others] if len(others) > 1 else []):
        stacked = np.stack([labels[f] for f in held])
        within = np.unique(stacked, axis=1, return_inverse=True)[1].ravel().astype(np.int64)
        sizes = [np.unique(labels[factor][within == s], return_counts=True)[1] for s in range(within.max() + 1)]
        room = sum(lgamma(size.sum() + 1) - sum(lgamma(n + 1) for n in size) for size in sizes)
        if all(len(size) > 1 for size in sizes) and room > log(permutations + 1):
            return within, f"faces within {' x '.join(held)}"
    return np.zeros(len(labels[factor]), dtype=np.int64), "faces"


def permuted(
    labels: NDArray[Label], within: NDArray[np.int64], permutations: int, rng: np.random.Generator
) -> Iterator[NDArray[Label]]:
    """Yield chunks [permutation, face] of labels permuted within strata; the orders do not depend on the labels."""
    places = [np.flatnonzero(within == stratum) for stratum in range(within.max() + 1)]
    for start in range(0, permutations, CHUNK):
        size = min(CHUNK, permutations - start)
        chunk = np.empty((size, len(labels)), dtype=labels.dtype)
        for place in places:
            chunk[:, place] = rng.permuted(np.tile(labels[place], (size, 1)), axis=1)
        yield chunk


def between_group_variance(
    labels: NDArray[np.int8], levels: int, total: NDArray[Any], count: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the variance between levels of `total` over `count`: [permutation, ratio] from [face, ratio]."""
    both = np.concatenate([total, count], axis=1).astype(np.float64)
    width = total.shape[1]
    squares = np.zeros((len(labels), width))
    for level in range(levels):
        sums = (labels == level).astype(np.float64) @ both
        top, bottom = sums[:, :width], sums[:, width:]
        squares += np.divide(top * top, bottom, out=np.zeros_like(top), where=bottom > 0)
    overall, size = (x.sum(axis=0, dtype=np.float64) for x in (total, count))
    size = np.maximum(size, 1.0)
    return np.asarray(np.maximum(squares / size - (overall / size) ** 2, 0.0))


def p_values(
    labels: NDArray[np.int8],
    within: NDArray[np.int64],
    total: NDArray[np.int64],
    count: NDArray[np.int64],
    permutations: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return the share of labellings [ratio], the observed one included, with at least the observed variance."""
    levels = int(labels.max()) + 1
    observed = between_group_variance(labels[None], levels, total, count)[0]
    reached = np.zeros(total.shape[1], dtype=np.int64)
    for chunk in permuted(labels, within, permutations, rng):
        reached += (between_group_variance(chunk, levels, total, count) >= observed - TIE).sum(axis=0)
    return np.asarray((1 + reached) / (1 + permutations))
