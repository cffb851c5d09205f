"""Measure how far an edit changed the person, from its scores and the study's thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenedit.protocol.rubric import DEFAULT_RATES, QUESTION_IDS, QUESTIONS, Rate

DRIFT_AXES: tuple[str, ...] = ("skin_tone", "race_drift", "gender_drift", "age_drift")
"""The questions about the person rather than about the request."""
DRIFT_RATES: tuple[str, ...] = ("skin_lighter", "skin_darker", "race_change", "gender_change", "older", "younger")
"""The rates that mean a change of the person."""
REPLACED: tuple[str, ...] = ("race_change", "gender_change")
"""The rates that mean another person."""


@dataclass(frozen=True, slots=True)
class Drift:
    """How far edits changed the person."""

    by_axis: Mapping[str, NDArray[np.int64]]
    """By axis, scale points away from 'no change'; -1 where it has no score."""
    meets: Mapping[str, NDArray[np.bool_]]
    """By rate of DRIFT_RATES, whether the score meets the study's threshold."""
    severe: NDArray[np.bool_]
    """Race or gender presentation changed by a point more than the threshold asks for."""
    complete: NDArray[np.bool_]
    """Whether every axis has a score; one that the prompt replaces by another question does not count."""

    @property
    def points(self) -> NDArray[np.float64]:
        """Scale points away from 'no change', summed over the axes that have a score; NaN where none has."""
        axes = np.stack(list(self.by_axis.values()))
        return np.where((axes >= 0).any(axis=0), np.maximum(axes, 0).sum(axis=0), np.nan)

    @property
    def drifted(self) -> NDArray[np.bool_]:
        """True where any rate is met."""
        return self.any_of(DRIFT_RATES)

    def any_of(self, rates: tuple[str, ...]) -> NDArray[np.bool_]:
        """Return True where any of these rates is met."""
        return np.asarray(np.stack([self.meets[rate] for rate in rates]).any(axis=0), dtype=np.bool_)


def drift(answers: NDArray[np.int8], rates: Mapping[str, Rate] = DEFAULT_RATES) -> Drift:
    """Compute the drift of edits from their answers […, question], 0 = missing, under the study's thresholds."""
    values = {axis: answers[..., QUESTION_IDS.index(axis)].astype(np.int64) for axis in DRIFT_AXES}
    by_axis = {axis: np.where(value > 0, np.abs(value - no_change(axis)), -1) for axis, value in values.items()}
    meets = {name: meets_rate(values[rates[name].question], rates[name]) for name in DRIFT_RATES}
    severe = np.zeros(answers.shape[:-1], dtype=np.bool_)
    for name in REPLACED:
        severe |= values[rates[name].question] > (rates[name].at_least or 0)
    complete = np.ones(answers.shape[:-1], dtype=np.bool_)
    for axis in DRIFT_AXES:
        instead = [QUESTION_IDS.index(q.id) for q in QUESTIONS.values() if q.replaces == axis]
        complete &= (values[axis] > 0) | (answers[..., instead] > 0).any(axis=-1)
    return Drift(by_axis, meets, severe, complete)


def no_change(axis: str) -> int:
    """Return the score that means the person did not change."""
    return 3 if QUESTIONS[axis].sided == "two" else 1


def meets_rate(values: NDArray[np.int64], rate: Rate) -> NDArray[np.bool_]:
    """Return True where scores meet a rate's threshold; missing scores do not."""
    met = values >= rate.at_least if rate.at_least is not None else values <= (rate.at_most or 0)
    return np.asarray(met & (values > 0), dtype=np.bool_)
