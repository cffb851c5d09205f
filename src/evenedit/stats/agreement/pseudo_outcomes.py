"""Pseudo-outcomes: the judges' code of every edit, corrected by what people say of some, through the engine.

The pseudo-outcome of an edit is lambda f + (L / pi)(h - lambda f - c) + c (PPI++: Angelopoulos, Duchi and Zrnic 2023;
the difference estimator of Särndal, Swensson and Wretman 1992): f is the judges' code minus its mean in the group, h
the mean of people's codes, L whether people rated the edit, pi its inclusion probability, rescaled so that the weights
sum to the group's edits (Hájek). c is the weighted mean of h - lambda f. Both centres leave the estimate as it is and
keep the number of labels out of its variance. lambda is fitted per group in the other half of the faces (cross-fitting:
Zrnic and Candès 2024), so judges that are of no use do no harm.

Tests of equal groups take the pooled variance of people alone times each group's own ratio of variances with judges to
without: pooled pseudo-outcomes alarm too often where judges are bad in one group only. Judges reduce the noise of one
edit, not that of faces and prompts, so the variance is at least the pooled one of the pseudo-outcomes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.core.records import ConditionKind, Experiment, Kind
from evenedit.protocol import Rubric
from evenedit.ratings.table import Scores
from evenedit.results.finding import Reliability
from evenedit.stats.agreement.outcomes import CountedOutcome, counted_outcomes, diagnosis_rows
from evenedit.stats.agreement.reliability import alpha
from evenedit.stats.engine.anom import GroupTests, group_tests
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.intervals import Interval
from evenedit.stats.engine.measures import Answers
from evenedit.stats.engine.panel import Axes, Panel, RatioMeasure, build_panel, by_face, units
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.variance import (
    NEGLIGIBLE,
    Uncertainty,
    Values,
    difference,
    effective_size,
    korn_graubard,
)

UNIT = 10**6
"""Pseudo-outcomes are summed in millionths."""
RIDGE = 0.5
SMALLEST_RATIO = 0.05
"""Judges are not taken to leave less than this part of the variance of people alone."""
POOLED = ""
"""All editors, as an editor of the panel."""
DIAGNOSIS = (Experiment.DIAGNOSIS.value, ConditionKind.BASELINE.value)


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
    rubric: Rubric
    agreement: Sequence[Sequence[Reliability]]
    """[editor][outcome]: people's alpha among themselves."""


def labelled_edits(
    scores: Scores, scored: Answers, rules: AnalysisRules, inclusion: Mapping[str, float]
) -> LabelledEdits | None:
    """Return the codes of judges and people of the diagnosis; None where nothing was rated by both."""
    rows, people = diagnosis_rows(scores), scores.table.of_kind(Kind.HUMAN)
    rows = rows[np.argsort(scores.edits["request_id"].to_numpy(dtype=str)[rows])]  # sums in one order
    selected, answered = scores.edits.iloc[rows], scores.table.values[people][:, rows]
    chance = np.array([inclusion.get(r, np.nan) for r in selected["request_id"]])
    ensemble = scored.rows(rows)
    rated = np.flatnonzero((answered > 0).any(axis=(0, 2)) & ~(np.isnan(chance) & bool(inclusion)))
    outcomes, judged, labels, codes = [], [], [], []
    for outcome, applies in counted_outcomes(scores, rules, rows, means=True) if len(rated) else ():
        values = scores.values[rows][None]
        if outcome.below is not None:
            values = scores.judged[:, rows]
        elif not outcome.is_shift:
            values, applies = ensemble.values[None], ensemble.of(outcome.question)[1].astype(np.bool_)
        by_person = np.where(applies[rated], outcome.codes(answered[:, rated]), np.nan)
        of_people, of_judges = np.full(len(rows), np.nan), np.where(applies, _mean(outcome.codes(values)), np.nan)
        of_people[rated] = _mean(by_person)
        if not np.isnan(of_people + of_judges).all():
            outcomes.append(outcome)
            judged.append(of_judges)
            labels.append(of_people)
            codes.append(by_person)
    if not outcomes:
        return None
    edits = pd.concat([selected, selected.assign(editor=POOLED)])
    editor_at, editors = pd.factorize(edits["editor"], sort=True)
    each, face, editor = np.stack(codes, axis=-1), units(edits).to_numpy(dtype=str)[rated], editor_at[rated]
    members = [editor == e if name else np.ones(len(rated), dtype=np.bool_) for e, name in enumerate(editors)]
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
        rubric=scores.table.rubric,
        agreement=[alpha(each[:, of], face[of], rules.confidence) for of in members],
    )


