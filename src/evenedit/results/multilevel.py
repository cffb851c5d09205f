"""What the multilevel model says, where it was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PooledCell:
    """One intersection of groups, pulled towards what its labels one by one would give."""

    group: Mapping[str, str]
    value: float
    """Rate or mean score over other faces and prompts of the same kind."""
    low: float
    high: float
    observed: float | None
    """Rate or mean of the cell's own scores, not pooled."""
    faces: int
    n: int


@dataclass(frozen=True, slots=True)
class VarianceComponent:
    """How much one source of difference moves the log odds of single edits."""

    source: str
    """`labels` (each label's own effect, added up), `race × gender` …, `prompt`, `race × prompt`, `face`, `edit`."""
    sd: float
    """Standard deviation on the scale of log odds; that of single edits is π / √3 by the model."""
    low: float
    high: float
    share: float
    """Of the whole variance."""


@dataclass(frozen=True, slots=True)
class Multilevel:
    """One outcome of one editor: what is shared by faces, prompts, groups and their intersections."""

    measure: str
    """rate.<rate> or mean.<axis>"""
    experiment: str
    condition: str
    editor: str
    cells: tuple[PooledCell, ...]
    """Empty where the model has no numbers."""
    components: tuple[VarianceComponent, ...]
    """Where differences lie, from labels to single edits."""
    partition: float | None
    """Variance partition coefficient: the share of the whole variance that lies between intersections of labels."""
    partition_low: float | None
    """Lower end of its credible interval."""
    partition_high: float | None
    """Upper end of its credible interval."""
    additive: float | None
    """The share of that which each label's own effect, added up, explains; the rest is particular to intersections."""
    accuracy_labels: float | None
    """How well the labels tell who is affected, in faces that the model has not seen: the chance that of two edits with
    different outcomes the one that the labels rank higher is the higher one. 0.5 = they tell nothing."""
    accuracy_prompts: float | None
    """The same with the prompt known as well."""
    faces: int
    n: int
    method: str
    """The model and how it was fitted, or why there is none."""
