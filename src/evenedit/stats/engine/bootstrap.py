"""Two-way cluster bootstrap: faces and prompts are drawn anew, rows never are.

Rows of one face are not independent, nor are rows of one prompt. A draw takes faces (within the group whose rate is
estimated, so groups stay as the design fixed them) and, on its own, prompts (one set shared by all groups, so that
differences between groups are of the same prompts). Of n units n-1 are drawn (Rao and Wu 1988): drawing n of n
would make intervals of small groups too narrow by sqrt(1 - 1/n). Weights are whole counts; the factor n/(n-1)
cancels in the ratio of one group, so every draw is exact.

Faces and prompts are drawn apart, not crossed: crossed draws hold the noise of single rows three times (Owen 2007)
and give intervals that cover 0.97 to 1.00. Here the two parts are added and the noise counted twice is taken off
once; see `variance`. What the intervals cover is measured by `python -m validation coverage`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple
from weakref import proxy

import numpy as np
from numpy.typing import NDArray

from evenedit.stats.engine.design_effects import DesignEffects
from evenedit.stats.engine.draws import Draws
from evenedit.stats.engine.panel import Panel

CACHED = 2**20
"""About so many weights are made at once: more would leave the processor's cache."""
PROMPT_STREAM = 1
"""The prompts' own random numbers: one set for all groups."""
MOST_LABELS = 0.5
"""Labels that take more than this share of the faces' degrees of freedom say too little of faces of the same labels."""
EVENTS = 5.0
"""A share tells how prompts differ from so many edits on that have what it counts, and as many that have not."""


class ClusterSums(NamedTuple):
    """Totals and counts of one group; pooled editors last."""

    by_prompt: tuple[NDArray[np.float64], NDArray[np.float64]]
    """Each [prompt, editor, measure]."""
    by_face: tuple[NDArray[np.float64], NDArray[np.float64]]
    """Each [face, editor, measure]."""
    by_cell: NDArray[np.float64]
    """[3, editor, measure]: total², total × count and count² of every cell, summed."""


