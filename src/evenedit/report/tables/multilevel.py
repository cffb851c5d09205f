"""The tables of the multilevel model: where differences lie, and intersections of labels, partially pooled."""

from __future__ import annotations

from evenedit.protocol import QUESTIONS
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.report.render.index import Index, name
from evenedit.report.render.selection import Selection
from evenedit.report.render.table import NOTHING, Cell, Column, Number, Table, Unit, table_of, text
from evenedit.results.multilevel import Multilevel, PooledCell

PRINTED = 3
"""Intersections at either end that are printed; all are in results.json."""


def multilevel(index: Index) -> Table | None:
    """How much lies between intersections of labels, and how well labels tell who is affected."""
    return table_of(
        index,
        "multilevel",
        "Multilevel model: where differences lie",
        "Share of the variance of single edits (on the scale of log odds) that lies between intersections of labels, "
        "how much of that each label's own effect explains, and how well labels tell who is affected, in faces that "
        "the model has not seen: 0.5 = not at all, 1 = always.",
        (
            text("editor", "Editor"),
            text("measure", "Measure"),
            Column("partition", "Between intersections"),
            Column("additive", "of that, additive"),
            text("components", "Standard deviations"),
            Column("accuracy_labels", "Accuracy of labels"),
            Column("accuracy_prompts", "with the prompt"),
            Column("faces", "faces"),
            Column("n", "n"),
            text("method", "Method"),
        ),
        [_model(index, m) for m in index.results.multilevel],
        notes=(
            "Labels one by one, their intersections, prompt, the first factor on each prompt and face, all but the "
            f"first as random effects. Brackets: {index.level} credible intervals. A model that did not converge "
            "says so and has no numbers.",
        ),
    )


def intersections(index: Index) -> Table | None:
    """The intersections with the highest and the lowest values, pooled beside their own."""
    rows = [row for m in index.results.multilevel for row in _ends(index, m)]
    return table_of(
        index,
        "intersections",
        "Multilevel model: intersections of labels, partially pooled",
        f"The {PRINTED} highest and lowest intersections of each outcome. An intersection of few faces is pulled "
        "towards what its labels one by one would give; its own number stands beside.",
        (
            text("editor", "Editor"),
            text("measure", "Measure"),
            text("group", "Intersection"),
            Column("pooled", "Pooled"),
            Column("observed", "Observed"),
            Column("faces", "faces"),
            Column("n", "n"),
        ),
        rows,
        notes=(
            f"Over other faces and prompts of the same kind; brackets: {index.level} credible intervals. The highest "
            "and lowest of many are partly so by chance; pooling takes most of that out. All are in results.json.",
        ),
    )


def _what(measure: str) -> str:
    told = Measure(measure)
    return name(told.name) if told.kind == MeasureKind.RATE else f"{QUESTIONS[told.name].title}, score"


def _model(index: Index, m: Multilevel) -> tuple[Cell, ...]:
    return (
        m.editor,
        _what(m.measure),
        Number(m.partition, "share", m.partition_low, m.partition_high),
        Number(m.additive, "share"),
        ", ".join(f"{c.source} {c.sd:.2f}" for c in m.components) or NOTHING,
        Number(m.accuracy_labels, "score"),
        Number(m.accuracy_prompts, "score"),
        *(m.faces, m.n, m.method.removeprefix("none: ")),
    )


def _ends(index: Index, m: Multilevel) -> list[tuple[Cell, ...]]:
    ordered = sorted(m.cells, key=lambda c: -c.value)
    shown = ordered if len(ordered) <= 2 * PRINTED else [*ordered[:PRINTED], *ordered[-PRINTED:]]
    return [_cell(index, m, c) for c in shown]


def _cell(index: Index, m: Multilevel, c: PooledCell) -> tuple[Cell, ...]:
    unit: Unit = "share" if Measure(m.measure).kind == MeasureKind.RATE else "score"
    cases = Selection(m.measure, m.experiment, m.condition, m.editor, c.group)
    return (
        *(m.editor, _what(m.measure), index.group_label(c.group)),
        Number(c.value, unit, c.low, c.high, cases=cases),
        Number(c.observed, unit, cases=cases),
        *(c.faces, c.n),
    )
