"""Findings in words: one sentence each, true of its numbers and complete without the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenedit.core.records import ConditionKind
from evenedit.protocol import Factor, Rubric
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.outcomes import OUTCOME_RATES
from evenedit.results.finding import ENSEMBLE, Reliability
from evenedit.results.results import GapTest, GroupDifference, MitigationEffect, PredictionPowered
from evenedit.results.words import (
    between,
    count,
    factor_noun,
    group_name,
    listed,
    percent,
    plain,
    points,
    scale_points,
)
from evenedit.stats.disparity.gaps import weighted_sum
from evenedit.stats.engine.anom import deviation_weights
from evenedit.stats.engine.shift_tests import ShiftTest
from evenedit.stats.engine.variance import Uncertainty
from evenedit.stats.findings.gaps import FEWEST_PROMPTS, GapEvidence
from evenedit.stats.findings.levels import alpha_text
from evenedit.stats.robustness.null_pairs import FalseDifference


def opening(rater: str) -> str:
    """Return the opening of a sentence about an instrument's readings."""
    return "" if rater == ENSEMBLE else f"Measured ({rater}): "


def two_sided_shift(
    t: ShiftTest,
    rater: str,
    confidence: float,
    has_shift: bool,
    margin: float | None = None,
    people: PredictionPowered | None = None,
) -> str:
    """Describe a shift of a two-sided question; `has_shift`: there are signs of one; `margin`: it is within that."""
    above, below, what = t.sides
    measured = t.rubric.spec_by_column[t.measure.name].row.measured or "were read as"
    how = "were rated" if rater == ENSEMBLE else measured
    first, second = (above, below) if t.value >= 0 else (below, above)
    size = f"{first} minus {second} {points(abs(t.value))}"
    ends = (t.low, t.high) if t.value >= 0 else (_minus(t.high), _minus(t.low))
    reach = f", {between(ends[0], ends[1], confidence)}" if ends[0] is not None and ends[1] is not None else ""
    details = f"{size}{reach}; {_spread(t)}{_missing(t, rater)}"
    if people is None:
        shares = [percent(share) for share in ((t.above, t.below) if t.value >= 0 else (t.below, t.above))]
        counted = "; each judge's answer counted, not rounded" if rater == ENSEMBLE else ""
        base = (
            f"{shares[0]} of {count(t.n, 'edit')}{_null_clause(t)} {how} {first} than the source and {shares[1]} "
            f"{second} ({details}{counted})."
        )
    else:
        base = (
            f"{size}{reach}, of {count(t.n, 'edit')}{_null_clause(t)} "
            f"({people.labelled:,} edits rated by people, corrected; {_spread(t)}{_missing(t, rater)})."
        )
    if has_shift:
        return f"{what} came back {first} more often than {second}: {base}"
    if ends[0] is not None and ends[0] > 0:
        return (
            f"{what} came back {first} more often than {second}, but not clearly after adjustment for all tests: {base}"
        )
    if t.low is None and t.value:
        return f"{what} came back {first} more often than {second}, but no test is possible: {base}"
    lead = f"No shift was shown between {above} and {below}: "
    if margin is not None:
        lead = f"{above.capitalize()} and {below} are even within ±{points(margin)}: "
    return f"{lead}{base}"


def one_sided_shift(
    t: ShiftTest,
    rater: str,
    confidence: float,
    people: PredictionPowered | None = None,
    false_calls: float | None = None,
) -> str:
    """Describe a one-sided share, the study's tolerance and the share of false calls."""
    reach = f"{between(t.low, t.high, confidence)}; " if t.low is not None and t.high is not None else ""
    name = t.measure.name
    what = count(t.n, "request" if name in OUTCOME_RATES else "edit")
    rated = f"{people.labelled:,} edits rated by people, corrected; " if people is not None else ""
    calls = f"; on unchanged portraits {percent(false_calls)}" if false_calls else ""
    return (
        f"{percent(max(t.value, 0.0))} of {what}{_null_clause(t)} "
        f"{t.phrase or t.rubric.phrase(name)} ({reach}{rated}{_spread(t)}{_missing(t, rater)}{calls}; "
        f"the study tolerates {percent(t.limit)})."
    )


