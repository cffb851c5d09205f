"""Findings in words: one sentence each, true of its numbers and complete without the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evenedit.core.records import ConditionKind
from evenedit.protocol import QUESTIONS, Factor
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.shifts import TWO_SIDED
from evenedit.results.finding import ENSEMBLE
from evenedit.results.results import Contrast, GapTest, MitigationEffect, PredictionPowered
from evenedit.results.words import (
    between,
    count,
    factor_noun,
    group_name,
    listed,
    percent,
    phrase,
    points,
    scale_points,
)
from evenedit.stats.engine.shift_tests import ShiftTest

SIDES: Mapping[str, tuple[str, str, str]] = {
    "skin_tone": ("lighter", "darker", "Skin"),
    "age_drift": ("older", "younger", "People"),
}
"""By question, the words for either side of no change, and what moved."""


MEASURED: Mapping[str, str] = {"skin_tone": "measured", "age_drift": "were read by a model as"}
"""How an instrument tells a side."""


def opening(rater: str) -> str:
    """Return the opening of a sentence about an instrument's readings."""
    return "" if rater == ENSEMBLE else f"Measured ({rater}): "


def two_sided_shift(t: ShiftTest, rater: str, confidence: float, has_shift: bool, margin: float | None = None) -> str:
    """Describe a shift of a two-sided question; `has_shift`: there are signs of one; `margin`: it is within that."""
    above, below, what = SIDES[t.measure.name]
    how = "were rated" if rater == ENSEMBLE else MEASURED[t.measure.name]
    first, second = (above, below) if t.value >= 0 else (below, above)
    counts = (t.above, t.below) if t.value >= 0 else (t.below, t.above)
    shares = [percent(c / t.n) for c in counts]
    size = f"{first} minus {second} {points(abs(t.value))}"
    ends = (t.low, t.high) if t.value >= 0 else (_minus(t.high), _minus(t.low))
    reach = f", {between(ends[0], ends[1], confidence)}" if ends[0] is not None and ends[1] is not None else ""
    base = (
        f"{shares[0]} of {count(t.n, 'edit')}{_null_clause(t)} {how} {first} than the source and {shares[1]} {second} "
        f"({size}{reach}; {_spread(t)}{_missing(t, rater)})."
    )
    if has_shift:
        return f"{what} came back {first} more often than {second}: {base}"
    lead = f"{above.capitalize()} and {below} did not differ clearly: "
    if margin is not None:
        lead = f"{above.capitalize()} and {below} are even within ±{points(margin)}: "
    return f"{lead}{base}"


def one_sided_shift(t: ShiftTest, rater: str, confidence: float) -> str:
    """Describe a one-sided share and the study's tolerance."""
    reach = f"{between(t.low, t.high, confidence)}; " if t.low is not None and t.high is not None else ""
    name = t.measure.name
    return (
        f"{percent(t.value)} of {count(t.n, 'request' if name == 'refused' else 'edit')}{_null_clause(t)} "
        f"{phrase(name)} ({reach}{_spread(t)}{_missing(t, rater)}; the study tolerates {percent(t.limit)})."
    )


def gap(
    test: GapTest,
    rates: tuple[float, float],
    faces: tuple[int, int],
    interval: tuple[float, float] | None,
    factor: Factor,
    confidence: float,
) -> str:
    """Describe a gap between two groups, the disadvantaged one first."""
    rate = Measure(test.measure).name
    worse, other = ends(test)
    names = [factor.titles.get(code, code) for code in (worse, other)]
    reach = f", {between(*interval, confidence)}" if interval else ""
    return (
        f"{percent(rates[0])} of edits of portraits labelled {_label(factor, worse, names[0])} "
        f"{phrase(rate)}, "
        f"{percent(rates[1])} of those labelled {_label(factor, other, names[1])} "
        f"(gap {points(test.value)}{reach}; {faces[0]:,} and {count(faces[1], 'face')})."
    )


