"""What is counted of an edit, for any rater: a score, whether it meets a rate's threshold, or a side of no change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenedit.core.records import Outcome
from evenedit.protocol import Rate, Rubric
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.ratings.combine import applicable_questions
from evenedit.ratings.table import Scores
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
    at: int = -1
    """The position of the question among the answers."""

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
        score = values[..., self.at].astype(np.int64)
        code = score.astype(np.float64) if self.above is None else self.above.met(score).astype(np.float64)
        if self.below is not None:
            code = code - self.below.met(score).astype(np.float64)
        counted = score > 0 if self.above is None else self.above.counted(score)
        return np.where(counted, code, np.nan)


def counted_rates(rules: AnalysisRules, rubric: Rubric) -> list[CountedOutcome]:
    """Return the rates of answers about edits of one portrait."""
    single = {name: r for name, r in rules.rates.items() if rubric.spec_by_column[r.question].row.about == "pair"}
    return [CountedOutcome(Measure.rate(n), r.question, r, None, rubric.at(r.question)) for n, r in single.items()]


def counted_shifts(rules: AnalysisRules, rubric: Rubric) -> Iterator[CountedOutcome]:
    """Yield the shifts of two-sided questions, and one-sided rates over prompts that do not ask for the change."""
    for question in rubric.askable:
        if question in rubric.two_sided:
            above, below = (rules.rates[name] for name in rubric.two_sided[question])
            yield CountedOutcome(Measure.shift(question), question, above, below, rubric.at(question))
            continue
        for name, rate in rules.rates.items():
            if rate.question in rubric.columns_of(question) and name in rubric.one_sided:
                yield CountedOutcome(Measure.shift(name), rate.question, rate, None, rubric.at(rate.question))


def diagnosis_rows(scores: Scores) -> NDArray[np.intp]:
    """Return the edited pictures of the diagnosis baseline."""
    return np.flatnonzero(of_diagnosis(scores.edits) & (scores.edits["outcome"] == Outcome.EDITED).to_numpy())


def counted_outcomes(
    scores: Scores, rules: AnalysisRules, rows: NDArray[np.intp], means: bool = False
) -> Iterator[tuple[CountedOutcome, NDArray[np.bool_]]]:
    """Yield every outcome with the rows that it applies to; one-sided shifts only where some prompt asks for one."""
    applicable, rubric = applicable_questions(scores.table)[rows], scores.table.rubric
    every = [CountedOutcome(Measure.mean(q), q, None, None, rubric.at(q)) for q in rubric.ordinal] if means else []
    for outcome in (*every, *counted_rates(rules, rubric), *counted_shifts(rules, rubric)):
        applies = applicable[:, outcome.at]
        if outcome.is_shift:
            included = applies & ~scores.table.asked_for(rubric.spec_by_column[outcome.question].id)[rows]
            if outcome.is_share and (included == applies).all():
                continue
            applies = included
        if applies.any():
            yield outcome, applies
