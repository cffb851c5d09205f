"""Prediction-powered inference: judges on all edits, people on a sample, one estimate that is tested itself.

Estimates are means of pseudo-outcomes. Shares have Korn and Graubard's interval with at most as many independent rows
as labels, differences of shares that of Zou and Donner (2008), shifts and means t. The judges' own p has no part in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from evenedit.core.records import Estimate
from evenedit.protocol import Rubric
from evenedit.protocol.measures import MeasureKind
from evenedit.ratings.table import Scores
from evenedit.results.agreement import PredictionPowered
from evenedit.results.results import Contrast
from evenedit.stats.agreement.pseudo_outcomes import (
    DIAGNOSIS,
    LabelledEdits,
    PseudoPanel,
    WeightedGroups,
    labelled_edits,
)
from evenedit.stats.engine.anom import GroupTests
from evenedit.stats.engine.intervals import Interval
from evenedit.stats.engine.measures import Answers
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.variance import Values, share_p

FEWEST_LABELS, FEWEST_FACES = 10, 5
"""Labels, and faces they are of, below which there is no estimate."""
LABELS, GROUP_LABELS, PAIRED_LABELS = 100, 15, 50
"""Labels that a finding by people needs: in all, in each group, and by two people or more."""
PEOPLE_ALPHA = 0.20
"""The lower limit of people's own alpha must be above this."""
METHOD = "ppi++, cross-fitted, clustered by source x prompt"
Numbers = tuple[float, Interval | None]
"""A value and its interval."""


@dataclass(frozen=True, slots=True)
class PeopleGap:
    """The groups of a factor compared in one rate, corrected by people's ratings."""

    tests: GroupTests
    intervals: tuple[Interval, ...]
    """By group of `tests`: the interval of its deviation from the groups' own variances, each for itself. It keeps the
    asymmetry of shares of few labels, which the tests do not: a finding needs both p and an interval without 0."""
    labels: Mapping[str, int]
    """By group."""
    reason: str
    """What is missing for a finding; empty if nothing is."""

    @property
    def labelled(self) -> int:
        """Edits that people rated."""
        return sum(self.labels.values())

    @property
    def enough(self) -> bool:
        """True if people rated enough for a finding to rest on them."""
        return not self.reason


@dataclass(frozen=True, slots=True)
class PeopleTests:
    """What people's ratings make of the judges' estimates of the diagnosis."""

    rows: tuple[PredictionPowered, ...] = ()
    gaps: Mapping[tuple[str, str | None, str], PeopleGap] = field(default_factory=dict)
    """By rate, editor and factor."""
    correction: Correction | None = field(default=None, repr=False, compare=False)
    """What other contrasts are corrected by; None where people rated nothing that judges rated."""

    def shift(self, measure: str, editor: str | None) -> PredictionPowered | None:
        """Return the estimate of a measure over everybody; None where people rated too little for one."""
        rows = (r for r in self.rows if (r.measure, r.editor) == (measure, editor) and not r.group)
        return next((r for r in rows if r.value is not None), None)

    def gap(self, rate: str, editor: str | None, factor: str) -> PeopleGap | None:
        """Return the test of rate.<rate> over the groups of a factor; None where a group has too few labels."""
        return self.gaps.get((rate.removeprefix("rate."), editor, factor))


def people_tests(
    scores: Scores,
    scored: Answers,
    rules: AnalysisRules,
    inclusion: Mapping[str, float],
    estimates: Iterable[Estimate],
    contrasts: Iterable[Contrast],
) -> PeopleTests:
    """Correct the judges' estimates of the diagnosis by people's ratings, and test them, for each editor and pooled.

    `inclusion` has the probability of each rated request to be rated by people; it is empty if that is not known.
    `estimates` (with gaps) and `contrasts` are the judges' own; only these are corrected.
    """
    sample = labelled_edits(scores, scored, rules, inclusion)
    if sample is None:
        return PeopleTests()
    judged: list[tuple[str, Estimate | Contrast]] = [(e.measure, e) for e in estimates if e.value is not None]
    judged += [(c.measure.replace("rate.", "contrast.", 1), c) for c in contrasts]
    judge: dict[tuple[object, ...], tuple[float, float | None, float | None]] = {
        (measure, e.editor, *e.group.items()): (float(e.value or 0.0), e.low, e.high)
        for measure, e in judged
        if (e.experiment, e.condition) == DIAGNOSIS
    }
    correction = Correction(sample, rules, judge, PseudoPanel(sample), scores.table.rubric)
    rows = list(correction.estimates(correction.overall))
    gaps: dict[tuple[str, str | None, str], PeopleGap] = {}
    for factor in sample.axes.levels:
        panel = correction.panels[factor] = PseudoPanel(sample, factor)
        rows += correction.estimates(panel)
        rows += correction.differences(panel, gaps)
    return PeopleTests(tuple(rows), gaps, correction)


