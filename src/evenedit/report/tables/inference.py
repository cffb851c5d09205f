"""The tables of what findings rest on: models, single faces, seeds, people beside judges, other readings."""

from __future__ import annotations

from evenedit.protocol import QUESTIONS
from evenedit.report.render.index import POOLED, Index, name, rate_id
from evenedit.report.render.table import Cell, Column, Number, Table, Unit, table_of, text
from evenedit.results.results import MitigationEffect, Model, PredictionPowered


def mitigation_effects(index: Index) -> Table | None:
    """What the feature prompt did beyond the placebo, and what it cost in edit success."""
    lines = index.lines("mitigation")
    rows = [_effect(e) for e in index.results.mitigation if e.editor in lines]
    return table_of(
        index,
        "effects",
        "What the feature prompt did beyond the placebo",
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
            Column("interaction_p", "p, effect differs by race"),
            Column("cases", "cases"),
            text("method", "How"),
        ),
        rows,
        notes=(
            "A placebo repeats the baseline with another seed: its Δ is regression to the mean. Without it no effect "
            f"is told. Brackets: {index.level} intervals, clustered by source and prompt. p is not adjusted.",
        ),
    )


def _effect(e: MitigationEffect) -> tuple[Cell, ...]:
    return (
        *(e.editor or POOLED, e.question, e.group),
        *(Number(e.feature, "change"), Number(e.placebo, "change")),
        Number(e.value, "change", e.low, e.high),
        *(Number(e.p, "p"), Number(e.interaction_p, "p")),
        *(e.n, "" if e.value is not None else e.method.removeprefix("none: ")),
    )


def models(index: Index) -> Table | None:
    """Odds of the extreme groups with everything else held equal, and the test of each factor."""
    return table_of(
        index,
        "models",
        "Odds with prompt, race, gender and age held equal",
        "Logit models of rates, cumulative logits of scores: odds of the groups with the highest and the lowest "
        "against the average group of the factor. Gaps are told as they are; these odds are adjusted.",
        (
            text("editor", "Editor"),
            text("measure", "Measure"),
            text("factor", "Factor"),
            Column("p", "p"),
            text("highest", "Highest"),
            Column("highest_odds", "odds ratio"),
            text("lowest", "Lowest"),
            Column("lowest_odds", "odds ratio"),
            Column("faces", "faces"),
            Column("n", "n"),
            text("method", "How"),
        ),
        [_model(m) for m in index.results.models if m.editor in index.lines("diagnosis")],
        notes=("Faces are clusters, prompts fixed effects. p: Wald test of the factor, not adjusted.",),
    )


def _model(m: Model) -> tuple[Cell, ...]:
    ends: list[Cell] = ["–", Number(None, "score"), "–", Number(None, "score")]
    if m.odds:
        ends = []
        for pick in (max, min):
            level = pick(m.odds, key=lambda k: m.odds[k].value)
            ends += [level, Number(m.odds[level].value, "score", m.odds[level].low, m.odds[level].high)]
    kind, _, measure = m.measure.partition(".")
    what = name(measure) if kind == "rate" else f"{QUESTIONS[measure].title}, score"
    return m.editor, what, m.factor, Number(m.p, "p"), *ends, m.faces, m.n, m.method.removeprefix("none: ")


def leave_one_out(index: Index) -> Table | None:
    """The range of every gap when each face is left out in turn."""
    return table_of(
        index,
        "leave_one_out",
        "Gaps with one face left out",
        "The least and the largest each gap becomes when one face is left out, and the face that matters most.",
        (
            text("editor", "Editor"),
            text("factor", "Factor"),
            text("rate", "Rate"),
            Column("gap", "Gap"),
            Column("low", "Least"),
            Column("high", "Largest"),
            text("face", "Most telling face"),
            Column("same", "Same extreme groups"),
            Column("faces", "faces"),
        ),
        [
            (
                *(x.editor or POOLED, x.factor, rate_id(x.measure)),
                *(Number(v, "points") for v in (x.value, x.low, x.high)),
                *(x.face, Number(x.same_extremes / x.faces, "share"), x.faces),
            )
            for x in index.results.leave_one_out
            if (x.experiment, x.condition) == ("diagnosis", "baseline")
            and x.editor in index.lines("diagnosis")
            and x.value > 0
        ],
        notes=("Same extreme groups: after how many of the omissions the same groups are highest and lowest.",),
    )


