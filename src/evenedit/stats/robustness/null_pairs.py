"""False calls: what judges and instruments report on portraits shown against themselves.

A null pair is a portrait and the same portrait re-encoded, shown as if it were an edit. What is called a change there
is an error of the rater. Measured by group, it tells a rater's error from an editor's effect, as far as the error also
occurs without an edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from evenedit.core.records import NULL_PAIR_EDITOR, ConditionKind, Estimate, Experiment, Kind
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.shifts import WANTED_OF_NOTHING
from evenedit.ratings.combine import combine, judges_only
from evenedit.ratings.table import RatingTable
from evenedit.results.agreement import JudgeError
from evenedit.results.finding import ALPHA, ENSEMBLE
from evenedit.stats.disparity.diagnosis import diagnosis_panels
from evenedit.stats.disparity.instruments import instrument_panel
from evenedit.stats.engine.anom import deviation_weights, group_tests
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import estimates
from evenedit.stats.engine.measures import answers
from evenedit.stats.engine.panel import Panel
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.variance import NEGLIGIBLE, Uncertainty

MOST_FALSE = 0.05
"""An instrument with a larger share of false calls than this is not validated by null pairs."""


@dataclass(frozen=True, slots=True)
class FalseDifference:
    """How much more often a rater reports an outcome on null pairs of one group than of the others."""

    rate: float
    value: float
    """The group minus the unweighted mean of all groups; of two groups, minus the other group."""
    sure: Uncertainty
    p: float | None
    """Of this group alone; None where nothing varies."""


@dataclass(frozen=True, slots=True)
class FalseCalls:
    """One rater's answers on null pairs."""

    crossed: CrossedPanel
    estimates: Mapping[str, Estimate]
    """By measure, over everybody."""

    def rate(self, measure: str) -> Estimate | None:
        """Return a rate or shift over everybody; None where it was not read, or is right on an unchanged portrait."""
        e = self.estimates.get(measure)
        return e if e is not None and e.value is not None and _is_false(measure) else None

    def difference(self, measure: str, factor: str, level: str) -> FalseDifference | None:
        """Return a group's difference; None where a group has no null pairs."""
        at = next((at for at, m in enumerate(self.crossed.panel.measures) if m.name == measure), None)
        levels = self.crossed.panel.axes.levels.get(factor, ())
        if at is None or level not in levels or len(levels) < 2 or not _is_false(measure):
            return None
        weights = list(deviation_weights(len(levels))[levels.index(level)])
        rates = [float(self.crossed.of({factor: code}).value[0, at]) for code in levels]
        one = self.crossed.pooled((factor,)).of(weights).at(0, at)
        value = float(np.dot(weights, rates))
        if np.isnan(value):
            return None
        p = float(one.p(value)) if one.variance > NEGLIGIBLE else None
        return FalseDifference(rates[levels.index(level)], value, one, p)

    def validates(self, measure: str, factor: str | None) -> bool:
        """Return whether an instrument reports few changes on null pairs, and not more in one group."""
        name = Measure(measure)
        rate = name if name in self.estimates and name.kind != MeasureKind.GAP else name.to(MeasureKind.RATE)
        e = self.estimates.get(rate)
        if e is None or e.value is None or (abs(e.value) if _is_false(rate) else 1 - e.value) > MOST_FALSE:
            return False
        levels = self.crossed.panel.axes.levels.get(factor, ()) if factor is not None else ()
        tests = group_tests(self.crossed, factor, 0.95) if factor is not None and len(levels) > 1 else {}
        at = next(at for at, m in enumerate(self.crossed.panel.measures) if m.name == rate)
        test = tests.get((0, at))
        return test is None or test.smallest_p is None or test.smallest_p >= ALPHA


def false_calls(table: RatingTable, rules: AnalysisRules) -> dict[str, FalseCalls]:
    """Return the false calls of the ensemble and of each instrument, by rater; empty without null pairs."""
    null = table.null_pairs
    if null is None or null.edits.empty:
        return {}
    null = as_one_editor(null)
    calls = {}
    if null.of_kind(Kind.VLM):
        for panel in _judged(null, rules):
            calls[ENSEMBLE] = _calls(panel, rules)
    rows = np.arange(len(null.edits))
    for rater in null.of_kind(Kind.INSTRUMENT):
        name = null.raters[rater]
        panel_of = instrument_panel(null, rows, rater, [r for r in null.readings if r.rater == name], rules)
        if panel_of is not None:
            calls[name] = _calls(panel_of, rules)
    return calls


def judge_errors(table: RatingTable, rules: AnalysisRules) -> Iterator[JudgeError]:
    """Yield the share of false calls of each judge, for every rate and group."""
    null = table.null_pairs
    for at in [] if null is None or null.edits.empty else null.of_kind(Kind.VLM):
        assert null is not None
        by_face, name, values, status = as_one_editor(null), null.raters[at], null.values[[at]], null.status[[at]]
        judge = replace(
            by_face, raters=(name,), kinds=(Kind.VLM,), values=values, status=status, readings=(), settled=None
        )
        judge = replace(judge, confidence=None)
        single = replace(rules, ensemble={experiment.value: "primary" for experiment in Experiment})
        for panel in _judged(judge, single):
            for e in estimates(CrossedPanel(panel), panel.axes.groups(), rules):
                name = Measure(e.measure)
                is_rate = name.kind == MeasureKind.RATE and name.name in rules.rates and _is_false(name)
                if e.editor is not None and e.value is not None and is_rate:
                    rule = f"{rules.rates[name.name].question} {rules.rates[name.name].rule}"
                    place = null.raters[at], e.measure, rule, e.group, "false_calls"
                    yield JudgeError(*place, e.value, e.low, e.high, e.n, "null_pairs")


def _is_false(measure: str) -> bool:
    """Return whether an outcome is an error on an unchanged portrait; that the request is missing there is right."""
    return Measure(measure).name.removeprefix("measured_") not in WANTED_OF_NOTHING


def as_one_editor(null: RatingTable) -> RatingTable:
    """Return null pairs as the edits of one editor; the prompt that was shown is not a unit, as nothing was edited."""
    place = {"editor": NULL_PAIR_EDITOR, "condition": str(ConditionKind.BASELINE), "prompt_id": ""}
    return replace(null, edits=null.edits.assign(**place), asks={})


def _judged(null: RatingTable, rules: AnalysisRules) -> list[Panel]:
    scores = combine(null, judges_only(rules.ensemble), rules.missing)
    return diagnosis_panels(scores, answers(scores, rules), rules)


def _calls(panel: Panel, rules: AnalysisRules) -> FalseCalls:
    crossed = CrossedPanel(panel)
    return FalseCalls(crossed, {e.measure: e for e in estimates(crossed, [{}], rules) if e.editor is not None})
