"""Prediction-powered inference: judges on all edits, people on a sample, one estimate that is tested itself.

Every edit gets a pseudo-outcome (PPI++: Angelopoulos, Duchi and Zrnic 2023; the difference estimator of Särndal,
Swensson and Wretman 1992): lambda f + (L / pi)(h - lambda f - c) + c, with f the judges' code, h the mean of people's
codes, L whether people rated the edit and pi its inclusion probability, rescaled so that weights sum to the group's
edits (Hájek). c is the weighted mean of h - lambda f over the group; it leaves the mean as it is and keeps the number
of labels out of its variance. lambda is found per group in the other half of the faces (cross-fitting: Zrnic and
Candès 2024), so judges that are of no use do no harm. Pseudo-outcomes go through the engine as any outcome.

Tests of equal groups take the pooled variance of people alone times each group's own ratio of variances with judges to
without: pooling the pseudo-outcomes alarms too often where judges are bad in one group only. Judges reduce the noise of
single edits, not that of faces and prompts, so the variance is at least the pooled one of the pseudo-outcomes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.core.records import ConditionKind, Estimate, Experiment, Kind
from evenedit.protocol.measures import MeasureKind
from evenedit.protocol.shifts import ONE_SIDED
from evenedit.ratings.table import Scores
from evenedit.results.agreement import PredictionPowered
from evenedit.results.finding import Reliability
from evenedit.results.results import Contrast
from evenedit.stats.agreement.outcomes import CountedOutcome, counted_outcomes, diagnosis_rows
from evenedit.stats.agreement.reliability import alpha
from evenedit.stats.engine.anom import GroupTests, group_tests
from evenedit.stats.engine.crossed import CrossedPanel, GroupSums
from evenedit.stats.engine.intervals import Interval
from evenedit.stats.engine.measures import Answers
from evenedit.stats.engine.panel import Axes, Panel, RatioMeasure, build_panel, by_face
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.variance import (
    NEGLIGIBLE,
    Uncertainty,
    Values,
    difference,
    effective_size,
    korn_graubard,
    share_p,
)

UNIT = 10**6
"""Pseudo-outcomes are summed in millionths."""
RIDGE = 0.5
SMALLEST_RATIO = 0.05
"""Judges are not taken to leave less than this part of the variance of people alone."""
FEWEST_LABELS, FEWEST_FACES = 10, 5
"""Labels, and faces they are of, below which there is no estimate."""
LABELS, GROUP_LABELS, PAIRED_LABELS = 100, 15, 50
"""Labels that a finding by people needs: in all, in each group, and by two people or more."""
PEOPLE_ALPHA = 0.20
"""The lower limit of people's own alpha must be above this."""
POOLED = ""
"""All editors, as an editor of the panel."""
METHOD = "ppi++, cross-fitted, clustered by source x prompt"
DIAGNOSIS = (Experiment.DIAGNOSIS.value, ConditionKind.BASELINE.value)
Place = tuple[str, str | None, frozenset[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class PeopleTest:
    """A shift or one-sided rate over everybody, corrected by people's ratings."""

    value: float
    low: float | None
    high: float | None
    p: float | None
    """Not adjusted; against 0, or against the tolerance for a one-sided rate."""
    labelled: int
    enough: bool
    reason: str
    judge_value: float


@dataclass(frozen=True, slots=True)
class PeopleGap:
    """The groups of a factor compared in one rate, corrected by people's ratings."""

    tests: GroupTests
    intervals: tuple[Interval | None, ...]
    """By group of `tests`: the interval of its deviation from the groups' own variances, which keeps the asymmetry of
    small shares; not simultaneous."""
    labelled: int
    labels: Mapping[str, int]
    """By group."""
    enough: bool
    reason: str


@dataclass(frozen=True, slots=True)
class PeopleTests:
    """What people's ratings make of the judges' estimates of the diagnosis."""

    rows: tuple[PredictionPowered, ...] = ()
    gaps: Mapping[tuple[str, str | None, str], PeopleGap] | None = None

    def shift(self, measure: str, editor: str) -> PeopleTest | None:
        """Return the test of a measure over everybody; None where people rated too little for an estimate."""
        for p in self.rows:
            if (p.measure, p.editor) == (measure, editor) and not p.group and p.value is not None:
                return PeopleTest(p.value, p.low, p.high, p.p, p.labelled, p.enough, p.reason, p.judge)
        return None

    def gap(self, rate: str, editor: str | None, factor: str) -> PeopleGap | None:
        """Return the test of a rate over the groups of a factor; None where a group has too few labels for one."""
        return (self.gaps or {}).get((rate.removeprefix("rate."), editor, factor))


def pseudo_outcome(
    judged: Values, labels: Values, chance: Values, stratum: NDArray[np.int64], half: NDArray[np.int64], ridge: float
) -> tuple[Values, Values]:
    """Return the pseudo-outcome of each edit, NaN without a judge's code or label in its stratum, and lambda [stratum].

    An infinite ridge gives people alone.
    """
    strata = int(stratum.max(initial=-1)) + 1
    rated = ~np.isnan(labels) & ~np.isnan(judged)
    f, h = np.nan_to_num(judged), np.nan_to_num(labels)

    def sums(x: NDArray[np.generic], at: NDArray[np.int64], size: int) -> Values:
        return np.bincount(at, weights=x, minlength=size)

    fold = 2 * stratum + half
    n, total_f, total_h, ff, hf = (sums(x * rated, fold, 2 * strata) for x in (np.ones_like(f), f, h, f * f, h * f))
    size = np.maximum(n, 1.0)
    fitted = np.clip((hf - total_h * total_f / size) / (ff - total_f**2 / size + ridge), 0.0, 1.0)
    tuning = fitted.reshape(-1, 2)[:, ::-1].ravel()[fold]
    edits = sums(~np.isnan(judged), stratum, strata)
    weight = np.where(rated, 1 / chance, 0.0)
    all_weights = sums(weight, stratum, strata)
    weight = weight * (edits / np.where(all_weights > 0, all_weights, np.inf))[stratum]
    rest = h - tuning * f
    centre = (sums(weight * rest, stratum, strata) / np.maximum(edits, 1.0))[stratum]
    psi = tuning * f + weight * (rest - centre) + centre
    exists = ~np.isnan(judged) & (all_weights > 0)[stratum]
    return np.where(exists, psi, np.nan), fitted.reshape(-1, 2).mean(axis=1)


@dataclass(frozen=True, slots=True)
class LabelledEdits:
    """Judges' and people's codes of edits; every edit stands for its editor and for all editors."""

    edits: pd.DataFrame
    axes: Axes
    editors: tuple[str, ...]
    editor_at: NDArray[np.int64]
    outcomes: tuple[CountedOutcome, ...]
    judged: Values
    """[edit, outcome]; NaN where missing."""
    labels: Values
    """[edit, outcome]: the mean of people's codes; NaN where none rated it."""
    chance: Values
    """Inclusion probabilities."""
    weighted: bool
    """Whether they are known."""
    agreement: Sequence[Sequence[Reliability]]
    """[editor][outcome]: people's own alpha."""


@dataclass(frozen=True, slots=True)
class WeightedGroups:
    """A weighted mean of groups; arrays are [editor, outcome]."""

    value: Values
    sure: Uncertainty
    by_prompt: Values
    labels: Values
    pooled_size: Values
    """Independent rows that a share of 0 or 1 rests on."""

    def size(self, row: int, at: int, confidence: float) -> float:
        """Return the number of independent rows that a share rests on."""
        value, labels = self.share(row, at), float(self.labels[row, at])
        if value in (0.0, 1.0):
            return float(np.clip(self.pooled_size[row, at], 1.0, max(labels, 1.0)))
        return effective_size(value, float(self.sure.variance[row, at]), float(self.sure.freedom[row, at]), labels,
                              confidence)  # fmt: skip

    def share(self, row: int, at: int) -> float:
        """Return the value as a share."""
        return min(max(float(self.value[row, at]), 0.0), 1.0)

    def ends(self, row: int, at: int, outcome: CountedOutcome, confidence: float) -> Interval | None:
        """Return the interval; None where people's answers do not vary."""
        if outcome.is_share:
            return korn_graubard(self.share(row, at), self.size(row, at, confidence), confidence)
        if not self.sure.variance[row, at] > NEGLIGIBLE:
            return None
        value, reach = float(self.value[row, at]), float(self.sure.half_width(confidence)[row, at])
        low, high = (-1.0, 1.0) if outcome.is_shift else (1.0, 5.0)
        return max(value - reach, low), min(value + reach, high)


class PowerScope:
    """Pseudo-outcomes with weights and lambda by the groups of one factor, or for everybody."""

    def __init__(self, sample: LabelledEdits, factor: str | None) -> None:
        axes = sample.axes
        self.sample, self.factor = sample, factor
        self.levels: tuple[str, ...] = axes.levels[factor] if factor else ("",)
        label = axes.labels[factor] if factor else np.full(len(axes.clusters), "")
        code = np.array([self.levels.index(x) if x in self.levels else -1 for x in label], dtype=np.int64)
        half = sum((np.cumsum(code == g) * (code == g) for g in range(len(self.levels))), np.zeros_like(code)) % 2
        group, shape = code[axes.cluster_at], (len(self.levels), len(sample.editors), len(sample.outcomes))
        inside = group >= 0
        stratum = np.where(inside, group, 0) * len(sample.editors) + sample.editor_at
        self.labels, self.faces, self.tuning, ratio = (np.zeros(shape) for _ in range(4))
        columns: list[dict[str, NDArray[np.int64]]] = [{}, {}]
        for at in range(len(sample.outcomes)):
            judged = np.where(inside, sample.judged[:, at], np.nan)
            rated = ~np.isnan(judged) & ~np.isnan(sample.labels[:, at])
            several = np.unique(np.stack([stratum, axes.cluster_at])[:, rated], axis=1)[0]
            self.labels[:, :, at], self.faces[:, :, at] = (
                np.bincount(x, minlength=shape[0] * shape[1]).reshape(shape[:2]) for x in (stratum[rated], several)
            )
            spread = []
            for way, ridge in enumerate((RIDGE, np.inf)):
                psi, tuning = pseudo_outcome(
                    judged, sample.labels[:, at], sample.chance, stratum, half[axes.cluster_at], ridge
                )
                if way == 0:
                    self.tuning[:, :, at].flat[: len(tuning)] = tuning
                known = ~np.isnan(psi)
                columns[way] |= {
                    f"psi.{at}": np.rint(np.nan_to_num(psi) * UNIT).astype(np.int64),
                    f"n.{at}": known.astype(np.int64),
                }
                n, total, squares = (
                    np.bincount(stratum[known], weights=x[known], minlength=shape[0] * shape[1])
                    for x in (np.ones_like(psi), psi, psi**2)
                )
                spread.append(squares / np.maximum(n, 1) - (total / np.maximum(n, 1)) ** 2)
            part = np.divide(spread[0], spread[1], out=np.ones_like(spread[0]), where=spread[1] > NEGLIGIBLE)
            ratio[:, :, at] = np.clip(part, SMALLEST_RATIO, 1.0).reshape(shape[:2])
        self.powered, self.human = (CrossedPanel(self._panel(c)) for c in columns)
        self.groups, self.human_groups = (
            [c.of({factor: level}) for level in self.levels] if factor else [c.everybody]
            for c in (self.powered, self.human)
        )
        self.counts = np.stack([g.count for g in self.groups])[:, :-1]
        if factor:
            self.ratio = ratio * self._floor(ratio, factor)

    def _panel(self, columns: Mapping[str, NDArray[np.int64]]) -> Panel:
        sample = self.sample
        measures = [
            RatioMeasure(o.measure, f"psi.{at}", f"n.{at}", f"n.{at}", unit=UNIT) for at, o in enumerate(sample.outcomes)
        ]
        experiment, condition = DIAGNOSIS
        return build_panel(
            sample.edits, sample.axes, columns, measures, experiment=experiment, condition=condition
        )

    def _floor(self, ratio: Values, factor: str) -> Values:
        """Return what variances are to be multiplied by so that they are at least the pooled ones."""
        scale = [np.sqrt(self._padded(r)) for r in ratio]
        least = self.powered.pooled((factor,)).of([1.0] * len(scale)).variance[:-1]
        people = self.human.pooled((factor,)).of(scale).variance[:-1]
        return np.maximum(np.divide(least, people, out=np.ones_like(least), where=people > NEGLIGIBLE), 1.0)

    @staticmethod
    def _padded(x: Values) -> Values:
        """Return [editor, outcome] with a row for the panel's sum over editors, which nothing reads."""
        return np.concatenate([x, np.ones((1, x.shape[1]))])

    def weighted(self, weights: Sequence[Values], people: bool) -> WeightedGroups:
        """Return a weighted mean of groups from people alone or with judges; weights are [editor, outcome]."""
        crossed, groups = (self.human, self.human_groups) if people else (self.powered, self.groups)
        padded = [self._padded(w) for w in weights]
        used = [w != 0 for w in weights]
        sure = crossed.uncertainty(groups, padded)
        labels, faces = (
            np.sum([np.where(u, x, 0) for u, x in zip(used, of, strict=True)], axis=0) for of in (self.labels, self.faces)
        )
        size = faces
        if self.factor:
            pooled = self.human.pooled((self.factor,))
            inside, variance = (pooled.rate * (1 - pooled.rate))[:-1], pooled.of(padded).variance[:-1]
            size = np.divide(inside, variance, out=faces.copy(), where=(inside > 0) & (variance > NEGLIGIBLE))
        return WeightedGroups(
            value=np.sum([w * np.nan_to_num(g.value[:-1]) for w, g in zip(weights, groups, strict=True)], axis=0),
            sure=Uncertainty(sure.variance[:-1], np.clip(sure.freedom[:-1], 1.0, np.maximum(faces - 1, 1.0))),
            by_prompt=np.sum([w * _prompts(g) for w, g in zip(weights, groups, strict=True)], axis=0),
            labels=labels,
            pooled_size=size,
        )

    def single(self, group: int, people: bool) -> WeightedGroups:
        """Return one group."""
        shape = self.labels.shape
        return self.weighted([np.full(shape[1:], float(g == group)) for g in range(shape[0])], people)

    def rest(self, group: int, equal: bool) -> Values:
        """Return the weights of all other groups by their edits, or each group alike."""
        size = (self.counts > 0).astype(np.float64) if equal else self.counts.copy()
        size[group] = 0.0
        return np.asarray(size / np.maximum(size.sum(axis=0), 1.0))

    def p(self, group: int) -> Values:
        """Return p of a group being equal to all others by their edits."""
        weights = -self.rest(group, equal=False)
        weights[group] = 1.0
        value = self.weighted(list(weights), people=False).value
        scale = [self._padded(w * np.sqrt(r)) for w, r in zip(weights, self.ratio, strict=True)]
        sure = self.human.pooled((self.factor or "",)).of(scale)
        return Uncertainty(sure.variance[:-1], sure.freedom[:-1]).p(value)

    def tests(self, confidence: float, people: bool) -> dict[tuple[int, int], GroupTests]:
        """Return the tests of equal groups from people alone or with judges, by editor and outcome."""
        if people:
            return group_tests(self.human, self.factor or "", confidence)
        padded = np.stack([self._padded(r) for r in self.ratio])
        values = np.stack([g.value for g in self.groups])
        tests = group_tests(self.human, self.factor or "", confidence, padded, values)
        return {place: replace(t, rates=tuple(min(max(r, 0.0), 1.0) for r in t.rates)) for place, t in tests.items()}


def _prompts(group: GroupSums) -> Values:
    """Return the influence of each prompt, so that products of two groups sum to their covariance."""
    several = np.maximum(group.prompts[:-1], 2.0)
    return np.asarray(group.by_prompt[:, :-1] * np.sqrt(several / (several - 1)))


def _mover(first: WeightedGroups, second: WeightedGroups, row: int, at: int, ends: Sequence[Interval]) -> Interval:
    """Return the interval of a difference of shares; the two are alike as far as they share prompts."""
    spread = float(np.sqrt(first.sure.variance[row, at] * second.sure.variance[row, at]))
    shared = float(first.by_prompt[:, row, at] @ second.by_prompt[:, row, at])
    correlation = float(np.clip(shared / spread, -1.0, 1.0)) if spread > NEGLIGIBLE else 0.0
    return difference(first.share(row, at), second.share(row, at), (ends[0], ends[1]), correlation)


class Estimated(NamedTuple):
    """An estimate with its interval."""

    value: float
    ends: Interval | None


def labelled_edits(
    scores: Scores, scored: Answers, rules: AnalysisRules, inclusion: Mapping[str, float]
) -> LabelledEdits | None:
    """Return the codes of judges and people of the diagnosis; None without people's ratings."""
    rows = diagnosis_rows(scores)
    people = scores.table.of_kind(Kind.HUMAN)
    if not people or not (scores.table.values[people][:, rows] > 0).any():
        return None
    selected = scores.edits.iloc[rows]
    chance = np.array([inclusion.get(r, np.nan) for r in selected["request_id"]])
    ensemble, answered = scored.rows(rows), scores.table.values[people][:, rows]
    outcomes, judged, labels, codes = [], [], [], []
    for outcome, applies in counted_outcomes(scores, rules, rows, means=True):
        if outcome.is_shift:  # prompts that ask for the change, and accuracy against a target age, do not count
            values = scores.judged[:, rows] if outcome.below else scores.values[rows][None]
        else:
            values, applies = ensemble.values[None], applies | ensemble.of(outcome.question)[1].astype(np.bool_)
        by_person = np.where(applies, outcome.codes(answered), np.nan)
        of_people = _mean(by_person)
        if inclusion:
            of_people = np.where(np.isnan(chance), np.nan, of_people)
        of_judges = np.where(applies, _mean(outcome.codes(values)), np.nan)
        if not np.isnan(of_people + of_judges).all():
            outcomes.append(outcome)
            judged.append(of_judges)
            labels.append(of_people)
            codes.append(by_person)
    if not outcomes:
        return None
    edits = pd.concat([selected, selected.assign(editor=POOLED)])
    editor_at, editors = pd.factorize(edits["editor"], sort=True)
    by_person_and_outcome = np.tile(np.stack(codes, axis=-1), (1, 2, 1))
    face = edits["source_id"].to_numpy(dtype=str)
    return LabelledEdits(
        edits=edits,
        axes=by_face(edits, scores.table.factors),
        editors=tuple(str(e) for e in editors),
        editor_at=editor_at.astype(np.int64),
        outcomes=tuple(outcomes),
        judged=np.tile(np.stack(judged, axis=1), (2, 1)),
        labels=np.tile(np.stack(labels, axis=1), (2, 1)),
        chance=np.tile(np.where(np.isnan(chance), 1.0, chance), 2),
        weighted=bool(inclusion),
        agreement=[
            alpha(by_person_and_outcome[:, editor_at == e], face[editor_at == e], rules.confidence)
            for e in range(len(editors))
        ],
    )


def _mean(codes: Values) -> Values:
    """Return the mean over raters [rater, edit]; NaN where none answered."""
    known = ~np.isnan(codes)
    n = known.sum(axis=0)
    return np.where(n > 0, np.where(known, codes, 0.0).sum(axis=0) / np.maximum(n, 1), np.nan)


def people_tests(
    scores: Scores,
    scored: Answers,
    rules: AnalysisRules,
    inclusion: Mapping[str, float],
    estimates: Iterable[Estimate],
    contrasts: Iterable[Contrast],
) -> PeopleTests:
    """Correct the judges' estimates of the diagnosis by people's ratings, and test them, for each editor and pooled.

    `inclusion` has the probability of each request to be rated by people; empty if it is not known. `estimates` (with
    gaps) and `contrasts` are the judges' own; only these are corrected.
    """
    sample = labelled_edits(scores, scored, rules, inclusion)
    if sample is None:
        return PeopleTests()
    judge: dict[Place, tuple[float, float | None, float | None]] = {}
    for e in estimates:
        if (e.experiment, e.condition) == DIAGNOSIS and e.value is not None:
            judge[e.measure, e.editor, frozenset(e.group.items())] = e.value, e.low, e.high
    for c in contrasts:
        if (c.experiment, c.condition) == DIAGNOSIS:
            measure = c.measure.replace("rate.", "contrast.", 1)
            judge[measure, c.editor, frozenset(c.group.items())] = c.value, c.low, c.high
    overall = PowerScope(sample, None)
    correction = _Correction(sample, rules, judge, overall)
    rows = list(correction.group_rows(overall))
    outcomes = [o.measure for o in sample.outcomes]
    gaps: dict[tuple[str, str | None, str], PeopleGap] = {}
    for factor, levels in sample.axes.levels.items():
        scope = PowerScope(sample, factor)
        rows += correction.group_rows(scope)
        if len(levels) > 1:
            rows += correction.contrast_rows(scope)
            tested = correction.gaps(scope)
            rows += correction.gap_rows(scope, tested)
            gaps |= {(outcomes[at].name, sample.editors[e] or None, factor): gap for (e, at), gap in tested.items()}
    return PeopleTests(tuple(rows), gaps)


@dataclass(frozen=True, slots=True)
class _Correction:
    """Rows and tests of corrected estimates."""

    sample: LabelledEdits
    rules: AnalysisRules
    judge: Mapping[Place, tuple[float, float | None, float | None]]
    overall: PowerScope

    def lack(self, scope: PowerScope, e: int, at: int, groups: Sequence[int]) -> str:
        """Return what is missing for a finding by people that compares these groups; empty if nothing is."""
        labels = int(self.overall.labels[0, e, at])
        if labels < LABELS:
            return f"{labels} labels; at least {LABELS} are needed"
        for g in groups if scope.factor else ():
            n, faces = int(scope.labels[g, e, at]), int(scope.faces[g, e, at])
            if n < GROUP_LABELS or faces < FEWEST_FACES:
                return (
                    f"{n} labels of {faces} faces for {scope.levels[g]}; at least {GROUP_LABELS} of {FEWEST_FACES} "
                    "faces are needed"
                )
        if not self.sample.weighted:
            return "the probability of each edit to be rated by people is not known"
        a = self.sample.agreement[e][at]
        if a.n < PAIRED_LABELS:
            return f"{a.n} edits rated by two people; at least {PAIRED_LABELS} are needed"
        if a.value is None or a.low is None:
            return "the agreement between people is not defined: their answers do not vary enough"
        if a.low <= PEOPLE_ALPHA:
            return f"people agree too little: alpha {a.value:.2f}, lower limit {a.low:.2f}, not above {PEOPLE_ALPHA:.2f}"
        return ""

    def group_rows(self, scope: PowerScope) -> Iterator[PredictionPowered]:
        """Yield the estimates of every group of a scope."""
        for g, level in enumerate(scope.levels):
            human, powered = (scope.single(g, people) for people in (True, False))
            group = {scope.factor: level} if scope.factor else {}
            for e, at in np.ndindex(*scope.counts.shape[1:]):
                labels, faces = int(scope.labels[g, e, at]), int(scope.faces[g, e, at])
                if not labels:
                    continue
                few = ""
                if labels < FEWEST_LABELS or faces < FEWEST_FACES:
                    few = (
                        f"none: people rated {labels} edits of {faces} faces; {FEWEST_LABELS} edits of {FEWEST_FACES} "
                        "faces are needed"
                    )
                p = None if scope.factor or few else self.shift_p(powered, e, at)
                both = [self.estimated(x, e, at, bool(few)) for x in (human, powered)]
                yield from self.row(scope, e, at, MeasureKind(self.kind(at)), group, both, [g], p, few)

    def kind(self, at: int) -> str:
        """Return the kind of an outcome's measure."""
        return self.sample.outcomes[at].measure.kind

    def estimated(self, x: WeightedGroups, e: int, at: int, few: bool) -> Estimated:
        """Return the value and the interval of a mean of groups."""
        outcome = self.sample.outcomes[at]
        value = x.share(e, at) if outcome.is_share else float(x.value[e, at])
        return Estimated(value, None if few else x.ends(e, at, outcome, self.rules.confidence))

    def shift_p(self, x: WeightedGroups, e: int, at: int) -> float | None:
        """Return p of a shift against 0, or of a one-sided share against the tolerance."""
        outcome = self.sample.outcomes[at]
        if outcome.is_share:
            tolerated = self.rules.tolerance
            size = x.size(e, at, self.rules.confidence)
            return share_p(x.share(e, at), size, tolerated, False) if outcome.measure.name in ONE_SIDED else None
        p = float(Uncertainty(x.sure.variance[e, at], x.sure.freedom[e, at]).p(x.value[e, at]))
        return None if np.isnan(p) or not outcome.is_shift else p

    def differences(self, scope: PowerScope, group: int, equal: bool) -> Iterator[tuple[int, int, list[Estimated]]]:
        """Yield, by editor and rate, a group minus the others from people alone and with judges."""
        rest = list(scope.rest(group, equal))
        sides = [(scope.single(group, people), scope.weighted(rest, people)) for people in (True, False)]
        few = ((scope.labels < FEWEST_LABELS) | (scope.faces < FEWEST_FACES)).any(axis=0)
        for e, at in np.ndindex(*few.shape):
            if self.kind(at) == MeasureKind.RATE and not few[e, at]:
                both = []
                for first, second in sides:
                    ends = [korn_graubard(x.share(e, at), x.size(e, at, self.rules.confidence), self.rules.confidence)
                            for x in (first, second)]  # fmt: skip
                    value = first.share(e, at) - second.share(e, at)
                    both.append(Estimated(value, _mover(first, second, e, at, ends)))
                yield e, at, both

    def contrast_rows(self, scope: PowerScope) -> Iterator[PredictionPowered]:
        """Yield each group minus everybody else."""
        for g, level in enumerate(scope.levels):
            p = scope.p(g)
            for e, at, both in self.differences(scope, g, equal=False):
                known = None if np.isnan(p[e, at]) else float(p[e, at])
                group = {scope.factor or "": level}
                groups = range(len(scope.levels))
                yield from self.row(scope, e, at, MeasureKind.CONTRAST, group, both, groups, known, "", [g])

    def gaps(self, scope: PowerScope) -> dict[tuple[int, int], PeopleGap]:
        """Return the tests of equal groups, by editor and rate."""
        tests, k = scope.tests(self.rules.confidence, people=False), len(scope.levels)
        part = 1.0 if k == 2 else 1 - 1 / k
        ends: dict[tuple[int, int], list[Interval | None]] = {}
        for g in range(k):
            for e, at, (_, powered) in self.differences(scope, g, equal=True):
                low, high = powered.ends or (0.0, 0.0)
                ends.setdefault((e, at), []).append((part * low, part * high))
        found_in = {}
        for (e, at), intervals in ends.items():
            labels = {level: int(n) for level, n in zip(scope.levels, scope.labels[:, e, at], strict=True)}
            reason = self.lack(scope, e, at, range(k))
            found_in[e, at] = PeopleGap(
                tests[e, at], tuple(intervals), sum(labels.values()), labels, not reason, reason
            )
        return found_in

    def gap_rows(self, scope: PowerScope, gaps: Mapping[tuple[int, int], PeopleGap]) -> Iterator[PredictionPowered]:
        """Yield the gap of every rate over the groups of a factor."""
        human = scope.tests(self.rules.confidence, people=True)
        for (e, at), gap in gaps.items():
            both = [Estimated(t.gap, t.range_interval) for t in (human[e, at], gap.tests)]
            group, groups = {scope.factor or "": "*"}, range(len(scope.levels))
            yield from self.row(scope, e, at, MeasureKind.GAP, group, both, groups, gap.tests.smallest_p, "")

    def row(
        self,
        scope: PowerScope,
        e: int,
        at: int,
        kind: MeasureKind,
        group: Mapping[str, str],
        both: Sequence[Estimated],
        compared: Sequence[int],
        p: float | None,
        few: str,
        counted: Sequence[int] | None = None,
    ) -> Iterator[PredictionPowered]:
        """Yield the row of an estimate that the judges have too; labels of the groups `counted` are its labels."""
        measure, editor = self.sample.outcomes[at].measure.to(kind), self.sample.editors[e] or None
        judge = self.judge.get((measure, editor, frozenset(group.items())))
        if judge is None:
            return
        members = list(compared if counted is None else counted)
        human, powered = both
        (human_low, human_high), (low, high) = (x.ends or (None, None) for x in both)
        reason = self.lack(scope, e, at, compared)
        weights = "inclusion weights" if self.sample.weighted else "equal weights: no inclusion probabilities are known"
        varies = powered.ends is not None
        yield PredictionPowered(
            measure=measure,
            experiment=DIAGNOSIS[0],
            condition=DIAGNOSIS[1],
            editor=editor,
            group=dict(group),
            judge=judge[0],
            judge_low=judge[1],
            judge_high=judge[2],
            human=human.value,
            human_low=human_low,
            human_high=human_high,
            value=None if few else powered.value,
            low=low,
            high=high,
            tuning=None if few else float(scope.tuning[members, e, at].mean()),
            n=int(scope.counts[members, e, at].sum()),
            labelled=int(scope.labels[members, e, at].sum()),
            method=few or (f"{METHOD}, {weights}" if varies else "none: no variation in what people said"),
            p=p,
            enough=not reason,
            reason=reason,
        )
