"""The tables of instruments: what they measured in pixels, apart from judges' scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from evenedit.core.records import Condition, Estimate
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.report.render.index import MEASURED, POOLED, STEP_DOWN, Index, name
from evenedit.report.render.selection import Selection
from evenedit.report.render.table import Cell, Column, Number, Span, Table, Unit, table_of, text

UNITS: dict[str, Unit] = {
    "skin_delta_L": "change",
    "changed_share": "share",
    "redrawn": "share",
    "age_delta_years": "change",
    "gender_delta": "change",
}
"""The units of means; rates are shares."""
ABOUT = (
    "Unchanged: the output shows what its source shows, after registration and relighting; a request for next to "
    "nothing, such as less noise, can be fulfilled that way. Redrawn: everything is a little displaced and nothing is "
    "new. Skin: L* of the face after the edit minus before, without relighting where the rest of the picture shows it. "
    "Another face: as far from its source as another person of the same label."
)


def _shown(index: Index) -> list[tuple[str, Index, Measure]]:
    """Every instrument's measures in the order of the tables, as instrument, its index, measure."""
    order = list(MEASURED)
    levels = (MeasureKind.RATE, MeasureKind.MEAN)
    found = [
        (rater, own, measure)
        for rater, own in index.instruments.items()
        for measure in dict.fromkeys(Measure(e.measure) for e in own.results.estimates if e.n and not e.group)
        if measure.kind in levels
    ]
    return sorted(found, key=lambda f: order.index(f[2].name) if f[2].name in order else len(order))


def _number(e: Estimate | None, measure: Measure, rater: str) -> Number:
    return Number.of(e, UNITS.get(measure.name, "share") if measure.kind == MeasureKind.MEAN else "share", rater)


def measured(index: Index) -> Table | None:
    """The measurements by editor and group."""
    groups = [{}, *({f.name: code} for f in index.factors for code in _levels(index, f.name))]
    notes = tuple(note for m in index.results.measured for note in m.notes)
    return _by(index, "measured", "Measured in pixels, by group", ABOUT, "Group", groups, notes)


