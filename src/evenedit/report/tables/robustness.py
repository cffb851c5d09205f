"""The tables about the audit itself: sensitivity, coverage, single judges, and known effects of simulated editors."""

from __future__ import annotations

from dataclasses import replace

from evenedit.core.records import ConditionKind, Estimate
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.report.render.index import POOLED, Index, Label, plural
from evenedit.report.render.selection import Selection
from evenedit.report.render.table import DASH, UNITS, Cell, Column, Number, Table, fill_table
from evenedit.results.results import Coverage


def sensitivity(index: Index) -> Table | None:
    """Rates under other thresholds and other treatments of missing scores."""
    conventions = tuple(dict.fromkeys(s.missing for s in index.results.sensitivity))
    cells: dict[tuple[str, ...], dict[str, tuple[Cell, ...]]] = {}
    used: dict[tuple[str, ...], str] = {}
    for s in index.results.sensitivity:
        if s.editor not in index.lines(s.experiment):
            continue
        where = s.experiment if s.condition == ConditionKind.BASELINE else f"{s.experiment}, {s.condition}"
        key = (s.editor or POOLED, where, Measure(s.measure).name, s.threshold)
        over = Selection("", s.experiment, s.condition, s.editor)  # other thresholds count other edits of these
        share = Number(s.value, "share", n=s.n, cases=over)
        cells.setdefault(key, {})[s.missing] = (share, Number(s.gap, "points", cases=over), s.n)
        if s.is_default:
            used[key] = "in this report"
    empty: tuple[Cell, ...] = (Number(None, "share"), Number(None, "points"), None)
    columns = []
    for c in conventions:
        columns += [
            Column(f"{c}_rate", f"Rate, {index.name(c)}"),
            Column(f"{c}_{index.main.name}_gap", f"Gap over {plural(index.main)}"),
            Column(f"{c}_valid", "n"),
        ]
    return fill_table(
        index,
        "sensitivity",
        [(*key, used.get(key, ""), *(x for c in conventions for x in by.get(c, empty))) for key, by in cells.items()],
        columns=columns,
    )


def coverage(index: Index) -> Table | None:
    """Build the table of how the calls of each judge and instrument ended, by editor and group."""
    ordered = sorted(index.results.coverage, key=lambda c: len(c.group))
    return fill_table(index, "coverage", [_coverage_row(index, c) for c in ordered])


def _coverage_row(index: Index, c: Coverage) -> tuple[Cell, ...]:
    calls = c.scored + c.refused + c.unparseable + c.failed
    cases = Selection("", c.experiment, editor=c.editor, group=c.group)
    share = Number(c.scored / calls if calls else None, "share", n=calls, missing=calls - c.scored, cases=cases)
    return (
        c.rater,
        c.experiment,
        c.editor,
        index.group_label(c.group),
        share,
        c.scored,
        c.refused,
        c.unparseable,
        c.failed,
    )


def left_open(index: Index) -> Table | None:
    """Questions that judges left open in calls they scored, by editor and group."""
    rows: list[tuple[Cell, ...]] = []
    for c in sorted(index.results.coverage, key=lambda c: len(c.group)):
        cases = Selection("", c.experiment, editor=c.editor, group=c.group)
        for question, (open_calls, calls) in c.unanswered_questions.items():
            share = Number(open_calls / calls, "share", n=calls, cases=cases)
            place = c.rater, c.experiment, c.editor, Label(question, index.name(question)), index.group_label(c.group)
            rows.append((*place, share, open_calls, calls))
    return fill_table(index, "left_open", rows)


def unequal_coverage(index: Index) -> Table | None:
    """Gaps between groups in the share of calls that a judge or instrument left unanswered."""
    return fill_table(
        index,
        "unanswered",
        [
            (
                Measure(t.measure).name.removeprefix("unanswered."),
                t.editor or POOLED,
                index.factor_label(t.factor),
                Number(t.value, "points", cases=Selection(editor=t.editor, group={t.factor: t.highest})),
                index.level_label(t.factor, t.highest) if t.value else DASH,  # without a gap no group is highest
                Number(t.p, "p"),
                Number(t.p_adjusted, "p"),
            )
            for t in index.results.coverage_tests
            if t.editor in index.lines("diagnosis")
        ],
    )


def false_calls(index: Index) -> Table | None:
    """Build the table of what judges report on portraits shown against themselves."""
    return fill_table(
        index,
        "false_calls",
        [
            (
                *(e.judge, Measure(e.measure).name, e.threshold, index.group_label(e.group)),
                Number(e.value, "share", e.low, e.high, e.n),
            )
            for e in index.results.judge_errors
            if e.error == "false_calls"
        ],
    )


def worst_cases(index: Index) -> Table | None:
    """Build the table of the smallest and largest value of each gap over all possible missing scores."""
    return fill_table(
        index,
        "bounds",
        [
            (
                *(b.editor or POOLED, index.factor_label(b.factor), Measure(b.measure).name),
                *(Number(x, "points", cases=Selection.of_gap(b)) for x in (b.value, b.low, b.high)),
                b.missing,
            )
            for b in index.results.bounds
            if (b.experiment, b.condition) == ("diagnosis", ConditionKind.BASELINE)
            and b.editor in index.lines("diagnosis")
        ],
    )


def judges_alone(index: Index) -> Table | None:
    """Build the table of the main estimates of each judge beside those of the ensemble."""
    judges = tuple(dict.fromkeys(a.judge for a in index.results.per_judge))
    rows: list[tuple[Cell, ...]] = []
    by_place: dict[tuple[object, ...], dict[str, Estimate]] = {}
    for a in index.results.per_judge:
        e = a.estimate
        if e.editor in index.lines(e.experiment):
            place = (e.experiment, e.condition, e.editor, e.measure, next(iter(e.group), None))
            by_place.setdefault(place, {})[a.judge] = e
    for by_judge in by_place.values():
        e = next(iter(by_judge.values()))
        measure = Measure(e.measure)
        unit = UNITS[measure.kind]
        factor = next(iter(e.group), None)
        ensemble = index.find(e.measure, e.editor, e.group, experiment=e.experiment, condition=e.condition)
        values = [f.value for f in by_judge.values() if f.value is not None]
        where = e.experiment if e.condition == ConditionKind.BASELINE else f"{e.experiment}, {e.condition}"
        over = Selection("", e.experiment, e.condition, e.editor)  # one judge counts other edits of these
        rows.append(
            (
                *(e.editor or POOLED, where, measure.name),
                f"gap over {index.factor_noun(factor)}"
                if factor
                else "change"
                if measure.kind == MeasureKind.DELTA
                else "rate",
                Number.of(ensemble, unit),
                *(replace(Number.of(by_judge.get(judge), unit), cases=over) for judge in judges),
                Number(
                    max(values) - min(values) if len(values) > 1 else None, "score" if unit == "change" else "points"
                ),
            )
        )
    return fill_table(index, "judges_alone", rows, columns=(Column(judge, judge) for judge in judges))


def planted_effects(index: Index) -> Table | None:
    """Build the table of known effects of simulated editors beside their estimates."""
    inside = {True: "yes", False: "no", None: DASH}
    return fill_table(
        index,
        "planted",
        [
            (
                *(p.editor, Measure(p.measure).name, index.group_label(p.group)),
                Number(p.planted, "points"),
                Number(p.estimate, "points", p.low, p.high, cases=Selection(p.measure, editor=p.editor, group=p.group)),
                inside[p.inside],
            )
            for p in index.results.planted
        ],
    )
