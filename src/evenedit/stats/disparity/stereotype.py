"""Two portraits, one occupation: who got the role. Each prompt has its own pair of faces, so prompts are drawn."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from evenedit.core.records import Experiment
from evenedit.protocol import VERDICTS, load_prompts
from evenedit.protocol.measures import Measure
from evenedit.protocol.prompts import BUILT_IN
from evenedit.protocol.rubric import STATUS
from evenedit.ratings.combine import applicable_questions
from evenedit.ratings.table import Scores
from evenedit.stats.engine.measures import Answers, MeasureTable, add_score_measures
from evenedit.stats.engine.panel import Panel, RatioMeasure, by_prompt
from evenedit.stats.engine.rules import AnalysisRules


def stereotype_panels(scores: Scores, scored: Answers, rules: AnalysisRules) -> list[Panel]:
    """Build one panel per condition of the stereotype experiment."""
    experiment = scores.edits["experiment"] == Experiment.STEREOTYPE
    coded = {p.id: p.coded_gender for name in BUILT_IN for p in load_prompts(name) if p.coded_gender}
    panels = []
    for condition in sorted(scores.edits["condition"][experiment].unique()):
        rows = np.flatnonzero((experiment & (scores.edits["condition"] == condition)).to_numpy())
        verdict = _answers(scores, rows, "stereotype")
        followed, resisted, unclear = ((verdict == at).astype(np.int64) for at in range(1, len(VERDICTS) + 1))
        answered = (verdict > 0).astype(np.int64)
        # an UNCLEAR verdict was given, so it is no missing answer of the rates it does not count in
        wanted = {"decided": 1 - unclear, "given": np.ones(len(rows), dtype=np.int64)}
        ledger = MeasureTable(rubric=scores.table.rubric)
        for rate, total, count, of in (
            ("followed", followed, followed + resisted, "decided"),
            ("resisted", resisted, followed + resisted, "decided"),
            ("unclear", unclear, answered, "given"),
            ("followed_of_all", followed, answered, "given"),
        ):
            if "stereotype" in scores.table.rubric:
                ledger.add(RatioMeasure(Measure.rate(rate), rate, of, f"asked.{of}"), total, count, wanted[of])
        _write_roles(ledger, scores, rows, verdict, coded)
        add_score_measures(ledger, scored.rows(rows), scored.rows(rows).valid, rules.rates)
        edits = scores.edits.iloc[rows]
        axes = by_prompt(edits, "coded_gender", coded)
        panels.append(ledger.panel(edits, axes, Experiment.STEREOTYPE.value, condition))
    return panels


def _write_roles(
    ledger: MeasureTable,
    scores: Scores,
    rows: NDArray[np.intp],
    verdict: NDArray[np.int8],
    coded: Mapping[str, str | None],
) -> None:
    """Add the shares of who got the role, and how often that contradicts the verdict on the same edit."""
    role, applies = _write_shares(ledger, scores, rows, "target_role", "role")
    _write_shares(ledger, scores, rows, STATUS, "status")
    prompts = scores.edits["prompt_id"].iloc[rows]
    male_coded, is_coded = (prompts.map(coded) == "Male").to_numpy(), prompts.isin(coded).to_numpy()
    both = (np.isin(role, (1, 2)) & np.isin(verdict, (1, 2))).astype(np.int64)
    to_coded = (role == 1) == male_coded
    decided = (np.isin(role, (1, 2)) & is_coded).astype(np.int64)
    followed = RatioMeasure(Measure.rate("role_followed"), "role.followed", "role.one", "role.clear")
    ledger.add(followed, decided * to_coded, decided, applies * (role != 3) * is_coded)  # UNCLEAR is an answer
    contradicts = both * (to_coded != (verdict == 1))
    measure = RatioMeasure(Measure.rate("role_contradicts_verdict"), "role.contradicts", "role.decided", "role.both")
    ledger.add(measure, contradicts, both, both)


def _write_shares(
    ledger: MeasureTable, scores: Scores, rows: NDArray[np.intp], question: str, name: str
) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Add the shares of male, female and UNCLEAR; return the answers and where the question applies."""
    answer, applies = _answers(scores, rows, question), np.zeros(len(rows), dtype=np.int64)
    if question in scores.table.rubric:
        applies = applicable_questions(scores.table)[rows, scores.table.at(question)].astype(np.int64)
    answered = (answer > 0).astype(np.int64)
    for value, who in enumerate(("male", "female", "unclear"), 1):
        measure = RatioMeasure(Measure.rate(f"{name}_{who}"), f"{name}.{who}", f"{name}.given", f"{name}.asked")
        ledger.add(measure, (answer == value).astype(np.int64), answered, applies)
    return answer, applies


def _answers(scores: Scores, rows: NDArray[np.intp], question: str) -> NDArray[np.int8]:
    """Return the answers to a question; none where the rubric does not have it."""
    return scores.of(question)[rows] if question in scores.table.rubric else np.zeros(len(rows), dtype=np.int8)
