"""False calls: what judges and instruments report on portraits shown against themselves.

A null pair is a portrait and the same portrait re-encoded, shown as if it were an edit. What is called a change there
is an error of the rater. Measured by group, it tells a rater's error from an editor's effect, as far as the error also
occurs without an edit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from evenedit.core.records import ConditionKind, Estimate, Experiment, Kind
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.ratings.combine import combine, judges_only
from evenedit.ratings.table import RatingTable
from evenedit.results.agreement import JudgeError
from evenedit.results.finding import ALPHA, ENSEMBLE
from evenedit.results.results import GapTest
from evenedit.stats.disparity.diagnosis import diagnosis_panels
from evenedit.stats.disparity.gaps import gaps
from evenedit.stats.disparity.instruments import instrument_panel
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import estimates
from evenedit.stats.engine.measures import answers
from evenedit.stats.engine.panel import Panel
from evenedit.stats.engine.rules import AnalysisRules

EDITOR = "null-pair"
MOST_FALSE = 0.05
"""An instrument with a larger share of false calls than this is not validated by null pairs."""


@dataclass(frozen=True, slots=True)
class FalseCalls:
    """One rater's answers on null pairs."""

    estimates: dict[tuple[str, tuple[tuple[str, str], ...]], Estimate]
    """By measure and group."""
    tests: dict[tuple[str, str], GapTest]
    """By gap measure and factor."""

    def rate(self, measure: str) -> Estimate | None:
        """Return a rate or shift over everybody; None where it was not read."""
        e = self.estimates.get((measure, ()))
        return e if e is not None and e.value is not None else None

    def gap(self, measure: str, factor: str) -> GapTest | None:
        """Return the gap of false calls if it differs from 0 at 5 %; None where it does not."""
        test = self.tests.get((measure, factor))
        return test if test is not None and test.p is not None and test.p < ALPHA else None

    def validates(self, measure: str, factor: str | None) -> bool:
        """Return whether an instrument reads no change, or few changes alike in all groups, on null pairs."""
        name = Measure(measure)
        rate = name.to(MeasureKind.RATE) if name.kind == MeasureKind.GAP else name
        e = self.rate(rate)
        if e is None or e.value is None or abs(e.value) > MOST_FALSE:
            return False
        return factor is None or self.gap(name.to(MeasureKind.GAP), factor) is None


def false_calls(table: RatingTable, rules: AnalysisRules) -> dict[str, FalseCalls]:
    """Return the false calls of the ensemble and of each instrument, by rater; empty without null pairs."""
    null = table.null_pairs
    if null is None or null.edits.empty:
        return {}
    null = replace(null, edits=null.edits.assign(editor=EDITOR, condition=str(ConditionKind.BASELINE)))
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
        judge = replace(
            null,
            edits=null.edits.assign(editor=EDITOR, condition=str(ConditionKind.BASELINE)),
            raters=(null.raters[at],),
            kinds=(Kind.VLM,),
            values=null.values[[at]],
            status=null.status[[at]],
            confidence=None,
            readings=(),
            settled=None,
        )
        alone = replace(rules, ensemble={experiment.value: "primary" for experiment in Experiment})
        for panel in _judged(judge, alone):
            for e in estimates(CrossedPanel(panel), panel.axes.groups(), rules):
                name = Measure(e.measure)
                if (
                    e.editor is not None
                    and e.value is not None
                    and name.name in rules.rates
                    and (name.kind == MeasureKind.RATE)
                ):
                    yield JudgeError(
                        judge=null.raters[at],
                        measure=e.measure,
                        threshold=f"{rules.rates[name.name].question} {rules.rates[name.name].rule}",
                        group=e.group,
                        error="false_calls",
                        value=e.value,
                        low=e.low,
                        high=e.high,
                        n=e.n,
                        source="null_pairs",
                    )


def _judged(null: RatingTable, rules: AnalysisRules) -> list[Panel]:
    scores = combine(null, judges_only(rules.ensemble), rules.missing)
    return diagnosis_panels(scores, answers(scores, rules), rules)


def _calls(panel: Panel, rules: AnalysisRules) -> FalseCalls:
    crossed = CrossedPanel(panel)
    by_place = {
        (e.measure, tuple(sorted(e.group.items()))): e
        for e in estimates(crossed, panel.axes.groups(), rules)
        if e.editor is not None
    }
    tests = {(t.measure, t.factor): t for _, t in gaps(crossed, rules) if t.editor is not None}
    return FalseCalls(by_place, tests)
