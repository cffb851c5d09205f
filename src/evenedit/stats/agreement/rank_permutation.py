"""The p of rank tests over items that share faces: labels move over faces, or signs flip, and a face keeps its items.

Items of one face are alike. Taken as independent, they give p-values that alarm in a fifth to a half of studies without
any difference where a tenth to a third of the variance is the faces'. The statistics themselves stay those of items.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenedit.stats.engine.ranks import Integers, midranks
from evenedit.stats.engine.rules import AnalysisRules

MOST = 1999
"""Permutations of one test; there are hundreds of tests."""
STREAM = 7
"""These permutations' own random numbers."""
TIE = 1e-12
"""Variances closer than this are the same, rounded differently."""


def permuted_how(rules: AnalysisRules, what: str = "labels permuted over faces") -> str:
    """Return the description of how p was computed."""
    return f"{what}, {_draws(rules)}"


def relabelled_p(values: Integers, level: NDArray[np.str_], face: NDArray[Any], rules: AnalysisRules) -> float:
    """Return the share of face labellings with at least the observed difference in mean item rank."""
    ranks = np.rint(2 * midranks(values)[0])
    _, first, at = np.unique(face, return_index=True, return_inverse=True)
    codes = np.unique(level[first], return_inverse=True)[1].astype(np.int8)
    total = np.bincount(at.ravel(), weights=ranks)[:, None].astype(np.float64)
    count = np.bincount(at.ravel()).astype(np.float64)[:, None]
    levels = int(codes.max()) + 1
    observed = between_group_variance(codes[None], levels, total, count)[0, 0]
    drawn = between_group_variance(_labels(codes.tobytes(), _draws(rules), rules.seed), levels, total, count)[:, 0]
    return float((1 + (drawn >= observed - TIE * max(1.0, observed)).sum()) / (1 + len(drawn)))


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


def flipped_p(differences: Integers, face: NDArray[Any], rules: AnalysisRules) -> float:
    """Return the share of face sign flips with at least the observed sum of signed item ranks."""
    moved = differences != 0
    signed = np.where(differences > 0, 1.0, -1.0)[moved] * midranks(np.abs(differences[moved]))[0]
    sums = np.bincount(np.unique(face[moved], return_inverse=True)[1].ravel(), weights=signed)
    rng = np.random.default_rng([rules.seed, STREAM, len(sums)])
    drawn = np.abs(rng.choice([-1.0, 1.0], size=(_draws(rules), len(sums))) @ sums)
    return float((1 + (drawn >= abs(float(sums.sum())) - 1e-9).sum()) / (1 + len(drawn)))


def _draws(rules: AnalysisRules) -> int:
    return min(rules.permutations, MOST)


@lru_cache(maxsize=16)
def _labels(codes: bytes, draws: int, seed: int) -> NDArray[np.int8]:
    """[permutation, face]: labels permuted; the same for every axis of the same faces."""
    labels = np.frombuffer(codes, dtype=np.int8)
    rng = np.random.default_rng([seed, STREAM])
    return rng.permuted(np.tile(labels, (draws, 1)), axis=1)
