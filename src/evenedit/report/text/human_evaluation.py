"""The paper paragraph "Human Evaluation", filled in from the results; it names what the results lack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from evenedit.core.records import ConditionKind
from evenedit.protocol import Factor
from evenedit.report.render.agreement_rows import AgreementRows, axis_name
from evenedit.report.render.index import Index, factor_noun, listed
from evenedit.report.render.latex import latex
from evenedit.report.render.table import simulated_note
from evenedit.report.tables.agreement import LABELLED, TARGET, has_people, labelled
from evenedit.results.results import Agreement

TITLE = "Human Evaluation"
BANDS = (
    (0.0, "poor"),
    (0.2, "slight"),
    (0.4, "fair"),
    (0.6, "moderate"),
    (0.8, "substantial"),
    (1.0, "almost perfect"),
)
"""Landis and Koch's words for kappas up to a value."""
PLATFORMS = {"prolific": "through Prolific", "panel": "through a panel", "invitation": "by invitation"}
HEADINGS = dict(zip(LABELLED, ("edit quality", "gender drift", "race drift", "preference", "stereotype"), strict=True))
"""The names of the questions in the evaluation plan."""


def band(value: float) -> str:
    """Landis and Koch's word for a kappa: "substantial" is above 0.6 and up to 0.8."""
    return next((word for top, word in BANDS if value <= top), BANDS[-1][1])


def paragraphs(index: Index, study: Mapping[str, Any]) -> list[tuple[str, str]] | None:
    """Heading and text of each paragraph, or None where no people rated."""
    if not has_people(index.results):
        return None
    rows = AgreementRows.of(index.results)
    simulated = index.results.simulated
    return [
        *([("", simulated_note(simulated))] if simulated else []),
        ("", f"{_what(index)} {_where(index, study)} {_how_many(index)}"),
        ("Sampling.", f"{_drawn(index, study)} {_spread(index)}"),
        ("Agreement.", " ".join(_agreement(index, rows))),
    ]


def human_evaluation(index: Index, study: Mapping[str, Any]) -> str | None:
    """Write the paragraph as Markdown."""
    parts = paragraphs(index, study)
    if parts is None:
        return None
    return "\n\n".join([f"**4.3 {TITLE}**", *(f"**{head}** {text}" if head else text for head, text in parts)]) + "\n"


def human_evaluation_latex(index: Index, study: Mapping[str, Any]) -> str | None:
    """Write the paragraph as LaTeX."""
    parts = paragraphs(index, study)
    if parts is None:
        return None
    lines = [f"\\subsection{{{TITLE}}}"]
    lines += [f"\\paragraph{{{latex(head)}}} {latex(text)}" if head else latex(text) for head, text in parts]
    return "\n\n".join(lines) + "\n"


def _what(index: Index) -> str:
    counts = index.results.counts
    arms = {k.removeprefix("rated.arm."): n for k, n in counts.items() if k.startswith("rated.arm.")}
    purpose = "To check the judges, people" if index.rated and index.judges else "People"
    if not arms:
        return f"{purpose} rated outputs; how many is missing."
    of = f" of {counts['edited']:,}" if "edited" in counts else ""
    by_arm = ", ".join(f"N = {n:,} for {_arm(index, arm)}" for arm, n in arms.items())
    return f"{purpose} rated {counts['rated']:,}{of} outputs ({by_arm})."


def _arm(index: Index, arm: str) -> str:
    experiment, _, condition = arm.partition(".")
    return experiment if condition == ConditionKind.BASELINE else f"{experiment}, {index.name(condition).lower()}"


def _where(index: Index, study: Mapping[str, Any]) -> str:
    survey = study.get("survey") or {}
    if survey.get("simulated_people"):
        return "The people are SIMULATED: nobody was recruited."
    platform = PLATFORMS.get((survey.get("platform") or {}).get("kind", ""))
    people = index.results.counts.get("people")
    who = f"The answers of {'1 person count' if people == 1 else f'{people:,} people count'}" if people else ""
    where = f"people were recruited {platform}" if platform else "where people were recruited is not recorded"
    return f"{who}; {where}." if who else f"{where[0].upper()}{where[1:]}."


def _how_many(index: Index) -> str:
    counts = index.results.counts
    by = {int(k.removeprefix("rated.by.")): n for k, n in sorted(counts.items()) if k.startswith("rated.by.")}
    if not by:
        return "How many people rated each output is missing."
    if len(by) == 1:
        return f"Each of these outputs was rated by {'1 person' if 1 in by else f'{next(iter(by))} people'}."
    parts = [
        f"{n:,} {'was' if n == 1 else 'were'} rated by {k} {'person' if k == 1 else 'people'}" for k, n in by.items()
    ]
    return f"Of these outputs, {listed(parts)}."