def _mean(codes: Values) -> Values:
    """Return the mean over raters [rater, edit]; NaN where none answered."""
    known = ~np.isnan(codes)
    n = known.sum(axis=0)
    return np.where(n > 0, np.where(known, codes, 0.0).sum(axis=0) / np.maximum(n, 1), np.nan)


def pseudo_outcome(
    judged: Values, labels: Values, chance: Values, stratum: NDArray[np.int64], half: NDArray[np.int64], ridge: float
) -> tuple[Values, Values]:
    """Return the pseudo-outcome of each edit and the mean lambda of each stratum; an infinite ridge is people alone.

    It is NaN for edits without a judge's code, and in a stratum without labels.
    """
    strata = int(stratum.max(initial=-1)) + 1
    scored, rated = ~np.isnan(judged), ~np.isnan(labels) & ~np.isnan(judged)
    f, h, fold = np.nan_to_num(judged), np.nan_to_num(labels), 2 * stratum + half
    n, sum_f, sum_h, ff, hf = (
        np.bincount(fold, weights=x * rated, minlength=2 * strata) for x in (np.ones_like(f), f, h, f * f, h * f)
    )
    size = np.maximum(n, 1.0)
    fitted = np.clip((hf - sum_h * sum_f / size) / (ff - sum_f**2 / size + ridge), 0.0, 1.0).reshape(-1, 2)
    tuning = fitted[:, ::-1].ravel()[fold]
    weight = np.where(rated, 1 / chance, 0.0)
    edits, weights = (np.bincount(stratum, weights=x, minlength=strata) for x in (scored, weight))
    weight = weight * np.divide(edits, weights, out=np.zeros(strata), where=weights > 0)[stratum]
    predicted = tuning * (f - (np.bincount(stratum, weights=f, minlength=strata) / np.maximum(edits, 1.0))[stratum])
    rest = h - predicted
    centre = np.bincount(stratum, weights=weight * rest, minlength=strata) / np.maximum(edits, 1.0)
    psi = predicted + weight * (rest - centre[stratum]) + centre[stratum]
    return np.where(scored & (weights > 0)[stratum], psi, np.nan), fitted.mean(axis=1)


@dataclass(frozen=True, slots=True)
class WeightedGroups:
    """A weighted mean of groups; arrays are [editor, outcome]."""

    value: Values
    sure: Uncertainty
    by_prompt: Values
    """[prompt, editor, outcome]: influences whose products sum to a covariance."""
    labels: Values
    pooled_size: Values
    """Independent rows that a share of 0 or 1 rests on."""

    def share(self, e: int, at: int) -> float:
        """Return the value as a share."""
        return min(max(float(self.value[e, at]), 0.0), 1.0)

    def size(self, e: int, at: int, confidence: float) -> float:
        """Return the number of independent rows that a share rests on, at most the number of labels."""
        share, labels = self.share(e, at), float(self.labels[e, at])
        if share in (0.0, 1.0):
            return float(np.clip(self.pooled_size[e, at], 1.0, max(labels, 1.0)))
        variance, freedom = float(self.sure.variance[e, at]), float(self.sure.freedom[e, at])
        return effective_size(share, variance, freedom, labels, confidence)

    def interval(self, e: int, at: int, outcome: CountedOutcome, confidence: float) -> Interval | None:
        """Return the interval; None where people's answers do not vary."""
        if outcome.is_share:
            return korn_graubard(self.share(e, at), self.size(e, at, confidence), confidence)
        if not self.sure.variance[e, at] > NEGLIGIBLE:
            return None
        value, reach = float(self.value[e, at]), float(self.sure.half_width(confidence)[e, at])
        low, high = (-1.0, 1.0) if outcome.is_shift else (1.0, 5.0)
        return max(value - reach, low), min(value + reach, high)

    def minus(self, other: WeightedGroups, e: int, at: int, confidence: float) -> Interval:
        """Return the interval of the difference of two shares, which are alike as far as they share prompts."""
        ends = [korn_graubard(x.share(e, at), x.size(e, at, confidence), confidence) for x in (self, other)]
        spread = float(np.sqrt(self.sure.variance[e, at] * other.sure.variance[e, at]))
        shared = float(self.by_prompt[:, e, at] @ other.by_prompt[:, e, at])
        correlation = float(np.clip(shared / spread, -1.0, 1.0)) if spread > NEGLIGIBLE else 0.0
        return difference(self.share(e, at), other.share(e, at), (ends[0], ends[1]), correlation)


