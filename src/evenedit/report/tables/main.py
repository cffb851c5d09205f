"""The main tables of the report: scores, rates, gaps and mitigation. A table without rows is None."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from evenedit.core.records import ConditionKind, Estimate
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.questions import YES_NO, QuestionSpec
from evenedit.report.render.index import ALPHA, POOLED, Index, Label, evidence_of, level_of
from evenedit.report.render.selection import Selection
from evenedit.report.render.table import Cell, Column, Number, Range, Table, Unit, fill_table
from evenedit.results.finding import EFFECT_LEVELS
from evenedit.results.primary import alpha_of_others
from evenedit.results.results import GapTest
from evenedit.results.words import points

RACE_CHANGE = "race_change"
"""The rate of the paper's Table 20."""
LEVEL_ORDER = (*EFFECT_LEVELS, "none", "cannot_tell", None)


def counts_of(numbers: Iterable[Number]) -> tuple[Range, Range]:
    """Return n and missing over the numbers of a row."""
    numbers = list(numbers)
    return (
        Range(tuple(x.n for x in numbers if x.n is not None)),
        Range(tuple(x.missing for x in numbers if x.missing is not None)),
    )


def has_any(numbers: Iterable[Number]) -> bool:
    """Return whether any number was estimated."""
    return any(x.n is not None for x in numbers)


def means_by_editor(index: Index) -> Table | None:
    """Table 4 of the paper: mean scores by editor."""
    return _means(index, "table4", ConditionKind.BASELINE)


def floor_by_editor(index: Index) -> Table | None:
    """Mean scores of the null edit: how an editor changes a face when asked to change nothing."""
    return _means(index, "floor", ConditionKind.FLOOR)


def _means(index: Index, id: str, condition: ConditionKind) -> Table | None:
    questions = [q for q in index.rubric.ordinal if q not in index.rubric.replaced]
    find = partial(index.find, condition=condition)
    return _by_editor(index, id, {q: Measure.mean(q) for q in questions}, "score", find)


def rates_by_editor(index: Index) -> Table | None:
    """Table 19 of the paper, with all rates."""
    return _by_editor(index, "table19", {r: Measure.rate(r) for r in index.rubric.table_rates}, "share", index.find)


def _by_editor(
    index: Index, id: str, measures: Mapping[str, Measure], unit: Unit, find: Callable[..., Estimate | None]
) -> Table | None:
    """Build a table of editors by those of the measures, by code, that were estimated."""
    lines = index.lines("diagnosis")
    measures = {code: m for code, m in measures.items() if any(find(m, editor) for editor in lines)}
    rows: list[tuple[Cell, ...]] = []
    for editor in lines:
        numbers = [Number.of(find(m, editor), unit) for m in measures.values()]
        if has_any(numbers):
            rows.append((editor or POOLED, *numbers, *counts_of(numbers)))
    columns = [Column(code, _title(index, m)) for code, m in measures.items()]
    return fill_table(index, id, rows, columns=columns, codes=list(measures))


def _title(index: Index, measure: Measure) -> str:
    """Return the title of a measure, of a rate with its threshold."""
    rule = index.thresholds.get(measure.name) if measure.kind == MeasureKind.RATE else None
    return f"{index.name(measure.name)} ({rule})" if rule else index.name(measure.name)


def aging_accuracy(index: Index) -> Table | None:
    """Mean accuracy of prompts that name a target age, over everybody and by level of the main factor."""
    rows: list[tuple[Cell, ...]] = []
    for editor in index.lines("diagnosis"):
        groups = [index.main_group(code) for code in ("", *index.main_levels())]
        numbers = [Number.of(index.find(Measure.mean("aging_accuracy"), editor, group), "score") for group in groups]
        if has_any(numbers):
            rows.append((editor or POOLED, *numbers, numbers[0].n, numbers[0].missing))
    return fill_table(
        index,
        "aging",
        rows,
        columns=(Column(code, index.group_name(index.main_group(code))) for code in index.main_levels()),
    )


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
    return fill_table(index, "answers", rows)


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
        if has_any(numbers):
            editors = [x for e, x in zip(lines, numbers, strict=True) if e is not None]
            rows.append((index.main_label(code), *numbers, *counts_of(editors)))
    tests = {t.editor: t for t in index.results.tests if _is_race_change(t, main.name)}
    gaps = [Number.of(index.find(Measure.gap(RACE_CHANGE), e, {main.name: "*"}), "points") for e in lines]
    p = [Number(tests[e].p_adjusted if e in tests else None, "p") for e in lines]
    return fill_table(
        index,
        "table20",
        rows,
        columns=(Column(e or POOLED, index.name(e)) for e in lines),
        foot=(("gap", *gaps, "", ""), ("p_adjusted", *p, "", "")),
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
            if has_any(deltas):
                rows.append((editor or POOLED, index.main_label(code), *scores, *deltas, *counts_of(deltas)))
    columns = [
        Column(f"{arm}_{MITIGATED[0]}", f"{index.name(MITIGATED[0])}, {index.name(arm).lower()}")
        for arm in (ConditionKind.BASELINE, ConditionKind.FEATURE)
        if MITIGATED[0] in changed
    ]
    for arm in arms:
        prefix = "Placebo Δ" if arm is ConditionKind.PLACEBO else "Δ"
        columns += [Column(f"{arm}_delta_{a}", f"{prefix} {index.name(a).lower()}") for a in changed]
    return fill_table(index, "table5", rows, columns=columns, placebo=placebo)


def _changes(index: Index, question: str) -> bool:
    """Return whether the results have the change of a question by the feature prompt."""
    return any(
        index.find(Measure.delta(question), editor, experiment="mitigation", condition=ConditionKind.FEATURE)
        for editor in index.lines("mitigation")
    )


def gap_cells(
    index: Index, t: GapTest, find: Callable[..., Estimate | None], rater: str | None = None
) -> tuple[Cell, ...]:
    """Return the cells of a gap's test with its ends; `rater` is the instrument that measured it."""
    gap = Number.of(find(t.measure, t.editor, {t.factor: "*"}), "points", rater)
    rate = Measure.rate(Measure(t.measure).name)
    high, low = (Number.of(find(rate, t.editor, {t.factor: code}), "share", rater) for code in (t.highest, t.lowest))
    return (
        Number(t.value, "points", gap.low, gap.high, cases=gap.cases),
        Number(t.shrunken, "points"),
        ", ".join(_different(index, t)),
        *(Number(p, "p") for p in (t.p, t.p_adjusted, t.q)),
        *(level_of(t), evidence_of(t)),
        *(index.level_label(t.factor, t.highest), high, index.level_label(t.factor, t.lowest), low),
        *(t.faces, gap.n, gap.missing),
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
        find = partial(index.find, experiment=t.experiment, condition=t.condition)
        e = find(t.measure, t.editor, {t.factor: "*"})
        p = None if e is None else index.results.corrected(e)
        rows.append(
            (
                *(t.editor or POOLED, index.factor_label(t.factor), Measure(t.measure).name),
                Number(p.value, "points", p.low, p.high, p.labelled) if p else Number(None, "points"),
                *gap_cells(index, t, find),
            )
        )
    is_corrected = any(isinstance(row[3], Number) and row[3].value is not None for row in rows)
    return fill_table(
        index,
        "gaps",
        rows if is_corrected else [(*row[:3], *row[4:]) for row in rows],
        columns=[Column("corrected", "Gap, corrected by people")] if is_corrected else [],
        corrected=is_corrected,
        alpha=f"{alpha_of_others(index.results.primary):g}",
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
    return fill_table(index, "trends", rows)