def seeds(index: Index) -> Table | None:
    """What is the luck of the seed."""
    return table_of(
        index,
        "seeds",
        "Seeds",
        "The same edits with other seeds: the range of each rate and of its gap over races, and how often the seeds of "
        "one face and prompt do not all say the same.",
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
                *(s.editor, rate_id(s.measure), s.seeds),
                *(Number(s.low, "share"), Number(s.high, "share")),
                *(Number(s.gap_low, "points"), Number(s.gap_high, "points")),
                *(Number(s.disagree, "share"), Number(s.variance_share, "share"), s.cases),
            )
            for s in index.results.seeds
        ],
    )


UNITS: dict[str, Unit] = {"mean": "score", "rate": "share", "contrast": "points", "gap": "points"}
KINDS = {"mean": "mean score", "rate": "rate", "contrast": "against everybody else", "gap": "gap"}


def powered(index: Index) -> Table | None:
    """Judges on all edits, people on the sample, and both together."""
    return table_of(
        index,
        "powered",
        "Judges and people together",
        "The judges' estimate from all edits, people's from the sample, and the prediction-powered one: people's, with "
        "what the judges say of the other edits.",
        (
            text("editor", "Editor"),
            text("group", "Group"),
            text("what", "What"),
            text("measure", "Measure"),
            Column("judges", "Judges alone"),
            Column("people", "People alone"),
            Column("both", "Together"),
            Column("tuning", "Judges' weight"),
            Column("n", "edits"),
            Column("labelled", "rated by people"),
        ),
        [_powered(p) for p in index.results.powered if p.editor in index.lines("diagnosis") and _headline(p)],
        notes=(
            f"Brackets: {index.level} intervals, clustered by source and prompt. Judges' weight: PPI++'s lambda, 0 "
            "where judges are of no use. Where judges and people differ, the judges' own interval may miss the truth; "
            "the last one does not hang on the judges being right. "
            + "; ".join(dict.fromkeys(p.method for p in index.results.powered if not p.method.startswith("none"))),
        ),
    )


def _headline(p: PredictionPowered) -> bool:
    """Everybody's means and rates, rates by race, and gaps; results.json has the rest."""
    kind = p.measure.partition(".")[0]
    return not p.group or kind == "gap" or (kind == "rate" and "race" in p.group)


def _powered(p: PredictionPowered) -> tuple[Cell, ...]:
    kind, _, measure = p.measure.partition(".")
    unit = UNITS[kind]
    group: Cell = next(iter(p.group)) if "*" in p.group.values() else p.group
    return (
        *(p.editor or POOLED, group, KINDS[kind], measure),
        Number(p.judge, unit, p.judge_low, p.judge_high),
        Number(p.human, unit, p.human_low, p.human_high),
        Number(p.value, unit, p.low, p.high),
        *(Number(p.tuning, "score"), p.n, p.labelled),
    )


def multiverse(index: Index) -> Table | None:
    """In how many readings of the scores a gap keeps its sign and its p."""
    rows: list[tuple[Cell, ...]] = []
    for m in index.results.multiverse:
        values = [s.value for s in m.specifications if s.value is not None]
        count = len(m.specifications)
        own = next((s for s in m.specifications if s.is_default), None)
        rows.append(
            (
                *(m.editor, m.factor, rate_id(m.measure), m.highest, m.lowest),
                Number(own.value if own else None, "points"),
                *(Number(pick(values) if values else None, "points") for pick in (min, max)),
                *(Number(m.same_sign / count, "share"), Number(m.significant() / count, "share"), count),
            )
        )
    return table_of(
        index,
        "multiverse",
        "Gaps under every reading of the scores",
        "The group highest in this report minus the lowest, under every threshold, ensemble rule, treatment of missing "
        "scores and exclusion: gaps with p < 0.05 before adjustment, and the paper's two over races.",
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
        notes=("p of each reading: labels permuted over faces, not adjusted. All readings are in results.json.",),
    )
