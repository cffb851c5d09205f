"""The feature prompt against the baseline of the same editor, source, prompt and seed: complete pairs only."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.core.records import ConditionKind, Experiment
from evenedit.protocol import ROLES
from evenedit.protocol.measures import Measure
from evenedit.ratings.table import Scores
from evenedit.stats.engine.measures import Answers, MeasureTable, add_score_measures
from evenedit.stats.engine.panel import Axes, Column, Panel, RatioMeasure, by_face
from evenedit.stats.engine.rules import AnalysisRules

CASE = ["editor", "source_id", "prompt_id"]
PLACEBO = ConditionKind.PLACEBO


def mitigation_panels(scores: Scores, scored: Answers, rules: AnalysisRules) -> list[Panel]:
    """Build one panel of pairs per mitigated condition. The first one also has the baseline of its pairs."""
    edits = scores.edits
    conditions = sorted(edits["condition"][edits["experiment"] == Experiment.MITIGATION].unique())
    panels: list[Panel] = []
    for condition in conditions:
        before, after = pairs(edits, condition)
        chosen = edits.iloc[after]
        axes = by_face(chosen, scores.table.factors)
        panels.append(_panel(chosen, axes, scored.rows(before), scored.rows(after), condition, rules, not panels))
    return panels


def _panel(
    edits: pd.DataFrame,
    axes: Axes,
    before: Answers,
    after: Answers,
    condition: str,
    rules: AnalysisRules,
    with_baseline: bool,
) -> Panel:
    columns = after.rubric.columns
    valid = {q: ((before.of(q)[0] > 0) & (after.of(q)[0] > 0)).astype(np.int64) for q in columns}
    ledger = MeasureTable(rubric=after.rubric)
    add_score_measures(ledger, after, valid, rules.rates, condition)
    if with_baseline:
        # a case without its baseline was to be compared too: it is missing, so what applies is the mitigated row's
        earlier_scores = Answers(before.values, after.applicable, after.rubric)
        add_score_measures(ledger, earlier_scores, valid, rules.rates, ConditionKind.BASELINE)
    for question in after.rubric.ordinal:
        (earlier, _), (later, applies) = before.of(question), after.of(question)
        measure = RatioMeasure(
            Measure.delta(question), f"difference.{question}", f"n.{question}", f"asked.{question}", condition
        )
        ledger.add(measure, (later - earlier) * valid[question], valid[question], applies)
    if ROLES.preference in after.rubric:
        _write_preference(ledger, *after.of(ROLES.preference), condition)
    return ledger.panel(edits, axes, Experiment.MITIGATION.value, condition)


def pairs(edits: pd.DataFrame, condition: str) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of each mitigated edit and of its baseline, -1 where there is none.

    A placebo is the baseline again with another seed, so its seed cannot match: a case's first placebo seed
    stands beside the first seed of its baselines, the second beside the second.
    """
    keyed = edits[[*CASE, "seed"]].assign(row=np.arange(len(edits)))
    is_baseline = (edits["experiment"] == Experiment.DIAGNOSIS) & (edits["condition"] == ConditionKind.BASELINE)
    is_mitigated = edits["experiment"] == Experiment.MITIGATION
    after = keyed[(is_mitigated & (edits["condition"] == condition)).to_numpy()]
    before = keyed[is_baseline.to_numpy()].drop_duplicates([*CASE, "seed"])
    if condition == PLACEBO:
        mitigated = keyed[(is_mitigated & (edits["condition"] != PLACEBO)).to_numpy()]
        if len(mitigated):
            before = before.merge(mitigated[[*CASE, "seed"]].drop_duplicates(), on=[*CASE, "seed"])
        after, before = _ranked(after), _ranked(before)
    merged = after.merge(before, on=[*CASE, "seed"], how="left", suffixes=("", "_before"))
    return (
        merged["row_before"].fillna(-1).to_numpy(dtype=np.intp),
        merged["row"].to_numpy(dtype=np.intp),
    )


def _ranked(keyed: pd.DataFrame) -> pd.DataFrame:
    """Replace seeds by their rank within the case."""
    return keyed.assign(seed=keyed.groupby(CASE)["seed"].rank(method="first").astype(np.int64))


def _write_preference(ledger: MeasureTable, value: Column, applies: Column, condition: str) -> None:
    """Add the shares of preferred outputs. Ties only count in the shares of all answers."""
    baseline, mitigated, same, unclear = ((value == at).astype(np.int64) for at in range(1, 5))
    answered, tied = (value > 0).astype(np.int64), same + unclear
    for rate, total, count, wanted, of in (
        ("prefers_mitigated", mitigated, mitigated + baseline, applies - tied, "decided"),
        ("prefers_mitigated_of_all", mitigated, answered, applies, "given"),
        ("prefers_same", same, answered, applies, "given"),
        ("preference_unclear", unclear, answered, applies, "given"),
    ):
        measure = RatioMeasure(Measure.rate(rate), rate, f"preference.{of}", f"preference.asked.{of}", condition)
        ledger.add(measure, total, count, wanted)
