"""Scores as columns of whole numbers: what is summed, what is counted, what could have been."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.protocol import Rate, Rubric, default_rubric
from evenedit.protocol.measures import Measure
from evenedit.ratings.combine import applicable_questions
from evenedit.ratings.table import Scores
from evenedit.stats.engine.panel import Axes, Column, Panel, RatioMeasure, build_panel
from evenedit.stats.engine.rules import AnalysisRules


@dataclass(frozen=True, slots=True)
class Answers:
    """The ensemble's scores as an analysis counts them."""

    values: NDArray[np.int8]
    """[edit, question]; 0 = missing."""
    applicable: NDArray[np.bool_]
    """[edit, question]: whether the question applies. A refused or failed edit was to be asked too."""
    rubric: Rubric = field(default_factory=default_rubric)

    def of(self, question: str) -> tuple[Column, Column]:
        """Scores and applicability of one question."""
        at = self.rubric.at(question)
        return self.values[:, at].astype(np.int64), self.applicable[:, at].astype(np.int64)

    @property
    def valid(self) -> dict[str, Column]:
        """Whether there is a score, by question."""
        return {question: (self.of(question)[0] > 0).astype(np.int64) for question in self.rubric.columns}

    def rows(self, rows: NDArray[np.intp]) -> Answers:
        """Return the answers of these edits; a row of -1 stands for a missing edit."""
        exists = (rows >= 0)[:, None]
        values = np.where(exists, self.values[rows], np.int8(0))
        return Answers(values, self.applicable[rows] & exists, self.rubric)


def answers(scores: Scores, rules: AnalysisRules) -> Answers:
    """Return scores, with accuracy against a target age counted as age change if the rules say so."""
    values, applies = scores.values, applicable_questions(scores.table)
    rubric = scores.table.rubric
    for at, spec in enumerate(rubric.spec_by_column.values()):
        if "judges" not in spec.row.answered_by and not values[:, at].any():
            applies[:, at] = False  # of what only people or instruments are asked, no judge's answer is missing
    if rules.aging_in_age_axis:
        values, applies = values.copy(), applies.copy()
        for replacement, question in rubric.replaced.items():
            new, old = rubric.at(replacement), rubric.at(question)
            values[applies[:, new], old] = values[applies[:, new], new]
            applies[:, old] |= applies[:, new]
    return Answers(values, applies, rubric)


class RatioKind(TypedDict, total=False):
    """What a ratio is besides its columns, as in `RatioMeasure`."""

    unit: int
    bounds: tuple[float, float] | None
    signed: bool
    phrase: str


@dataclass(slots=True)
class MeasureTable:
    """Columns and the measures made of them, as they are written down."""

    columns: dict[str, Column] = field(default_factory=dict)
    measures: list[RatioMeasure] = field(default_factory=list)
    rubric: Rubric = field(default_factory=default_rubric)

    def add(self, measure: RatioMeasure, total: Column, count: Column, applies: Column) -> None:
        """Add a measure unless no question applies."""
        if applies.any():
            self.columns |= {measure.total: total, measure.count: count, measure.applicable: applies}
            self.measures.append(measure)

    def add_ratio(
        self, name: Measure, total: NDArray[Any], count: NDArray[Any], applies: NDArray[Any], **how: Unpack[RatioKind]
    ) -> None:
        """Add a measure with columns of its own; `total` is in wholes, and rounded to parts of the measure's unit."""
        measure = RatioMeasure(name, f"total.{name}", f"n.{name}", f"asked.{name}", **how)
        parts = np.rint(total * measure.unit).astype(np.int64)
        self.add(measure, parts, count.astype(np.int64), applies.astype(np.int64))

    def panel(self, edits: pd.DataFrame, axes: Axes, experiment: str, condition: str) -> Panel:
        """Sum the columns, whose rows are these edits, into a face × prompt panel."""
        where = {"experiment": experiment, "condition": condition}
        return build_panel(edits, axes, self.columns, self.measures, rubric=self.rubric, **where)


def mean_measure(name: str, levels: int, condition: str | None = None) -> RatioMeasure:
    """Return the mean of a question with so many levels."""
    prefix = f"{condition}." if condition else ""
    names = f"{prefix}sum.{name}", f"n.{name}", f"asked.{name}"
    return RatioMeasure(Measure.mean(name), *names, condition, bounds=(1.0, float(levels)))


