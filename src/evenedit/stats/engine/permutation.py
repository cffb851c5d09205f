"""Is a gap larger than chance? Labels are permuted over faces: a face keeps all its edits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import lgamma, log

import numpy as np
from numpy.typing import NDArray

from evenedit.protocol.measures import MeasureKind
from evenedit.results.results import GapTest
from evenedit.stats.engine.estimates import shares
from evenedit.stats.engine.multiplicity import holm
from evenedit.stats.engine.panel import EXACT_FLOAT32, Panel
from evenedit.stats.engine.rules import AnalysisRules

CHUNK = 250
"""Permutations made at once. Changing it changes the random numbers."""
STREAM = 2
"""The test's own random numbers, apart from the bootstrap's."""
TIE = 1e-12
"""Gaps closer than this are the same gap, rounded differently."""


def strata(labels: Mapping[str, NDArray[np.str_]], factor: str, permutations: int) -> tuple[NDArray[np.int64], str]:
    """Within which faces the labels of `factor` move, and its name: the finest that leaves enough room.

    Permuting within levels of the other factors keeps their gaps out of this one's test. It needs at least
    two levels in every stratum, and more arrangements than permutations are asked for.
    """
    others = [f for f in labels if f != factor]
    for kept in ([others] if others else []) + ([[f] for f in others] if len(others) > 1 else []):
        stacked = np.stack([labels[f] for f in kept])
        within = np.unique(stacked, axis=1, return_inverse=True)[1].ravel().astype(np.int64)
        sizes = [np.unique(labels[factor][within == s], return_counts=True)[1] for s in range(within.max() + 1)]
        room = sum(lgamma(size.sum() + 1) - sum(lgamma(n + 1) for n in size) for size in sizes)
        if all(len(size) > 1 for size in sizes) and room > log(permutations + 1):
            return within, f"faces within {' x '.join(kept)}"
    return np.zeros(len(labels[factor]), dtype=np.int64), "faces"


def permuted(
    labels: NDArray[np.int8], within: NDArray[np.int64], permutations: int, rng: np.random.Generator
) -> Iterator[NDArray[np.int8]]:
    """Labels permuted within strata: chunks of [permutation, face]."""
    places = [np.flatnonzero(within == stratum) for stratum in range(within.max() + 1)]
    for start in range(0, permutations, CHUNK):
        size = min(CHUNK, permutations - start)
        chunk = np.empty((size, len(labels)), dtype=np.int8)
        for place in places:
            chunk[:, place] = rng.permuted(np.tile(labels[place], (size, 1)), axis=1)
        yield chunk


def gap_of(
    labels: NDArray[np.int8], levels: int, total: NDArray[np.floating], count: NDArray[np.floating]
) -> NDArray[np.float64]:
    """[permutation, ratio]: max - min over levels of summed `total` over summed `count`, both [face, ratio]."""
    both = np.concatenate([total, count], axis=1)
    width = total.shape[1]
    highest = np.full((len(labels), width), -np.inf)
    lowest = np.full((len(labels), width), np.inf)
    for level in range(levels):
        sums = ((labels == level).astype(both.dtype) @ both).astype(np.float64)
        top, bottom = sums[:, :width], sums[:, width:]
        share = np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0)
        highest, lowest = np.fmax(highest, share), np.fmin(lowest, share)
    return np.asarray(np.where(np.isfinite(highest), highest - lowest, 0.0))


def p_values(
    labels: NDArray[np.int8],
    within: NDArray[np.int64],
    total: NDArray[np.int64],
    count: NDArray[np.int64],
    permutations: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """[ratio]: share of labellings, the observed one among them, whose gap is at least the observed one."""
    exact = max(int(total.sum(axis=0).max()), int(count.sum(axis=0).max())) < EXACT_FLOAT32
    dtype: type[np.floating] = np.float32 if exact else np.float64
    total_of: NDArray[np.floating] = total.astype(dtype)
    count_of: NDArray[np.floating] = count.astype(dtype)
    levels = int(labels.max()) + 1
    observed = gap_of(labels[None], levels, total_of, count_of)[0]
    reached = np.zeros(len(observed), dtype=np.int64)
    for chunk in permuted(labels, within, permutations, rng):
        reached += (gap_of(chunk, levels, total_of, count_of) >= observed - TIE).sum(axis=0)
    return np.asarray((1 + reached) / (1 + permutations))


def gap_tests(panel: Panel, rules: AnalysisRules) -> list[GapTest]:
    """A test of every rate's gap over every factor; Holm within each editor's family."""
    rows = panel.rows()
    rates = [m for m in panel.measures if m.is_rate]
    families: list[list[GapTest]] = [[] for _ in rows]
    for number, (factor, levels) in enumerate(panel.axes.levels.items()):
        if len(levels) < 2 or not rates:
            continue
        labelled = np.isin(panel.axes.labels[factor], levels)
        labels = {f: panel.axes.labels[f][labelled] for f in panel.axes.levels}
        within, how = strata(labels, factor, rules.permutations)
        total, count = (
            np.stack([panel.sums[c][members].sum(axis=0)[labelled] for c in names for _, members in rows], axis=1)
            for names in ([m.total for m in rates], [m.count for m in rates])
        )
        codes = np.array([levels.index(level) for level in labels[factor]], dtype=np.int8)
        rng = np.random.default_rng([rules.seed, STREAM, number])
        p = p_values(codes, within, total, count, rules.permutations, rng).reshape(len(rates), len(rows))
        masks = {level: panel.axes.mask({factor: level}) for level in levels}
        for at, measure in enumerate(rates):
            for row, (editor, members) in enumerate(rows):
                share = shares(panel, measure, members, masks)
                if len(share) < 2:
                    continue
                highest, lowest = max(share, key=share.__getitem__), min(share, key=share.__getitem__)
                families[row].append(
                    GapTest(
                        measure=measure.name.to(MeasureKind.GAP),
                        experiment=panel.experiment,
                        condition=panel.condition,
                        editor=editor,
                        factor=factor,
                        value=share[highest] - share[lowest],
                        highest=highest,
                        lowest=lowest,
                        p=float(p[at, row]),
                        p_holm=1.0,
                        faces=len(codes),
                        method=f"permutation({how}, {rules.permutations})",
                    )
                )
    return [
        replace(test, p_holm=adjusted)
        for family in families
        for test, adjusted in zip(family, holm([test.p for test in family]), strict=True)
    ]
