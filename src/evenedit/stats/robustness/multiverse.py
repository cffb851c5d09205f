"""The same gap under every defensible reading of the same scores: does it hang on a choice?

Thresholds × ensemble rule × missing scores × exclusions. For the gaps that matter: those with p < 0.05 before
adjustment, and the two of the paper's figure over the main factor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from evenedit.core.records import ConditionKind, Experiment, Kind
from evenedit.protocol import ROLES, Rate, Rubric
from evenedit.protocol.ensemble import MISSING_POLICIES
from evenedit.protocol.measures import Measure
from evenedit.ratings.combine import aging_prompts, combine
from evenedit.ratings.table import RatingTable
from evenedit.results.results import GapTest, Multiverse, Specification
from evenedit.stats.engine.anom import group_tests
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.measures import answers
from evenedit.stats.engine.panel import of_diagnosis
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.robustness.thresholds import threshold_name, threshold_panel, thresholds

EXCLUSIONS = ("none", "aging prompts", "edits that need review")
ALPHA = 0.05
ALWAYS = (Measure.gap(ROLES.lighter), Measure.gap(ROLES.race_change))
"""Looked at over the main factor, however small."""
Place = tuple[str, str, str]
"""A measure, an editor and a factor."""


def multiverse(table: RatingTable, rules: AnalysisRules, tests: Sequence[GapTest]) -> Iterator[Multiverse]:
    """Yield each relevant gap of each editor under every specification."""
    edits = table.edits
    rows = np.flatnonzero(of_diagnosis(edits))
    chosen = [
        t
        for t in tests
        if (t.experiment, t.condition) == (Experiment.DIAGNOSIS, ConditionKind.BASELINE)
        and t.editor is not None
        and Measure(t.measure).name in rules.rates
        and ((t.p is not None and t.p < ALPHA) or (t.measure in ALWAYS and t.factor == table.factors[0].name))
    ]
    if not len(rows) or not chosen:
        return
    rates = {rate.id: rate for t in chosen for rate in [rules.rates[Measure(t.measure).name]]}
    by_threshold: dict[tuple[Place, str], list[Specification]] = defaultdict(list)
    for scores, choices in _readings(table, rows, rules):
        every_cut = (cut for rate in rates.values() for cut in defensible(rate, table.rubric))
        crossed = CrossedPanel(threshold_panel(table, rows, scores, every_cut, ConditionKind.BASELINE))
        factors = dict.fromkeys(t.factor for t in chosen)
        tested = {factor: group_tests(crossed, factor, rules.confidence) for factor in factors}
        names = [m.name for m in crossed.panel.measures]
        for t in chosen:
            rate, row = rates[Measure(t.measure).name], crossed.panel.editors.index(str(t.editor))
            for cut in defensible(rate, table.rubric):
                of = tested[t.factor].get((row, names.index(threshold_name(cut))))
                shares = dict(zip(of.levels, of.rates, strict=True)) if of else {}
                both = t.highest in shares and t.lowest in shares
                by_threshold[(t.measure, str(t.editor), t.factor), cut.rule].append(
                    Specification(
                        cut.rule,
                        *choices,
                        value=shares[t.highest] - shares[t.lowest] if both else None,
                        p=1.0 if of is None or of.smallest_p is None else of.smallest_p,
                        is_default=cut == rate and choices == (_default(rules), rules.missing, EXCLUSIONS[0]),
                    )
                )
    for t in chosen:
        place = t.measure, str(t.editor), t.factor
        cuts = defensible(rates[Measure(t.measure).name], table.rubric)
        specifications = tuple(s for cut in cuts for s in by_threshold[place, cut.rule])
        yield Multiverse(
            t.measure, t.experiment, t.condition, str(t.editor), t.factor, t.highest, t.lowest, specifications
        )


def _readings(
    table: RatingTable, rows: NDArray[np.intp], rules: AnalysisRules
) -> Iterator[tuple[NDArray[np.int64], tuple[str, str, str]]]:
    """Yield the scores [edit, question], 0 where missing, under every ensemble rule, missing policy and exclusion."""
    asks_age = table.edits["prompt_id"].isin(aging_prompts()).to_numpy()[rows]
    for rule, missing in product(_rules(table, rules), MISSING_POLICIES):
        scores = combine(table, {**rules.ensemble, Experiment.DIAGNOSIS.value: rule}, missing)
        values = answers(scores, replace(rules, missing=missing)).values[rows].astype(np.int64)
        review = scores.needs_review[rows]
        for exclusion, left_out in zip(EXCLUSIONS, (np.zeros_like(review), asks_age, review), strict=True):
            if exclusion == EXCLUSIONS[0] or left_out.any():
                yield np.where(left_out[:, None], 0, values), (rule, missing, exclusion)


def _default(rules: AnalysisRules) -> str:
    return rules.ensemble.get(Experiment.DIAGNOSIS, Experiment.DIAGNOSIS.value)


def _rules(table: RatingTable, rules: AnalysisRules) -> list[str]:
    """Return the study's rule and the others possible with its judges."""
    judges = len(table.of_kind(Kind.VLM))
    default = _default(rules)
    others = {0: [], 1: [], 2: ["diagnosis", "mean", "primary", "secondary"]}.get(
        judges, ["median", "mean", "primary", "secondary"]
    )
    # with more than two judges the rule `diagnosis` is the median
    same = {"diagnosis", "median"} if judges > 2 else {default}
    return [default, *(r for r in others if r != default and not (default in same and r in same))]


def defensible(rate: Rate, rubric: Rubric) -> list[Rate]:
    """Return the defensible thresholds: beyond no change inside a scale, else within one step of the rate's."""
    cuts = thresholds(rate, rubric)
    if rate.is_:
        return cuts
    at_least, middle = rate.at_least is not None, rubric.no_change(rate.question)
    if rubric.questions[rate.question].sided == "two":
        return [c for c in cuts if (_cut(c) > middle if at_least else _cut(c) < middle)]
    return [c for c in cuts if abs(_cut(c) - _cut(rate)) <= 1]


def _cut(rate: Rate) -> int:
    return rate.at_least if rate.at_least is not None else rate.at_most or 0
