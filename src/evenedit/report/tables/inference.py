"""The tables of further inference: mitigation effects, single faces, seeds, people with judges, multiverse."""

from __future__ import annotations

from dataclasses import replace

from evenedit.core.records import ConditionKind
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.report.render.index import POOLED, Index, factor_noun, plural
from evenedit.report.render.selection import PEOPLE, Selection
from evenedit.report.render.table import Cell, Column, Number, Table, Unit, table_of, text
from evenedit.results.results import MitigationEffect, PredictionPowered


def mitigation_effects(index: Index) -> Table | None:
    """Build the table of the effect of the feature prompt beyond the placebo."""
    lines = index.lines("mitigation")
    rows = [_effect(index, e) for e in index.results.mitigation if e.editor in lines]
    return table_of(
        index,
        "effects",
        "Effect of the feature prompt beyond the placebo",
        "Feature arm minus placebo arm, adjusted for the baseline score (analysis of covariance). Below 0 = less "
        "change, which is the gain; for edit success below 0 is the cost. Two-sided axes as distance from unchanged.",
        (
            text("editor", "Editor"),
            text("question", "Axis"),
            text("group", "Group"),
            Column("feature", "Δ with feature prompt"),
            Column("placebo", "Δ placebo"),
            Column("effect", "Effect"),
            Column("p", "p"),
            Column("interaction_p", f"p, effect differs by {factor_noun(index.main)}"),
            Column("cases", "cases"),
            text("method", "Method"),
        ),
        rows,
        notes=(
            "A placebo repeats the baseline with another seed: its Δ is regression to the mean. Without it no effect "
            f"is estimated. Brackets: {index.level} intervals, clustered by source and prompt. p is not adjusted.",
        ),
    )


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
    return table_of(
        index,
        "leave_one_out",
        "Gaps with one face left out",
        "The least and the largest each gap becomes when one face is left out, and the face that moves it most.",
        (
            text("editor", "Editor"),
            text("factor", "Factor"),
            text("rate", "Rate"),
            Column("gap", "Gap"),
            Column("low", "Least"),
            Column("high", "Largest"),
            text("face", "Most influential face"),
            Column("same", "Same extreme groups"),
            Column("faces", "faces"),
        ),
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
        notes=("Same extreme groups: the share of faces without which the same groups are highest and lowest.",),
    )


def seeds(index: Index) -> Table | None:
    """Build the table of the variation of rates and gaps between seeds."""
    return table_of(
        index,
        "seeds",
        "Seeds",
        f"The same edits with other seeds: the range of each rate and of its gap over {plural(index.main)}, and how "
        "often the seeds of one face and prompt differ in it.",
        (
            text("editor", "Editor"),
            text("rate", "Rate"),
            Column("seeds", "seeds"),
            Column("low", "Lowest"),
            Column("high", "Highest"),
            Column("gap_low", "Least gap"),
            Column("gap_high", "Largest gap"),
            Column("disagree", "Seeds disagree"),
            Column("variance_share", "Share of variance"),
            Column("cases", "cases"),
        ),
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
UNITS: dict[str, Unit] = {
    MeasureKind.MEAN: "score",
    MeasureKind.RATE: "share",
    MeasureKind.CONTRAST: "points",
    MeasureKind.GAP: "points",
    MeasureKind.SHIFT: "points",
}
KINDS = {
    MeasureKind.MEAN: "mean score",
    MeasureKind.RATE: "rate",
    MeasureKind.CONTRAST: "against everybody else",
    MeasureKind.GAP: "gap",
    MeasureKind.SHIFT: "shift",
}


def powered(index: Index) -> Table | None:
    """Estimates from judges on all edits, from people on the sample, and from both together."""
    return table_of(
        index,
        "powered",
        "Estimates corrected by people's ratings",
        "Corrected: people's estimate from the sample, extended by the judges' scores of the other edits "
        "(prediction-powered inference, PPI++). Beside it the judges' own from all edits and people's own.",
        (
            text("editor", "Editor"),
            text("group", "Group"),
            text("what", "Estimate"),
            text("measure", "Measure"),
            Column("both", "Corrected"),
            Column("judges", "Judges alone"),
            Column("people", "People alone"),
            Column("tuning", "Judges' weight"),
            Column("n", "edits"),
            Column("labelled", "rated by people"),
        ),
        [
            _powered(index, p)
            for p in index.results.powered
            if p.editor in index.lines("diagnosis") and _headline(p, index.main.name)
        ],
        notes=(
            f"Brackets: {index.level} intervals, clustered by source and prompt. Judges' weight: PPI++'s lambda, 0 "
            "where judges are of no use. Where judges and people differ, the judges' own interval may miss the truth; "
            "the corrected one does not depend on the judges being right. Findings use it where people rated enough. "
            + "; ".join(dict.fromkeys(p.method for p in index.results.powered if not p.method.startswith("none"))),
        ),
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
    return table_of(
        index,
        "multiverse",
        "Gaps under every reading of the scores",
        "The group highest in this report minus the lowest, under every threshold, ensemble rule, treatment of missing "
        f"scores and exclusion: gaps with p < 0.05 before adjustment, and {usual} over {plural(index.main)}.",
        (
            text("editor", "Editor"),
            text("factor", "Factor"),
            text("rate", "Rate"),
            text("highest", "Highest"),
            text("lowest", "Lowest"),
            Column("here", "In this report"),
            Column("least", "Least"),
            Column("largest", "Largest"),
            Column("same_sign", "Same sign"),
            Column("significant", "Same sign, p < 0.05"),
            Column("specifications", "readings"),
        ),
        rows,
        notes=("p of each reading: analysis of means, not adjusted. All readings are in results.json.",),
    )
