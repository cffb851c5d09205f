"""The edits behind a number, as a query that the gallery and the page of cases both understand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from urllib.parse import urlencode

import numpy as np

from evenedit.core.records import ConditionKind, Estimate
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.outcomes import OUTCOME_RATES
from evenedit.protocol.questions import Rate
from evenedit.protocol.rubric import MEASURED, ROLES
from evenedit.report.render.index import Index
from evenedit.results.results import GapTest
from evenedit.results.sensitivities import Bound, LeaveOneOut, Multiverse

GALLERY = "/gallery?"
"""What stands before a query in the web app."""
CASES = "cases.html#"
"""What stands before a query in a report on disk."""
PEOPLE = "people"
"""The rater of numbers that rest on people's answers."""
EVERY = "*"
"""The level in the group of a comparison of levels."""
ANSWERS = {
    rate: (question, str(value))
    for question, rates in (
        (ROLES.verdict, ("followed", "resisted", "unclear")),
        (ROLES.target_role, ("role_male", "role_female", "role_unclear")),
        (ROLES.status, ("status_male", "status_female", "status_unclear")),
    )
    for value, rate in enumerate(rates, 1)
}
"""Rates of one answer: the field and the value that are counted."""
COUNTED = (MeasureKind.RATE, MeasureKind.GAP, MeasureKind.TREND, MeasureKind.CONTRAST)
"""Kinds of measures that count some of the edits; means and changes are over all of them."""

Pairs = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Selection:
    """The coordinates of a number: which edits it is over and what it counts among them."""

    measure: str = ""
    """Empty for all edits, whatever came of them."""
    experiment: str = "diagnosis"
    condition: str = ConditionKind.BASELINE
    editor: str | None = None
    group: Mapping[str, str] = field(default_factory=dict)
    rater: str | None = None
    """An instrument's id, or `people`; None for the ensemble of judges."""
    unasked: bool = False
    """Whether edits whose prompt asks for the change are left out, as in a shift."""
    below: bool | None = None
    """Whether a two-sided shift counts the side below no change; None where it counts neither."""

    @classmethod
    def of(cls, e: Estimate, rater: str | None = None) -> Selection:
        """Return the edits behind an estimate: those it counts, or all it is over if it counts none."""
        unasked = Measure(e.measure).kind == MeasureKind.SHIFT
        measure, below = e.measure if e.value else "", (e.value or 0) < 0
        return cls(measure, e.experiment, e.condition, e.editor, e.group, rater, unasked, below)

    @classmethod
    def of_gap(cls, x: Bound | LeaveOneOut | Multiverse) -> Selection:
        """Return the edits behind a gap over a factor."""
        return cls(x.measure, x.experiment, x.condition, x.editor, {x.factor: EVERY}, getattr(x, "rater", None))


