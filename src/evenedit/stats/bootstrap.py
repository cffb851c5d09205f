"""Two-way cluster bootstrap: faces and prompts are drawn anew, rows never are.

Rows of one face are not independent, nor are rows of one prompt. A draw takes faces (within the group whose
rate is estimated, so groups stay as the design fixed them) and, independently, prompts (one set shared by all
groups, so that differences between groups are of the same prompts). Of n units n-1 are drawn (Rao and Wu 1988):
drawing n of n would make intervals of small groups too narrow by sqrt(1 - 1/n). Weights are whole counts; the
factor n/(n-1) cancels in the ratio of one group, so every draw is exact.

Share of 95 % percentile intervals that hold the true rate, 300 studies each, random face and prompt effects:

| faces × prompts, effects/noise | everybody | one of 7 groups | group - rest | rows taken as independent |
|--------------------------------|-----------|-----------------|--------------|---------------------------|
| 84 × 20, 0.5                   | 0.97      | 0.96            | 0.99         | 0.46                      |
| 84 × 20, 1.0                   | 0.95      | 0.96            | 0.96         | 0.33                      |
| 84 × 20, none of face, 0.3     | 0.99      | 1.00            | 1.00         | 0.72                      |
| 28 × 10, 0.5                   | 0.98      | 0.97            | 0.98         | 0.68                      |
| 14 × 6, 0.5 (2 faces a group)  | 0.98      | 0.88            | 0.93 to 0.98 | 0.81                      |

Where faces and prompts hardly matter it is too careful: noise of single rows enters through both (Owen 2007).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
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
    """One group under every draw."""

    sums: NDArray[np.float64]
    """[draw, editor, column], pooled editors last; NaN where there is nothing to draw from."""
    values: NDArray[np.float64]
    """[draw, editor, measure]: their ratios; NaN where a draw has no valid score."""
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
        single = [m for m, alone in zip(panel.measures, self.single_prompt, strict=True) if alone]
        self._single = sorted({panel.columns.index(name) for m in single for name in (m.total, m.count)})
        self._drawn: dict[bytes, Draws] = {}

    def group(self, mask: NDArray[np.bool_]) -> Draws:
        """Draw the clusters of one group. Its random numbers depend on its members, not on what else is drawn."""
        key = mask.tobytes()
        if key not in self._drawn:
            self._drawn[key] = self._draw(np.flatnonzero(mask), zlib.crc32(key))
        return self._drawn[key]

    def together(self, parts: Sequence[NDArray[np.bool_]]) -> NDArray[np.float64]:
        """Ratios of several groups taken as one, each drawn on its own as the design fixed its size."""
        drawn = [self.group(mask) for mask in parts]
        if any(d.clusters < 2 for d in drawn):  # a lone face can only be drawn among others
            return self.group(np.any(np.stack(parts), axis=0)).values
        factors = [d.clusters / (d.clusters - 1) for d in drawn]  # matters where groups differ in size
        sums = sum(d.sums * (factor / factors[0]) for d, factor in zip(drawn, factors, strict=True))
        return self._ratios(np.asarray(sums))

    def _draw(self, members: NDArray[np.intp], stream: int) -> Draws:
        editors, columns = self.panel.cells.shape[2:]
        sums = np.full((self.draws, editors + 1, columns), np.nan)
        if len(members) > 1:
            crossed = self.panel.cells[members]
            single = crossed[..., self._single].sum(axis=1, keepdims=True)
            rng = np.random.default_rng([self.seed, stream])
            chunk = max(1, min(self.draws, CACHED // len(members), 4 * CACHED // crossed[0].size))
            start = 0
            for weights in unit_weights(rng, len(members), self.draws, chunk):
                part = slice(start, start + len(weights))
                sums[part, :editors] = weigh(crossed, weights, self.prompt_weights[part])
                sums[part, :editors, self._single] = weigh(single, weights, np.ones_like(weights[:, :1]))
                start = part.stop
            sums[:, editors] = sums[:, :editors].sum(axis=1)
        return Draws(sums, self._ratios(sums), len(members))

    def _ratios(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        total, count = sums[..., self._total], sums[..., self._count]
        ratios = np.full_like(total, np.nan)
        np.divide(total, count, out=ratios, where=count > 0)
        return ratios


def weigh(
    cells: NDArray[np.floating], cluster_weights: NDArray[np.int64], prompt_weights: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Weighted sums [draw, …] of cells [cluster, prompt, …]."""
    clusters, prompts, *rest = cells.shape
    by_prompt = cluster_weights.astype(cells.dtype) @ cells.reshape(clusters, -1)
    by_prompt = by_prompt.reshape(len(cluster_weights), prompts, -1)
    weighted = np.matmul(prompt_weights.astype(cells.dtype)[:, None, :], by_prompt)
    return np.asarray(weighted.reshape(len(cluster_weights), *rest), dtype=np.float64)


def unit_weights(rng: np.random.Generator, units: int, draws: int, chunk: int) -> Iterator[NDArray[np.int64]]:
    """How often each unit is drawn when units - 1 are drawn with replacement: chunks of [draw, unit]."""
    for start in range(0, draws, chunk):
        size = min(chunk, draws - start)
        drawn = rng.integers(0, units, size=(size, units - 1))
        drawn += (np.arange(size) * units)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * units).reshape(size, units)
