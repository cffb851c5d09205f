"""Which effects a design can tell apart, and the rows of one outcome for the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evenedit.stats.engine.panel import Axes
from evenedit.stats.multilevel.laplace import Effect, ModelledRows, Places, Values

CUT_SD = 5.0
LABEL_SD = 1.5
"""Priors on the scale of log odds: of cuts, and of each label's own effect."""
BY_CELL = 2.0
"""Faces that cells must have on average for their effects to be told from their faces'."""
LABELS = "labels"
PROMPT = "prompt"
BY = " × "


@dataclass(frozen=True, slots=True)
class Kinds:
    """Faces whose labels are all known, and their kinds: combinations of labels."""

    faces: Places
    """Positions of the faces among the design's."""
    labels: dict[str, Places]
    """By factor with two levels or more, the level of each kind."""
    levels: dict[str, tuple[str, ...]]
    kind_of: Places
    """The kind of each of `faces`."""
    crossings: tuple[tuple[str, ...], ...]
    """Combinations of factors whose cells have effects of their own."""

    @property
    def count(self) -> Values:
        """Faces of each kind."""
        return np.bincount(self.kind_of).astype(np.float64)

    def code(self, factors: tuple[str, ...]) -> tuple[Places, int]:
        """The cell of each kind in a combination of factors, and how many cells there could be."""
        shape = [len(self.levels[f]) for f in factors]
        return np.asarray(np.ravel_multi_index([self.labels[f] for f in factors], shape)), int(np.prod(shape))

    def cells(self) -> Iterator[tuple[dict[str, str], NDArray[np.bool_]]]:
        """Each intersection that has faces, with its kinds; single labels where no intersections can be told."""
        for factors in self.crossings or tuple((f,) for f in self.levels):
            code, size = self.code(factors)
            for cell in range(size):
                kinds = code == cell
                if kinds.any():
                    at = np.unravel_index(cell, [len(self.levels[f]) for f in factors])
                    yield {f: self.levels[f][i] for f, i in zip(factors, at, strict=True)}, kinds


def kinds_of(axes: Axes) -> Kinds:
    """The kinds of a design's faces."""
    levels = {f: codes for f, codes in axes.levels.items() if len(codes) > 1}
    position = {f: {code: i for i, code in enumerate(codes)} for f, codes in levels.items()}
    at = np.array([[position[f].get(label, -1) for label in axes.labels[f]] for f in levels]).reshape(len(levels), -1)
    faces = np.flatnonzero((at >= 0).all(axis=0)) if levels else np.zeros(0, dtype=np.intp)
    kinds, kind_of = np.unique(at[:, faces], axis=1, return_inverse=True)
    labels = {f: np.asarray(kinds[i], dtype=np.intp) for i, f in enumerate(levels)}
    made = Kinds(faces, labels, levels, np.asarray(kind_of.ravel(), dtype=np.intp), ())
    return Kinds(made.faces, labels, levels, made.kind_of, tuple(_crossings(made)))


def _crossings(kinds: Kinds) -> list[tuple[str, ...]]:
    """All factors crossed where cells have faces enough, else those pairs of factors whose cells have."""

    def enough(factors: tuple[str, ...]) -> bool:
        cells = len(np.unique(kinds.code(factors)[0]))
        return len(kinds.faces) >= BY_CELL * cells

    every = tuple(kinds.levels)
    if len(every) < 2:
        return [every] if every else []
    if enough(every):
        return [every]
    return [pair for pair in combinations(every, 2) if len(every) > 2 and enough(pair)]


def grid_of(kinds: Kinds, face: Places, prompt: Places, category: Places, categories: int) -> ModelledRows:
    """The model's rows: each with its face (a position in `kinds.faces`), prompt and category."""
    prompts = int(prompt.max()) + 1
    kind = kinds.kind_of[face]
    effects = []
    if len(kinds.levels) > 1:  # the labels of a single factor are themselves what is pooled
        for factor, levels in kinds.levels.items():
            effects.append(Effect(factor, kinds.labels[factor][kind], len(levels), LABEL_SD))
    for factors in kinds.crossings:
        code, size = kinds.code(factors)
        effects.append(Effect(BY.join(factors), code[kind], size))
    if prompts > 1:
        main, levels = next(iter(kinds.levels.items()))
        effects.append(Effect(PROMPT, prompt, prompts))
        effects.append(
            Effect(f"{main}{BY}{PROMPT}", kinds.labels[main][kind] * prompts + prompt, len(levels) * prompts)
        )
    faces = Effect("face", face, len(kinds.faces))
    return ModelledRows(category, np.ones(len(category)), categories, tuple(effects), faces, CUT_SD)
