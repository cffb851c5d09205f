"""What was measured in pixels: tables and sentences of the instruments, apart from the judges'."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from evenedit.core.records import Estimate
from evenedit.protocol import FACTORS
from evenedit.report.render.index import MEASURED, POOLED, Index, name, rate_id
from evenedit.report.render.table import Cell, Column, Number, Span, Table, Unit, table_of, text

UNITS: dict[str, Unit] = {"skin_delta_L": "change", "changed_share": "share", "redrawn": "share"}
"""Of means; rates are shares."""
ABOUT = (
    "Unchanged: the output shows what its source shows, after registration and relighting; a request for next to "
    "nothing, such as less noise, can be met so. Redrawn: drawn anew, with everything a little elsewhere and nothing "
    "new. Skin: L* of the face after the edit minus before, without relighting where the rest of the picture shows it. "
    "Another face: as far from its source as another person of the same label."
)


def _shown(index: Index) -> list[tuple[str, Index, str]]:
    """Every instrument's measures, in the order of the tables: rater, its index, measure."""
    order = list(MEASURED)
    found = [
        (rater, own, measure)
        for rater, own in index.instruments.items()
        for measure in dict.fromkeys(
            e.measure
            for e in own.results.estimates
            if e.n and not e.group and not e.measure.startswith(("gap.", "delta."))
        )
    ]
    return sorted(found, key=lambda f: order.index(rate_id(f[2])) if rate_id(f[2]) in order else len(order))


def _number(e: Estimate | None, measure: str) -> Number:
    return Number.of(e, UNITS.get(rate_id(measure), "share") if measure.startswith("mean.") else "share")


def measured(index: Index) -> Table | None:
    """Every reading by editor and group."""
    groups = [{}, *({f.name: code} for f in FACTORS for code in _levels(index, f.name))]
    notes = tuple(note for m in index.results.measured for note in m.notes)
    return _by(index, "measured", "Measured in pixels, by group", ABOUT, "Group", groups, notes)


def measured_prompts(index: Index) -> Table | None:
    """Every reading by editor and prompt."""
    caption = "Everybody's edits, prompt by prompt: whether unchanged is a failure depends on what was asked."
    groups = [{"prompt": code} for code in _levels(index, "prompt")]
    return _by(index, "measured_prompts", "Measured in pixels, by prompt", caption, "Prompt", groups)


def _by(
    index: Index,
    ident: str,
    title: str,
    caption: str,
    head: str,
    groups: Sequence[Mapping[str, str]],
    notes: tuple[str, ...] = (),
) -> Table | None:
    shown = _shown(index)
    twice = len({measure for *_, measure in shown}) < len(shown)
    columns = [
        Column(
            f"{rater}_{rate_id(measure)}" if twice else rate_id(measure),
            f"{name(rate_id(measure))} ({rater})" if twice else name(rate_id(measure)),
        )
        for rater, _, measure in shown
    ]
    rows: list[tuple[Cell, ...]] = []
    for editor in index.lines("diagnosis"):
        for group in groups:
            numbers = [_number(own.find(measure, editor, group), measure) for _, own, measure in shown]
            if any(x.n for x in numbers):
                counts = [Span(tuple(c for x in numbers if (c := getattr(x, what)) is not None)) for what in COUNTED]
                rows.append((editor or POOLED, group, *numbers, *counts))
    return table_of(
        index,
        ident,
        title,
        caption,
        (text("editor", "Editor"), text(head.lower(), head), *columns, Column("n", "n"), Column("missing", "missing")),
        rows,
        notes=(
            f"Brackets: {index.level} intervals, clustered by source and prompt. n and missing: range over the row; "
            "the table of what could not be measured has the reasons.",
            *notes,
        ),
    )


