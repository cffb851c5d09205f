"""Declared tests in words: one sentence each, with its interval."""

from __future__ import annotations

from collections.abc import Sequence

from evenedit.config.primary import NULL_EDIT, NULL_PAIR
from evenedit.protocol.factors import factor as factor_named
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.ratings.table import RatingTable
from evenedit.results.primary import DeclaredTest
from evenedit.results.words import between, count, factor_noun, group_name, percent, points
from evenedit.stats.engine.contrasts import ContrastTest
from evenedit.stats.engine.panel import RatioMeasure
from evenedit.stats.findings.gaps import FEWEST_PROMPTS
from evenedit.stats.findings.levels import alpha_text
from evenedit.stats.findings.sentences import on_these

COVARIATES = {NULL_EDIT: "the null edit", NULL_PAIR: "null pairs"}


def sentence(
    d: DeclaredTest, result: ContrastTest | None, counted: RatioMeasure | None, table: RatingTable, confidence: float
) -> str:
    """Return the outcome of a declared test in a sentence."""
    if result is None or d.value is None or counted is None:
        return f"{d.outcome} was not tested: a group, or the editor, has no edit with a score."
    if d.evidence == "none":
        alpha = "not defined" if d.reliability is None else alpha_text(d.reliability)
        return f"Nothing can be said about {d.outcome}: the judges agree on it no better than chance (α = {alpha})."
    name, rubric = Measure(d.measure).name, table.rubric
    two_sided = Measure(d.measure).kind == MeasureKind.SHIFT and name in rubric.two_sided
    phrase = counted.phrase or rubric.phrase(name)
    titles = [r.title for r in table.readings if (r.rater, r.measure) == (d.rater, d.measure) and r.title]
    title = titles[0] if titles else rubric.title(name).lower()
    what = " minus ".join(rubric.sides(name)[:2]).capitalize() if two_sided else f"Mean {title}"
    reach = "no interval"
    if d.low is not None and d.high is not None:
        ends = f"{100 * confidence:g}% interval {d.amount(d.low)} to {d.amount(d.high)}"
        reach = between(d.low, d.high, confidence) if d.unit == "points" else ends
    details = [reach, count(d.n, "edit"), count(d.faces, "face"), count(d.prompts, "prompt")]
    details += [f"{d.missing:,} without a score"] if d.missing else []
    details += [f"{result.labelled:,} edits rated by people, corrected"] if result.labelled else []
    details += [f"adjusted for {COVARIATES.get(d.covariate, d.covariate)}"] if d.covariate else []
    tail = "; ".join([", ".join(details[:4]), *details[4:]])
    scope = "" if d.prompts >= FEWEST_PROMPTS else f" {on_these(d.prompts)}"
    judges = f" Judges alone: {d.amount(d.judge_value)}." if d.judge_value is not None else ""
    first, second = result.sides
    if not d.factor:
        text = f"{percent(d.value)} of edits {phrase}, tested against {percent(d.limit)}"
        if two_sided:
            text = f"{what}: {d.amount(d.value)}"
        elif d.unit != "points":
            text = f"{what}: {d.amount(d.value)} from no change"
        lead = "No change was shown" if two_sided or d.unit != "points" else "Not shown to exceed the limit"
        return f"{_lead(d, lead)}{text} ({tail}){scope}.{judges}"
    factor = factor_named(d.factor, table.factors)
    labels = {level: group_name({factor.name: level}, [factor]) for level in (*d.higher, *d.lower)}
    if d.trend:
        share = f"The share of edits that {phrase}" if counted.is_share else what
        text = (
            f"{share} changes by {d.amount(d.value)} from one level of {factor_noun(factor)} to the next, "
            f"{labels[d.higher[0]]} to {labels[d.higher[-1]]}"
        )
        return f"{_lead(d, 'No trend was shown')}{text} ({tail}){scope}.{judges}"
    high, low = (_either([labels[level] for level in side]) for side in (d.higher, d.lower))
    if counted.is_share:
        rates = percent(first), percent(second)
        text = f"{rates[0]} of edits of portraits labelled {high} {phrase}, {rates[1]} of those labelled {low}"
    else:
        values = [points(x) if d.unit == "points" else f"{x:.2f}".replace("-", "−") for x in (first, second)]
        text = f"{what}: {values[0]} for portraits labelled {high}, {values[1]} for those labelled {low}"
    return f"{_lead(d, 'No difference was shown')}{text} (difference {d.amount(d.value)}; {tail}){scope}.{judges}"


def _either(names: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _lead(d: DeclaredTest, words: str) -> str:
    return f"{words}: " if d.level == "none" else "Not tested: " if d.level == "cannot_tell" else ""
