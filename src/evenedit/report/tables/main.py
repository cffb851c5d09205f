"""The main tables of the report: scores, rates, gaps, mitigation and stereotypes. A table without rows is None."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from evenedit.core.records import ConditionKind
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.questions import YES_NO, QuestionSpec
from evenedit.report.render.index import (
    ALPHA,
    POOLED,
    Index,
    Label,
    evidence_of,
    factor_noun,
    level_of,
)
from evenedit.report.render.scales import scales
from evenedit.report.render.selection import Selection
from evenedit.report.render.table import Cell, Column, Number, Range, Table, table_of, text
from evenedit.results.finding import EFFECT_LEVELS
from evenedit.results.results import GapTest
from evenedit.results.words import points

RACE_CHANGE = "race_change"
"""The rate of the paper's Table 20."""
LEVEL_ORDER = (*EFFECT_LEVELS, "none", "cannot_tell", None)
VERDICT_RATES = ("followed", "resisted", "unclear")
CODED = "coded_gender"
"""The key of groups of stereotype prompts: the gender that the occupation is coded as."""
STEREOTYPE_ARMS = (
    ConditionKind.BASELINE,
    ConditionKind.SWAPPED,
    ConditionKind.REVERSED,
    ConditionKind.SWAPPED_REVERSED,
)
"""Both pronouns, with the portraits in either order."""
COUNTS = (Column("n", "n"), Column("missing", "missing"))


def _counts(numbers: Iterable[Number]) -> tuple[Range, Range]:
    numbers = list(numbers)
    return (
        Range(tuple(x.n for x in numbers if x.n is not None)),
        Range(tuple(x.missing for x in numbers if x.missing is not None)),
    )


def _intervals(index: Index) -> str:
    return (
        f"Brackets: {index.level} intervals, clustered by source and prompt (rates: Korn and Graubard; means: t). "
        "n and missing: range over the row."
    )


def _has(numbers: Iterable[Number]) -> bool:
    return any(x.n is not None for x in numbers)


def means_by_editor(index: Index) -> Table | None:
    """Table 4 of the paper: mean scores by editor."""
    return _means(index, "table4", "Mean scores by editor", "", ConditionKind.BASELINE)


def floor_by_editor(index: Index) -> Table | None:
    """Mean scores of the null edit: how an editor changes a face when asked to change nothing."""
    caption = "The request was to return the image unchanged: drift here is the editor's own. "
    return _means(index, "floor", "Null edit", caption, ConditionKind.FLOOR)


def _means(index: Index, ident: str, title: str, caption: str, condition: ConditionKind) -> Table | None:
    lines = index.lines("diagnosis")
    wanted = (q for q in index.rubric.ordinal if q not in index.rubric.replaced)
    questions = [q for q in wanted if any(index.find(Measure.mean(q), e, condition=condition) for e in lines)]
    if not questions:
        return None
    rows: list[tuple[Cell, ...]] = []
    for editor in lines:
        numbers = [Number.of(index.find(Measure.mean(q), editor, condition=condition), "score") for q in questions]
        if _has(numbers):
            rows.append((editor or POOLED, *numbers, *_counts(numbers)))
    columns = (text("editor", "Editor"), *(Column(q, index.name(q)) for q in questions), *COUNTS)
    caption += scales(index.rubric, questions)
    return table_of(index, ident, title, caption, columns, rows, notes=(_intervals(index),))


def aging_accuracy(index: Index) -> Table | None:
    """Mean accuracy of prompts that name a target age, over everybody and by level of the main factor."""
    rows: list[tuple[Cell, ...]] = []
    for editor in index.lines("diagnosis"):
        groups = [index.main_group(code) for code in ("", *index.main_levels())]
        numbers = [Number.of(index.find(Measure.mean("aging_accuracy"), editor, group), "score") for group in groups]
        if _has(numbers):
            rows.append((editor or POOLED, *numbers, numbers[0].n, numbers[0].missing))
    return table_of(
        index,
        "aging",
        "Accuracy against the target age",
        "Mean score on prompts that name a target age: 3 = on target, below 3 = too young, above 3 = too old.",
        (
            text("editor", "Editor"),
            Column("everybody", index.name("everybody")),
            *(Column(code, index.group_name(index.main_group(code))) for code in index.main_levels()),
            *COUNTS,
        ),
        rows,
        notes=(f"Brackets: {index.level} intervals, clustered by source. n and missing: everybody.",),
    )