def measured_mitigation(index: Index) -> Table | None:
    """Every reading before and after a mitigated prompt, by editor and race."""
    own = index.instruments.values()
    arms = [arm for arm in ("feature", "placebo") if any(arm in i.conditions("mitigation") for i in own)]
    races = next((i.levels("race", "mitigation") for i in own), ())
    rows: list[tuple[Cell, ...]] = []
    for rater, found, measure in _shown(index):
        reading = rate_id(measure)
        unit: Unit = "change" if UNITS.get(reading) == "change" else "points"
        for editor in found.lines("mitigation"):
            for group in ({}, *({"race": code} for code in races)):
                at = partial(found.find, editor=editor, group=group, experiment="mitigation")
                changes = [Number.of(at(f"delta.{reading}", condition=arm), unit) for arm in arms]
                if any(change.n for change in changes):
                    levels = [_number(at(measure, condition=arm), measure) for arm in ("baseline", *arms)]
                    counts = (changes[0].n, changes[0].missing)
                    rows.append((editor or POOLED, rater, reading, group, *levels, *changes, *counts))
    return table_of(
        index,
        "measured_mitigation",
        "Measured before and after the feature prompt",
        "Readings of the same portrait, prompt and seed without and with the feature prompt, over pairs in which both "
        "were read; the placebo repeats the baseline with another seed. Change: after minus before.",
        (
            text("editor", "Editor"),
            text("instrument", "Instrument"),
            text("reading", "Reading"),
            text("group", "Group"),
            *(Column(arm, name(arm)) for arm in ("baseline", *arms)),
            *(Column(f"change_{arm}", f"Change, {name(arm).lower()}") for arm in arms),
            *(Column("n", "pairs"), Column("missing", "missing")),
        ),
        rows,
        notes=(f"Brackets: {index.level} intervals, clustered by source and prompt.",),
    )


COUNTED = ("n", "missing")


def _levels(index: Index, factor: str) -> tuple[str, ...]:
    return next((own.levels(factor) for own in index.instruments.values()), ())


def measured_gaps(index: Index) -> Table | None:
    """Gaps of what was measured, and their tests."""
    rows: list[tuple[Cell, ...]] = []
    for rater, own in index.instruments.items():
        for t in sorted(own.results.tests, key=lambda t: (t.p_holm, t.p, -t.value)):
            if t.editor not in index.lines("diagnosis"):
                continue
            gap = Number.of(own.find(t.measure, t.editor, {t.factor: "*"}), "points")
            rates = [own.find(f"rate.{rate_id(t.measure)}", t.editor, {t.factor: c}) for c in (t.highest, t.lowest)]
            rows.append(
                (
                    *(t.editor or POOLED, rater, t.factor, rate_id(t.measure)),
                    *(Number(t.value, "points", gap.low, gap.high), Number(t.p, "p"), Number(t.p_holm, "p")),
                    *(own.grade(t), t.highest, Number.of(rates[0], "share"), t.lowest, Number.of(rates[1], "share")),
                    *(t.faces, gap.n, gap.missing),
                )
            )
    return table_of(
        index,
        "measured_gaps",
        "Gaps in what was measured",
        "Highest minus lowest share over the groups of one factor. p: labels permuted over faces; Holm: adjusted over "
        "all gaps of the editor that the instrument reads.",
        (
            text("editor", "Editor"),
            text("instrument", "Instrument"),
            text("factor", "Factor"),
            text("reading", "Reading"),
            *(Column("gap", "Gap"), Column("p", "p"), Column("p_holm", "p, Holm")),
            text("evidence", "Evidence"),
            text("highest", "Highest"),
            Column("highest_rate", "rate"),
            text("lowest", "Lowest"),
            Column("lowest_rate", "rate"),
            *(Column("faces", "faces"), Column("n", "n"), Column("missing", "missing")),
        ),
        rows,
    )


def missing_reasons(index: Index) -> Table | None:
    """What could not be measured, why, and for whom."""
    codes = [("", ""), *((f.name, code) for f in FACTORS for code in _levels(index, f.name))]
    rows: dict[tuple[str, ...], dict[tuple[str, str], Number]] = {}
    for m in index.results.measured:
        for s in m.missing_reasons:
            at = next(iter(s.group.items()), ("", ""))
            share = Number(s.count / s.edits if s.edits else None, "share", n=s.edits, missing=s.count)
            rows.setdefault((s.editor, m.rater, rate_id(s.measure), s.reason), {})[at] = share
    return table_of(
        index,
        "silences",
        "What could not be measured, by group",
        "Share of the group's edits left without the reading for this reason. Nothing is put in its place.",
        (
            text("editor", "Editor"),
            text("instrument", "Instrument"),
            text("reading", "Reading"),
            text("reason", "Reason"),
            *(
                Column(f"{factor}_{code}".strip("_") or "everybody", name(code or "everybody"))
                for factor, code in codes
            ),
        ),
        [(*key, *(by.get(at, Number(None, "share")) for at in codes)) for key, by in rows.items()],
    )


def readings_of(index: Index, editor: str) -> Iterator[tuple[str, list[tuple[str, Number]]]]:
    """By instrument, what it read over everybody."""
    for rater, own in index.instruments.items():
        found = [
            (measure, _number(own.find(measure, editor), measure)) for r, _, measure in _shown(index) if r == rater
        ]
        there = [(measure, number) for measure, number in found if number.value is not None]
        if there:
            yield rater, there
