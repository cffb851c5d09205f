"""Two-way cluster bootstrap: faces and prompts are drawn anew, rows never are.

Rows of one face are not independent, nor are rows of one prompt. A draw takes faces (within the group whose
rate is estimated, so groups stay as the design fixed them) and, independently, prompts (one set shared by all
groups, so that differences between groups are of the same prompts). Of n units n-1 are drawn (Rao and Wu 1988):
drawing n of n would make intervals of small groups too narrow by sqrt(1 - 1/n). Weights are whole counts; the
factor n/(n-1) cancels in a ratio, so every draw is exact.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenedit.stats.panel import Panel

CACHED = 2**20
"""About so many weights are made at once: more would leave the processor's cache."""
PROMPT_STREAM = 1
"""The prompts' own random numbers: one set for all groups."""


@dataclass(frozen=True, slots=True)
class Draws:
    """Ratios of one group under every draw."""

    values: NDArray[np.float64]
    """[draw, editor, measure], pooled editors last; NaN where a draw has no valid score."""
    clusters: int
    """Faces (or prompts) in the group; with fewer than two there is nothing to draw from."""


class Bootstrap:
    """The draws of one panel, group by group."""

    def __init__(self, panel: Panel, draws: int, seed: int) -> None:
        self.panel = panel
        self.draws = draws
        self.seed = seed
        prompts = len(panel.axes.prompts)
        if prompts > 1:
            rng = np.random.default_rng([seed, PROMPT_STREAM])
            self.prompt_weights = np.concatenate(list(unit_weights(rng, prompts, draws, draws)))
        else:
            self.prompt_weights = np.ones((draws, prompts), dtype=np.int64)
        self._total = [panel.columns.index(m.total) for m in panel.measures]
        self._count = [panel.columns.index(m.count) for m in panel.measures]
        answered = panel.cells[..., self._count].sum(axis=(0, 2)) > 0
        self.single_prompt: NDArray[np.bool_] = answered.sum(axis=0) <= 1
        """[measure]: answered on one prompt only, so there are no prompts to draw."""
        self._drawn: dict[bytes, Draws] = {}

    def group(self, mask: NDArray[np.bool_]) -> Draws:
        """Draw the clusters of one group. Its random numbers depend on its members, not on what else is drawn."""
        key = mask.tobytes()
        if key not in self._drawn:
            self._drawn[key] = self._draw(np.flatnonzero(mask), zlib.crc32(key))
        return self._drawn[key]

    def _draw(self, members: NDArray[np.intp], stream: int) -> Draws:
        _, prompts, editors, columns = self.panel.cells.shape
        values = np.full((self.draws, editors + 1, len(self.panel.measures)), np.nan)
        if len(members) < 2:
            return Draws(values, len(members))
        cells = self.panel.cells[members].reshape(len(members), prompts, editors * columns)
        over_prompts = cells.sum(axis=1, keepdims=True)
        chunk = max(1, min(self.draws, CACHED // len(members), 4 * CACHED // cells[0].size))
        rng = np.random.default_rng([self.seed, stream])
        start = 0
        for weights in unit_weights(rng, len(members), self.draws, chunk):
            part = slice(start, start + len(weights))
            sums = weigh(cells, weights, self.prompt_weights[part]).reshape(-1, editors, columns)
            values[part] = self._ratios(sums)
            once = np.ones((len(weights), 1), dtype=np.int64)
            sums = weigh(over_prompts, weights, once).reshape(-1, editors, columns)
            values[part][..., self.single_prompt] = self._ratios(sums)[..., self.single_prompt]
            start = part.stop
        return Draws(values, len(members))

    def _ratios(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        pooled = np.concatenate([sums, sums.sum(axis=1, keepdims=True)], axis=1)
        total, count = pooled[..., self._total], pooled[..., self._count]
        ratios = np.full_like(total, np.nan)
        np.divide(total, count, out=ratios, where=count > 0)
        return ratios


def weigh(
    cells: NDArray[np.floating], cluster_weights: NDArray[np.int64], prompt_weights: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Weighted sums [draw, column] of cells [cluster, prompt, column]."""
    clusters, prompts, columns = cells.shape
    flat = cluster_weights.astype(cells.dtype) @ cells.reshape(clusters, prompts * columns)
    by_prompt = flat.reshape(-1, prompts, columns)
    weighted = np.matmul(prompt_weights.astype(cells.dtype)[:, None, :], by_prompt)
    return np.asarray(weighted[:, 0], dtype=np.float64)


def unit_weights(rng: np.random.Generator, units: int, draws: int, chunk: int) -> Iterator[NDArray[np.int64]]:
    """How often each unit is drawn when units - 1 are drawn with replacement: chunks of [draw, unit]."""
    for start in range(0, draws, chunk):
        size = min(chunk, draws - start)
        drawn = rng.integers(0, units, size=(size, units - 1))
        drawn += (np.arange(size) * units)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * units).reshape(size, units)