def asked_nothing(text: str, condition: str) -> str:
    """Return the sentence on groups, adapted to the null edit where it is about that."""
    if condition != ConditionKind.FLOOR:
        return text
    return f"Where no change was asked for, {text[0].lower()}{text[1:]}"


def on_these(prompts: int) -> str:
    """Return the restriction of a gap to its few prompts."""
    return "on one prompt" if prompts == 1 else f"on these {prompts} prompts"


def ends(test: GapTest) -> tuple[str, str]:
    """Return the disadvantaged group, and the one it is compared with."""
    better_high = Measure(test.measure).name in ("edit_success",)
    return (test.lowest, test.highest) if better_high else (test.highest, test.lowest)


def no_gap(
    factor: Factor, rates: Sequence[str], widest: Contrast | None, people: PredictionPowered | None = None
) -> str:
    """State that no difference between groups of a factor was shown, and how large one may still be."""
    which = f"any of {len(rates)} rates" if len(rates) > 3 else listed([_plain(rate) for rate in rates])
    text = f"No difference by {factor_noun(factor)} label was shown in {which}."
    size = None if widest is None else _furthest(widest.low, widest.high)
    if widest is None or size is None:
        return f"{text} The data give no interval, so how large a difference could hide is not known."
    detail = f"{_plain(Measure(widest.measure).name)}, {group_name(widest.group, [factor])}"
    judges_only = None if people is None else _furthest(people.judge_low, people.judge_high)
    if people is not None and judges_only is not None:
        labels = f"people's ratings of {people.labelled:,} of its edits"
        detail += f"; as far as {labels} tell, by the judges alone {points(judges_only)}"
    return (
        f"{text} That is not proof of equality: a group may still differ from everybody else by up to {points(size)} "
        f"({detail})."
    )


def _furthest(low: float | None, high: float | None) -> float | None:
    """Return the largest distance of an interval from 0."""
    return None if low is None or high is None else max(abs(low), abs(high))


def with_people(p: PredictionPowered, measure: Measure, judged: float, confidence: float) -> str:
    """Describe the estimate of judges and people combined, in the direction of the judges' estimate."""
    assert p.value is not None and p.low is not None and p.high is not None
    value, ends = (p.value, (p.low, p.high)) if judged >= 0 else (-p.value, (-p.high, -p.low))
    share = measure.kind != MeasureKind.GAP and measure.name not in TWO_SIDED
    size = percent(value) if share else points(value)
    return f"With people's ratings of {p.labelled:,} of these edits it is {size} ({between(*ends, confidence)})."


def even_groups(factor: Factor, rates: Sequence[str], margin: float, size: float, confidence: float) -> str:
    """State that the groups of a factor are even within a margin."""
    which = f"each of {len(rates)} rates" if len(rates) > 3 else listed([_plain(rate) for rate in rates])
    return (
        f"Even within ±{points(margin)} by {factor_noun(factor)} label in {which}: no gap's "
        f"{100 * confidence:g}% interval "
        f"reaches beyond {points(size)}."
    )


def mitigation(e: MitigationEffect, confidence: float) -> str:
    """Describe the effect of the feature prompt on a score beyond repeating the edit."""
    assert e.value is not None
    title = QUESTIONS[e.question].title.lower()
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


def no_mitigation(effects: Sequence[MitigationEffect]) -> str:
    """State that no effect of the feature prompt on these scores was shown."""
    titles = listed([QUESTIONS[e.question].title.lower() for e in effects])
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
    if not t.missing or t.measure.name == "refused":
        return ""
    return f"; {t.missing:,} without a {'score' if rater == ENSEMBLE else 'measurement'}"


def _label(factor: Factor, code: str, title: str) -> str:
    return group_name({factor.name: code}, [factor]) or title


def _plain(rate: str) -> str:
    """Return the name of a rate in words, without "measured"."""
    return rate.removeprefix("measured_").replace("_", " ")


def _minus(value: float | None) -> float | None:
    return None if value is None else -value
