"""Scores as columns of whole numbers: what is summed, what is counted, what could have been."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.protocol import QUESTIONS, Rate
from evenedit.protocol.measures import Measure
from evenedit.protocol.shifts import ONE_SIDED, TWO_SIDED
from evenedit.ratings.combine import applicable_questions
from evenedit.ratings.table import QUESTION_IDS, Scores
from evenedit.stats.engine.panel import Axes, Column, Panel, RatioMeasure, build_panel
from evenedit.stats.engine.rules import AnalysisRules

AXIS_QUESTIONS: tuple[str, ...] = tuple(q for q in QUESTION_IDS if QUESTIONS[q].sided != "choice")
"""Every question on a 1-5 scale: the five axes and accuracy against a target age."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The ensemble's scores as an analysis counts them."""

    values: NDArray[np.int8]
    """[edit, question]; 0 = missing."""
    applicable: NDArray[np.bool_]
    """[edit, question]: whether the question applies. A refused or failed edit was to be asked too."""

    def of(self, question: str) -> tuple[Column, Column]:
        """Scores and applicability of one question."""
        at = QUESTION_IDS.index(question)
        return self.values[:, at].astype(np.int64), self.applicable[:, at].astype(np.int64)

    def rows(self, rows: NDArray[np.intp]) -> Answers:
        """Return the answers of these edits; a row of -1 stands for a missing edit."""
        exists = (rows >= 0)[:, None]
        return Answers(np.where(exists, self.values[rows], np.int8(0)), self.applicable[rows] & exists)


def answers(scores: Scores, rules: AnalysisRules) -> Answers:
    """Return scores, with accuracy against a target age counted as age change if the rules say so."""
    values, applies = scores.values, applicable_questions(scores.table)
    if rules.aging_in_age_axis:
        values, applies = values.copy(), applies.copy()
        for question in QUESTIONS.values():
            if question.replaces:
                new, old = QUESTION_IDS.index(question.id), QUESTION_IDS.index(question.replaces)
                values[applies[:, new], old] = values[applies[:, new], new]
                applies[:, old] |= applies[:, new]
    return Answers(values, applies)


@dataclass(slots=True)
class MeasureTable:
    """Columns and the measures made of them, as they are written down."""

    columns: dict[str, Column] = field(default_factory=dict)
    measures: list[RatioMeasure] = field(default_factory=list)

    def add(self, measure: RatioMeasure, total: Column, count: Column, applies: Column) -> None:
        """Add a measure unless no question applies."""
        if applies.any():
            self.columns |= {measure.total: total, measure.count: count, measure.applicable: applies}
            self.measures.append(measure)

    def panel(self, edits: pd.DataFrame, axes: Axes, experiment: str, condition: str) -> Panel:
        """Sum the columns, whose rows are these edits, into a face × prompt panel."""
        return build_panel(edits, axes, self.columns, self.measures, experiment=experiment, condition=condition)


def mean_measure(name: str, condition: str | None = None) -> RatioMeasure:
    """Return the mean of a question."""
    prefix = f"{condition}." if condition else ""
    return RatioMeasure(Measure.mean(name), f"{prefix}sum.{name}", f"n.{name}", f"asked.{name}", condition)


def add_score_measures(
    ledger: MeasureTable,
    scored: Answers,
    valid: Mapping[str, Column],
    rates: Mapping[str, Rate],
    condition: str | None = None,
) -> None:
    """Add means and rates of the answers, over the rows `valid` for each question."""
    prefix = f"{condition}." if condition else ""
    for question in AXIS_QUESTIONS:
        value, applies = scored.of(question)
        count = valid[question]
        ledger.add(mean_measure(question, condition), value * count, count, applies)
        for rate, met in met_rates(value, question, rates):
            measure = RatioMeasure(
                Measure.rate(rate), f"{prefix}met.{rate}", f"n.{question}", f"asked.{question}", condition
            )
            ledger.add(measure, met * count, count, applies)


def add_shift_measure(
    ledger: MeasureTable,
    question: str,
    judged: Sequence[Column],
    applies: Column,
    rates: Mapping[str, Rate],
) -> None:
    """Add the shift of a two-sided question: +1 above no change, -1 below, by the study's thresholds.

    `judged` has each rater's scores. The code of an edit is the mean of its raters' codes: scores that are combined
    and rounded first would make a shift out of nothing.
    """
    raters = np.stack([value > 0 for value in judged]).sum(axis=0)
    unit = int(np.lcm.reduce(np.arange(1, len(judged) + 1)))
    part = np.divide(unit, raters, out=np.zeros(len(raters)), where=raters > 0).astype(np.int64)
    sides = zip(*(_sides(question, value, rates) for value in judged), strict=True)
    above, below = (np.sum(side, axis=0) * part * applies for side in sides)
    valid = (raters > 0).astype(np.int64)
    names = f"shift.{question}", f"n.shift.{question}", f"asked.shift.{question}"
    measure = RatioMeasure(Measure.shift(question), *names, unit=unit)
    ledger.add(measure, above - below, valid * applies, applies)
    ledger.columns |= {f"above.{question}": above, f"below.{question}": below}


def _sides(question: str, value: Column, rates: Mapping[str, Rate]) -> tuple[Column, Column]:
    """Return which scores are above no change and which below."""
    met = dict(met_rates(value, question, rates))
    above, below = TWO_SIDED[question]
    return met[above], met[below]


def add_one_sided_shifts(
    ledger: MeasureTable, question: str, value: Column, applies: Column, unasked: Column, rates: Mapping[str, Rate]
) -> None:
    """Add one-sided rates over the prompts that do not ask for the change; none where no prompt does ask."""
    if (applies <= unasked).all():
        return
    valid = (value > 0).astype(np.int64)
    for rate, met in met_rates(value, question, rates):
        if rate in ONE_SIDED:
            names = f"shift.{rate}", f"n.shift.{question}", f"asked.shift.{question}"
            included = applies * unasked
            ledger.add(RatioMeasure(Measure.shift(rate), *names), met * included, valid * included, included)


def met_rates(value: Column, question: str, rates: Mapping[str, Rate]) -> Iterator[tuple[str, Column]]:
    """Yield each rate of a question with the rows that meet its threshold."""
    for name, rate in rates.items():
        if rate.question == question:
            met = value >= rate.at_least if rate.at_least is not None else value <= (rate.at_most or 0)
            yield name, (met & (value > 0)).astype(np.int64)


def outcome_is(outcome: NDArray[np.str_], *wanted: str) -> Column:
    """Return which edits have one of these outcomes."""
    return np.isin(outcome, wanted).astype(np.int64)
