"""Every source × prompt × editor: means, rates, refusals."""

from __future__ import annotations

import numpy as np

from evenedit.core.records import WITHOUT_PICTURE, Experiment, Outcome
from evenedit.protocol.measures import Measure
from evenedit.protocol.outcomes import OUTCOME_RATES
from evenedit.protocol.rubric import CHANGES
from evenedit.protocol.shifts import TWO_SIDED
from evenedit.ratings.combine import applicable_questions
from evenedit.ratings.table import QUESTION_IDS, Scores
from evenedit.stats.engine.measures import (
    AXIS_QUESTIONS,
    Answers,
    MeasureTable,
    add_one_sided_shifts,
    add_score_measures,
    add_shift_measure,
    outcome_is,
)
from evenedit.stats.engine.panel import Panel, RatioMeasure, build_panel, by_face
from evenedit.stats.engine.rules import AnalysisRules


def diagnosis_panels(scores: Scores, scored: Answers, rules: AnalysisRules) -> list[Panel]:
    """Build one panel per condition of the diagnosis."""
    experiment = scores.edits["experiment"] == Experiment.DIAGNOSIS
    conditions = sorted(scores.edits["condition"][experiment].unique())
    return [_panel(scores, scored, rules, condition) for condition in conditions]


def _panel(scores: Scores, scored: Answers, rules: AnalysisRules, condition: str) -> Panel:
    chosen = (scores.edits["experiment"] == Experiment.DIAGNOSIS) & (scores.edits["condition"] == condition)
    rows = np.flatnonzero(chosen.to_numpy())
    edits, answers = scores.edits.iloc[rows], scored.rows(rows)
    valid = {q: (answers.of(q)[0] > 0).astype(np.int64) for q in AXIS_QUESTIONS}
    ledger = MeasureTable()
    add_score_measures(ledger, answers, valid, rules.rates)
    applies = applicable_questions(scores.table)[rows].astype(np.int64)
    for question in CHANGES:
        at = QUESTION_IDS.index(question)
        unasked = (~scores.table.asked_for(question)[rows]).astype(np.int64)
        if question in TWO_SIDED:
            judged = [value.astype(np.int64) for value in scores.judged[:, rows, at]]
            add_shift_measure(ledger, question, judged, applies[:, at] * unasked, rules.rates)
        else:
            value = scores.values[rows, at].astype(np.int64)
            add_one_sided_shifts(ledger, question, value, applies[:, at], unasked, rules.rates)
    outcome = edits["outcome"].to_numpy(dtype=str)
    answered, requested = outcome_is(outcome, Outcome.EDITED, *WITHOUT_PICTURE), np.ones(len(rows), dtype=np.int64)
    for rate, counted in OUTCOME_RATES.items():
        if rate == "refused" or (outcome == Outcome.NO_IMAGE).any():
            measure = RatioMeasure(Measure.rate(rate), rate, "answered", "requested")
            ledger.add(measure, outcome_is(outcome, *counted), answered, requested)
    return build_panel(
        edits,
        by_face(edits, scores.table.factors),
        ledger.columns,
        ledger.measures,
        experiment=Experiment.DIAGNOSIS.value,
        condition=condition,
    )