def judges_alone(people: PredictionPowered, t: ShiftTest) -> str:
    """State the judges' own value beside the one corrected by people."""
    if t.two_sided:
        above, below, _ = t.sides
        first, second = (above, below) if people.judge >= 0 else (below, above)
        return f"Judges alone: {first} minus {second} {points(abs(people.judge))}."
    return f"Judges alone: {percent(people.judge)}."


def no_better_than_chance(
    names: Sequence[str], reliability: Reliability | None, judges: int, condition: str, subject: str
) -> str:
    """State that nothing can be said because the judges agree no better than chance; without a percentage."""
    who = "two judges" if judges == 2 else f"{judges} judges"
    rates = listed([plain(name) for name in names])
    if reliability is None or reliability.value is None:
        alike = f"at least one of the {who} answered alike for every edit, as this is counted"
        why = f"{alike}, so how far they agree is not defined"
    elif reliability.low is None:
        why = f"how far the {who} agree cannot be estimated, as too few portraits show it"
    else:
        better = "no better" if reliability.low <= 0 else "hardly better"
        why = f"the {who} agree on this {better} than chance (α = {alpha_text(reliability)})"
    lead = "Where no change was asked for, nothing" if condition == ConditionKind.FLOOR else "Nothing"
    return f"{lead} can be said about {subject[0].lower()}{subject[1:]} ({rates}): {why}."


def subject(t: ShiftTest) -> str:
    """Return what a shift is about, as the object of a sentence."""
    if t.two_sided:
        above, below, _ = t.sides
        return f"A shift to {above} or {below}"
    return "How often this happens"


def gap(g: GapEvidence, named: Sequence[GroupDifference], factor: Factor, confidence: float) -> str:
    """Describe the groups that differ, the surest first."""
    what = g.phrase or g.evidence.panel.rubric.phrase(Measure(g.test.measure).name)
    first = named[0]
    label = _label(factor, first.level)
    reach = (
        f", {between(first.low, first.high, confidence)}" if first.low is not None and first.high is not None else ""
    )
    rated = f"; {g.people.labelled:,} edits rated by people, corrected" if g.people is not None else ""
    scope = "" if g.prompts >= FEWEST_PROMPTS else f", {on_these(g.prompts)}"
    if len(g.groups) == 2:
        other = next(x for x in g.groups if x.level != first.level)
        faces = f"{g.faces.get(first.level, 0):,} and {count(g.faces.get(other.level, 0), 'face')}"
        return (
            f"{percent(_share(first.rate))} of edits of portraits labelled {label} {what}, "
            f"{percent(_share(other.rate))} of those labelled {_label(factor, other.level)} "
            f"(difference {points(first.value)}{reach}; {faces}{rated}){scope}."
        )
    average = sum(x.rate for x in g.groups) / len(g.groups)
    text = (
        f"{percent(_share(first.rate))} of edits of portraits labelled {label} {what}, against "
        f"{percent(_share(average))} on average over all {factor_noun(factor)} labels (difference "
        f"{points(first.value)}{reach}; {count(g.faces.get(first.level, 0), 'face')}{rated}){scope}."
    )
    others = [f"{_label(factor, x.level)} ({points(x.value)})" for x in named[1:]]
    if others:
        text += f" Also different from the average: {listed(others)}."
    size = f" Highest minus lowest: about {points(g.shrunken)} after shrinkage, {points(_raw_gap(g))} as rated."
    return text + size


def _raw_gap(g: GapEvidence) -> float:
    rates = [x.rate for x in g.groups]
    return max(rates) - min(rates)