def rates_by_editor(index: Index) -> Table | None:
    """Table 19 of the paper, with all rates."""
    lines = index.lines("diagnosis")
    rates = [r for r in index.rubric.table_rates if any(index.find(Measure.rate(r), e) for e in lines)]
    rows: list[tuple[Cell, ...]] = []
    for editor in lines:
        numbers = [Number.of(index.find(Measure.rate(r), editor), "share") for r in rates]
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
    return f"{index.name(rate)} ({rule})" if rule else index.name(rate)


def answers(index: Index) -> Table | None:
    """Build the table of the share of each option by editor, for every choice without a table of its own."""
    rows: list[tuple[Cell, ...]] = []
    for spec in index.rubric.specs:
        if not spec.is_choice or not (spec.declared or spec.row.about == "pair"):
            continue
        for experiment in spec.experiments:
            for editor in index.lines(experiment):
                for measure, option in _options(index, spec):
                    e = index.find(measure, editor, experiment=experiment)
                    if e is not None and e.n:
                        question = Label(spec.id, spec.question.title)
                        rows.append(
                            (editor or POOLED, experiment, question, option, Number.of(e, "share"), e.n, e.missing)
                        )
    return table_of(
        index,
        "answers",
        "Answers to choices by editor",
        "Share of each option among the valid answers. Of a question with several answers, each option is counted by "
        "itself.",
        (
            text("editor", "Editor"),
            text("experiment", "Experiment"),
            text("question", "Question"),
            text("option", "Answer"),
            Column("share", "Share"),
            *COUNTS,
        ),
        rows,
        notes=(f"Brackets: {index.level} intervals, clustered by source and prompt.",),
    )


def _options(index: Index, spec: QuestionSpec) -> Iterator[tuple[Measure, Label]]:
    """Yield the options of a choice with the measure of their share; of a set, whether each was chosen."""
    for column in spec.columns:
        if spec.question.sided == "set":
            code = column.removeprefix(f"{spec.id}.")
            yield Measure.share(column, YES_NO[0]), Label(code, index.rubric.option_of_set(column))
        else:
            for code, words in index.rubric.options(column).items():
                yield Measure.share(column, code), Label(code, words)


def race_change_by_main_factor(index: Index) -> Table | None:
    """Table 20 of the paper, with the disparity and its test; by the main factor."""
    race_change, main = Measure.rate(RACE_CHANGE), index.main
    lines = [e for e in index.lines("diagnosis") if index.find(race_change, e)]
    rows: list[tuple[Cell, ...]] = []
    for code in index.main_levels():
        numbers = [Number.of(index.find(race_change, e, index.main_group(code)), "share") for e in lines]
        if _has(numbers):
            editors = [x for e, x in zip(lines, numbers, strict=True) if e is not None]
            rows.append((index.main_label(code), *numbers, *_counts(editors)))
    tests = {t.editor: t for t in index.results.tests if _is_race_change(t, main.name)}
    gaps = [Number.of(index.find(Measure.gap(RACE_CHANGE), e, {main.name: "*"}), "points") for e in lines]
    p = [Number(tests[e].p_adjusted if e in tests else None, "p") for e in lines]
    return table_of(
        index,
        "table20",
        f"Race-change rate by {factor_noun(main)} and editor",
        f"Share of edits rated {index.thresholds.get(RACE_CHANGE, '')} on race change, by the label of the source.",
        (
            text(main.name, main.title),
            *(Column(e or POOLED, index.name(e)) for e in lines),
            Column("n", "n per editor"),
            Column("missing", "missing"),
        ),
        rows,
        foot=(("gap", *gaps, "", ""), ("p_adjusted", *p, "", "")),
        notes=(
            _intervals(index),
            "The disparity of any finite sample is above 0 even where none exists. Its interval is Tukey and Kramer's "
            "of the largest difference between two groups; its p, by analysis of means, is adjusted for all tests of "
            "the report (Holm), so there is none where editors are pooled.",
        ),
    )


def _is_race_change(t: GapTest, factor: str) -> bool:
    where = (t.measure, t.factor, t.experiment, t.condition)
    return where == (Measure.gap(RACE_CHANGE), factor, "diagnosis", ConditionKind.BASELINE)


MITIGATED = ("race_drift", "gender_drift", "skin_tone")
"""The questions of the paper's tables whose change by the feature prompt is shown."""


