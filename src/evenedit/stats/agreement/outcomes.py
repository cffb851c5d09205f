"""What is counted of an edit, for any rater: a score, whether it meets a rate's threshold, or a side of no change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenedit.core.records import Outcome
from evenedit.protocol import Rate
from evenedit.protocol.drift import meets_rate
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.rubric import CHANGES
from evenedit.protocol.shifts import ONE_SIDED, TWO_SIDED
from evenedit.ratings.combine import applicable_questions
from evenedit.ratings.table import QUESTION_IDS, Scores
from evenedit.stats.engine.measures import AXIS_QUESTIONS
from evenedit.stats.engine.panel import of_diagnosis
from evenedit.stats.engine.rules import AnalysisRules

Codes = NDArray[np.float64]
"""One code per edit; NaN where there is no score."""


@dataclass(frozen=True, slots=True)
class CountedOutcome:
    """One measure as it is counted."""

    measure: Measure
    question: str
    above: Rate | None
    """The rate that counts as 1; None for the score itself."""
    below: Rate | None = None
    """The rate that counts as -1."""

    @property
    def is_shift(self) -> bool:
        """True if only prompts that do not ask for the change count."""
        return self.measure.kind == MeasureKind.SHIFT

    @property
    def is_share(self) -> bool:
        """True if codes are 0 and 1."""
        return self.above is not None and self.below is None

    def codes(self, values: NDArray[Any]) -> Codes:
        """Return the codes of scores [..., edit, question], where 0 is missing."""
        score = values[..., QUESTION_IDS.index(self.question)].astype(np.int64)
        code = score.astype(np.float64) if self.above is None else meets_rate(score, self.above).astype(np.float64)
        if self.below is not None:
            code = code - meets_rate(score, self.below)
        return np.where(score > 0, code, np.nan)


def counted_rates(rules: AnalysisRules) -> list[CountedOutcome]:
    """Return the rates of scores."""
    rates = {n: r for n, r in rules.rates.items() if r.question in AXIS_QUESTIONS}
    return [CountedOutcome(Measure.rate(name), rate.question, rate) for name, rate in rates.items()]


def counted_shifts(rules: AnalysisRules) -> Iterator[CountedOutcome]:
    """Yield the shifts of two-sided questions, and one-sided rates over prompts that do not ask for the change."""
    for question in CHANGES:
        if question in TWO_SIDED:
            above, below = (rules.rates[name] for name in TWO_SIDED[question])
            yield CountedOutcome(Measure.shift(question), question, above, below)
        for name, rate in rules.rates.items():
            if question not in TWO_SIDED and rate.question == question and name in ONE_SIDED:
                yield CountedOutcome(Measure.shift(name), question, rate)


def diagnosis_rows(scores: Scores) -> NDArray[np.intp]:
    """Return the edited pictures of the diagnosis baseline."""
    return np.flatnonzero(of_diagnosis(scores.edits) & (scores.edits["outcome"] == Outcome.EDITED).to_numpy())


def counted_outcomes(
    scores: Scores, rules: AnalysisRules, rows: NDArray[np.intp], means: bool = False
) -> Iterator[tuple[CountedOutcome, NDArray[np.bool_]]]:
    """Yield every outcome with the rows that it applies to; one-sided shifts only where some prompt asks for one."""
    applicable = applicable_questions(scores.table)[rows]
    every = [CountedOutcome(Measure.mean(q), q, None) for q in AXIS_QUESTIONS] if means else []
    for outcome in (*every, *counted_rates(rules), *counted_shifts(rules)):
        applies = applicable[:, QUESTION_IDS.index(outcome.question)]
        if outcome.is_shift:
            included = applies & ~scores.table.asked_for(outcome.question)[rows]
            if outcome.is_share and (included == applies).all():
                continue
            applies = included
        if applies.any():
            yield outcome, applies
