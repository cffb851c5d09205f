"""What stands beside a finding: the editor's own noise, and other languages."""

from __future__ import annotations

from collections.abc import Iterable

from evenedit.core.records import ConditionKind, Estimate, language_of
from evenedit.results.finding import ENSEMBLE
from evenedit.results.results import GapTest
from evenedit.results.sensitivities import EditorNoise, LanguageDifference
from evenedit.results.words import between, percent, points
from evenedit.stats.engine.shift_tests import ShiftTest


def noise_clause(noise: Iterable[EditorNoise], rater: str, t: ShiftTest, confidence: float) -> str:
    """Return sentences on the null edit and repeated seeds of a shift; empty where unknown."""
    if t.condition != ConditionKind.BASELINE:
        return ""
    place = (rater, t.measure, t.editor)
    editor_noise = next((n for n in noise if (n.rater, n.measure, n.editor) == place), None)
    if editor_noise is None:
        return ""
    two_sided = t.two_sided
    sign = -1 if two_sided and t.value < 0 else 1
    formatted = points if two_sided else percent
    what = "this share"
    if two_sided:
        above, below, _ = t.sides
        what = f"{above} minus {below}" if sign > 0 else f"{below} minus {above}"
    text = ""
    if editor_noise.floor is not None:
        ends = sorted(sign * x for x in (editor_noise.floor_low, editor_noise.floor_high) if x is not None)
        reach = f" ({between(ends[0], ends[1], confidence)})" if len(ends) == 2 else ""
        text += f" When asked to change nothing, {what} is {formatted(sign * editor_noise.floor)}{reach}."
    if editor_noise.seed_low is not None and editor_noise.seed_high is not None:
        low, high = sorted((sign * editor_noise.seed_low, sign * editor_noise.seed_high))
        text += f" Over {editor_noise.seeds} seeds it lies between {formatted(low)} and {formatted(high)}."
    return text


def shift_in_languages(estimates: Iterable[Estimate], rater: str, t: ShiftTest, confidence: float) -> tuple[str, ...]:
    """Return one sentence per other language on a shift; empty without other languages."""
    if rater != ENSEMBLE or t.condition != ConditionKind.BASELINE:
        return ()
    sign = -1 if t.two_sided and t.value < 0 else 1
    clauses = []
    for e in estimates:
        language = language_of(e.condition)
        if language and (e.measure, e.editor) == (t.measure, t.editor) and not e.group and e.value is not None:
            ends = sorted(sign * x for x in (e.low, e.high) if x is not None)
            reach = f" ({between(ends[0], ends[1], confidence)})" if len(ends) == 2 else ""
            formatted = points if t.two_sided else percent
            clauses.append(f"Asked in the language '{language}' it is {formatted(sign * e.value)}{reach}.")
    return tuple(clauses)


def gap_in_languages(
    differences: Iterable[LanguageDifference], rater: str, t: GapTest, confidence: float
) -> tuple[str, ...]:
    """Return one sentence per other language on a gap; empty without other languages."""
    if rater != ENSEMBLE or t.condition != ConditionKind.BASELINE:
        return ()
    place = (t.measure, t.editor, {t.factor: "*"})
    matches = [d for d in differences if (d.measure, d.editor, dict(d.group)) == place]
    return tuple(
        f"Asked in the language '{d.language}' the gap is {points(d.translated)}"
        + (
            ""
            if d.low is None or d.high is None
            else f", a difference of {points(d.value)} ({between(d.low, d.high, confidence)})"
        )
        + "."
        for d in matches
    )
