"""The tables about the audit itself: what its numbers depend on, who answered, what was planted and found."""

from __future__ import annotations

from evenedit.core.records import Estimate
from evenedit.report.render.index import POOLED, Index, name, rate_id
from evenedit.report.render.table import Cell, Column, Number, Table, Unit, table_of, text
from evenedit.results.results import Coverage

_UNITS: dict[str, Unit] = {"rate": "share", "gap": "points", "delta": "change"}


def sensitivity(index: Index) -> Table | None:
    """The same rates under other thresholds and the other convention for missing scores."""
    conventions = tuple(dict.fromkeys(s.missing for s in index.results.sensitivity))
    cells: dict[tuple[str, ...], dict[str, tuple[Cell, ...]]] = {}
    used: dict[tuple[str, ...], str] = {}
    for s in index.results.sensitivity:
        if s.editor not in index.lines(s.experiment):
            continue
        where = s.experiment if s.condition == "baseline" else f"{s.experiment}, {s.condition}"
        key = (s.editor or POOLED, where, rate_id(s.measure), s.threshold)
        share = Number(s.value, "share", n=s.n)
        cells.setdefault(key, {})[s.missing] = (share, Number(s.gap, "points"), s.n)
        if s.is_default:
            used[key] = "in this report"
    empty: tuple[Cell, ...] = (Number(None, "share"), Number(None, "points"), None)
    columns = [text("editor", "Editor"), text("experiment", "Experiment"), text("rate", "Rate")]
    columns += [text("threshold", "Threshold"), text("used", "Used")]
    for c in conventions:
        columns += [
            Column(f"{c}_rate", f"Rate, {name(c)}"),
            Column(f"{c}_race_gap", "Gap over races"),
            Column(f"{c}_valid", "n"),
        ]
    return table_of(
        index,
        "sensitivity",
        "Sensitivity to thresholds and missing scores",
        "What each rate, and its gap over races, would have been under another reading of the same scores.",
        columns,
        [(*key, used.get(key, ""), *(x for c in conventions for x in by.get(c, empty))) for key, by in cells.items()],
    )


def coverage(index: Index) -> Table | None:
    """How the calls of each judge and instrument ended, by editor and group."""
    ordered = sorted(index.results.coverage, key=lambda c: len(c.group))
    return table_of(
        index,
        "coverage",
        "Judges and coverage",
        "How the calls ended. Only scored calls carry values; nothing is guessed. An instrument's call is unparseable "
        "where the pixels could not be read.",
        (
            text("judge", "Judge or instrument"),
            text("experiment", "Experiment"),
            text("editor", "Editor"),
            text("group", "Group"),
            Column("answered", "Answered"),
            *(Column(s, s) for s in ("scored", "refused", "unparseable", "failed")),
        ),
        [_coverage_row(c) for c in ordered],
    )


def _coverage_row(c: Coverage) -> tuple[Cell, ...]:
    calls = c.scored + c.refused + c.unparseable + c.failed
    share = Number(c.scored / calls if calls else None, "share", n=calls, missing=calls - c.scored)
    return c.rater, c.experiment, c.editor, c.group, share, c.scored, c.refused, c.unparseable, c.failed


def unequal_coverage(index: Index) -> Table | None:
    """Does a judge leave some group's edits unanswered more often?"""
    return table_of(
        index,
        "unanswered",
        "Unanswered edits by group",
        "Share of calls without a score (refused, unparseable or failed): highest minus lowest over a factor's groups. "
        "p: labels permuted over faces; Holm: adjusted over all of the editor.",
        (
            text("judge", "Judge or instrument"),
            text("editor", "Editor"),
            text("factor", "Factor"),
            Column("gap", "Gap"),
            text("highest", "Highest"),
            Column("p", "p"),
            Column("p_holm", "p, Holm"),
        ),
        [
            (
                t.measure.removeprefix("gap.unanswered."),
                t.editor or POOLED,
                t.factor,
                Number(t.value, "points"),
                t.highest if t.value else "–",  # without a gap nobody is highest
                Number(t.p, "p"),
                Number(t.p_holm, "p"),
            )
            for t in index.results.coverage_tests
            if t.editor in index.lines("diagnosis")
        ],
    )


