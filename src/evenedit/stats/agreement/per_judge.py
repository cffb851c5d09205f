"""What each judge alone would say: the headline numbers again, once per judge, beside the ensemble's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from evenedit.core.records import ConditionKind, Estimate, Experiment, Kind
from evenedit.protocol.measures import Measure
from evenedit.protocol.outcomes import OUTCOME_RATES
from evenedit.ratings.combine import combine
from evenedit.ratings.table import RatingTable
from evenedit.results.results import PerJudgeEstimate
from evenedit.stats.disparity.diagnosis import diagnosis_panels
from evenedit.stats.disparity.gaps import gaps
from evenedit.stats.disparity.mitigation import mitigation_panels
from evenedit.stats.disparity.stereotype import stereotype_panels
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import estimates
from evenedit.stats.engine.measures import answers
from evenedit.stats.engine.rules import AnalysisRules

HEADLINE = ("rate.", "gap.", "delta.")
OF_OUTCOMES = frozenset(kind(rate) for rate in OUTCOME_RATES for kind in (Measure.rate, Measure.gap))
"""What the editor answered: no judge has a say in it."""


def per_judge_estimates(table: RatingTable, rules: AnalysisRules) -> Iterator[PerJudgeEstimate]:
    """Yield rates and gaps by editor for each judge on its own; empty with one judge."""
    judges = table.of_kind(Kind.VLM)
    rules = replace(rules, ensemble={experiment.value: "primary" for experiment in Experiment})
    for at in judges if len(judges) > 1 else ():
        rater, values, status = (table.raters[at],), table.values[[at]], table.status[[at]]
        empty = RatingTable(table.edits, rater, (Kind.VLM,), values, status)
        subset = replace(empty, factors=table.factors, rubric=table.rubric, asks=table.asks)
        for estimate in _headline(subset, rules):
            if estimate.measure.startswith(HEADLINE) and estimate.measure not in OF_OUTCOMES:
                yield PerJudgeEstimate(table.raters[at], estimate)


def _headline(table: RatingTable, rules: AnalysisRules) -> Iterator[Estimate]:
    scores = combine(table, rules.ensemble, rules.missing)
    scored = answers(scores, rules)
    for panel in diagnosis_panels(scores, scored, rules):
        if panel.condition == ConditionKind.BASELINE:
            crossed = CrossedPanel(panel)
            yield from estimates(crossed, [{}], rules)
            yield from (estimate for estimate, _ in gaps(crossed, rules))
    for panel in [*mitigation_panels(scores, scored, rules), *stereotype_panels(scores, scored, rules)]:
        yield from estimates(CrossedPanel(panel), [{}], rules)
