"""The table of the levels that portraits and edits are seen as."""

from __future__ import annotations

from collections.abc import Mapping

from evenedit.core.records import ConditionKind
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.report.render.index import Index, Label
from evenedit.report.render.selection import Selection
from evenedit.report.render.table import Cell, Column, Number, Table, table_of, text
from evenedit.results.directions import Direction

Rows = Mapping[tuple[str, str], Direction]
"""By editor and measure."""


def transitions(index: Index) -> Table | None:
    """Build the table of transitions between levels, and of what moves toward each level."""
    rows = {(d.editor, d.measure): d for d in index.results.directions if d.condition == ConditionKind.BASELINE}
    return table_of(
        index,
        "transitions",
        "Levels that portraits and edits are seen as",
        "Every picture was read by itself. Edits seen as another level than their portrait, and their share of the "
        "edits of portraits seen as the first level. Net: edits this way minus the other way, as a share of the edits "
        "of portraits seen as either level; toward a level, of all edits. Read twice: the same net number where a "
        "second reading of the portrait stands for the edit. p: that the net number is 0; Holm: adjusted for all tests "
        "of the report.",
        (
            text("editor", "Editor"),
            text("factor", "Factor"),
            text("before", "Portrait seen as"),
            text("after", "Edit seen as"),
            Column("edits", "Edits"),
            Column("share", "Share"),
            Column("net", "Net"),
            Column("control", "Net, read twice"),
            Column("p", "p"),
            Column("p_adjusted", "p, Holm"),
        ),
        [_row(index, d, rows) for d in rows.values() if _is_shown(d)],
        notes=(f"Brackets: {index.level} intervals, clustered by source and prompt.",),
    )


def _is_shown(d: Direction) -> bool:
    kind = Measure(d.measure).kind
    is_move = d.before != d.after and d.total > 0
    return kind == MeasureKind.TOWARD or (kind == MeasureKind.TRANSITION and is_move)


def _row(index: Index, d: Direction, rows: Rows) -> tuple[Cell, ...]:
    cases = Selection(editor=d.editor)
    after = index.level_label(d.factor, d.after)
    if d.before:
        before, turn = index.level_label(d.factor, d.before), 1
        net = rows.get((d.editor, Measure.seen(MeasureKind.FLOW, d.factor, d.before, d.after)))
        if net is None:  # each pair has one flow, in the factor's order
            net, turn = rows[d.editor, Measure.seen(MeasureKind.FLOW, d.factor, d.after, d.before)], -1
        moved, share = d.total, Number(d.value, "share", d.low, d.high, d.n, d.missing, cases=cases)
    else:
        before, net, turn = Label("", "any other"), d, 1
        destination = rows.get((d.editor, Measure(d.measure).to(MeasureKind.DESTINATION)))
        moved, share = 0 if destination is None else destination.total, Number(None, "share")
    ends = (net.low, net.high) if turn > 0 else (_minus(net.high), _minus(net.low))
    return (
        *(d.editor, index.factor_label(d.factor), before, after, moved, share),
        Number(turn * net.value + 0.0, "points", *ends, net.n, net.missing, cases=cases),
        Number(net.control if turn > 0 else _minus(net.control), "points"),
        *(Number(p, "p") for p in (net.p, net.p_adjusted)),
    )


def _minus(value: float | None) -> float | None:
    return None if value is None else 0.0 - value