class CaseLinks:
    """Addresses of the cases behind numbers; without a page of cases there are none."""

    def __init__(self, index: Index, before: str = "") -> None:
        self._index = index
        self.before = before
        """`CASES`, `GALLERY`, or empty where there are no cases to show."""

    def __bool__(self) -> bool:
        return bool(self.before)

    def __call__(self, selection: Selection | None) -> str:
        """Return the address of a selection's cases; empty if there is none."""
        return self.before + self.query(selection) if self.before and selection is not None else ""

    def case(self, request_id: str) -> str:
        """Return the address of one case."""
        if not self.before:
            return ""
        return f"/gallery/case/{request_id}" if self.before == GALLERY else f"{self.before}case={request_id}"

    def query(self, selection: Selection) -> str:
        """Build the query of a selection: the values of fields, and ranges of numbers."""
        selection = replace(selection, measure=self._counted_measure(selection))
        return urlencode([*self._over(selection), *self._counted(selection)])

    def _counted_measure(self, s: Selection) -> str:
        """Return what a number counts: for a shift of a two-sided question, the rate on its larger side."""
        measure = Measure(s.measure)
        sides = self._index.rubric.two_sided.get(measure.name)
        if measure.kind != MeasureKind.SHIFT or sides is None or s.below is None:
            return s.measure
        return Measure.rate(sides[s.below] if s.rater is None else f"{MEASURED}{sides[s.below]}")

    def _over(self, s: Selection) -> Iterator[tuple[str, str]]:
        """Return the edits that the number is over; for mitigation, the arm that is compared with the baseline."""
        if s.editor is not None:
            yield "editor", s.editor
        yield "experiment", s.experiment
        mitigated = s.experiment == "mitigation" and s.condition == ConditionKind.BASELINE
        yield "condition", ConditionKind.FEATURE.value if mitigated else str(s.condition)
        if s.rater == PEOPLE:
            yield "people", "yes"
        rate = self._index.rates.get(Measure(s.measure).name.removeprefix(MEASURED))
        if s.unasked and rate and any(rate.question in axes for axes in self._index.results.asks.values()):
            yield f"asks_{rate.question}", "no"
        for factor, code in s.group.items():
            yield from ((factor, each) for each in (self._ends(s, factor) if code == EVERY else (code,)))

    def _ends(self, s: Selection, factor: str) -> tuple[str, ...]:
        """Return the highest and the lowest group of a comparison; none if it was not tested."""
        t = self._test(s, factor)
        return () if t is None else tuple(dict.fromkeys((t.highest, t.lowest)))

    def _test(self, s: Selection, factor: str) -> GapTest | None:
        """Return the test of a comparison of the groups of a factor."""
        index = self._index.instruments.get(s.rater or "", self._index)
        return index.tests.get((s.experiment, s.condition, s.editor, factor, Measure(s.measure).name))

    def _counted(self, s: Selection) -> Pairs:
        measure = Measure(s.measure)
        compared = [self._test(s, factor) for factor, code in s.group.items() if code == EVERY]
        baseline = s.experiment == "mitigation" and s.condition == ConditionKind.BASELINE  # its pairs are shown
        level = any(t is not None and not t.value for t in compared)
        if measure.kind == MeasureKind.SHARE:
            question, code = measure.option
            return [(question, str(self._index.rubric.questions[question].labels.index(code) + 1))]
        if measure.kind not in COUNTED or baseline or level or self._counts_none(s):
            return []
        if measure.name in ANSWERS:
            return [ANSWERS[measure.name]]
        if measure.name in OUTCOME_RATES:
            return [("outcome", outcome.value) for outcome in sorted(OUTCOME_RATES[measure.name])]
        if measure.name in self._index.rates:
            return self._scores(self._index.rates[measure.name])
        rater = s.rater or self._measuring.get(measure.name)
        if rater is None or rater == PEOPLE:
            return []
        rate = self._index.rates.get(measure.name.removeprefix(MEASURED))
        if rate is None:
            return [(f"{rater}.{measure.name}.min", "1")]
        if rate.is_:
            return [(f"{rater}.{rate.question}", answer) for _, answer in self._scores(rate)]
        end, cut = ("min", rate.at_least) if rate.at_least is not None else ("max", rate.at_most)
        return [(f"{rater}.{rate.question}.{end}", str(cut))]

    def _counts_none(self, s: Selection) -> bool:
        """Return whether the number counts no edit or has no value; all edits that it is over are shown then."""
        index = self._index.instruments.get(s.rater or "", self._index)
        rate = Measure.rate(Measure(s.measure).name)
        group = {factor: code for factor, code in s.group.items() if code != EVERY}
        estimate = index.find(rate, s.editor, group, experiment=s.experiment, condition=s.condition)
        return estimate is not None and not estimate.value

    def _scores(self, rate: Rate) -> Pairs:
        levels = np.arange(1, len(self._index.rubric.questions[rate.question].labels) + 1)
        return [(rate.question, str(level)) for level in levels[rate.met(levels)]]

    @cached_property
    def _measuring(self) -> dict[str, str]:
        """The instrument of each reading, the first where several have it."""
        raters: dict[str, str] = {}
        for m in self._index.results.measured:
            for e in m.estimates:
                raters.setdefault(Measure(e.measure).name, m.rater)
        return raters
