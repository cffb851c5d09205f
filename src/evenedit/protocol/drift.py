"""Measure how far an edit changed the person, from its scores and the study's thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenedit.protocol.questions import Rate
from evenedit.protocol.rubric import Rubric, default_rubric


@dataclass(frozen=True, slots=True)
class Drift:
    """How far edits changed the person."""

    by_axis: Mapping[str, NDArray[np.int64]]
    """By ordinal question about the person, scale points away from 'no change'; -1 where it has no score."""
    meets: Mapping[str, NDArray[np.bool_]]
    """By rate that means a change of the person, whether the score meets the study's threshold."""
    severe: NDArray[np.bool_]
    """Race or gender presentation changed by a point more than the threshold asks for."""
    complete: NDArray[np.bool_]
    """Whether every axis has a score; one that the prompt replaces by another question does not count."""

    @property
    def points(self) -> NDArray[np.float64]:
        """Scale points away from 'no change', summed over the axes that have a score; NaN where none has."""
        if not self.by_axis:
            return np.full(self.complete.shape, np.nan)
        axes = np.stack(list(self.by_axis.values()))
        return np.where((axes >= 0).any(axis=0), np.maximum(axes, 0).sum(axis=0), np.nan)

    @property
    def drifted(self) -> NDArray[np.bool_]:
        """True where any rate is met."""
        return self.any_of(tuple(self.meets))

    def any_of(self, rates: tuple[str, ...]) -> NDArray[np.bool_]:
        """Return True where any of these rates is met; one that is no change of the person is met by none."""
        met = np.zeros(self.complete.shape, dtype=np.bool_)
        for rate in rates:
            met |= self.meets.get(rate, False)
        return met


def drift(answers: NDArray[np.int8], rates: Mapping[str, Rate] | None = None, rubric: Rubric | None = None) -> Drift:
    """Compute the drift of edits from their answers […, question], 0 = missing, under the study's thresholds."""
    rubric = rubric or default_rubric()
    rates = rubric.rates if rates is None else rates
    values = {q: answers[..., rubric.at(q)].astype(np.int64) for q in (*rubric.changes, *rubric.choices)}
    scales = [question for question in rubric.changes if rubric.spec_by_column[question].row.neutral]
    by_axis = {q: np.where(values[q] > 0, np.abs(values[q] - rubric.no_change(q)), -1) for q in scales}
    meets = {name: rates[name].met(values[rates[name].question]) for name in rubric.drift_rates}
    severe = np.zeros(answers.shape[:-1], dtype=np.bool_)
    for name in rubric.another_person:
        at_least = rates[name].at_least
        severe |= meets[name] if at_least is None else values[rates[name].question] > at_least
    complete = np.ones(answers.shape[:-1], dtype=np.bool_)
    instead = {old: rubric.at(new) for new, old in rubric.replaced.items()}
    for question in scales:
        row = rubric.spec_by_column[question].row
        if not (row.prompts or row.sources):
            replacement = answers[..., instead[question]] > 0 if question in instead else False
            complete &= (values[question] > 0) | replacement
    return Drift(by_axis, meets, severe, complete)
