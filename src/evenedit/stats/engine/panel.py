"""Edits summed by face and prompt: what every estimate is computed from.

A measure is a ratio of two columns. Columns hold whole numbers, so sums are exact in floating point and every
estimate is the same to the last bit whatever the order of rows, chunks or threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.core.records import ConditionKind, Experiment
from evenedit.protocol import Factor, Rubric, default_rubric
from evenedit.protocol.factors import crossings
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.ratings.table import BLOCK

Column = NDArray[np.int64]
"""One whole number per row."""
EXACT_FLOAT32 = 2**24
"""Whole numbers below this are exact in float32."""


@dataclass(frozen=True, slots=True)
class RatioMeasure:
    """A ratio of two columns: the sum of `total` over the sum of `count`."""

    name: Measure
    """mean.<axis>, rate.<rate> or delta.<axis>."""
    total: str
    count: str
    applicable: str
    """The column that counts what could have been valid; asked minus count is missing."""
    condition: str | None = None
    """Where it differs from the panel's own."""
    unit: int = 1
    """What one whole of the measure is in `total`: means of several judges and readings are sums of parts."""

    bounds: tuple[float, float] | None = None
    """The smallest and the largest possible value, where the name does not tell."""
    signed: bool = False
    """Whether it is the difference of two sides."""
    phrase: str = ""
    """Of a rate that an instrument brings along: what the edits have in common that it counts."""

    def ratio(self, total: int, count: int) -> float | None:
        """Return the measure of these sums; None where nothing is counted."""
        return total / count / self.unit if count else None

    @property
    def is_rate(self) -> bool:
        """True for a rate, which groups are compared in."""
        return self.name.kind == MeasureKind.RATE

    @property
    def is_share(self) -> bool:
        """True if it lies between 0 and 1 as a share of rows: a rate, or one over prompts that do not ask for it."""
        shift = self.name.kind == MeasureKind.SHIFT and not self.signed
        return self.is_rate or shift or self.name.kind == MeasureKind.SHARE

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest possible value."""
        if self.bounds is not None:
            return self.bounds
        return (0.0, 1.0) if self.is_share else (-1.0, 1.0) if self.signed else (-np.inf, np.inf)


@dataclass(frozen=True, slots=True)
class Axes:
    """The two ways rows are related, and where each row stands on them."""

    cluster_name: str
    """source, or prompt."""
    clusters: tuple[str, ...]
    """What is drawn anew as a whole: source ids, or prompt ids where a prompt has one output."""
    labels: Mapping[str, NDArray[np.str_]]
    """By factor, each cluster's level; empty text where it has none."""
    levels: Mapping[str, tuple[str, ...]]
    """By factor, the levels that occur, in the protocol's order."""
    prompts: tuple[str, ...]
    """The second way; a single one where the clusters are prompts."""
    cluster_at: NDArray[np.int64]
    prompt_at: NDArray[np.int64]
    crossed: tuple[tuple[str, str], ...] = ()
    """Pairs of factors whose combinations are groups too."""
    blocks: NDArray[np.int64] | None = None
    """[cluster]: the block it belongs to; None where each is drawn by itself."""

    def mask(self, group: Mapping[str, str]) -> NDArray[np.bool_]:
        """Return the clusters that carry all these labels."""
        mask = np.ones(len(self.clusters), dtype=np.bool_)
        for factor, level in group.items():
            mask &= self.labels[factor] == level
        return mask

    def groups(self, crossed: bool = False) -> list[dict[str, str]]:
        """Return everybody, each level of each factor and, if crossed, each combination of two."""
        result: list[dict[str, str]] = [{}]
        result += [{factor: level} for factor, levels in self.levels.items() for level in levels]
        for one, other in self.crossed if crossed else ():
            pairs = [{one: a, other: b} for a in self.levels.get(one, ()) for b in self.levels.get(other, ())]
            result += [pair for pair in pairs if self.mask(pair).any()]
        return result


def of_diagnosis(edits: pd.DataFrame, condition: str = ConditionKind.BASELINE) -> NDArray[np.bool_]:
    """Return which edits are of the diagnosis under this condition."""
    return ((edits["experiment"] == Experiment.DIAGNOSIS) & (edits["condition"] == condition)).to_numpy(dtype=np.bool_)


def by_face(edits: pd.DataFrame, factors: Sequence[Factor]) -> Axes:
    """Return the axes faces × prompts, with the dataset's labels of each face."""
    face_at, faces = _codes(edits["source_id"])
    prompt_at, prompts = _codes(edits["prompt_id"])
    row_of = np.zeros(len(faces), dtype=np.int64)
    row_of[face_at] = np.arange(len(edits))
    labels = {f.name: edits[f.name].iloc[row_of].to_numpy(dtype=str) for f in factors}
    levels = {f.name: tuple(c for c in f.codes if (labels[f.name] == c).any()) for f in factors}
    present = {name: codes for name, codes in levels.items() if codes}
    block_at, blocks = _codes(units(edits).iloc[row_of])
    shared = block_at if len(blocks) < len(faces) else None
    return Axes("source", faces, labels, present, prompts, face_at, prompt_at, tuple(crossings(factors)), shared)


