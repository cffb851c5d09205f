"""Prediction-powered inference: judges on all edits, people on a sample, one estimate with a valid interval.

People's mean over the sample, weighted by one over each case's chance of being chosen, is right but rests on few
edits; the judges' mean rests on all edits but may be off. The difference between judges on all edits and judges on
the sample shows how unlucky the sample was, and a share lambda of it is taken off people's mean (Angelopoulos,
Duchi and Zrnic, PPI++, 2023): lambda is the one that leaves least variance over faces, found for each group on its
own, so judges that are of no use do no harm. Errors are clustered by face and prompt, since the edits of both are.
Where the interval is wider than people's own by more than 2 %, or a share leaves 0 to 1, people's stands. Groups in
which people never saw what is counted borrow from the others how alike labels are, so that they have intervals too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from evenedit.core.records import ConditionKind, Estimate, Experiment, Kind, Outcome
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.rubric import CHANGES
from evenedit.protocol.shifts import ONE_SIDED, TWO_SIDED
from evenedit.ratings.combine import applicable_questions, half_up
from evenedit.ratings.table import QUESTION_IDS, Scores
from evenedit.results.results import Contrast, PredictionPowered
from evenedit.stats.disparity.gaps import gap_intervals
from evenedit.stats.engine.design_effects import FAINT, shrink_design_effect
from evenedit.stats.engine.estimates import NEGLIGIBLE
from evenedit.stats.engine.measures import AXIS_QUESTIONS, Answers, met_rates
from evenedit.stats.engine.panel import Axes, by_face
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.variance import Uncertainty, clustered_variance, difference, wilson_interval

FEWEST = 5
"""Faces that people must have rated before there is an estimate: of fewer, the variance over faces is a guess."""
FEWEST_LABELS = 10
"""Edits that they must have rated."""
WIDER = 1.02
"""An estimate from both whose interval is wider than this many times people's own is not taken: people's is."""
DIGITS = 12
"""Of people's mean: weights sum to 1 but for rounding, and people who always said yes have a share of 1."""
GAP_DRAWS = 500
"""Draws of a gap's noise; there are hundreds of gaps."""
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LabelledSample:
    """One measure of one set of edits: what judges say of all and people of some."""

    judged: Values
    labels: Values
    """People's value; NaN where none rated the edit."""
    weight: Values
    """One over the chance of being in the sample."""
    face: NDArray[np.int64]
    prompt: NDArray[np.int64]

    def only(self, rows: NDArray[np.bool_]) -> LabelledSample:
        """Return the sample with a subset of the edits."""
        return LabelledSample(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """The edits that people rated."""
        return ~np.isnan(self.labels)


@dataclass(frozen=True)
class PairedEstimates:
    """Estimates from people alone and from people with judges, and what each edit adds to them."""

    human: float
    powered: float
    human_influence: Values
    influence: Values
    sample: LabelledSample

    @cached_property
    def uncertainty(self) -> tuple[Uncertainty, Uncertainty]:
        """Return the uncertainty of people over the sample, and of judges and people over all edits."""
        s = self.sample
        at = s.labelled
        human = clustered_variance(self.human_influence[at], s.face[at], s.prompt[at])
        # how people and judges differ is known from the labelled faces only, however many the judges saw
        return human, Uncertainty(clustered_variance(self.influence, s.face, s.prompt).variance, human.freedom)


def optimal_lambda(sample: LabelledSample) -> float:
    """Return the lambda in [0, 1] with the least variance over faces."""
    human, drift = (np.bincount(sample.face, weights=x) for x in _influences(sample))
    spread = float(drift @ drift)
    return float(np.clip(-(human @ drift) / spread, 0.0, 1.0)) if spread > 0 else 0.0


def _influences(sample: LabelledSample) -> tuple[Values, Values]:
    """Return each edit's influence on people's mean, and on the judges' mean of all edits minus that of the sample."""
    at = sample.labelled
    share = np.where(at, sample.weight, 0.0)
    share = share / share.sum()
    labels = np.where(at, sample.labels, 0.0)
    human = share * (labels - share @ labels)
    drift = (sample.judged - sample.judged.mean()) / len(at) - share * (sample.judged - share @ sample.judged)
    return human, np.where(at, drift, (sample.judged - sample.judged.mean()) / len(at))


def combine_labels(sample: LabelledSample, tuning: float) -> PairedEstimates:
    """Return people's mean, and the same minus the share `tuning` of the judges' drift."""
    at = sample.labelled
    share = np.where(at, sample.weight, 0.0)
    share = share / share.sum()
    human = round(float(share @ np.where(at, sample.labels, 0.0)), DIGITS)
    drift = float(sample.judged.mean() - share @ sample.judged)
    human_influence, drift_influence = _influences(sample)
    powered = round(human + tuning * drift, DIGITS)
    return PairedEstimates(human, powered, human_influence, human_influence + tuning * drift_influence, sample)


Ends = tuple[float, float] | tuple[None, None]
NONE: Ends = (None, None)


@dataclass(frozen=True, slots=True)
class PoweredEstimate:
    """One estimate from people alone and from both."""

    measure: str
    group: Mapping[str, str]
    human: float
    human_ends: Ends
    value: float
    ends: Ends
    tuning: float
    n: int
    labelled: int
    reason: str = ""
    """Why there is no estimate from both."""

    def settled(self, share: bool) -> PoweredEstimate:
        """Return people's estimate if the judges do not improve it; no interval if people's ratings do not vary."""
        if self.human_ends == NONE:
            return replace(self, ends=NONE, reason=self.reason or "none: no variation in what people said")
        width, human_width = (float(high or 0.0) - float(low or 0.0) for low, high in (self.ends, self.human_ends))
        outside = share and not 0 <= self.value <= 1
        if self.ends == NONE or outside or width > WIDER * human_width:
            return replace(self, value=self.human, ends=self.human_ends, tuning=0.0)
        return self


def prediction_powered_estimates(
    scores: Scores,
    scored: Answers,
    rules: AnalysisRules,
    inclusion: Mapping[str, float],
    estimates: Iterable[Estimate],
    contrasts: Iterable[Contrast],
) -> Iterator[PredictionPowered]:
    """Yield diagnosis estimates by judges, by people and combined, for each editor and pooled."""
    edits = scores.edits
    chosen = (edits["experiment"] == Experiment.DIAGNOSIS) & (edits["condition"] == ConditionKind.BASELINE)
    rows = np.flatnonzero((chosen & (edits["outcome"] == Outcome.EDITED)).to_numpy())
    people = scores.table.of_kind(Kind.HUMAN)
    if not len(rows) or not people:
        return
    people_values = scores.table.values[people][:, rows]
    chance = np.array([inclusion.get(r, np.nan) for r in edits["request_id"].iloc[rows]])
    weighted = bool(inclusion)
    selected = edits.iloc[rows]
    axes = by_face(selected, scores.table.factors)
    editor = selected["editor"].to_numpy(dtype=str)
    editors = [str(name) for name in np.unique(editor)]
    judge: dict[tuple[str, str | None, str], tuple[float, float | None, float | None]] = {}
    for e in estimates:
        if (e.experiment, e.condition) == (Experiment.DIAGNOSIS, ConditionKind.BASELINE) and e.value is not None:
            judge[e.measure, e.editor, _key(e.group)] = e.value, e.low, e.high
    for c in contrasts:
        if (c.experiment, c.condition) == (Experiment.DIAGNOSIS, ConditionKind.BASELINE):
            judge[c.measure.replace("rate.", "contrast.", 1), c.editor, _key(c.group)] = c.value, c.low, c.high
    how = "inclusion weights" if weighted else "equal weights: no inclusion probabilities are known"
    for measure, judged, labels in (
        *_measures(scored.rows(rows), people_values, rules),
        *_shifts(scores, rows, people_values, rules),
    ):
        known = labels if not weighted else np.where(np.isnan(chance), np.nan, labels)
        weight = np.where(np.isnan(chance), 1.0, 1 / np.where(np.isnan(chance), 1.0, chance))
        sample = LabelledSample(judged, known, weight, axes.cluster_at, axes.prompt_at)
        for name in [*editors, None]:
            members = ~np.isnan(judged) & ((editor == name) if name is not None else True)
            for row in _three_ways(sample.only(members), axes, measure, rules):
                judge_estimate = judge.get((row.measure, name, _key(row.group)))
                if judge_estimate is not None:
                    yield PredictionPowered(
                        measure=row.measure,
                        experiment="diagnosis",
                        condition=ConditionKind.BASELINE,
                        editor=name,
                        group=row.group,
                        judge=judge_estimate[0],
                        judge_low=judge_estimate[1],
                        judge_high=judge_estimate[2],
                        human=row.human,
                        human_low=row.human_ends[0],
                        human_high=row.human_ends[1],
                        value=None if row.reason else row.value,
                        low=row.ends[0],
                        high=row.ends[1],
                        tuning=None if row.reason else row.tuning,
                        n=row.n,
                        labelled=row.labelled,
                        method=row.reason or f"ppi++, {how}, clustered by source x prompt",
                    )


def _key(group: Mapping[str, str]) -> str:
    return "&".join(f"{k}={v}" for k, v in sorted(group.items()))


def _measures(
    scored: Answers, people_values: NDArray[np.int8], rules: AnalysisRules
) -> Iterator[tuple[str, Values, Values]]:
    """Yield each mean and rate with the ensemble's value of every edit and people's mean; NaN where missing."""
    for question in AXIS_QUESTIONS:
        value, applies = scored.of(question)
        answers = people_values[:, :, QUESTION_IDS.index(question)]
        total, count = answers.sum(axis=0, dtype=np.int64), (answers > 0).sum(axis=0, dtype=np.int64)
        rated = (applies > 0) & (count > 0)
        if not (rated & (value > 0)).any():
            continue
        unscored = value == 0
        mean = np.where(rated, total / np.maximum(count, 1), np.nan)
        yield Measure.mean(question), np.where(unscored, np.nan, value.astype(np.float64)), mean
        rounded = half_up(total, count).astype(np.int64)
        for (name, judged), (_, labels) in zip(
            met_rates(value, question, rules.rates), met_rates(rounded, question, rules.rates), strict=True
        ):
            yield Measure.rate(name), np.where(unscored, np.nan, judged), np.where(rated, labels, np.nan)


def _shifts(
    scores: Scores, rows: NDArray[np.intp], people_values: NDArray[np.int8], rules: AnalysisRules
) -> Iterator[tuple[str, Values, Values]]:
    """Yield the same for each shift, over the prompts that do not ask for it; see `add_shift_measure`."""
    applies = applicable_questions(scores.table)[rows]
    for question in CHANGES:
        at = QUESTION_IDS.index(question)
        unasked = ~scores.table.asked_for(question)[rows]
        included = applies[:, at] & unasked
        value, answers = scores.values[rows, at].astype(np.int64), people_values[:, :, at]
        total, count = answers.sum(axis=0, dtype=np.int64), (answers > 0).sum(axis=0, dtype=np.int64)
        rated, judged = included & (count > 0), included & (value > 0)
        if not (rated & judged).any() or (question not in TWO_SIDED and (applies[:, at] <= unasked).all()):
            continue
        met, met_by_people = (
            dict(met_rates(x, question, rules.rates)) for x in (value, half_up(total, count).astype(np.int64))
        )
        sides = [TWO_SIDED[question]] if question in TWO_SIDED else [(r, None) for r in met if r in ONE_SIDED]
        for above, below in sides:
            moves = [x[above] - (0 if below is None else x[below]) for x in (met, met_by_people)]
            name = Measure.shift(above if below is None else question)
            yield name, np.where(judged, moves[0], np.nan), np.where(rated, moves[1], np.nan)


def _is_share(measure: str) -> bool:
    """Return whether a measure lies between 0 and 1."""
    name = Measure(measure)
    return name.kind == MeasureKind.RATE or (name.kind == MeasureKind.SHIFT and name.name in ONE_SIDED)


def _three_ways(sample: LabelledSample, axes: Axes, measure: str, rules: AnalysisRules) -> Iterator[PoweredEstimate]:
    """Yield the estimates of everybody, of every group and, for rates, of every contrast and gap."""
    is_rate, is_share = Measure(measure).kind == MeasureKind.RATE, _is_share(measure)
    if not sample.labelled.any():
        return
    if not _enough(sample):
        yield _too_few(sample, measure, {})
        return
    overall = combine_labels(sample, optimal_lambda(sample))
    yield _to_record(overall, measure, {}, optimal_lambda(sample), rules, _pulls([overall], rules)[0]).settled(is_share)
    for factor, levels in axes.levels.items():
        label = axes.labels[factor][sample.face]
        groups = {level: label == level for level in levels}
        members = {level: sample.only(at) for level, at in groups.items()}
        tuning = {level: optimal_lambda(subset) for level, subset in members.items() if _enough(subset)}
        parts = {level: combine_labels(members[level], share) for level, share in tuning.items()}
        pulls = dict(zip(parts, _pulls(list(parts.values()), rules) if is_share else [], strict=False))
        for level, subset in members.items():
            if level in parts:
                row = _to_record(parts[level], measure, {factor: level}, tuning[level], rules, pulls.get(level))
                yield row.settled(is_share)
            elif subset.labelled.any():
                yield _too_few(subset, measure, {factor: level})
        if not is_rate or len(levels) < 2 or len(parts) < len(levels):
            continue
        by_level = {}
        for level, at in groups.items():
            others = sample.only(~at)
            rest = combine_labels(others, optimal_lambda(others))
            row = _contrast(parts[level], rest, tuning[level], rules, pulls[level]).settled(False)
            by_level[level] = replace(row, measure=measure.replace("rate.", "contrast.", 1), group={factor: level})
        yield from by_level.values()
        share = float(np.mean(list(tuning.values())))
        if len(levels) == 2:
            row = _of_two(list(parts.values()), by_level[levels[0]], share)
        else:
            row = _gap(list(parts.values()), share, rules, list(pulls.values()))
        yield replace(row.settled(True), measure=measure.replace("rate.", "gap.", 1), group={factor: "*"})


def _of_two(parts: Sequence[PairedEstimates], contrast: PoweredEstimate, tuning: float) -> PoweredEstimate:
    """Return the gap of two groups: the absolute difference, with an interval that accounts for shared prompts."""
    return replace(
        contrast,
        human=abs(contrast.human),
        human_ends=_size(contrast.human_ends),
        value=abs(contrast.value),
        ends=_size(contrast.ends),
        tuning=0.0 if contrast.ends == contrast.human_ends else tuning,  # 0 where people's own numbers stand
        n=sum(len(b.sample.face) for b in parts),
        labelled=sum(int(b.sample.labelled.sum()) for b in parts),
    )


def _size(ends: Ends) -> Ends:
    """Return the interval of the absolute difference."""
    low, high = ends
    if low is None or high is None:
        return NONE
    return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def _enough(sample: LabelledSample) -> bool:
    labelled = sample.labelled
    return int(labelled.sum()) >= FEWEST_LABELS and len(np.unique(sample.face[labelled])) >= FEWEST


def _too_few(sample: LabelledSample, measure: str, group: Mapping[str, str]) -> PoweredEstimate:
    """Return people's mean of few labels and the reason why there is no interval."""
    both, labels = combine_labels(sample, 0.0), int(sample.labelled.sum())
    faces = len(np.unique(sample.face[sample.labelled]))
    reason = f"none: people rated {labels} edits of {faces} faces; {FEWEST_LABELS} edits of {FEWEST} faces are needed"
    return PoweredEstimate(measure, group, both.human, NONE, both.human, NONE, 0.0, len(sample.face), labels, reason)


class ShareDesignEffects(NamedTuple):
    """How alike the labels of a share are, as Wilson's interval takes it: their design effect times t²."""

    human: float
    powered: float


def _pulls(groups: Sequence[PairedEstimates], rules: AnalysisRules) -> list[ShareDesignEffects]:
    """Return the design effect of each group's share; groups of few events borrow from the others.

    People who never, or always, said yes show no variance: without other groups, faces are then the units.
    """
    least = float(ndtri(0.5 + rules.confidence / 2)) ** 2
    sizes = [float(both.sample.labelled.sum()) for both in groups]
    events = [size * max(both.human * (1 - both.human), 0.0) for size, both in zip(sizes, groups, strict=True)]
    separate = [_own_pulls(both, size, rules) for both, size in zip(groups, sizes, strict=True)]
    effects = []
    for at, both in enumerate(groups):
        as_faces = max(least, least * sizes[at] / len(np.unique(both.sample.face[both.sample.labelled])))
        others = [k for k in range(len(groups)) if k != at and events[k] > NEGLIGIBLE]
        if not others and events[at] > NEGLIGIBLE:
            effects.append(separate[at])
            continue
        seen = sum(events[k] for k in others)
        borrowed = (sum(events[k] * separate[k].human for k in others) + FAINT * as_faces) / (seen + FAINT)
        borrowed = min(max(borrowed, least), as_faces)
        effects.append(
            ShareDesignEffects(
                *(
                    float(shrink_design_effect(np.array(x), np.array(borrowed), np.array(events[at])))
                    for x in separate[at]
                )
            )
        )
    return effects


def _own_pulls(both: PairedEstimates, size: float, rules: AnalysisRules) -> ShareDesignEffects:
    effects = []
    for share, sure in zip((both.human, both.powered), both.uncertainty, strict=True):
        t = float(stdtrit(float(sure.freedom), 0.5 + rules.confidence / 2))
        inside = share * (1 - share)
        effects.append(t * t * float(sure.variance) * size / inside if inside > NEGLIGIBLE else 0.0)
    return ShareDesignEffects(*effects)


def _to_record(
    both: PairedEstimates,
    measure: str,
    group: Mapping[str, str],
    tuning: float,
    rules: AnalysisRules,
    pulls: ShareDesignEffects | None = None,
) -> PoweredEstimate:
    is_share, is_shift = _is_share(measure), Measure(measure).kind == MeasureKind.SHIFT
    labelled = int(both.sample.labelled.sum())
    pulls = pulls or _pulls([both], rules)[0]

    def ends(value: float, sure: Uncertainty, pull: float) -> Ends:
        if is_share:
            return wilson_interval(min(max(value, 0.0), 1.0), pull / labelled)
        if not float(sure.variance) > NEGLIGIBLE:
            return NONE
        reach = float(sure.half_width(rules.confidence))
        low, high = value - reach, value + reach
        return (max(low, -1.0), min(high, 1.0)) if is_shift else (low, high)

    human, combined = both.uncertainty
    return PoweredEstimate(
        measure,
        group,
        both.human,
        ends(both.human, human, pulls.human),
        both.powered,
        ends(both.powered, combined, pulls.powered),
        tuning,
        len(both.sample.face),
        labelled,
    )


def _contrast(
    one: PairedEstimates,
    rest: PairedEstimates,
    tuning: float,
    rules: AnalysisRules,
    pulls: ShareDesignEffects | None = None,
) -> PoweredEstimate:
    """Return the estimate of a group minus everybody else."""
    sure = one.uncertainty, rest.uncertainty
    prompts = 1 + max(int(one.sample.prompt.max()), int(rest.sample.prompt.max()))
    sizes = [int(b.sample.labelled.sum()) for b in (one, rest)]
    both_pulls = pulls or _pulls([one], rules)[0], _pulls([rest, one], rules)[0]

    def ends(way: int, first: float, second: float, parts: tuple[Values, Values]) -> Ends:
        shares = [min(max(x, 0.0), 1.0) for x in (first, second)]
        intervals = [wilson_interval(s, p[way] / n) for s, p, n in zip(shares, both_pulls, sizes, strict=True)]
        # the two are alike as far as they share prompts
        sums = [
            np.bincount(b.sample.prompt, weights=x, minlength=prompts) for b, x in zip((one, rest), parts, strict=True)
        ]
        spread = float(np.sqrt(sure[0][way].variance * sure[1][way].variance))
        alike = float(sums[0] @ sums[1]) / spread if spread > NEGLIGIBLE else 0.0
        return difference(shares[0], shares[1], (intervals[0], intervals[1]), float(np.clip(alike, -1, 1)))

    return PoweredEstimate(
        "",
        {},
        one.human - rest.human,
        ends(0, one.human, rest.human, (one.human_influence, rest.human_influence)),
        one.powered - rest.powered,
        ends(1, one.powered, rest.powered, (one.influence, rest.influence)),
        tuning,
        len(one.sample.face),
        sizes[0],
    )


def _gap(
    parts: Sequence[PairedEstimates], tuning: float, rules: AnalysisRules, pulls: Sequence[ShareDesignEffects]
) -> PoweredEstimate:
    """Return highest minus lowest; shared noise of prompts is included, so the interval is conservative."""
    sizes = np.array([float(b.sample.labelled.sum()) for b in parts])
    shares = np.clip([[b.human for b in parts], [b.powered for b in parts]], 0.0, 1.0)
    inside = np.clip(shares, 0.5 / sizes, 1 - 0.5 / sizes)
    noise = np.sqrt(np.array(pulls).T / sizes * inside * (1 - inside)) / ndtri(0.5 + rules.confidence / 2)
    no_shared_noise = np.zeros((GAP_DRAWS, 2, len(parts)))
    intervals = gap_intervals(shares, noise, no_shared_noise, np.stack([sizes, sizes]), rules.confidence, rules.seed)
    human_ends, ends = ((float(low), float(high)) for low, high in intervals.T)
    return PoweredEstimate(
        "",
        {},
        float(np.ptp(shares[0])),
        human_ends,
        float(np.ptp(shares[1])),
        ends,
        tuning,
        sum(len(b.sample.face) for b in parts),
        int(sizes.sum()),
    )