def mitigation_by_main_factor(index: Index) -> Table | None:
    """Tables 5, 21 and 26 of the paper, for every editor; by the main factor."""
    wanted = [*(q for q in MITIGATED if q in index.rubric), *(s.id for s in index.rubric.declared)]
    changed = [q for q in wanted if _changes(index, q)]
    placebo = ConditionKind.PLACEBO in index.conditions("mitigation")
    arms = (ConditionKind.FEATURE, ConditionKind.PLACEBO) if placebo else (ConditionKind.FEATURE,)
    rows: list[tuple[Cell, ...]] = []
    for editor in index.lines("mitigation"):
        for code in (*index.main_levels("mitigation"), ""):
            find = partial(index.find, editor=editor, group=index.main_group(code), experiment="mitigation")
            scores = [
                Number.of(find(Measure.mean(MITIGATED[0]), condition=arm), "score")
                for arm in (ConditionKind.BASELINE, ConditionKind.FEATURE)
                if MITIGATED[0] in changed
            ]
            deltas = [Number.of(find(Measure.delta(axis), condition=arm), "change") for arm in arms for axis in changed]
            if _has(deltas):
                rows.append((editor or POOLED, index.main_label(code), *scores, *deltas, *_counts(deltas)))
    columns = [
        text("editor", "Editor"),
        text(index.main.name, index.main.title),
        *(
            Column(f"{arm}_{MITIGATED[0]}", f"{index.name(MITIGATED[0])}, {index.name(arm).lower()}")
            for arm in (ConditionKind.BASELINE, ConditionKind.FEATURE)
            if MITIGATED[0] in changed
        ),
    ]
    for arm in arms:
        prefix = "Placebo Δ" if arm is ConditionKind.PLACEBO else "Δ"
        columns += [Column(f"{arm}_delta_{a}", f"{prefix} {index.name(a).lower()}") for a in changed]
    columns += [Column("pairs", "pairs"), Column("missing", "missing")]
    note = (
        "Placebo: the baseline again with another seed. Only a change beyond it is the feature prompt's."
        if placebo
        else "There is no placebo arm: a part of each Δ may be regression to the mean."
    )
    return table_of(
        index,
        "table5",
        f"Mitigation by {factor_noun(index.main)}",
        "Mean over complete pairs of the same editor, source, prompt and seed. "
        "Δ = feature prompt − baseline; below 0 = less change (skin tone: darker).",
        columns,
        rows,
        notes=(note, _intervals(index)),
    )


def _changes(index: Index, question: str) -> bool:
    """Return whether the results have the change of a question by the feature prompt."""
    return any(
        index.find(Measure.delta(question), editor, experiment="mitigation", condition=ConditionKind.FEATURE)
        for editor in index.lines("mitigation")
    )


def stereotypes(index: Index) -> Table | None:
    """Table 7 of the paper, with the swapped-pronoun control; over all prompts and by coded gender."""
    conditions = index.conditions("stereotype")
    groups = [{}, *({CODED: code} for code in index.levels(CODED, "stereotype"))]
    rows: list[tuple[Cell, ...]] = []
    for editor in index.lines("stereotype"):
        for condition in (c for c in STEREOTYPE_ARMS if c in conditions):
            find = partial(index.find, experiment="stereotype", condition=condition)
            for group in groups:
                numbers = [Number.of(find(Measure.rate(verdict), editor, group), "share") for verdict in VERDICT_RATES]
                if _has(numbers):
                    coded = f"{group[CODED]}-coded" if group else "all occupations"
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
            *(Column(r, index.name(r)) for r in VERDICT_RATES),
            *COUNTS,
        ),
        rows,
        notes=(f"Brackets: {index.level} intervals over prompts. n and missing: range over the row.",),
    )


GAP_CAPTION = (
    "Gap: highest minus lowest rate over the groups of one factor; it is above 0 by chance alone. Size: the same after "
    "shrinkage of the groups' rates towards their mean (empirical Bayes). Different: groups whose rate differs from "
    "the average of all groups, or from the other of two (analysis of means, p < 0.05 over all groups). p: that all "
    "groups are equal; then adjusted for all tests of the report, by Holm (p) and by Benjamini and Hochberg (q)."
)
LEVELS_NOTE = (
    "Clear: p after Holm is below 0.05 (with declared tests, below what these leave of it), seen by people or a "
    "validated instrument; clear to the judges, clear to one judge: the same, not checked by people; suggestive: q is "
    "at most 0.05; cannot tell: the judges agree no better than chance. No difference shown is not proof of equality."
)
GAP_COLUMNS = (
    Column("gap", "Gap"),
    Column("shrunken", "Size"),
    text("different", "Different"),
    Column("p", "p"),
    Column("p_adjusted", "p, Holm"),
    Column("q", "q"),
    text("level", "Level"),
    text("evidence", "Seen by"),
)
"""The columns of a gap's test."""


