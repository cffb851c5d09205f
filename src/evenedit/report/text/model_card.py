"""A section for a model card, as Markdown: findings first, then what each editor's edits were rated and measured."""

from __future__ import annotations

from collections.abc import Iterator

from evenedit.core.version import __version__
from evenedit.protocol.measures import Measure
from evenedit.protocol.outcomes import OUTCOME_RATES
from evenedit.report.render.index import Index, level_name, listed
from evenedit.report.render.table import Number, format_number, short_list
from evenedit.report.tables.instruments import readings_of
from evenedit.report.text.findings import scope
from evenedit.report.text.summary import WHOLE_AUDIT
from evenedit.results.results import Finding

PROJECT = "EvenEdit"
DISPLAY_NAMES = {"redrawn": "Unchanged but redrawn"}
"""Names of readings that other tables print right below the one they refer to."""


def model_card(index: Index) -> str:
    """Write the section: a heading for each editor, its findings in the report's order, and its numbers."""
    results = index.results
    lines = [f"## Demographic consistency of edits ({PROJECT} {__version__})", ""]
    if results.simulated:
        lines += [f"SIMULATED data ({short_list(results.simulated)}): no finding about any real editor.", ""]
    for editor in results.editors:
        lines += [f"### {editor}", ""]
        if findings := [f for f in results.findings if f.editor == editor]:
            lines += [*map(_line, findings), ""]
        rows = [f"| {' | '.join(row)} |" for row in _rows(index, editor)]
        if rows:
            head = ("measure", "by", "value", f"{index.level} interval", "n", "missing")
            lines += [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *rows, ""]
    if general := [f for f in results.findings if f.editor is None]:
        lines += [f"### {WHOLE_AUDIT}", "", *map(_line, general), ""]
    lines.append(f"{_scope(index)} Labels are the dataset's labels.")
    return "\n".join(lines) + "\n"


def _line(finding: Finding) -> str:
    level = level_name(finding.level, finding.evidence).partition(":")[0].capitalize()
    return " ".join(filter(None, (f"- {level}: {finding.text}", scope(finding))))


def _rows(index: Index, editor: str) -> Iterator[tuple[str, ...]]:
    """Yield the editor's rates by the judges' scores, then the instruments' readings."""
    for rate in index.rubric.card_rates:
        e = index.find(Measure.rate(rate), editor)
        if e is not None and e.value is not None:
            by = "the editor" if rate in OUTCOME_RATES else "judges"
            yield _row(index.name(rate), by, Number.of(e, "share"))
    for rater, readings in readings_of(index, editor):
        for measure, number in readings:
            yield _row(DISPLAY_NAMES.get(measure.name, index.name(measure.name)), rater, number)


def _row(what: str, by: str, number: Number) -> tuple[str, ...]:
    ends = [None if x is None else format_number(x, number.unit) for x in (number.low, number.high)]
    interval = "–" if None in ends else f"{ends[0]} to {ends[1]}"
    counts = ["–" if x is None else f"{x:,}" for x in (number.n, number.missing)]
    return what, by, format_number(number.value, number.unit), interval, *counts


def _scope(index: Index) -> str:
    """Describe what the observations hold for."""
    results = index.results
    raters = [*index.judges, *index.instruments]
    people = results.counts.get("people", 0)
    raters += ["1 person" if people == 1 else f"{people:,} people"] if people else []
    by = f"Observations by {listed(raters)}" if raters else "Observations"
    return f"{by} on the edits of this audit, which hold for its prompts, settings and seeds."