def _sampler(sampler: str, factors: Sequence[Factor]) -> str | None:
    """Describe how a sampler chooses cases."""
    labels = [factor_noun(f) for f in factors]
    bands = [f"{factor_noun(f)} band" if any(level.band for level in f.levels) else factor_noun(f) for f in factors]
    even = listed(["editors", *(f"{label} labels" for label in labels)])
    words = {
        "balanced": f"so that {even} stay as even as the cases allow within each prompt",
        "strata": f"within strata of {listed([*bands, 'editor'])}",
        "priority": "by the review priority of their scores, with routine cases beside them",
    }
    return words.get(sampler)


def _drawn(index: Index, study: Mapping[str, Any]) -> str:
    sampler = _sampler((study.get("survey") or {}).get("sampler", ""), index.factors)
    drawn = index.results.counts.get("sampled")
    if sampler is None:
        return "How the sample was drawn is not recorded in the study."
    return f"{f'{drawn:,} cases were' if drawn else 'Cases were'} drawn {sampler}."


def _spread(index: Index) -> str:
    spread = []
    for factor in index.factors:
        sizes = [n for k, n in index.results.counts.items() if k.startswith(f"rated.{factor.name}.")]
        if sizes:
            ends = f"{min(sizes):,}" if min(sizes) == max(sizes) else f"{min(sizes):,} to {max(sizes):,}"
            each = (
                f"each of {len(sizes)} {factor_noun(factor)} labels"
                if len(sizes) > 1
                else f"one {factor_noun(factor)} label"
            )
            spread.append(f"{ends} for {each}")
    return (
        f"Rated outputs by label of the portrait: {', '.join(spread)}."
        if spread
        else "Labels of the portraits are missing."
    )


def _agreement(index: Index, rows: AgreementRows) -> Iterator[str]:
    between = [a for a in rows.places("fleiss_kappa") if a.editor is None and a.condition == ConditionKind.BASELINE]
    yield _listed("Between people, Fleiss' κ was", between, partial(axis_name, index))
    known = [a for a in between if a.value is not None]
    reached = [axis_name(index, a.axis).lower() for a in known if a.value is not None and a.value >= TARGET]
    if known:
        few = f"{len(reached)} of {len(known)} questions" + (f" ({', '.join(reached)})" if reached else "")
        yield f"The target of {TARGET} was reached for {few}."
    against = {
        axis: [a for a in rows.places("cohen_kappa") if a.editor is None and a.axis == axis] for axis in labelled(rows)
    }
    headings = {axis: HEADINGS.get(axis, axis_name(index, axis).lower()) for axis in against}
    kappas = [
        next((a for a in rows if a.condition == ConditionKind.BASELINE), rows[0]) for rows in against.values() if rows
    ]
    yield _listed("Between the judges' scores and people, Cohen's κ was", kappas, headings.__getitem__)
    missing = [headings[axis] for axis, rows in against.items() if not rows]
    if missing:
        yield f"Not compared, since judges, people or both gave no such answers: {', '.join(missing)}."
    above = [headings[a.axis] for a in kappas if a.low is not None and a.low > TARGET]
    yield (
        f"The whole interval lies above {TARGET} for {', '.join(above) or 'none of these'}. Brackets are {index.level} "
        "intervals, faces drawn; words are Landis and Koch's (slight up to 0.2, fair up to 0.4, moderate up to 0.6, "
        "substantial up to 0.8, almost perfect above) and stand only where the whole interval lies in the band."
    )


def _listed(head: str, rows: Sequence[Agreement], words: Any) -> str:
    return f"{head} {'; '.join(_kappa(a, words(a.axis)) for a in rows)}." if rows else f"{head} not computed."


def _kappa(a: Agreement, what: str) -> str:
    """Format a kappa with its interval, the question and, if it is certain, Landis and Koch's word."""
    what = what[0].lower() + what[1:]
    if a.value is None:
        reason = a.method.removesuffix("; SIMULATED").rpartition("undefined: ")[2]
        return f"missing for {what} ({reason})"
    if a.low is None or a.high is None:
        return f"{_format(a.value)} (no interval) for {what}"
    inside = {band(a.low), band(a.value), band(a.high)}
    word = f", {inside.pop()}" if len(inside) == 1 else ""
    return f"{_format(a.value)} [{_format(a.low)}, {_format(a.high)}] for {what}{word}"


def _format(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