def worst_cases(index: Index) -> Table | None:
    """How small or large a gap could be, whatever the missing scores would have been."""
    return table_of(
        index,
        "bounds",
        "Worst cases for missing scores",
        "The least and the largest each gap could be if every missing score had fallen one way or the other. "
        "Missing scores can be those a judge or an editor refused.",
        (
            text("editor", "Editor"),
            text("factor", "Factor"),
            text("rate", "Rate"),
            Column("gap", "Gap"),
            Column("low", "At least"),
            Column("high", "At most"),
            Column("missing", "missing"),
        ),
        [
            (
                *(b.editor or POOLED, b.factor, rate_id(b.measure)),
                *(Number(x, "points") for x in (b.value, b.low, b.high)),
                b.missing,
            )
            for b in index.results.bounds
            if (b.experiment, b.condition) == ("diagnosis", "baseline") and b.editor in index.lines("diagnosis")
        ],
    )


def confidence(index: Index) -> Table | None:
    """How sure the judges say they are."""
    return table_of(
        index,
        "confidence",
        "How sure the judges say they are",
        "Mean of the confidence from 0 to 1 a judge states with each score. Shown, never used as a weight.",
        (
            text("judge", "Judge"),
            text("question", "Question"),
            Column("mean", "Mean"),
            Column("agreeing", "Where judges agree"),
            Column("disagreeing", "Where they differ by 2 or more"),
            Column("n", "n"),
            Column("missing", "not stated"),
        ),
        [
            (
                *(c.rater, c.question),
                *(Number(value, "score") for value in (c.mean, c.agreeing, c.disagreeing)),
                *(c.n, c.missing),
            )
            for c in index.results.confidence
        ],
    )


def judges_alone(index: Index) -> Table | None:
    """The headline numbers of each judge alone, side by side with the ensemble's."""
    judges = tuple(dict.fromkeys(a.judge for a in index.results.per_judge))
    rows: list[tuple[Cell, ...]] = []
    by_place: dict[tuple[object, ...], dict[str, Estimate]] = {}
    for a in index.results.per_judge:
        e = a.estimate
        if e.editor in index.lines(e.experiment):
            place = (e.experiment, e.condition, e.editor, e.measure, next(iter(e.group), None))
            by_place.setdefault(place, {})[a.judge] = e
    for found in by_place.values():
        e = next(iter(found.values()))
        unit = _UNITS[e.measure.partition(".")[0]]
        factor = next(iter(e.group), None)
        together = index.find(e.measure, e.editor, e.group, experiment=e.experiment, condition=e.condition)
        values = [f.value for f in found.values() if f.value is not None]
        where = e.experiment if e.condition == "baseline" else f"{e.experiment}, {e.condition}"
        rows.append(
            (
                *(e.editor or POOLED, where, rate_id(e.measure)),
                f"gap over {factor}" if factor else "change" if e.measure.startswith("delta.") else "rate",
                Number.of(together, unit),
                *(Number.of(found.get(judge), unit) for judge in judges),
                Number(
                    max(values) - min(values) if len(values) > 1 else None, "score" if unit == "change" else "points"
                ),
            )
        )
    return table_of(
        index,
        "judges_alone",
        "What each judge alone would say",
        "The headline numbers had one judge been the only one, beside the ensemble's. Apart: highest minus lowest "
        "over the judges.",
        (
            text("editor", "Editor"),
            text("experiment", "Experiment"),
            text("rate", "Rate"),
            text("what", "What"),
            Column("ensemble", "Ensemble"),
            *(Column(judge, judge) for judge in judges),
            Column("apart", "Apart"),
        ),
        rows,
        notes=(
            f"Brackets: {index.level} intervals, clustered by source and prompt; a judge's own from at most 500 "
            "draws. All judges saw the same edits, so intervals that overlap do not mean that judges agree: see the "
            "agreement between raters.",
        ),
    )


def planted_and_found(index: Index) -> Table | None:
    """What was planted in simulated editors beside what the audit found."""
    inside = {True: "yes", False: "no", None: "–"}
    return table_of(
        index,
        "planted",
        "Planted and found",
        "Rate of the group minus everybody else's: the known effect of a simulated editor and its estimate.",
        (
            text("editor", "Editor"),
            text("rate", "Rate"),
            text("group", "Group"),
            Column("planted", "Planted"),
            Column("found", "Found"),
            text("inside", "Planted inside interval"),
        ),
        [
            (
                *(p.editor, rate_id(p.measure), p.group),
                Number(p.planted, "points"),
                Number(p.found, "points", p.low, p.high),
                inside[p.inside],
            )
            for p in index.results.planted
        ],
    )
