"""The tables of instruments: what they measured in pixels, apart from judges' scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from evenedit.core.records import ConditionKind, Estimate
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.rubric import order_of_readings
from evenedit.protocol.rubric import readings as known_readings
from evenedit.report.render.index import POOLED, Index
from evenedit.report.render.selection import Selection
from evenedit.report.render.table import Cell, Column, Number, Table, Unit, fill_table
from evenedit.report.tables.main import counts_of, gap_cells, in_order


def _measures(index: Index) -> list[tuple[str, Index, Measure]]:
    """Return every instrument's measures in table order, as instrument, its index, measure."""
    order = order_of_readings()
    levels = (MeasureKind.RATE, MeasureKind.MEAN)
    measures = [
        (rater, readings, measure)
        for rater, readings in index.instruments.items()
        for measure in dict.fromkeys(Measure(e.measure) for e in readings.results.estimates if e.n and not e.group)
        if measure.kind in levels
    ]
    return sorted(measures, key=lambda f: order.index(f[2].name) if f[2].name in order else len(order))


def _number(index: Index, e: Estimate | None, measure: Measure, rater: str) -> Number:
    return Number.of(e, _unit(index, measure), rater)


def _unit(index: Index, measure: Measure) -> Unit:
    """Return the unit of a reading; rates are shares."""
    if measure.kind == MeasureKind.RATE:
        return "share"
    if measure.name in known_readings():
        return known_readings()[measure.name].unit
    words = index.readings.get(measure.name)
    return "change" if words is not None and words.unit != "share" else "share"


def measured(index: Index) -> Table | None:
    """Build the table of measurements by editor and group."""
    groups = [{}, *({f.name: code} for f in index.factors for code in _levels(index, f.name))]
    notes = dict.fromkeys(note for m in index.results.measured for note in m.notes)
    return _by(index, "measured", groups, notes)


def measured_prompts(index: Index) -> Table | None:
    """Build the table of measurements by editor and prompt."""
    return _by(index, "measured_prompts", [{"prompt": code} for code in _levels(index, "prompt")])


def _by(index: Index, id: str, groups: Sequence[Mapping[str, str]], notes: Iterable[str] = ()) -> Table | None:
    measures = _measures(index)
    twice = len({measure for *_, measure in measures}) < len(measures)
    columns = [
        Column(
            f"{rater}_{measure.name}" if twice else measure.name,
            f"{index.name(measure.name)} ({rater})" if twice else index.name(measure.name),
        )
        for rater, _, measure in measures
    ]
    rows: list[tuple[Cell, ...]] = []
    for editor in index.lines("diagnosis"):
        for group in groups:
            numbers = [
                _number(index, readings.find(measure, editor, group), measure, rater)
                for rater, readings, measure in measures
            ]
            if any(x.n for x in numbers):
                rows.append((editor or POOLED, index.group_label(group), *numbers, *counts_of(numbers)))
    return fill_table(index, id, rows, columns=columns, notes=notes)


def measured_mitigation(index: Index) -> Table | None:
    """Build the table of measurements without and with the feature prompt."""
    indexes = index.instruments.values()
    arms = [
        a
        for a in (ConditionKind.FEATURE, ConditionKind.PLACEBO)
        if any(a in i.conditions("mitigation") for i in indexes)
    ]
    codes = next((i.main_levels("mitigation") for i in indexes), ())
    rows: list[tuple[Cell, ...]] = []
    for rater, readings, measure in _measures(index):
        reading = measure.name
        unit: Unit = "change" if _unit(index, measure) == "change" else "points"
        for editor in readings.lines("mitigation"):
            for group in (index.main_group(code) for code in ("", *codes)):
                at = partial(readings.find, editor=editor, group=group, experiment="mitigation")
                changes = [Number.of(at(Measure.delta(reading), condition=arm), unit, rater) for arm in arms]
                if any(change.n for change in changes):
                    every = (ConditionKind.BASELINE, *arms)
                    levels = [_number(index, at(measure, condition=arm), measure, rater) for arm in every]
                    counts = (changes[0].n, changes[0].missing)
                    where = (editor or POOLED, rater, reading, index.group_label(group))
                    rows.append((*where, *levels, *changes, *counts))
    return fill_table(
        index,
        "measured_mitigation",
        rows,
        columns=[
            ConditionKind.BASELINE,
            *arms,
            *(Column(f"change_{arm}", f"Change, {index.name(arm).lower()}") for arm in arms),
        ],
    )


def _levels(index: Index, factor: str) -> tuple[str, ...]:
    return next((readings.levels(factor) for readings in index.instruments.values()), ())


def measured_gaps(index: Index) -> Table | None:
    """Gaps between groups in the measurements, and their tests."""
    rows = [
        (
            *(t.editor or POOLED, rater, index.factor_label(t.factor), Measure(t.measure).name),
            *gap_cells(index, t, readings.find, rater),
        )
        for rater, readings in index.instruments.items()
        for t in in_order(readings.results.tests)
        if t.editor in index.lines("diagnosis")
    ]
    return fill_table(index, "measured_gaps", rows)


def measured_bounds(index: Index) -> Table | None:
    """Build the table of what unmeasured edits could do to each rate."""
    return fill_table(
        index,
        "measured_bounds",
        [
            (
                *(b.editor or POOLED, m.rater, Measure(b.measure).name, index.group_label(b.group)),
                *(Number(x, "share") for x in (b.value, b.low, b.high)),
                *(Number(x, "change") for x in (b.raw_measured, b.raw_missing)),
                *(b.n, b.missing),
            )
            for m in index.results.measured
            for b in m.bounds
            if b.editor in index.lines("diagnosis")
        ],
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
    return fill_table(
        index,
        "silences",
        [(*key, *(by.get(at, Number(None, "share")) for at in codes)) for key, by in rows.items()],
        columns=(
            Column(f"{factor}_{code}".strip("_") or "everybody", index.group_name({factor: code} if factor else {}))
            for factor, code in codes
        ),
    )


def readings_of(index: Index, editor: str) -> Iterator[tuple[str, list[tuple[Measure, Number]]]]:
    """Yield each instrument with its measurements over everybody."""
    for rater, readings in index.instruments.items():
        numbers = [
            (measure, _number(index, readings.find(measure, editor), measure, rater))
            for r, _, measure in _measures(index)
            if r == rater
        ]
        available = [(measure, number) for measure, number in numbers if number.value is not None]
        if available:
            yield rater, available