class Bootstrap:
    """The draws of one panel, group by group."""

    def __init__(self, panel: Panel, draws: int, seed: int) -> None:
        self.panel = panel
        self.draws = draws
        self.seed = seed
        self._total = [panel.columns.index(m.total) for m in panel.measures]
        self._count = [panel.columns.index(m.count) for m in panel.measures]
        answered = panel.cells[..., self._count].sum(axis=(0, 2)) > 0
        self.prompts_answered: NDArray[np.int64] = answered.sum(axis=0)
        """[measure]: how many prompts it was answered on; with one there are no prompts to draw."""
        prompts = len(panel.axes.prompts)
        rng = np.random.default_rng([seed, PROMPT_STREAM])
        self.prompt_weights = (
            np.concatenate(list(unit_weights(rng, prompts, draws, draws)))
            if prompts > 1
            else np.ones((draws, prompts), dtype=np.int64)
        )
        self._by_face = self._pooled(panel.cells.sum(axis=1))
        self._squares = self._products(panel.cells)
        self._drawn: dict[bytes, Draws] = {}

    @property
    def single_prompt(self) -> NDArray[np.bool_]:
        """[measure]: whether it was answered on one prompt only."""
        return np.asarray(self.prompts_answered <= 1)

    @cached_property
    def design_effects(self) -> DesignEffects:
        """The design effects of the panel's shares, computed once for each group."""
        bootstrap = proxy(self)  # a cycle of references would keep the draws in memory
        return DesignEffects(self.panel, lambda mask: bootstrap.group(mask))

    def group(self, mask: NDArray[np.bool_]) -> Draws:
        """Draw the clusters of one group. Its random numbers depend on its members, not on what else is drawn."""
        return self._cached([mask])

    def group_union(self, parts: Sequence[NDArray[np.bool_]]) -> Draws:
        """Draw several groups as one; each keeps its size, as the design fixed it."""
        if any(mask.sum() < 2 for mask in parts):  # a lone face can only be drawn among others
            return self._cached([np.any(np.stack(parts), axis=0)])
        return self._cached(parts)

    def clusters_of(self, mask: NDArray[np.bool_]) -> ClusterSums:
        """Return the sums behind a group's estimates: by prompt, by cluster and squared by cell."""
        sums = [self._pooled(self.panel.cells[mask].sum(axis=0)), self._by_face[mask]]
        total, count = ([np.asarray(x[..., at], dtype=np.float64) for x in sums] for at in (self._total, self._count))
        return ClusterSums((total[0], count[0]), (total[1], count[1]), self._squares[:, mask].sum(axis=1))

    def _cached(self, parts: Sequence[NDArray[np.bool_]]) -> Draws:
        key = b"+".join(mask.tobytes() for mask in parts)
        if key not in self._drawn:
            self._drawn[key] = self._draw(parts)
        return self._drawn[key]

    def _draw(self, parts: Sequence[NDArray[np.bool_]]) -> Draws:
        members = np.flatnonzero(np.any(np.stack(parts), axis=0))
        sums = self._by_face[members].sum(axis=0)
        value = self._ratios(sums)
        by_prompt = self._pooled(self.panel.cells[members].sum(axis=0))
        moved = self._ratios(weighted_sums(by_prompt, self.prompt_weights)) - value
        moved[..., self.single_prompt] = 0.0
        # the sum over cells of (total - value x count)^2, multiplied out so that faces can be summed beforehand
        known = np.nan_to_num(value)
        tt, tc, cc = self._squares[:, members].sum(axis=1)
        size = np.asarray(sums[..., self._count], dtype=np.float64)
        squares = np.maximum(tt - 2 * known * tc + known**2 * cc, 0.0)
        over_cells = np.divide(squares, size**2, out=np.zeros_like(value), where=size > 0)
        drawn = Draws(
            value=value,
            faces=self._face_draws(parts),
            prompts=moved,
            over_cells=over_cells,
            sizes=size,
            clusters=len(members),
            freedom=max(1, len(members) - len(parts)),
            prompt_freedom=np.maximum(self.prompts_answered - 1.0, 1.0),
        )
        is_total = len(parts) == 1 and len(members) == len(self.panel.axes.clusters)
        return self._of_everybody(drawn) if is_total else drawn

    def _of_everybody(self, drawn: Draws) -> Draws:
        """Return the draws with labels in the design's proportions and prompt variances moderated over measures."""
        events = np.nan_to_num(drawn.sizes * drawn.value * (1 - drawn.value))
        telling = (events >= EVENTS) & np.array([m.is_rate for m in self.panel.measures])
        telling[-1] = False  # all editors pooled repeat the others
        labels = [np.unique(x, return_inverse=True)[1] for x in self.panel.axes.labels.values()]
        indicators = [np.ones((drawn.clusters, 1))] + [np.eye(x.max() + 1)[x][:, 1:] for x in labels]
        design = np.concatenate(indicators, axis=1)
        left = drawn.clusters - int(np.linalg.matrix_rank(design))
        if left < MOST_LABELS * drawn.clusters:
            return replace(drawn, telling=telling)
        total, count = (np.asarray(self._by_face[..., at], dtype=np.float64) for at in (self._total, self._count))
        influence = np.nan_to_num((total - drawn.value * count) / np.maximum(drawn.sizes, 1.0))
        rows = influence.reshape(drawn.clusters, -1)
        rest = rows - design @ (np.linalg.pinv(design) @ rows)
        within = (rest**2).sum(axis=0).reshape(drawn.value.shape) * drawn.clusters / left
        return replace(drawn, within=within, freedom=left, telling=telling)

    def _face_draws(self, parts: Sequence[NDArray[np.bool_]]) -> NDArray[np.float64]:
        """Return the ratios [draw, editor, measure] when the faces of every part are drawn."""
        factors = [float(mask.sum()) / (float(mask.sum()) - 1) for mask in parts if mask.sum() > 1]
        sums: NDArray[np.float64] | None = None
        for at, mask in enumerate(parts):
            members = np.flatnonzero(mask)
            if len(members) < 2:
                return np.full((self.draws, len(self.panel.editors) + 1, len(self._total)), np.nan)
            by_face = self._by_face[members]
            rng = np.random.default_rng([self.seed, zlib.crc32(mask.tobytes())])
            chunk = max(1, min(self.draws, CACHED // len(members)))
            drawn = np.concatenate(
                [weighted_sums(by_face, w) for w in unit_weights(rng, len(members), self.draws, chunk)]
            )
            scaled = drawn * (factors[at] / factors[0]) if at else drawn  # matters where groups differ in size
            sums = scaled if sums is None else sums + scaled
        assert sums is not None
        return self._ratios(sums)

    def _pooled(self, cells: NDArray[np.floating]) -> NDArray[np.floating]:
        """Append the sum over all editors to […, editor, column]."""
        return np.concatenate([cells, cells.sum(axis=-2, keepdims=True)], axis=-2)

    def _products(self, cells: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return total², total × count and count², summed over prompts: [3, face, editor, measure]."""
        shape = (3, len(cells), cells.shape[2] + 1, len(self._total))
        products = np.empty(shape)
        step = max(1, CACHED // max(1, cells[:1].size))
        for start in range(0, len(cells), step):
            part = slice(start, start + step)
            pooled = self._pooled(cells[part]).astype(np.float64)
            total, count = pooled[..., self._total], pooled[..., self._count]
            for at, product in enumerate((total * total, total * count, count * count)):
                products[at, part] = product.sum(axis=1)
        return products

    def _ratios(self, sums: NDArray[np.floating]) -> NDArray[np.float64]:
        total, count = (np.asarray(sums[..., at], dtype=np.float64) for at in (self._total, self._count))
        ratios = np.full_like(total, np.nan)
        np.divide(total, count, out=ratios, where=count > 0)
        return ratios


def weighted_sums(cells: NDArray[np.floating], weights: NDArray[np.int64]) -> NDArray[np.float64]:
    """Weighted sums [draw, …] of cells [unit, …]."""
    units, *rest = cells.shape
    weighted = weights.astype(cells.dtype) @ cells.reshape(units, -1)
    return np.asarray(weighted.reshape(len(weights), *rest), dtype=np.float64)


def unit_weights(rng: np.random.Generator, units: int, draws: int, chunk: int) -> Iterator[NDArray[np.int64]]:
    """Yield chunks [draw, unit] of how often each unit is drawn, for units - 1 draws with replacement."""
    for start in range(0, draws, chunk):
        size = min(chunk, draws - start)
        drawn = rng.integers(0, units, size=(size, units - 1))
        drawn += (np.arange(size) * units)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * units).reshape(size, units)