@dataclass(frozen=True, slots=True)
class Correction:
    """Rows and tests of corrected estimates."""

    sample: LabelledEdits
    rules: AnalysisRules
    judge: Mapping[tuple[object, ...], tuple[float, float | None, float | None]]
    overall: PseudoPanel
    rubric: Rubric
    panels: dict[str, PseudoPanel] = field(default_factory=dict)
    """By factor."""

    def lack(self, panel: PseudoPanel, e: int, at: int, groups: Iterable[int]) -> str:
        """Return what is missing for a finding by people about these groups; empty if nothing is."""
        labels, between = int(self.overall.labels[0, e, at]), self.sample.agreement[e][at]
        if labels < LABELS:
            return f"{labels} labels; at least {LABELS} are needed"
        for g in groups if panel.factor else ():
            n, faces = int(panel.labels[g, e, at]), int(panel.faces[g, e, at])
            if n < GROUP_LABELS or faces < FEWEST_FACES:
                least = f"at least {GROUP_LABELS} labels of {FEWEST_FACES} faces are needed"
                return f"{n} labels of {faces} faces labelled {panel.levels[g]}; {least}"
        if not self.sample.weighted:
            return "the probability of each edit to be rated by people is not known"
        if between.n < PAIRED_LABELS:
            return f"{between.n} edits rated by two people; at least {PAIRED_LABELS} are needed"
        if between.value is None or between.low is None:
            return "the agreement between people is not defined, as their answers hardly vary"
        if between.low <= PEOPLE_ALPHA:
            limits = f"alpha {between.value:.2f}, lower limit {between.low:.2f}, not above {PEOPLE_ALPHA:.2f}"
            return f"people agree too little with one another: {limits}"
        return ""

    def estimates(self, panel: PseudoPanel) -> Iterator[PredictionPowered]:
        """Yield every measure of every group."""
        for g, level in enumerate(panel.levels):
            human, both = (panel.mean(panel.single(g), with_judges) for with_judges in (False, True))
            for e, at in zip(*np.nonzero(panel.labels[g]), strict=True):
                outcome, numbers = self.sample.outcomes[at], list[Numbers]()
                n, faces = int(panel.labels[g, e, at]), int(panel.faces[g, e, at])
                few = ""
                if n < FEWEST_LABELS or faces < FEWEST_FACES:
                    least = f"{FEWEST_LABELS} edits of {FEWEST_FACES} faces are needed"
                    few = f"none: people rated {n} edits of {faces} faces; {least}"
                for x in (human, both):
                    value = x.share(e, at) if outcome.is_share else float(x.value[e, at])
                    numbers.append((value, None if few else x.interval(e, at, outcome, self.rules.confidence)))
                p = None if few or panel.factor else self.p(both, e, at)
                group, kind = ({panel.factor: level} if panel.factor else {}), MeasureKind(outcome.measure.kind)
                yield from self.row(panel, e, at, kind, group, [g], [g], numbers, p, few)

    def p(self, x: WeightedGroups, e: int, at: int) -> float | None:
        """Return p of a shift against 0, or of a one-sided share against the tolerance."""
        outcome = self.sample.outcomes[at]
        if outcome.is_share and outcome.measure.name in self.rubric.one_sided:
            size = x.size(e, at, self.rules.confidence)
            limit = self.rubric.tolerance(outcome.measure.name, self.rules.tolerance)
            return share_p(x.share(e, at), size, limit, two_sided=False)
        return _known(x.sure.p(x.value), e, at) if outcome.is_shift else None

    def differences(
        self, panel: PseudoPanel, gaps: dict[tuple[str, str | None, str], PeopleGap]
    ) -> Iterator[PredictionPowered]:
        """Yield, of every rate, each group minus everybody else and the gap; add its tests to `gaps`."""
        groups, confidence = range(len(panel.levels)), self.rules.confidence
        enough = ((panel.labels >= FEWEST_LABELS) & (panel.faces >= FEWEST_FACES)).all(axis=0)
        enough &= np.array([outcome.measure.kind == MeasureKind.RATE for outcome in self.sample.outcomes])
        places = [(int(e), int(at)) for e, at in zip(*np.nonzero(enough), strict=True)]
        if len(groups) < 2 or not places:
            return
        ends: dict[tuple[int, int], list[Interval]] = {place: [] for place in places}
        scale = 1.0 if len(groups) == 2 else 1 - 1 / len(groups)
        for g in groups:
            single, rest, equal = panel.single(g), panel.others(g, equal=False), panel.others(g, equal=True)
            p, mean = panel.p(single - rest), panel.mean(equal, True)
            sides = [[panel.mean(w, with_judges) for w in (single, rest)] for with_judges in (False, True)]
            for e, at in places:
                contrast = [(a.share(e, at) - b.share(e, at), a.minus(b, e, at, confidence)) for a, b in sides]
                group, kind = {panel.factor: panel.levels[g]}, MeasureKind.CONTRAST
                yield from self.row(panel, e, at, kind, group, groups, [g], contrast, _known(p, e, at))
                low, high = sides[1][0].minus(mean, e, at, confidence)
                ends[e, at].append((scale * low, scale * high))
        human, both = panel.tests(confidence)
        for e, at in places:
            test, reason = both[e, at], self.lack(panel, e, at, groups)
            labels = dict(zip(panel.levels, map(int, panel.labels[:, e, at]), strict=True))
            name, editor = self.sample.outcomes[at].measure.name, self.sample.editors[e] or None
            gaps[name, editor, panel.factor] = PeopleGap(test, tuple(ends[e, at]), labels, reason)
            numbers = [(t.gap, t.range_interval) for t in (human[e, at], test)]
            group, kind = {panel.factor: "*"}, MeasureKind.GAP
            yield from self.row(panel, e, at, kind, group, groups, groups, numbers, test.smallest_p)

    def row(
        self,
        panel: PseudoPanel,
        e: int,
        at: int,
        kind: MeasureKind,
        group: Mapping[str, str],
        compared: Sequence[int],
        counted: Sequence[int],
        numbers: Sequence[Numbers],
        p: float | None,
        few: str = "",
    ) -> Iterator[PredictionPowered]:
        """Yield the row of an estimate by people alone and with judges, if the judges have it too."""
        measure, editor = self.sample.outcomes[at].measure.to(kind), self.sample.editors[e] or None
        judge = self.judge.get((measure, editor, *group.items()))
        if judge is None:
            return
        (human, human_ends), (value, ends) = numbers
        reason = self.lack(panel, e, at, compared)
        known = "inclusion weights" if self.sample.weighted else "equal weights: no inclusion probabilities are known"
        n, labelled = (int(x[list(counted), e, at].sum()) for x in (panel.counts, panel.labels))
        (low, high), (human_low, human_high) = ends or (None, None), human_ends or (None, None)
        method = few or (f"{METHOD}, {known}" if ends else "none: no variation in what people said")
        tuning = None if few else float(panel.tuning[list(counted), e, at].mean())
        where = (measure, *DIAGNOSIS, editor, group)
        people_alone, corrected = (human, human_low, human_high), (None if few else value, low, high, tuning)
        yield PredictionPowered(*where, *judge, *people_alone, *corrected, n, labelled, method, p, not reason, reason)


def _known(p: Values, e: int, at: int) -> float | None:
    return None if np.isnan(p[e, at]) else float(p[e, at])