def gap_cells(index: Index, t: GapTest, gap: Number) -> tuple[Cell, ...]:
    """Return the cells of a gap's test; `gap` has its interval and cases."""
    return (
        Number(t.value, "points", gap.low, gap.high, cases=gap.cases),
        Number(t.shrunken, "points"),
        ", ".join(_different(index, t)),
        *(Number(p, "p") for p in (t.p, t.p_adjusted, t.q)),
        *(level_of(t), evidence_of(t)),
    )


def _different(index: Index, t: GapTest) -> list[str]:
    """Return the groups that differ from the others, the surest first; of two groups the one with the higher rate."""
    groups = sorted((g for g in t.groups if g.p is not None and g.p < ALPHA), key=lambda g: (g.p, -g.value))
    groups = groups[:1] if len(t.groups) == 2 else groups
    return [f"{index.level_name(t.factor, g.level)} {points(g.value, signed=True)}" for g in groups]


def in_order(tests: Iterable[GapTest]) -> list[GapTest]:
    """Sort tests, the clearest first."""
    return sorted(tests, key=lambda t: (LEVEL_ORDER.index(t.level), 2.0 if t.p is None else t.p, -t.value))


def gap_tests(index: Index) -> Table | None:
    """Build the table of gaps with their tests, the clearest first."""
    rows: list[tuple[Cell, ...]] = []
    for t in in_order(t for t in index.results.tests if t.editor in index.lines(t.experiment)):
        rate = Measure(t.measure).name
        find = partial(index.find, experiment=t.experiment, condition=t.condition)
        e = find(t.measure, t.editor, {t.factor: "*"})
        gap, p = Number.of(e, "points"), None if e is None else index.results.corrected(e)
        high, low = (
            Number.of(find(Measure.rate(rate), t.editor, {t.factor: code}), "share") for code in (t.highest, t.lowest)
        )
        rows.append(
            (
                *(t.editor or POOLED, index.factor_label(t.factor), rate),
                Number(p.value, "points", p.low, p.high, p.labelled) if p else Number(None, "points"),
                *gap_cells(index, t, gap),
                *(index.level_label(t.factor, t.highest), high, index.level_label(t.factor, t.lowest), low),
                *(t.faces, gap.n, gap.missing),
            )
        )
    columns: tuple[Column, ...] = (
        text("editor", "Editor"),
        text("factor", "Factor"),
        text("rate", "Rate"),
        Column("corrected", "Gap, corrected by people"),
        *GAP_COLUMNS,
        text("highest", "Highest"),
        Column("highest_rate", "rate"),
        text("lowest", "Lowest"),
        Column("lowest_rate", "rate"),
        Column("faces", "faces"),
        *COUNTS,
    )
    notes: tuple[str, ...] = ("Level and adjusted p are of the corrected gap where people rated enough.",)
    if not any(isinstance(row[3], Number) and row[3].value is not None for row in rows):
        rows, columns, notes = [(*row[:3], *row[4:]) for row in rows], (*columns[:3], *columns[4:]), ()
    return table_of(
        index,
        "gaps",
        "Gaps between groups",
        GAP_CAPTION,
        columns,
        rows,
        notes=(
            f"{LEVELS_NOTE} Brackets: {index.level} intervals of the largest difference between two groups (Tukey and "
            "Kramer).",
            *notes,
        ),
    )


def trends(index: Index) -> Table | None:
    """Build the table of the change of each rate between levels of an ordered factor."""
    rows: list[tuple[Cell, ...]] = []
    for e in index.results.estimates:
        measure = Measure(e.measure)
        if measure.kind == MeasureKind.TREND and e.editor in index.lines(e.experiment) and e.n:
            (factor,) = e.group
            where = e.experiment if e.condition == ConditionKind.BASELINE else f"{e.experiment}, {e.condition}"
            slope = Number(e.value, "points", e.low, e.high, cases=Selection.of(e))
            rows.append((e.editor or POOLED, where, index.factor_label(factor), measure.name, slope, e.n, e.missing))
    return table_of(
        index,
        "trends",
        "Trends over ordered labels",
        "How much each rate changes from one level of an ordered factor to the next; above 0 = it grows.",
        (
            text("editor", "Editor"),
            text("experiment", "Experiment"),
            text("factor", "Factor"),
            text("rate", "Rate"),
            Column("trend", "Change per level"),
            *COUNTS,
        ),
        rows,
        notes=(f"Brackets: {index.level} intervals, clustered by source and prompt.",),
    )
