"""The table of the levels that portraits and edits are seen as."""

from __future__ import annotations

from collections.abc import Mapping

from evenedit.core.records import ConditionKind
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.report.render.index import Index, Label
from evenedit.report.render.selection import Selection
from evenedit.report.render.table import Cell, Number, Table, Unit, fill_table
from evenedit.results.directions import Direction

KINDS: Mapping[str, tuple[str, Unit]] = {
    MeasureKind.TRANSITION: ("of those seen so before", "share"),
    MeasureKind.FLOW: ("net, of those seen as either", "points"),
    MeasureKind.TOWARD: ("net, of all edits", "points"),
}
"""By kind of a row, what its number is a share of."""


def transitions(index: Index) -> Table | None:
    """Build the table of transitions, of the net flows between levels, and of what moves toward each level."""
    rows = [
        d
        for d in index.results.directions
        if d.condition == ConditionKind.BASELINE
        and (kind := Measure(d.measure).kind) in KINDS
        and (kind == MeasureKind.TOWARD or (d.before != d.after and (d.total or d.p is not None)))
    ]
    return fill_table(index, "transitions", [_row(index, d) for d in rows])


def _row(index: Index, d: Direction) -> tuple[Cell, ...]:
    what, unit = KINDS[Measure(d.measure).kind]
    before, after = (
        index.level_label(d.factor, code) if code else Label("", "any other") for code in (d.before, d.after)
    )
    share = Number(d.value, unit, d.low, d.high, d.n, d.missing, cases=Selection(editor=d.editor))
    edits = d.total if unit == "share" else None
    place = d.editor, index.factor_label(d.factor), before, after, what, edits
    return (*place, share, Number(d.control, unit), Number(d.p, "p"), Number(d.p_adjusted, "p"))
