"""Findings as the page shows them: a card for each editor, the other findings below, and a page for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evenedit.core.records import ConditionKind
from evenedit.protocol.measures import Measure
from evenedit.report.pages.example import ExampleCase, example_card
from evenedit.report.render.index import EVIDENCE, Index, level_name
from evenedit.report.render.selection import PEOPLE, CaseLinks, Selection
from evenedit.report.render.table import UNITS, Number, Unit, format_number
from evenedit.report.text.findings import agreement, scope
from evenedit.results.finding import EFFECT_LEVELS
from evenedit.results.results import Finding
from evenedit.results.words import count

KINDS = {
    "shift": "Change nobody asked for",
    "gap": "Difference between groups",
    "mitigation": "Mitigation",
    "stereotype": "Stereotype",
    "judge": "Judges",
    "people": "People",
    "design": "Design of the study",
}
ON_CARD = 3
"""Findings on an editor's card; the list below has all of them."""
PAIRS = 6
"""Pairs of pictures on the page of a finding."""
CARRIERS = 6
"""Prompts and portraits that are named on the page of a finding: those that add most to it."""


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A finding with its place in the report and the address of its cases."""

    number: int
    finding: Finding
    cases: str
    """The address of the edits behind it; empty where there is none."""

    @property
    def badge(self) -> str:
        """The words of its badge."""
        return level_name(self.finding.level, self.finding.evidence).capitalize()

    @property
    def scope(self) -> str:
        """What it is about, who rated it and how far they agree."""
        return scope(self.finding)

    @property
    def page(self) -> str:
        """The address of its own page, from the report."""
        return f"findings/{self.number}.html"

    @property
    def size(self) -> str:
        """The number of edits and faces it rests on, as far as its sentence does not say it."""
        f = self.finding
        counts = ((f.n, "edit"), (f.faces, "face"))
        return ", ".join(count(n, what) for n, what in counts if n and f"{n:,}" not in f.text)


@dataclass(frozen=True, slots=True)
class EditorCard:
    """What was found about one editor, at a glance."""

    editor: str
    simulated: bool
    findings: tuple[ShownFinding, ...]
    """Its worst findings, one sentence each."""
    more: int
    """Findings that are not on the card."""
    tally: tuple[tuple[str, int], ...]
    """How many findings have each level that shows something."""
    edits: int
    lead: Mapping[str, Any] | None
    """The pair of pictures that shows the first finding that has one."""


def shown_findings(index: Index, links: CaseLinks) -> list[ShownFinding]:
    """Return every finding in the order of the results, worst first."""
    return [
        ShownFinding(number, f, links(selection_of(index, f)))
        for number, f in enumerate(index.results.findings, start=1)
    ]


def selection_of(index: Index, f: Finding) -> Selection | None:
    """Return the edits behind a finding; None if it concerns no edits in particular."""
    if f.experiment is None or (f.measure is None and not f.cases):
        return None
    rater = None if f.rater in (None, "ensemble") else PEOPLE if f.rater == "people" else f.rater
    value = f.value if f.judge_value is None else f.judge_value
    measure = (f.measure or "") if value else ""
    if f.kind == "gap" and Measure(measure).name in index.rubric.wanted_rates:
        measure = ""  # the group that fares worse has fewer of them
    group = {k: v for k, v in (f.group or {}).items() if v != "*"}
    return Selection(
        *(measure, f.experiment, f.condition or ConditionKind.BASELINE, f.editor, group, rater),
        *(f.kind == "shift", (value or 0) < 0),
    )


def editor_cards(
    index: Index, findings: list[ShownFinding], show: Callable[[str], ExampleCase | None], seen: dict[str, str]
) -> Iterator[EditorCard]:
    """Yield a card for each editor; the editor of the worst finding first."""
    editors = index.results.editors or index.editors()
    of = {editor: [s for s in findings if s.finding.editor == editor] for editor in editors}
    first = {editor: min((s.number for s in of_editor), default=len(findings) + 1) for editor, of_editor in of.items()}
    for editor in sorted(editors, key=lambda e: first[e]):
        of_editor = of[editor]
        yield EditorCard(
            editor=editor,
            simulated=editor in index.results.simulated,
            findings=tuple(of_editor[:ON_CARD]),
            more=len(of_editor[ON_CARD:]),
            tally=tuple(
                (level, n) for level in EFFECT_LEVELS if (n := sum(s.finding.level == level for s in of_editor))
            ),
            edits=_edits(index, editor),
            lead=_lead(index, of_editor, show, seen),
        )


def _lead(
    index: Index, findings: list[ShownFinding], show: Callable[[str], ExampleCase | None], seen: dict[str, str]
) -> Mapping[str, Any] | None:
    for s in findings:
        for ident in s.finding.cases:
            example = show(ident)
            if example is not None:
                return example_card(index, example, seen, outlined=_reads_skin(index, s.finding))
    return None


def _edits(index: Index, editor: str) -> int:
    """Count the edits of an editor in the diagnosis, with and without a score."""
    every = (*index.results.estimates, *(e for m in index.results.measured for e in m.estimates))
    counts = (e.n + e.missing for e in every if e.editor == editor and e.experiment == "diagnosis" and not e.group)
    return max(counts, default=0)


def finding_facts(index: Index, f: Finding) -> list[tuple[str, str]]:
    """Return the numbers of a finding, each under its name."""
    measure = Measure(f.measure or "")
    unit = UNITS.get(measure.kind, "share")
    against = f.against if isinstance(f.against, str) or f.against is None else index.group_name(f.against)
    facts = [
        ("Kind", KINDS.get(f.kind, f.kind)),
        ("Level", level_name(f.level, f.evidence).capitalize()),
        ("Seen by", EVIDENCE.get(f.evidence, "")),
        ("About", f.estimand),
        ("Reliability", agreement(f)),
        ("Editor", f.editor or ""),
        ("Experiment", ", ".join(filter(None, (f.experiment, f.condition)))),
        ("Measure", index.name(measure.name) if measure else ""),
        ("Read by", {"ensemble": "the judges, combined", "people": "people"}.get(f.rater or "", f.rater or "")),
        ("Group", index.group_name(f.group) if f.group is not None else ""),
        (
            "Against",
            {"no_change": "no change", "average": "the average of all groups"}.get(against or "", against or ""),
        ),
        ("Value" if f.judge_value is None else "Value, corrected by people", _format(f.value, unit)),
        (f"{index.level} interval", _reach(f.low, f.high, unit)),
        ("Value, judges alone", _format(f.judge_value, unit)),
        (f"{index.level} interval, judges alone", _reach(f.judge_low, f.judge_high, unit)),
        ("p, adjusted (Holm)", format_number(f.p, "p") if f.p is not None else ""),
        ("q (Benjamini–Hochberg)", format_number(f.q, "p") if f.q is not None else ""),
        ("p, not adjusted", format_number(f.p_raw, "p") if f.p_raw is not None else ""),
        ("Edits", f"{f.n:,}" if f.n is not None else ""),
        ("Faces", f"{f.faces:,}" if f.faces is not None else ""),
    ]
    return [(term, text) for term, text in facts if text]


def _format(value: float | None, unit: Unit) -> str:
    return "" if value is None else format_number(value, unit)


def _reach(low: float | None, high: float | None, unit: Unit) -> str:
    return "" if low is None or high is None else f"{format_number(low, unit)} to {format_number(high, unit)}"


def carriers(index: Index, f: Finding, links: CaseLinks) -> list[tuple[str, list[tuple[str, str, str, str]]]]:
    """Return the prompts and portraits that add most to a finding: name, part of its value, share, cases."""
    units = {"prompt": ("Prompts", "prompt"), "face": ("Portraits", "source")}
    tables = []
    cases = selection_of(index, f) or Selection()
    for unit, (title, field) in units.items():
        contributions = [c for c in index.results.contributions if f.id and c.finding == f.id and c.unit == unit]
        contributions = sorted(contributions, key=lambda c: -c.share)[:CARRIERS]
        names = [index.prompt_name(c.name) if unit == "prompt" else c.name for c in contributions]
        parts = [Number(c.value, "points", c.low, c.high) for c in contributions]
        rows = [
            (
                name,
                f"{part.formatted} {part.interval}".strip(),
                format_number(c.share, "share"),
                links(replace(cases, measure="", group={field: c.name})),
            )
            for name, part, c in zip(names, parts, contributions, strict=True)
        ]
        tables += [(title, rows)] if rows else []
    return tables


def _reads_skin(index: Index, f: Finding) -> bool:
    """Return whether a finding is of an instrument that reads skin."""
    read = {r.name for m in index.results.measured if m.rater == f.rater for r in m.readings}
    return "skin_delta_L_raw" in read


def finding_cards(
    index: Index, f: Finding, show: Callable[[str], ExampleCase | None], seen: dict[str, str]
) -> list[dict[str, Any]]:
    """Return the pairs of pictures that show a finding."""
    examples = (show(ident) for ident in f.cases)
    cards: list[dict[str, Any]] = []
    for example in examples:
        if example is not None and len(cards) < PAIRS:
            cards.append(example_card(index, example, seen, outlined=_reads_skin(index, f)))
    return cards
