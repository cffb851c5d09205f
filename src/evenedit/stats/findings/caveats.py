"""What stands beside a finding: limits that its test cannot see, the editor's own noise, other languages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evenedit.core.records import ConditionKind, Estimate, language_of
from evenedit.protocol import Rubric
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.rubric import MEASURED
from evenedit.ratings.table import RatingTable
from evenedit.results.finding import ENSEMBLE, FindingLevel
from evenedit.results.results import GapTest, Results
from evenedit.results.sensitivities import EditorNoise, LanguageDifference
from evenedit.results.words import between, count, listed, percent, points
from evenedit.stats.engine.estimates import DOMINANT
from evenedit.stats.engine.shift_tests import ShiftTest
from evenedit.stats.findings.gaps import FEWEST_PROMPTS, GapEvidence
from evenedit.stats.robustness.leave_one_out import influential_faces

MOST_NAMED = 6
"""Up to so many prompts are named."""


def prompt_scope_clause(prompts: int, these_prompts: bool) -> tuple[str, ...]:
    """Return the caveat that a finding only holds for its prompts."""
    if prompts < 2:
        return ("It was read on one prompt, so it says nothing about others.",)
    if prompts < FEWEST_PROMPTS:
        return (f"It was read on {prompts} prompts: too few to say much about other prompts.",)
    if these_prompts:
        return ("Its interval is for these prompts: how the rate varies over other prompts cannot be told from them.",)
    return ()


def people_clause(reason: str) -> str:
    """Return the caveat that people rated too little."""
    return f"People's ratings are too few to check this: {reason}."


def unread_clause(
    estimates: Iterable[Estimate], measure: Measure, editor: str, factor: str | None, most: float
) -> tuple[str, ...]:
    """Return the caveat on an instrument that could not read a large share of some group's edits."""
    rate = measure.to(MeasureKind.RATE) if measure.kind == MeasureKind.GAP else measure
    worst = max(
        (
            e.missing / (e.n + e.missing)
            for e in estimates
            if (e.measure, e.editor) == (rate, editor) and e.n + e.missing and len(e.group) <= 1
            and (factor is None or set(e.group) <= {factor})
        ),
        default=0.0,
    )  # fmt: skip
    if worst <= most:
        return ()
    return (f"The instrument could not read up to {percent(worst)} of the edits of a group.",)


def excluded_edits_clause(t: ShiftTest, table: RatingTable) -> tuple[str, ...]:
    """Return the caveat on edits excluded from a shift because their prompts ask for the change."""
    rate = t.rubric.rates.get(t.measure.name)
    asked_as = t.rubric.words(t.measure.name).asked_as
    column = t.measure.name if t.two_sided else rate.question if rate else asked_as
    if t.measure.kind != MeasureKind.SHIFT or column not in t.rubric:
        return ()
    question = t.rubric.spec_by_column[column].id
    edits = table.edits
    selected = (
        (edits["experiment"] == t.experiment) & (edits["condition"] == t.condition) & (edits["editor"] == t.editor)
    )
    asking = edits["prompt_id"][selected & table.asked_for(question)]
    if asking.empty:
        return ()
    prompts = sorted(set(map(str, asking)))
    which = f": {listed(prompts)}" if len(prompts) <= MOST_NAMED else ""
    asks = "a prompt that asks" if len(prompts) == 1 else f"{len(prompts):,} prompts that ask"
    return (f"{count(len(asking), 'edit')} of {asks} for such a change {_are(len(asking))} left out{which}.",)


def missing_scores_clause(e: Estimate | None) -> tuple[str, ...]:
    """Return the caveat on edits of a group without a score."""
    if e is None or not e.missing:
        return ()
    return (f"{e.missing:,} of {e.n + e.missing:,} edits of this group have no score.",)


def unmeasured_clause(
    parts: Results, rubric: Rubric, rater: str, measure: Measure, editor: str | None, group: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the caveat on unmeasured edits: of a gap, what they could do to it; and which way they lie.

    The sentence of a shift has its own bounds.
    """
    two = rubric.two_sided.get(measure.name, ())
    rate = Measure.rate(MEASURED + two[0]) if two else measure.to(MeasureKind.RATE)
    places = [b for m in parts.measured if m.rater == rater for b in m.bounds if b.editor == editor]
    bounds = {b.factor: b for b in parts.bounds if (b.rater, b.measure, b.editor) == (rater, measure, editor)}
    clauses = []
    for b in (b for b in places if (b.measure, b.group) == (rate, group)):
        gap = bounds.get(next(iter(group), ""))
        if gap is not None:
            clauses.append(
                f"With {count(gap.missing, 'unmeasured edit')} counted either way, the rate of this group lies between "
                f"{percent(b.low)} and {percent(b.high)}, and the gap between {points(gap.low)} and {points(gap.high)}."
            )
        if b.raw_missing is not None and b.raw_measured is not None:
            clauses.append(
                f"Skin as displayed changed by {b.raw_missing:+.1f} L* on average in {count(b.missing, 'edit')} "
                f"without a measurement, by {b.raw_measured:+.1f} L* in the others (all prompts).".replace("-", "−")
            )
    return tuple(clauses)


def one_prompt_clause(g: GapEvidence, level: str) -> tuple[str, ...]:
    """Return the caveat on one prompt that holds more than half of a group's events."""
    crossed, test = g.evidence.crossed, g.test
    names = [m.name for m in crossed.panel.measures]
    at = names.index(Measure(test.measure).to(MeasureKind.RATE))
    sums = crossed.of({test.factor: level})
    row = crossed.panel.editors.index(test.editor or "")
    if g.prompts < 2 or sums.top_prompt[row, at] <= DOMINANT:
        return ()
    return (f"One prompt holds {percent(float(sums.top_prompt[row, at]))} of this group's events.",)


def influence_clause(g: GapEvidence, worse: str) -> tuple[str, ...]:
    """Return the caveat on a few faces of the disadvantaged group that carry a gap."""
    t = g.test
    rubric, rate = g.evidence.panel.rubric, Measure(t.measure).name.removeprefix(MEASURED)
    few = influential_faces(g.evidence.panel, t, worse) if rubric.is_harm(rate) else None
    if few is None:
        return ()
    return (f"{few[0]} of its {few[1]} faces hold more than half of it: others of this label may differ.",)


def pronoun_clause(level: FindingLevel, swapped: ShiftTest | None) -> tuple[str, ...]:
    """Return the caveat on a missing pronoun-swapped control or on the effect of the pronoun."""
    if swapped is None:
        return (
            "There is no pronoun-swapped control, so following the prompt cannot be told from following the "
            "stereotype.",
        )
    if level == "observed":
        return ("With the pronoun swapped the share is on the other side: the editor follows the pronoun.",)
    return ()


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


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
