"""Variance components of a study that has results, by the method of moments from the engine's mean squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evenedit.core.records import ConditionKind
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.ratings.table import Scores
from evenedit.stats.agreement.prediction_powered import LABELS
from evenedit.stats.agreement.pseudo_outcomes import labelled_edits
from evenedit.stats.disparity.diagnosis import diagnosis_panels
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.measures import Answers
from evenedit.stats.engine.panel import Panel
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.power.design import Assumptions, Components, Design, planned_tests

FEWEST_FREEDOM = 10
"""Degrees of freedom of faces, and of group x prompt, below which components are not estimated."""


def components(panel: Panel, factor: str) -> dict[Measure, Components]:
    """Return the components of each rate and shift, averaged over editors with enough faces and prompts."""
    crossed = CrossedPanel(panel)
    pooled, all_faces = crossed.pooled((factor,)), crossed.all_faces
    sizes = np.stack([crossed.of({factor: level}).faces for level in panel.axes.levels[factor]])
    faces, prompts = np.maximum(sizes.sum(axis=0), 1.0), np.maximum(all_faces.prompts, 2.0)
    shares = (sizes**2).sum(axis=0) / faces**2
    seeds = np.maximum(pooled.counts.sum(axis=0) / (faces * prompts), 1.0)
    face = np.maximum(pooled.faces - pooled.cells, 0.0) / (seeds * prompts)
    per_group = np.maximum(faces * (1 - shares), 1.0) / (len(sizes) - 1)
    interaction = np.maximum(pooled.interaction - pooled.cells, 0.0) / (seeds * per_group)
    between = (all_faces.by_prompt**2).sum(axis=0) * prompts**2 / (prompts - 1)
    prompt = np.maximum(between - shares * interaction - pooled.cells / (seeds * faces), 0.0)
    met, n = (
        panel.cells[..., [panel.columns.index(c) for c in names]].astype(np.float64)
        for names in zip(*((m.total, m.count) for m in panel.measures), strict=True)
    )
    freedom, binary = np.maximum(n - 1, 0.0).sum(axis=(0, 1)), [m.is_share and m.unit == 1 for m in panel.measures]
    squares = (met - met**2 / np.maximum(n, 1.0)).sum(axis=(0, 1))  # of answers 0 and 1
    repeated = np.where(binary & (freedom > 0), squares / np.maximum(freedom, 1.0), np.inf)
    seed = np.minimum(repeated, pooled.cells[:-1])  # with one seed all that is left
    parts = [x[:-1] for x in (face, prompt, interaction, pooled.cells / seeds)]
    parts = [*parts[:3], parts[3] - seed / seeds[:-1], seed]
    enough = np.minimum(pooled.face_freedom, pooled.interaction_freedom)[:-1] >= FEWEST_FREEDOM
    return {
        m.name: Components(*(float(part[enough[:, at], at].mean()) for part in parts))
        for at, m in enumerate(panel.measures)
        if enough[:, at].any() and (m.is_rate or m.signed)
    }


def measured(
    scores: Scores, scored: Answers, rules: AnalysisRules, a: Assumptions, design: Design, declared: Sequence[str]
) -> Assumptions:
    """Return the assumptions with what the study has measured: of the declared rate and shift, else the hardest."""
    factor = scores.table.factors[0].name
    panels = [p for p in diagnosis_panels(scores, scored, rules) if p.condition == ConditionKind.BASELINE]
    known = components(panels[0], factor) if panels and len(panels[0].axes.levels.get(factor, ())) > 1 else {}

    def chosen(kind: MeasureKind, question: str) -> Measure | None:
        of_kind = [m for m in known if m.kind == kind and known[m].total > 0]
        named = [m for m in of_kind if m.removeprefix("rate.") in declared] or of_kind
        tests = {m: planned_tests(design, replace(a, rate=known[m], shift=known[m]))[question] for m in named}
        return max(named, key=lambda m: t.detectable if (t := tests[m]) else known[m].total, default=None)

    rate, shift = chosen(MeasureKind.RATE, "contrast"), chosen(MeasureKind.SHIFT, "shift")
    if rate is not None:
        a = replace(a, rate=known[rate], rate_of=rate)
    if shift is not None:
        a = replace(a, shift=known[shift], shift_of=shift)
    correlation = _correlation(scores, scored, rules, a.rate_of)
    return a if correlation is None else replace(a, correlation=correlation, labelled=True)


def _correlation(scores: Scores, scored: Answers, rules: AnalysisRules, rate: str) -> float | None:
    """Return the correlation of judges' and people's answers; None with too few labels."""
    sample = labelled_edits(scores, scored, rules, {})
    measures = [outcome.measure for outcome in sample.outcomes] if sample else []
    if sample is None or rate not in measures:
        return None
    each, at = len(sample.edits) // 2, measures.index(Measure(rate))  # every edit has a second row, for all editors
    pair = np.stack([sample.judged[:each, at], sample.labels[:each, at]])
    pair = pair[:, ~np.isnan(pair).any(axis=0)]
    enough = pair.shape[1] >= LABELS and (pair.std(axis=1) > 0).all()
    return float(np.asarray(np.corrcoef(pair))[0, 1]) if enough else None
