"""The tables of further inference: mitigation effects, single faces, seeds, people with judges, multiverse."""

from __future__ import annotations

from dataclasses import replace

from evenedit.core.records import ConditionKind
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.report.render.index import POOLED, Index
from evenedit.report.render.selection import PEOPLE, Selection
from evenedit.report.render.table import UNITS, Cell, Number, Table, fill_table
from evenedit.results.results import MitigationEffect, PredictionPowered


def mitigation_effects(index: Index) -> Table | None:
    """Build the table of the effect of the feature prompt beyond the placebo."""
    lines = index.lines("mitigation")
    rows = [_effect(index, e) for e in index.results.mitigation if e.editor in lines]
    return fill_table(index, "effects", rows)


def _effect(index: Index, e: MitigationEffect) -> tuple[Cell, ...]:
    cases = Selection("", "mitigation", ConditionKind.FEATURE, e.editor, e.group)
    return (
        *(e.editor or POOLED, e.question, index.group_label(e.group)),
        Number(e.feature, "change", cases=cases),
        Number(e.placebo, "change", cases=replace(cases, condition=ConditionKind.PLACEBO)),
        Number(e.value, "change", e.low, e.high, cases=cases),
        *(Number(e.p, "p"), Number(e.interaction_p, "p")),
        *(e.n, "" if e.value is not None else e.method.removeprefix("none: ")),
    )


def leave_one_out(index: Index) -> Table | None:
    """Build the table of the range of every gap when each face is left out in turn."""
    return fill_table(
        index,
        "leave_one_out",
        [
            (
                *(x.editor or POOLED, index.factor_label(x.factor), Measure(x.measure).name),
                *(Number(v, "points", cases=Selection.of_gap(x)) for v in (x.value, x.low, x.high)),
                *(x.face, Number(x.same_extremes / x.faces, "share"), x.faces),
            )
            for x in index.results.leave_one_out
            if (x.experiment, x.condition) == ("diagnosis", ConditionKind.BASELINE)
            and x.editor in index.lines("diagnosis")
            and x.value > 0
        ],
    )


def seeds(index: Index) -> Table | None:
    """Build the table of the variation of rates and gaps between seeds."""
    return fill_table(
        index,
        "seeds",
        [
            (
                *(s.editor, Measure(s.measure).name, s.seeds),
                *(Number(value, "share", cases=over) for value in (s.low, s.high)),
                *(Number(value, "points", cases=over) for value in (s.gap_low, s.gap_high)),
                *(Number(s.disagree, "share", cases=over), Number(s.variance_share, "share"), s.cases),
            )
            for s in index.results.seeds
            for over in (Selection(s.measure, s.experiment, s.condition, s.editor),)
        ],
    )


PAPER_FACTOR = "race"
"""The factor that the paper's tables are by."""
KINDS = {
    MeasureKind.MEAN: "mean score",
    MeasureKind.RATE: "rate",
    MeasureKind.CONTRAST: "against everybody else",
    MeasureKind.GAP: "gap",
    MeasureKind.SHIFT: "shift",
}


def powered(index: Index) -> Table | None:
    """Estimates from judges on all edits, from people on the sample, and from both together."""
    methods = dict.fromkeys(p.method for p in index.results.powered if not p.method.startswith("none"))
    return fill_table(
        index,
        "powered",
        [
            _powered(index, p)
            for p in index.results.powered
            if p.editor in index.lines("diagnosis") and _headline(p, index.main.name)
        ],
        methods="; ".join(methods),
    )


def _headline(p: PredictionPowered, main: str) -> bool:
    """Return whether an estimate is shown here: a mean or rate of everybody, a rate by the main factor, or a gap."""
    kind = Measure(p.measure).kind
    return not p.group or kind == MeasureKind.GAP or (kind == MeasureKind.RATE and main in p.group)


def _powered(index: Index, p: PredictionPowered) -> tuple[Cell, ...]:
    measure = Measure(p.measure)
    kind = MeasureKind(measure.kind)
    unit = UNITS[kind]
    is_gap = "*" in p.group.values()
    cases = Selection(p.measure, p.experiment, p.condition, p.editor, p.group)
    group = index.factor_label(next(iter(p.group))) if is_gap else index.group_label(p.group)
    return (
        *(p.editor or POOLED, group, KINDS[kind], measure.name),
        Number(p.value, unit, p.low, p.high, cases=cases),
        Number(p.judge, unit, p.judge_low, p.judge_high, cases=cases),
        Number(p.human, unit, p.human_low, p.human_high, cases=replace(cases, measure="", rater=PEOPLE)),
        *(Number(p.tuning, "score"), p.n, p.labelled),
    )


def multiverse(index: Index) -> Table | None:
    """Build the table of each gap over other thresholds, rules and exclusions."""
    rows: list[tuple[Cell, ...]] = []
    for m in index.results.multiverse:
        values = [s.value for s in m.specifications if s.value is not None]
        count = len(m.specifications)
        default = next((s for s in m.specifications if s.is_default), None)
        rows.append(
            (
                *(m.editor, index.factor_label(m.factor), Measure(m.measure).name),
                *(index.level_label(m.factor, code) for code in (m.highest, m.lowest)),
                Number(default.value if default else None, "points", cases=Selection.of_gap(m)),
                *(Number(pick(values) if values else None, "points", cases=Selection.of_gap(m)) for pick in (min, max)),
                *(Number(m.same_sign / count, "share"), Number(m.significant() / count, "share"), count),
            )
        )
    usual = "the paper's two" if index.main.name == PAPER_FACTOR else "skin rated lighter and race change"
    return fill_table(index, "multiverse", rows, usual=usual)
