"""What the raters' own errors could do: unanswered edits, judges against people, people among themselves."""

from __future__ import annotations

from collections.abc import Iterator

from evenedit.protocol import Factor, Rubric
from evenedit.results.finding import ALPHA, ENSEMBLE, PEOPLE, Finding, finding_in_words
from evenedit.results.results import Agreement, Results
from evenedit.results.words import factor_noun, group_name, listed, points

TARGET = 0.6
"""Fleiss' kappa that people should reach among themselves."""


def rater_findings(parts: Results, rubric: Rubric) -> Iterator[Finding]:
    """Yield cautions and notes on judges and people."""
    yield from _unanswered(parts)
    yield from _judge_error(parts, rubric)
    yield from _people(parts, rubric)


def _unanswered(parts: Results) -> Iterator[Finding]:
    """Yield judges that leave edits of one group unanswered more often."""
    factors = {f.name: f for f in parts.factors}
    for t in parts.coverage_tests:
        if t.editor is None and t.p_adjusted is not None and t.p_adjusted < ALPHA and t.factor in factors:
            rater = t.measure.removeprefix("gap.unanswered.")
            worse, other = (group_name({t.factor: c}, [factors[t.factor]]) for c in (t.highest, t.lowest))
            text = (
                f"{rater} left a larger share of the edits of portraits labelled {worse} without an answer than of "
                f"those labelled {other} ({points(t.value)} more): gaps by {factor_noun(factors[t.factor])} "
                "rest on fewer "
                "answers there."
            )
            yield finding_in_words(
                "judge", "caution", text, rater=rater, factor=t.factor, value=t.value, p=t.p_adjusted, p_raw=t.p
            )


def _judge_error(parts: Results, rubric: Rubric) -> Iterator[Finding]:
    """Yield whether the judges' error, measured against people, differs by group."""
    factors = {f.name: f for f in parts.factors}
    tests = [
        a
        for a in parts.agreement
        if a.statistic == "judge_error_gap" and a.editor is None and a.raters == "all"
        and a.p_adjusted is not None
    ]  # fmt: skip
    if not tests:
        return
    clear = [a for a in tests if a.p_adjusted is not None and a.p_adjusted < ALPHA]
    n = max(a.n_items for a in tests)
    if clear:
        where = listed([f"{_axis(a, rubric)} by {_by(a, factors)}" for a in clear])
        text = f"The judges' error, measured against people, differs by group: {where}. Gaps there can be the judges'."
        yield finding_in_words("judge", "caution", text, rater=ENSEMBLE, n=n, p=min(a.p_adjusted or 0.0 for a in clear))
        return
    widest = max(
        (a for a in parts.agreement if a.statistic == "judge_error_gap" and a.editor is None and a.high),
        key=lambda a: a.high or 0.0,
        default=None,
    )
    bound = (
        f" The intervals still allow a difference of {points(widest.high)}{' or more' if widest.high >= 1 else ''} "
        f"({_axis(widest, rubric)} by {_by(widest, factors)})."
        if widest is not None and widest.high is not None
        else ""
    )
    text = f"No difference by group was shown in the judges' error against people.{bound}"
    yield finding_in_words("judge", "observed", text, rater=ENSEMBLE, n=n, high=widest.high if widest else None)


def _people(parts: Results, rubric: Rubric) -> Iterator[Finding]:
    """Yield whether people agree as much as the plan requires."""
    kappas = [
        a
        for a in parts.agreement
        if a.statistic == "fleiss_kappa" and a.editor is None and not a.group and a.raters == "all"
        and a.value is not None
    ]  # fmt: skip
    if not kappas:
        return
    missed = [
        f"{_axis(a, rubric)} {a.value:.2f} ({a.condition})".replace("-", "−")
        for a in kappas
        if (a.value or 0.0) < TARGET
    ]
    outcome = f"is missed for {listed(missed)}" if missed else "is reached for every question"
    text = f"Agreement between people: the target of Fleiss' κ ≥ {TARGET} {outcome}."
    lowest = min(kappas, key=lambda a: a.value or 0.0)
    yield finding_in_words(
        "people",
        "caution" if missed else "observed",
        text,
        rater=PEOPLE,
        n=max(a.n_items for a in kappas),
        value=lowest.value,
        low=lowest.low,
        high=lowest.high,
    )


def _axis(a: Agreement, rubric: Rubric) -> str:
    name = a.axis.removesuffix(".label").removesuffix(".distance")
    return rubric.title(name).lower() if name in rubric else a.axis.replace("_", " ")


def _by(a: Agreement, factors: dict[str, Factor]) -> str:
    name = next(iter(a.group), "")
    return factor_noun(factors[name]) if name in factors else name