def units(edits: pd.DataFrame, alike: Sequence[Factor] = ()) -> pd.Series[str]:
    """Return what each edit's portrait was drawn with: its person or base portrait, else the portrait itself.

    Also the portraits themselves if those of one block differ in the labels of `alike`.
    """
    by_block = BLOCK in edits and (edits.groupby(BLOCK)[[f.name for f in alike]].nunique() < 2).all(axis=None)
    return edits[BLOCK if by_block else "source_id"]


def by_prompt(edits: pd.DataFrame, factor: str, labels: Mapping[str, str]) -> Axes:
    """Return the axes with prompts as clusters, for an experiment with different faces per prompt."""
    prompt_at, prompts = _codes(edits["prompt_id"])
    level = np.array([labels.get(p, "") for p in prompts], dtype=str)
    levels = tuple(sorted(set(level) - {""}, reverse=True))  # Male before Female, as in the grid
    return Axes("prompt", prompts, {factor: level}, {factor: levels}, ("",), prompt_at, np.zeros_like(prompt_at))


@dataclass(frozen=True, slots=True)
class Panel:
    """One experiment and condition, summed into clusters × prompts for every editor."""

    experiment: str
    condition: str
    axes: Axes
    editors: tuple[str, ...]
    measures: tuple[RatioMeasure, ...]
    columns: tuple[str, ...]
    """The columns of `cells`: those that some measure is a ratio of."""
    cells: NDArray[np.floating]
    """[cluster, prompt, editor, column]. Seeds of one face and prompt share a cell."""
    sums: Mapping[str, NDArray[np.int64]]
    """Every column by name, summed over prompts: [editor, cluster]."""
    rubric: Rubric = field(default_factory=default_rubric)
    _tallied: dict[bytes, dict[str, list[int]]] = field(init=False, repr=False, compare=False, default_factory=dict)
    """Sums over the clusters of a mask, by mask, column and editor: every estimate asks for three of them."""

    def rows(self) -> list[tuple[str | None, list[int]]]:
        """Return each editor with its position, then all of them pooled as None."""
        each: list[tuple[str | None, list[int]]] = [(name, [i]) for i, name in enumerate(self.editors)]
        return [*each, (None, list(range(len(self.editors))))]

    def place(self, editor: str | None) -> tuple[str, str, str | None]:
        """Return the experiment, the condition and the editor of a result."""
        return self.experiment, self.condition, editor

    def column_sum(self, column: str, editors: list[int], mask: NDArray[np.bool_]) -> int:
        """Return the sum of a column over these editors and clusters."""
        key = mask.tobytes()
        if key not in self._tallied:
            sums = np.stack(list(self.sums.values()))[:, :, mask].sum(axis=2)
            self._tallied[key] = dict(zip(self.sums, sums.tolist(), strict=True))
        by_editor = self._tallied[key][column]
        return sum(by_editor[editor] for editor in editors)


def build_panel(
    edits: pd.DataFrame,
    axes: Axes,
    columns: Mapping[str, Column],
    measures: Sequence[RatioMeasure],
    *,
    experiment: str,
    condition: str,
    rubric: Rubric | None = None,
) -> Panel:
    """Aggregate rows into a face × prompt panel."""
    editor_at, editors = _codes(edits["editor"])
    shape = (len(editors), len(axes.clusters), len(axes.prompts))
    cell = np.ravel_multi_index((editor_at, axes.cluster_at, axes.prompt_at), shape)
    used = tuple(dict.fromkeys(name for m in measures for name in (m.total, m.count)))
    wide = np.zeros((len(columns), *shape))
    for at, column in enumerate(columns.values()):
        wide[at] = np.bincount(cell, weights=column, minlength=int(np.prod(shape))).reshape(shape)
    names = list(columns)
    cells = wide[[names.index(name) for name in used]]
    largest = float(np.abs(cells).max(initial=0.0)) * len(axes.clusters) * len(axes.prompts)
    dtype = np.float32 if largest < EXACT_FLOAT32 else np.float64
    return Panel(
        experiment=experiment,
        condition=condition,
        axes=axes,
        editors=editors,
        measures=tuple(measures),
        columns=used,
        cells=np.ascontiguousarray(cells.transpose(2, 3, 1, 0), dtype=dtype),
        sums={name: wide[at].sum(axis=2).astype(np.int64) for at, name in enumerate(names)},
        rubric=rubric or default_rubric(),
    )


def _codes(column: pd.Series[str]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the position of each row among the sorted values, independent of row order."""
    codes, values = pd.factorize(column, sort=True)
    return codes.astype(np.int64), tuple(str(v) for v in values)