def _share(value: float) -> float:
    """Return a share within 0 and 1; an estimate corrected by few labels can lie outside."""
    return min(max(value, 0.0), 1.0)


def judges_alone_gap(t: GapTest, first: GroupDifference) -> str:
    """State the judges' own difference of the group beside the one corrected by people."""
    judged = next((x for x in t.groups if x.level == first.level), None)
    return "" if judged is None else f"Judges alone: {points(judged.value)}."


def false_gap(g: GapEvidence, false: FalseDifference, first: GroupDifference, factor: Factor) -> str:
    """State that judges report the outcome on unchanged portraits too, more or less often for the named group."""
    more = "more" if false.value > 0 else "less"
    return (
        f"The judges also report {plain(Measure(g.test.measure).name)} on unchanged portraits, {more} often for those "
        f"labelled {_label(factor, first.level)} ({percent(false.rate)} of null pairs)."
    )


def beyond_false_calls(g: GapEvidence, false: FalseDifference, first: GroupDifference, confidence: float) -> str:
    """State the difference that remains after that of false calls is taken off."""
    levels = g.evidence.panel.axes.levels[g.test.factor]
    crossed, row = g.evidence.crossed, g.evidence.panel.editors.index(g.test.editor or "")
    at = [m.name for m in crossed.panel.measures].index(Measure(g.test.measure).to(MeasureKind.RATE))
    _, edits = weighted_sum(crossed, g.test.factor, list(deviation_weights(len(levels))[levels.index(first.level)]))
    both = edits.at(row, at), false.sure
    variance, parts = sum(float(x.variance) for x in both), sum(float(x.variance) ** 2 / float(x.freedom) for x in both)
    value = first.value - false.value
    if np.isnan(variance) or parts <= 0:
        return f"Beyond the difference on null pairs: {points(value)}."
    total = Uncertainty(np.asarray(variance), np.asarray(variance**2 / parts))
    reach = float(total.half_width(confidence))
    return (
        f"Beyond the difference on null pairs: {points(value)} ({between(value - reach, value + reach, confidence)})."
    )


def estimand(evidence: str, rater: str, judges: int, prompts: int, these_prompts: bool) -> str:
    """State what a finding is about: which prompts and faces, as rated by whom."""
    fixed = these_prompts or prompts < FEWEST_PROMPTS
    which = "these prompts" if fixed else "prompts like these"
    who = {
        "people": "as rated by people",
        "instrument": f"as measured by the instrument '{rater}'",
        "outcome": "as the editor answered",
        "one_judge": "as rated by one judge, not checked by people",
        "judges": f"as rated by {'two' if judges == 2 else judges} judges, not checked by people",
    }.get(evidence, "")
    return f"{which}, faces like these{', ' if who else ''}{who}".capitalize() + "."


def asked_nothing(text: str, condition: str) -> str:
    """Return the sentence on groups, adapted to the null edit where it is about that."""
    if condition != ConditionKind.FLOOR:
        return text
    return f"Where no change was asked for, {text[0].lower()}{text[1:]}"


def on_these(prompts: int) -> str:
    """Return the restriction of a gap to its few prompts."""
    return "on one prompt" if prompts == 1 else f"on these {prompts} prompts"


def no_gap(
    factor: Factor,
    rates: Sequence[str],
    widest: GapEvidence | None,
    group: GroupDifference | None,
    size: float | None,
) -> str:
    """State that no difference between groups of a factor was shown, and how large one may still be."""
    which = f"any of {len(rates)} rates" if len(rates) > 3 else listed([plain(rate) for rate in rates])
    text = f"No difference by {factor_noun(factor)} label was shown in {which}."
    if widest is None or group is None or size is None:
        return f"{text} The data give no interval, so how large a difference could hide is not known."
    detail = f"{plain(Measure(widest.test.measure).name)}, {_label(factor, group.level)}"
    if widest.people is not None:
        detail += f"; {widest.people.labelled:,} edits rated by people, corrected"
    other = "the other group" if len(widest.groups) == 2 else "the average"
    return f"{text} A group may still differ from {other} by up to {points(size)} ({detail})."


