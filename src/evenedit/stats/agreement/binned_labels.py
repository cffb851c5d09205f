"""The plan's labels made from scores: was the edit applied (yes, partial, no), did gender or race change (yes, no)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenedit.stats.engine.rules import AnalysisRules


@dataclass(frozen=True, slots=True)
class BinnedLabel:
    """How a score becomes one of a few words."""

    names: tuple[str, ...]
    code: tuple[int, ...]
    """By score from 1: the 1-based position of its name."""

    def of(self, scores: NDArray[np.integer]) -> NDArray[np.int8]:
        """[item]: the position of each score's name."""
        return np.asarray(np.array((0, *self.code), dtype=np.int8)[scores])

    @property
    def note(self) -> str:
        """The scores of each name, in words."""
        return ", ".join(
            f"{name}: {'/'.join(str(s) for s, c in enumerate(self.code, 1) if c == at)}"
            for at, name in enumerate(self.names, 1)
        )


def labels(rules: AnalysisRules) -> dict[str, BinnedLabel]:
    """Return the binned label of each labelled question, by the thresholds of the rates."""
    labels_by_question = {}
    if {"edit_success", "soft_erasure"} <= set(rules.rates):
        applied, erased = rules.rates["edit_success"].at_least or 4, rules.rates["soft_erasure"].at_most or 2
        code = tuple(1 if s >= applied else 3 if s <= erased else 2 for s in range(1, 6))
        labels_by_question["edit_success"] = BinnedLabel(("yes", "partial", "no"), code)
    for rate in ("gender_change", "race_change"):
        if rate in rules.rates:
            changed = rules.rates[rate].at_least or 3
            code = tuple(1 if s >= changed else 2 for s in range(1, 6))
            labels_by_question[rules.rates[rate].question] = BinnedLabel(("yes", "no"), code)
    return labels_by_question
