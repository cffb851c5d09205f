"""Every source × prompt × editor: means, rates, refusals."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from evenedit.core.records import WITHOUT_PICTURE, Experiment, Outcome
from evenedit.protocol.measures import Measure
from evenedit.protocol.outcomes import OUTCOME_RATES
from evenedit.ratings.combine import applicable_questions
from evenedit.ratings.table import Scores
from evenedit.stats.engine.measures import (
    Answers,
    MeasureTable,
    add_one_sided_shifts,
    add_score_measures,
    add_shift_measure,
    outcome_is,
)
from evenedit.stats.engine.panel import Panel, RatioMeasure, by_face, of_diagnosis
from evenedit.stats.engine.rules import AnalysisRules


def diagnosis_panels(scores: Scores, scored: Answers, rules: AnalysisRules) -> list[Panel]:
    """Build one panel per condition of the diagnosis."""
    experiment = scores.edits["experiment"] == Experiment.DIAGNOSIS
    conditions = sorted(scores.edits["condition"][experiment].unique())
    by_condition = {str(c): np.flatnonzero(of_diagnosis(scores.edits, c)) for c in conditions}
    return [diagnosis_panel(scores, scored, rules, rows, condition) for condition, rows in by_condition.items()]


def diagnosis_panel(
    scores: Scores, scored: Answers, rules: AnalysisRules, rows: NDArray[np.intp], condition: str
) -> Panel:
    """Build the panel of edits of the diagnosis."""
    edits, answers = scores.edits.iloc[rows], scored.rows(rows)
    rubric = scores.table.rubric
    ledger = MeasureTable(rubric=rubric)
    add_score_measures(ledger, answers, answers.valid, rules.rates)
    applies = applicable_questions(scores.table)[rows].astype(np.int64)
    for question in rubric.askable:
        unasked = (~scores.table.asked_for(question)[rows]).astype(np.int64)
        for column in rubric.columns_of(question):
            at = rubric.at(column)
            if question in rubric.two_sided:
                judged = [value.astype(np.int64) for value in scores.judged[:, rows, at]]
                add_shift_measure(ledger, question, judged, applies[:, at] * unasked, rules.rates, rubric)
            else:
                value = scores.values[rows, at].astype(np.int64)
                add_one_sided_shifts(ledger, column, value, applies[:, at], unasked, rules.rates, rubric)
    outcome = edits["outcome"].to_numpy(dtype=str)
    answered, requested = outcome_is(outcome, Outcome.EDITED, *WITHOUT_PICTURE), np.ones(len(rows), dtype=np.int64)
    for rate, counted in OUTCOME_RATES.items():
        if rate == "refused" or (outcome == Outcome.NO_IMAGE).any():
            measure = RatioMeasure(Measure.rate(rate), rate, "answered", "requested")
            ledger.add(measure, outcome_is(outcome, *counted), answered, requested)
    return ledger.panel(edits, by_face(edits, scores.table.factors), Experiment.DIAGNOSIS.value, condition)


def score_panel(scores: Scores, questions: Iterable[str], condition: str) -> Panel:
    """Build the panel of mean scores of one condition of the diagnosis: means of the judges' scores, not rounded."""
    rows = np.flatnonzero(of_diagnosis(scores.edits, condition))
    edits, rubric = scores.edits.iloc[rows], scores.table.rubric
    applies = applicable_questions(scores.table)[rows].astype(np.int64)
    ledger = MeasureTable(rubric=rubric)
    for question in questions:
        at, levels = rubric.at(question), float(len(rubric.questions[question].labels))
        judged = scores.judged[:, rows, at].astype(np.int64) * applies[:, at]
        raters = (judged > 0).sum(axis=0)
        unit = int(np.lcm.reduce(np.arange(1, len(judged) + 1)))
        mean = judged.sum(axis=0) / np.maximum(raters, 1)
        ledger.add_ratio(Measure.mean(question), mean, raters > 0, applies[:, at], unit=unit, bounds=(1.0, levels))
    return ledger.panel(edits, by_face(edits, scores.table.factors), Experiment.DIAGNOSIS.value, condition)
