"""What stands beside a finding: the editor's own noise, a second labelling, and other languages."""

from __future__ import annotations

from collections.abc import Iterable

from evenedit.core.records import Condition, Estimate, language_of
from evenedit.protocol.measures import Measure
from evenedit.protocol.shifts import TWO_SIDED
from evenedit.results.finding import ENSEMBLE
from evenedit.results.results import GapTest
from evenedit.results.sensitivities import EditorNoise, LanguageDifference, SecondLabelling
from evenedit.results.words import between, percent, points
from evenedit.stats.findings.evidence import ShareTest
from evenedit.stats.findings.sentences import SIDES


def noise_clause(noise: Iterable[EditorNoise], rater: str, t: ShareTest, confidence: float) -> str:
    """What the null edit and repeated seeds move of a shift, as sentences after its own; empty where not known."""
    if t.condition != Condition.BASELINE:
        return ""
    place = (rater, t.measure, t.editor)
    own = next((n for n in noise if (n.rater, n.measure, n.editor) == place), None)
    if own is None:
        return ""
    name = Measure(t.measure).name
    two_sided = name in TWO_SIDED
    sign = -1 if two_sided and t.value < 0 else 1
    shown = points if two_sided else percent
    what = "this share"
    if two_sided:
        above, below, _ = SIDES[name]
        what = f"{above} minus {below}" if sign > 0 else f"{below} minus {above}"
    text = ""
    if own.floor is not None:
        ends = sorted(sign * x for x in (own.floor_low, own.floor_high) if x is not None)
        reach = f" ({between(ends[0], ends[1], confidence)})" if len(ends) == 2 else ""
        text += f" When asked to change nothing, {what} is {shown(sign * own.floor)}{reach}."
    if own.seed_low is not None and own.seed_high is not None:
        low, high = sorted((sign * own.seed_low, sign * own.seed_high))
        text += f" Over {own.seeds} seeds it lies between {shown(low)} and {shown(high)}."
    return text


def second_labels_say(several: Iterable[SecondLabelling], rater: str, t: GapTest, confidence: float) -> tuple[str, ...]:
    """What a gap is with the second labels; nothing where there are none."""
    place = (t.measure, t.editor, {t.factor: "*"})
    own = next((s for s in several if rater == ENSEMBLE and (s.measure, s.editor, dict(s.group)) == place), None)
    if own is None or t.condition != Condition.BASELINE:
        return ()
    low, high = own.second_low, own.second_high
    reach = "" if low is None or high is None else f"{between(low, high, confidence)}; "
    p = "" if own.second_p is None else f"p, not adjusted, {own.second_p:.2g}; "
    other = "" if (own.highest, own.lowest) == (t.highest, t.lowest) else ", between other groups"
    return (
        f"With the second labels the gap is {points(own.second)}{other} ({reach}{p}{own.relabelled:,} of "
        f"{own.labelled:,} portraits are labelled otherwise).",
    )


def shift_in_languages(estimates: Iterable[Estimate], rater: str, t: ShareTest, confidence: float) -> tuple[str, ...]:
    """What a shift is where the editor was asked in other languages; nothing where it was not."""
    if rater != ENSEMBLE or t.condition != Condition.BASELINE:
        return ()
    sign = -1 if Measure(t.measure).name in TWO_SIDED and t.value < 0 else 1
    said = []
    for e in estimates:
        language = language_of(e.condition)
        if language and (e.measure, e.editor) == (t.measure, t.editor) and not e.group and e.value is not None:
            ends = sorted(sign * x for x in (e.low, e.high) if x is not None)
            reach = f" ({between(ends[0], ends[1], confidence)})" if len(ends) == 2 else ""
            shown = points if Measure(t.measure).name in TWO_SIDED else percent
            said.append(f"Asked in the language '{language}' it is {shown(sign * e.value)}{reach}.")
    return tuple(said)


def gap_in_languages(
    differences: Iterable[LanguageDifference], rater: str, t: GapTest, confidence: float
) -> tuple[str, ...]:
    """What a gap is where the editor was asked in other languages; nothing where it was not."""
    if rater != ENSEMBLE or t.condition != Condition.BASELINE:
        return ()
    place = (t.measure, t.editor, {t.factor: "*"})
    own = [d for d in differences if (d.measure, d.editor, dict(d.group)) == place]
    return tuple(
        f"Asked in the language '{d.language}' the gap is {points(d.translated)}"
        + (
            ""
            if d.low is None or d.high is None
            else f", a difference of {points(d.value)} ({between(d.low, d.high, confidence)})"
        )
        + "."
        for d in own
    )