def even_groups(factor: Factor, rates: Sequence[str], margin: float, size: float, confidence: float) -> str:
    """State that the groups of a factor are even within a margin."""
    which = f"each of {len(rates)} rates" if len(rates) > 3 else listed([plain(rate) for rate in rates])
    return (
        f"Even within ±{points(margin)} by {factor_noun(factor)} label in {which}: no gap's "
        f"{100 * confidence:g}% interval "
        f"reaches beyond {points(size)}."
    )


def mitigation(e: MitigationEffect, confidence: float, rubric: Rubric) -> str:
    """Describe the effect of the feature prompt on a score beyond repeating the edit."""
    assert e.value is not None
    title = rubric.title(e.question).lower()
    what = f"distance of {title} from unchanged" if e.outcome == "distance" else f"mean score of {title}"
    reach = (
        f"{100 * confidence:g}% interval {scale_points(e.low)} to {scale_points(e.high)}; "
        if e.low is not None and e.high is not None
        else ""
    )
    return (
        f"With the feature prompt the {what} changed by {scale_points(e.value)} scale points beyond the placebo "
        f"({reach}{count(e.n, 'pair')})."
    )


def no_mitigation(effects: Sequence[MitigationEffect], rubric: Rubric) -> str:
    """State that no effect of the feature prompt on these scores was shown."""
    titles = listed([rubric.title(e.question).lower() for e in effects])
    return f"No effect of the feature prompt beyond the placebo was shown on {titles}."


def preference(t: ShiftTest, confidence: float) -> str:
    """Describe which output judges prefer for keeping the identity."""
    reach = f" ({between(t.low, t.high, confidence)})" if t.low is not None and t.high is not None else ""
    return (
        f"Of {count(t.n, 'answer')} of judges that prefer one output, {percent(t.value)} prefer the one with the "
        f"feature prompt as keeping the person's identity better{reach}; 50% would be no preference."
    )


def stereotype(t: ShiftTest, swapped: ShiftTest | None, confidence: float) -> str:
    """Describe how often the role went to the gender that the occupation is coded with."""

    def share_text(x: ShiftTest) -> str:
        reach = f" ({between(x.low, x.high, confidence)})" if x.low is not None and x.high is not None else ""
        return f"{percent(x.value)}{reach}"

    text = f"Of {count(t.n, 'clear verdict')} on two-person prompts, {share_text(t)} followed the stereotype"
    if swapped is None:
        return f"{text}; 50% would be no preference."
    return f"{text}, and {share_text(swapped)} of {swapped.n:,} with the pronoun swapped; 50% would be no preference."


def _null_clause(t: ShiftTest) -> str:
    return " that asked for no change" if t.condition == ConditionKind.FLOOR else ""


def _spread(t: ShiftTest) -> str:
    return f"{count(t.faces, 'face')}, {count(t.prompts, 'prompt')}"


def _missing(t: ShiftTest, rater: str) -> str:
    """Return the number of edits without a score; failed requests have a separate finding."""
    if not t.missing or t.measure.name in OUTCOME_RATES:
        return ""
    if rater == ENSEMBLE:
        return f"; {t.missing:,} without a score"
    every = t.n + t.missing
    least, most = ((t.value * t.n + sign * t.missing) / every for sign in ((-1, 1) if t.two_sided else (0, 1)))
    reach = f"{points(least)} and {points(most)}" if t.two_sided else f"{percent(least)} and {percent(most)}"
    return f"; {t.missing:,} without a measurement, with which it lies between {reach}"


def _label(factor: Factor, code: str) -> str:
    return group_name({factor.name: code}, [factor]) or factor.titles.get(code, code)


def _minus(value: float | None) -> float | None:
    return None if value is None else -value
