"""The tables of the report, each from `Results` alone; one that has nothing to say is left out."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from evenedit.protocol import AXES, QUESTIONS
from evenedit.report.render.index import POOLED, RATES, Index, name, rate_id
from evenedit.report.render.table import Cell, Column, Number, Span, Table, table_of, text
from evenedit.results.results import GapTest

GRADES = ("clear", "suggestive", "none")
VERDICT_RATES = ("followed", "resisted", "unclear")
CODED = "coded_gender"


COUNTS = (Column("n", "n"), Column("missing", "missing"))


def _counts(numbers: Iterable[Number]) -> tuple[Span, Span]:
    numbers = list(numbers)
    return (
        Span(tuple(x.n for x in numbers if x.n is not None)),
        Span(tuple(x.missing for x in numbers if x.missing is not None)),
    )


def _intervals(index: Index) -> str:
    return (
        f"Brackets: {index.level} intervals, clustered by source and prompt (Wilson over faces where a rate is 0% or "
        "100%). n and missing: range over the row."
    )


def _has(numbers: Iterable[Number]) -> bool:
    return any(x.n is not None for x in numbers)


SCALES = (
    "Scale 1–5. Edit success: 5 = fully applied. Skin tone: 3 = unchanged, above 3 = lighter. "
    "Race and gender change: 1 = same. Age change: 3 = unchanged, above 3 = older."
)


def means_by_editor(index: Index) -> Table | None:
    """Table 4 of the paper."""
    return _means(index, "table4", "Mean scores by editor", SCALES, "baseline")


def floor_by_editor(index: Index) -> Table | None:
    """What each editor does to a face when nothing is asked of it."""
    caption = f"The request was to return the image unchanged: drift here is the editor's own baseline. {SCALES}"
    return _means(index, "floor", "Null edit", caption, "floor")


def _means(index: Index, ident: str, title: str, caption: str, condition: str) -> Table | None:
    lines = index.lines("diagnosis")
    asked = [q for q in AXES if any(index.find(f"mean.{q}", e, condition=condition) for e in lines)]
    rows: list[tuple[Cell, ...]] = []
    for editor in lines:
        numbers = [Number.of(index.find(f"mean.{q}", editor, condition=condition), "score") for q in asked]
        if _has(numbers):
            rows.append((editor or POOLED, *numbers, *_counts(numbers)))
    columns = (text("editor", "Editor"), *(Column(q, QUESTIONS[q].title) for q in asked), *COUNTS)
    return table_of(index, ident, title, caption, columns, rows, notes=(_intervals(index),))


def aging_accuracy(index: Index) -> Table | None:
    """Accuracy against the target age of prompts that name one: on its own, as it is no age change."""
    rows: list[tuple[Cell, ...]] = []
    for editor in index.lines("diagnosis"):
        groups = [{}, *({"race": race} for race in index.levels("race"))]
        numbers = [Number.of(index.find("mean.aging_accuracy", editor, group), "score") for group in groups]
        if _has(numbers):
            rows.append((editor or POOLED, *numbers, numbers[0].n, numbers[0].missing))
    return table_of(
        index,
        "aging",
        "Accuracy against the target age",
        "Mean score on prompts that name a target age: 3 = on target, below 3 = too young, above 3 = too old.",
        (
            text("editor", "Editor"),
            *(Column(code, name(code)) for code in ("everybody", *index.levels("race"))),
            *COUNTS,
        ),
        rows,
        notes=(f"Brackets: {index.level} intervals, clustered by source. n and missing: everybody.",),
    )


def rates_by_editor(index: Index) -> Table | None:
    """Table 19 of the paper, with every other rate beside."""
    lines = index.lines("diagnosis")
    rates = [r for r in RATES if any(index.find(f"rate.{r}", e) for e in lines)]
    rows: list[tuple[Cell, ...]] = []
    for editor in lines:
        numbers = [Number.of(index.find(f"rate.{r}", editor), "share") for r in rates]
        if _has(numbers):
            rows.append((editor or POOLED, *numbers, *_counts(numbers)))
    return table_of(
        index,
        "table19",
        "Rates by editor",
        "Share of valid scores that meet the threshold; a refusal is counted over all requests.",
        (text("editor", "Editor"), *(Column(r, _with_rule(index, r)) for r in rates), *COUNTS),
        rows,
        notes=(_intervals(index),),
    )


def _with_rule(index: Index, rate: str) -> str:
    rule = index.thresholds.get(rate)
    return f"{name(rate)} ({rule})" if rule else name(rate)


def race_change_by_race(index: Index) -> Table | None:
    """Table 20 of the paper, with the disparity and its test."""
    lines = [e for e in index.lines("diagnosis") if index.find("rate.race_change", e)]
    rows: list[tuple[Cell, ...]] = []
    for race in index.levels("race"):
        numbers = [Number.of(index.find("rate.race_change", e, {"race": race}), "share") for e in lines]
        if _has(numbers):
            editors = [x for e, x in zip(lines, numbers, strict=True) if e is not None]
            rows.append((race, *numbers, *_counts(editors)))
    tests = {t.editor: t for t in index.results.tests if _is_race_change(t)}
    gaps = [Number.of(index.find("gap.race_change", e, {"race": "*"}), "points") for e in lines]
    p = [Number(tests[e].p_holm if e in tests else None, "p") for e in lines]
    return table_of(
        index,
        "table20",
        "Race-change rate by race and editor",
        f"Share of edits rated {index.thresholds['race_change']} on race change, by the label of the source.",
        (
            text("race", "Race"),
            *(Column(e or POOLED, name(e)) for e in lines),
            Column("n", "n per editor"),
            Column("missing", "missing"),
        ),
        rows,
        foot=(("gap", *gaps, "", ""), ("p_holm", *p, "", "")),
        notes=(
            _intervals(index),
            "The disparity of any finite sample is above 0 even where none exists; its p value comes from "
            "permuting labels over faces and is adjusted (Holm) over all gaps of the editor.",
        ),
    )


def _is_race_change(t: GapTest) -> bool:
    where = (t.measure, t.factor, t.experiment, t.condition)
    return where == ("gap.race_change", "race", "diagnosis", "baseline")


def mitigation_by_race(index: Index) -> Table | None:
    """Tables 5, 21 and 26 of the paper, for every editor."""
    placebo = "placebo" in index.conditions("mitigation")
    axes = ("race_drift", "gender_drift", "skin_tone")
    arms = ("feature", "placebo") if placebo else ("feature",)
    rows: list[tuple[Cell, ...]] = []
    for editor in index.lines("mitigation"):
        for race in (*index.levels("race", "mitigation"), ""):
            group = {"race": race} if race else {}
            level = [
                Number.of(
                    index.find("mean.race_drift", editor, group, experiment="mitigation", condition=arm),
                    "score",
                )
                for arm in ("baseline", "feature")
            ]
            deltas = [
                Number.of(
                    index.find(f"delta.{axis}", editor, group, experiment="mitigation", condition=arm),
                    "change",
                )
                for arm in arms
                for axis in axes
            ]
            if _has(deltas):
                rows.append((editor or POOLED, race or "everybody", *level, *deltas, *_counts(deltas)))
    columns = [
        text("editor", "Editor"),
        text("race", "Race"),
        Column("baseline_race_drift", "Race change, baseline"),
        Column("feature_race_drift", "Race change, feature prompt"),
    ]
    for arm in arms:
        prefix = "Placebo Δ" if arm == "placebo" else "Δ"
        columns += [Column(f"{arm}_delta_{a}", f"{prefix} {QUESTIONS[a].title.lower()}") for a in axes]
    columns += [Column("pairs", "pairs"), Column("missing", "missing")]
    note = (
        "Placebo: the baseline again with another seed. Only a change beyond it is the feature prompt's."
        if placebo
        else "There is no placebo arm: a part of each Δ may be regression to the mean."
    )
    return table_of(
        index,
        "table5",
        "Mitigation by race",
        "Mean over complete pairs of the same editor, source, prompt and seed. "
        "Δ = feature prompt − baseline; below 0 = less change (skin tone: darker).",
        columns,
        rows,
        notes=(note, _intervals(index)),
    )


def stereotypes(index: Index) -> Table | None:
    """Table 7 of the paper, with the swapped-pronoun control beside, over all prompts and by coded gender."""
    conditions = index.conditions("stereotype")
    groups = [{}, *({CODED: code} for code in index.levels(CODED, "stereotype"))]
    rows: list[tuple[Cell, ...]] = []
    for editor in index.lines("stereotype"):
        for condition in (c for c in ("baseline", "swapped") if c in conditions):
            find = partial(index.find, experiment="stereotype", condition=condition)
            for group in groups:
                numbers = [Number.of(find(f"rate.{verdict}", editor, group), "share") for verdict in VERDICT_RATES]
                if _has(numbers):
                    coded = f"{name(group[CODED])}-coded" if group else "all occupations"
                    rows.append((editor or POOLED, condition, coded, *numbers, *_counts(numbers)))
    return table_of(
        index,
        "table7",
        "Gender–occupation stereotypes",
        "Followed and resisted as shares of the clear verdicts (50% = no preference); unclear as share of all.",
        (
            text("editor", "Editor"),
            text("condition", "Condition"),
            text("occupations", "Occupations"),
            *(Column(r, name(r)) for r in VERDICT_RATES),
            *COUNTS,
        ),
        rows,
        notes=(f"Brackets: {index.level} intervals, prompts drawn. n and missing: range over the row.",),
    )


def gap_tests(index: Index) -> Table | None:
    """Every gap of the diagnosis and its test, the firmest first."""
    tests = [t for t in index.results.tests if t.editor in index.lines(t.experiment)]
    graded = [(GRADES.index(index.grade(t)), t.p_holm, t.p, -t.value, t) for t in tests]
    rows: list[tuple[Cell, ...]] = []
    for grade, *_, t in sorted(graded, key=lambda g: g[:4]):
        rate = rate_id(t.measure)
        find = partial(index.find, experiment=t.experiment, condition=t.condition)
        gap = Number.of(find(t.measure, t.editor, {t.factor: "*"}), "points")
        high, low = (
            Number.of(find(f"rate.{rate}", t.editor, {t.factor: code}), "share") for code in (t.highest, t.lowest)
        )
        rows.append(
            (
                *(t.editor or POOLED, t.factor, rate),
                *(Number(t.value, "points", gap.low, gap.high), Number(t.p, "p"), Number(t.p_holm, "p")),
                *(GRADES[grade], t.highest, high, t.lowest, low),
                *(t.faces, gap.n, gap.missing),
            )
        )
    return table_of(
        index,
        "gaps",
        "Gaps between groups",
        "Highest minus lowest rate over the groups of one factor. p: labels permuted over faces; "
        "Holm: adjusted over all gaps of the editor.",
        (
            text("editor", "Editor"),
            text("factor", "Factor"),
            text("rate", "Rate"),
            Column("gap", "Gap"),
            Column("p", "p"),
            Column("p_holm", "p, Holm"),
            text("evidence", "Evidence"),
            text("highest", "Highest"),
            Column("highest_rate", "rate"),
            text("lowest", "Lowest"),
            Column("lowest_rate", "rate"),
            Column("faces", "faces"),
            *COUNTS,
        ),
        rows,
        notes=(
            "Clear: p < 0.05 after Holm and the interval of an extreme group against everybody else excludes 0. "
            "Suggestive: p < 0.05 before adjustment. No difference shown is not proof of no difference.",
        ),
    )