def add_score_measures(
    ledger: MeasureTable,
    scored: Answers,
    valid: Mapping[str, Column],
    rates: Mapping[str, Rate],
    condition: str | None = None,
) -> None:
    """Add means and rates of the answers, over the rows `valid` for each question; of choices the shares of options."""
    prefix, rubric = f"{condition}." if condition else "", scored.rubric
    for question in rubric.ordinal:
        value, applies = scored.of(question)
        count = valid[question]
        levels = len(rubric.questions[question].labels)
        ledger.add(mean_measure(question, levels, condition), value * count, count, applies)
        for rate, met in met_rates(value, question, rates):
            measure = RatioMeasure(
                Measure.rate(rate), f"{prefix}met.{rate}", f"n.{question}", f"asked.{question}", condition
            )
            ledger.add(measure, met * count, count, applies)
    for question in rubric.choices:
        spec = rubric.spec_by_column[question]
        if spec.row.about == "pair" or (spec.declared and spec.row.about == "people"):
            add_choice_measures(ledger, question, *scored.of(question), valid[question], rates, rubric, condition)


def add_choice_measures(
    ledger: MeasureTable,
    question: str,
    value: Column,
    applies: Column,
    valid: Column,
    rates: Mapping[str, Rate],
    rubric: Rubric,
    condition: str | None = None,
) -> None:
    """Add the rates of a choice, and the share of each option among its answers."""
    prefix = f"{condition}." if condition else ""
    for name, rate in rates.items():
        if rate.question == question:
            count = valid * rate.counted(value)
            wanted = applies * ((value == 0) | rate.counted(value))  # another option is an answer, and not missing
            names = f"{prefix}met.{name}", f"{prefix}n.rate.{name}", f"{prefix}asked.rate.{name}"
            ledger.add(RatioMeasure(Measure.rate(name), *names, condition), rate.met(value) * count, count, wanted)
    labels = rubric.questions[question].labels
    in_set = rubric.spec_by_column[question].question.sided == "set"
    for at, code in enumerate(labels[:1] if in_set else labels, 1):
        names = f"{prefix}is.{question}.{code}", f"n.{question}", f"asked.{question}"
        measure = RatioMeasure(Measure.share(question, code), *names, condition)
        ledger.add(measure, (value == at) * valid, valid, applies)


def add_shift_measure(
    ledger: MeasureTable,
    question: str,
    judged: Sequence[Column],
    applies: Column,
    rates: Mapping[str, Rate],
    rubric: Rubric,
) -> None:
    """Add the shift of a two-sided question: +1 above no change, -1 below, by the study's thresholds.

    `judged` has each rater's scores. The code of an edit is the mean of its raters' codes: scores that are combined
    and rounded first would make a shift out of nothing.
    """
    raters = np.stack([value > 0 for value in judged]).sum(axis=0)
    unit = int(np.lcm.reduce(np.arange(1, len(judged) + 1)))
    part = np.divide(unit, raters, out=np.zeros(len(raters)), where=raters > 0).astype(np.int64)
    above_rate, below_rate = (rates[name] for name in rubric.two_sided[question])
    sides = zip(*((above_rate.met(value), below_rate.met(value)) for value in judged), strict=True)
    above, below = (np.sum(side, axis=0) * part * applies for side in sides)
    valid = (raters > 0).astype(np.int64)
    names = f"shift.{question}", f"n.shift.{question}", f"asked.shift.{question}"
    measure = RatioMeasure(Measure.shift(question), *names, unit=unit, signed=True)
    ledger.add(measure, above - below, valid * applies, applies)
    ledger.columns |= {f"above.{question}": above, f"below.{question}": below}


def add_one_sided_shifts(
    ledger: MeasureTable,
    question: str,
    value: Column,
    applies: Column,
    unasked: Column,
    rates: Mapping[str, Rate],
    rubric: Rubric,
) -> None:
    """Add one-sided rates over the prompts that do not ask for the change; none where no prompt does ask."""
    if (applies <= unasked).all():
        return
    for name, rate in rates.items():
        if rate.question == question and name in rubric.one_sided:
            valid = rate.counted(value)
            included = applies * unasked * ((value == 0) | valid)
            ledger.add_ratio(Measure.shift(name), rate.met(value) * included, valid * included, included)


def met_rates(value: Column, question: str, rates: Mapping[str, Rate]) -> Iterator[tuple[str, Column]]:
    """Yield each rate of a question with the rows that meet its threshold."""
    for name, rate in rates.items():
        if rate.question == question:
            yield name, rate.met(value).astype(np.int64)


def outcome_is(outcome: NDArray[np.str_], *wanted: str) -> Column:
    """Return which edits have one of these outcomes."""
    return np.isin(outcome, wanted).astype(np.int64)