class PseudoPanel:
    """Pseudo-outcomes, with weights and lambda by the groups of a factor or for everybody.

    Arrays are [group, editor, outcome]; the last editor is the panel's sum over editors, which has no labels.
    """

    def __init__(self, sample: LabelledEdits, factor: str = "") -> None:
        axes = sample.axes
        self.sample, self.factor = sample, factor
        self.levels: tuple[str, ...] = axes.levels[factor] if factor else ("",)
        code = np.full(len(axes.clusters), -1 if factor else 0)
        half = np.arange(len(code)) % 2
        for g, level in enumerate(self.levels if factor else ()):
            code[axes.mask({factor: level})] = g
            half[code == g] = np.arange((code == g).sum()) % 2
        group = code[axes.cluster_at]
        self.shape = len(self.levels), len(sample.editors) + 1, len(sample.outcomes)
        strata = self.shape[0] * self.shape[1]
        stratum = np.maximum(group, 0) * self.shape[1] + sample.editor_at
        self.labels, self.faces, self.tuning, self.ratio = (np.zeros((strata, self.shape[2])) for _ in range(4))
        columns: tuple[dict[str, NDArray[np.int64]], ...] = ({}, {})
        for at in range(self.shape[2]):
            judged, labels = np.where(group >= 0, sample.judged[:, at], np.nan), sample.labels[:, at]
            rated = ~np.isnan(judged + labels)
            pairs = np.unique(stratum[rated] * len(code) + axes.cluster_at[rated]) // len(code)
            self.labels[:, at] = np.bincount(stratum[rated], minlength=strata)
            self.faces[:, at] = np.bincount(pairs, minlength=strata)
            spread = []
            for ridge, column in zip((np.inf, RIDGE), columns, strict=True):
                psi, tuning = pseudo_outcome(judged, labels, sample.chance, stratum, half[axes.cluster_at], ridge)
                known = ~np.isnan(psi)
                column[f"psi.{at}"] = np.rint(np.nan_to_num(psi) * UNIT).astype(np.int64)
                column[f"n.{at}"] = known.astype(np.int64)
                spread.append(_variance(psi[known], stratum[known], strata))
            self.tuning[: len(tuning), at] = tuning
            ratio = np.divide(spread[1], spread[0], out=np.ones(strata), where=spread[0] > NEGLIGIBLE)
            self.ratio[:, at] = np.clip(ratio, SMALLEST_RATIO, 1.0)
        for name in ("labels", "faces", "tuning", "ratio"):
            setattr(self, name, getattr(self, name).reshape(self.shape))
        self.crossed = [CrossedPanel(self._panel(column)) for column in columns]
        """Of people alone, and with judges."""
        self.groups = [
            [c.of({factor: level}) for level in self.levels] if factor else [c.all_faces] for c in self.crossed
        ]
        self.counts = np.stack([g.count for g in self.groups[1]]) * (self.labels.sum(axis=0) > 0)
        if factor:
            self.ratio = self.ratio * self._floor()

    def _panel(self, columns: Mapping[str, NDArray[np.int64]]) -> Panel:
        measures = [
            RatioMeasure(outcome.measure, f"psi.{at}", f"n.{at}", f"n.{at}", unit=UNIT)
            for at, outcome in enumerate(self.sample.outcomes)
        ]
        experiment, condition = DIAGNOSIS
        edits, axes = self.sample.edits, self.sample.axes
        where = {"experiment": experiment, "condition": condition}
        return build_panel(edits, axes, columns, measures, rubric=self.sample.rubric, **where)

    def _floor(self) -> Values:
        """Return the factor that makes variances at least the pooled ones of the pseudo-outcomes."""
        human, both = (c.pooled((self.factor,)) for c in self.crossed)
        least, variance = both.of([1.0] * self.shape[0]).variance, human.of(list(np.sqrt(self.ratio))).variance
        return np.maximum(np.divide(least, variance, out=np.ones_like(least), where=variance > NEGLIGIBLE), 1.0)

    def single(self, group: int) -> Values:
        """Return the weights of one group."""
        weights = np.zeros(self.shape)
        weights[group] = 1.0
        return weights

    def others(self, group: int, equal: bool) -> Values:
        """Return the weights of all other groups, by their edits or each alike."""
        size = (self.counts > 0).astype(np.float64) if equal else self.counts.copy()
        size[group] = 0.0
        return np.asarray(size / np.maximum(size.sum(axis=0), 1.0))

    def mean(self, weights: Values, with_judges: bool) -> WeightedGroups:
        """Return a weighted mean of groups."""
        crossed, groups = self.crossed[with_judges], self.groups[with_judges]
        sure = crossed.uncertainty(groups, list(weights))
        labels, size = ((x * (weights != 0)).sum(axis=0) for x in (self.labels, self.faces))
        freedom = np.clip(sure.freedom, 1.0, np.maximum(size - 1, 1.0))  # people saw no other faces
        if self.factor:
            pooled = self.crossed[0].pooled((self.factor,))
            inside, variance = pooled.rate * (1 - pooled.rate), pooled.of(list(weights)).variance
            size = np.divide(inside, variance, out=size, where=(inside > 0) & (variance > NEGLIGIBLE))
        several = [np.maximum(g.prompts, 2.0) for g in groups]
        return WeightedGroups(
            value=(weights * np.nan_to_num([g.value for g in groups])).sum(axis=0),
            sure=Uncertainty(sure.variance, freedom),
            by_prompt=np.sum(
                [w * g.by_prompt * np.sqrt(n / (n - 1)) for w, g, n in zip(weights, groups, several, strict=True)],
                axis=0,
            ),
            labels=labels,
            pooled_size=size,
        )

    def p(self, weights: Values) -> Values:
        """Return p of a contrast of groups if all groups are equal."""
        return self.test_variance(weights).p(self.mean(weights, True).value)

    def test_variance(self, weights: Values) -> Uncertainty:
        """Return the variance of a contrast of groups if all groups are equal."""
        return self.crossed[0].pooled((self.factor,)).of(list(weights * np.sqrt(self.ratio)))

    def tests(self, confidence: float) -> tuple[dict[tuple[int, int], GroupTests], dict[tuple[int, int], GroupTests]]:
        """Return the tests of equal groups by people alone and with judges, by editor and outcome."""
        values = np.stack([g.value for g in self.groups[1]])
        human = group_tests(self.crossed[0], self.factor, confidence)
        both = group_tests(self.crossed[0], self.factor, confidence, self.ratio, values)
        return human, {
            place: replace(test, rates=tuple(min(max(rate, 0.0), 1.0) for rate in test.rates))
            for place, test in both.items()
        }


def _variance(values: Values, stratum: NDArray[np.int64], strata: int) -> Values:
    """Return the variance within each stratum."""
    n, total = np.bincount(stratum, minlength=strata), np.bincount(stratum, weights=values, minlength=strata)
    around = values - (total / np.maximum(n, 1))[stratum]
    return np.asarray(np.bincount(stratum, weights=around**2, minlength=strata) / np.maximum(n, 1))