def measured_prompts(index: Index) -> Table | None:
    """The measurements by editor and prompt."""
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
            f"{rater}_{measure.name}" if twice else measure.name,
            f"{name(measure.name)} ({rater})" if twice else name(measure.name),
        )
        for rater, _, measure in shown
    ]
    rows: list[tuple[Cell, ...]] = []
    for editor in index.lines("diagnosis"):
        for group in groups:
            numbers = [_number(own.find(measure, editor, group), measure, rater) for rater, own, measure in shown]
            if any(x.n for x in numbers):
                counts = [Span(tuple(c for x in numbers if (c := getattr(x, what)) is not None)) for what in COUNTED]
                rows.append((editor or POOLED, index.group_label(group), *numbers, *counts))
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
    """The measurements without and with the feature prompt, by editor and level of the main factor."""
    own = index.instruments.values()
    arms = [a for a in (Condition.FEATURE, Condition.PLACEBO) if any(a in i.conditions("mitigation") for i in own)]
    codes = next((i.main_levels("mitigation") for i in own), ())
    rows: list[tuple[Cell, ...]] = []
    for rater, found, measure in _shown(index):
        reading = measure.name
        unit: Unit = "change" if UNITS.get(reading) == "change" else "points"
        for editor in found.lines("mitigation"):
            for group in (index.main_group(code) for code in ("", *codes)):
                at = partial(found.find, editor=editor, group=group, experiment="mitigation")
                changes = [Number.of(at(Measure.delta(reading), condition=arm), unit, rater) for arm in arms]
                if any(change.n for change in changes):
                    every = (Condition.BASELINE, *arms)
                    levels = [_number(at(measure, condition=arm), measure, rater) for arm in every]
                    counts = (changes[0].n, changes[0].missing)
                    where = (editor or POOLED, rater, reading, index.group_label(group))
                    rows.append((*where, *levels, *changes, *counts))
    return table_of(
        index,
        "measured_mitigation",
        "Measured before and after the feature prompt",
        "Measurements of the same portrait, prompt and seed without and with the feature prompt, over pairs in which "
        "both were measured; the placebo repeats the baseline with another seed. Change: after minus before.",
        (
            text("editor", "Editor"),
            text("instrument", "Instrument"),
            text("reading", "Measurement"),
            text("group", "Group"),
            *(Column(arm, name(arm)) for arm in (Condition.BASELINE, *arms)),
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
    """Gaps between groups in the measurements, and their tests."""
    rows: list[tuple[Cell, ...]] = []
    for rater, own in index.instruments.items():
        for t in sorted(own.results.tests, key=lambda t: (t.p_family, t.p, -t.value)):
            if t.editor not in index.lines("diagnosis"):
                continue
            gap = Number.of(own.find(t.measure, t.editor, {t.factor: "*"}), "points", rater)
            reading = Measure(t.measure).name
            ends = [
                (
                    index.level_label(t.factor, code),
                    Number.of(own.find(Measure.rate(reading), t.editor, {t.factor: code}), "share", rater),
                )
                for code in (t.highest, t.lowest)
            ]
            rows.append(
                (
                    *(t.editor or POOLED, rater, index.factor_label(t.factor), reading),
                    Number(t.value, "points", gap.low, gap.high, cases=gap.cases),
                    *(Number(t.p, "p"), Number(t.p_holm, "p"), Number(t.p_editor, "p")),
                    *(own.grade(t), *ends[0], *ends[1]),
                    *(t.faces, gap.n, gap.missing),
                )
            )
    return table_of(
        index,
        "measured_gaps",
        "Gaps in the measurements",
        "Highest minus lowest share over the groups of one factor. p: labels permuted over faces; editor: adjusted "
        f"over all gaps of the editor in what the instrument measures, with Holm and {STEP_DOWN}.",
        (
            text("editor", "Editor"),
            text("instrument", "Instrument"),
            text("factor", "Factor"),
            text("reading", "Measurement"),
            *(
                Column("gap", "Gap"),
                Column("p", "p"),
                Column("p_holm", "p, editor, Holm"),
                Column("p_editor", "p, editor"),
            ),
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
    """Shares of edits that could not be measured, by reason and group."""
    codes = [("", ""), *((f.name, code) for f in index.factors for code in _levels(index, f.name))]
    rows: dict[tuple[str, ...], dict[tuple[str, str], Number]] = {}
    for m in index.results.measured:
        for s in m.missing_reasons:
            at = next(iter(s.group.items()), ("", ""))
            cases = Selection(editor=s.editor, group=s.group)
            share = Number(s.count / s.edits if s.edits else None, "share", n=s.edits, missing=s.count, cases=cases)
            rows.setdefault((s.editor, m.rater, Measure(s.measure).name, s.reason), {})[at] = share
    return table_of(
        index,
        "silences",
        "What could not be measured, by group",
        "Share of the group's edits that have no measurement for this reason. Nothing is put in its place.",
        (
            text("editor", "Editor"),
            text("instrument", "Instrument"),
            text("reading", "Measurement"),
            text("reason", "Reason"),
            *(
                Column(f"{factor}_{code}".strip("_") or "everybody", index.group_name({factor: code} if factor else {}))
                for factor, code in codes
            ),
        ),
        [(*key, *(by.get(at, Number(None, "share")) for at in codes)) for key, by in rows.items()],
    )


def readings_of(index: Index, editor: str) -> Iterator[tuple[str, list[tuple[Measure, Number]]]]:
    """Each instrument with its measurements over everybody."""
    for rater, own in index.instruments.items():
        found = [
            (measure, _number(own.find(measure, editor), measure, rater))
            for r, _, measure in _shown(index)
            if r == rater
        ]
        there = [(measure, number) for measure, number in found if number.value is not None]
        if there:
            yield rater, there
