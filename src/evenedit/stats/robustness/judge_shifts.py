"""How far a way of asking moves a judge's answers: paired shifts, faces as the unit.

Every edit is answered before and after, so each is its own control. Variances are over faces; all edits of a face go
together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.protocol import FACTORS, Factor, Rubric, default_rubric
from evenedit.protocol.measures import Measure
from evenedit.results.judge_checks import Moved, Shift
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import estimates
from evenedit.stats.engine.measures import MeasureTable
from evenedit.stats.engine.panel import Axes, by_face
from evenedit.stats.engine.rules import AnalysisRules

NOISE = "again"
"""The comparison that shows how much answers change by themselves."""
MEASURES = {"mean": Measure.delta, "size": Measure.delta, "changed": Measure.rate, "changed_two": Measure.rate,
            "beyond": Measure.delta}  # fmt: skip
"""What is measured of each question; shares are rates, so that they have an interval at 0 and 1."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One judge's answers to the same edits, asked in two ways."""

    judge: str
    id: str
    before: NDArray[np.int8]
    """[edit, question]; 0 = missing."""
    after: NDArray[np.int8]


def shifts(
    edits: pd.DataFrame,
    applicable: NDArray[np.bool_],
    comparisons: Sequence[Comparison],
    rules: AnalysisRules,
    factors: Sequence[Factor] = FACTORS,
    rubric: Rubric | None = None,
) -> Iterator[Shift]:
    """Yield every shift, of everybody and of each group; `applicable` [edit, question] marks questions that apply."""
    rubric = rubric or default_rubric()
    noise = {c.judge: c for c in comparisons if c.id == NOISE}
    for ident in dict.fromkeys(c.id for c in comparisons):
        members = [c for c in comparisons if c.id == ident]
        usual = [noise[c.judge] for c in members] if ident != NOISE and all(c.judge in noise for c in members) else []
        ledger = _ledger(members, usual, np.concatenate([applicable] * len(members)), rubric)
        rows = pd.concat([edits.assign(editor=c.judge) for c in members], ignore_index=True)
        axes = by_face(rows, factors)
        one_prompt: Axes = replace(axes, prompts=("",), prompt_at=np.zeros_like(axes.prompt_at))
        crossed = CrossedPanel(ledger.panel(rows, one_prompt, "judges-check", ident))
        groups = crossed.panel.axes.groups()
        matches = {(e.measure, e.editor, *e.group.items()): e for e in estimates(crossed, groups, rules)}
        for group in groups:
            for judge in crossed.panel.editors:
                for question in rubric.ordinal:
                    of = {
                        m: matches.get((kind(f"{m}.{question}"), judge, *group.items())) for m, kind in MEASURES.items()
                    }
                    first = of["mean"]
                    if first is not None:
                        moved: dict[str, Any] = {
                            m: Moved(e.value, e.low, e.high) if e is not None else None for m, e in of.items()
                        }
                        yield Shift(judge, ident, question, group, first.n, first.missing, **moved)


def _ledger(
    members: Sequence[Comparison], usual: Sequence[Comparison], applicable: NDArray[np.bool_], rubric: Rubric
) -> MeasureTable:
    """Return the columns of all judges; `usual` are their repeats, in the same order."""
    moves, is_known = _moves(members)
    ledger = MeasureTable(rubric=rubric)
    for question in rubric.ordinal:
        at = rubric.at(question)
        move, known, applies = moves[:, at], is_known[:, at].astype(np.int64), applicable[:, at].astype(np.int64)
        size = np.abs(move)
        columns = {"mean": move, "size": size, "changed": size > 0, "changed_two": size >= 2}
        counts = dict.fromkeys(columns, known)
        if usual:
            repeats, repeated = (x[:, at] for x in _moves(usual))
            columns["beyond"], counts["beyond"] = (size > 0) * 1 - (repeats != 0), known * repeated
        for name, column in columns.items():
            measure = MEASURES[name](f"{name}.{question}")
            ledger.add_ratio(measure, column * counts[name], counts[name], applies)
    return ledger


def _moves(members: Sequence[Comparison]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return after minus before [edit, question], and whether both were answered."""
    before, after = (
        np.concatenate([getattr(c, side) for c in members]).astype(np.int64) for side in ("before", "after")
    )
    known = (before > 0) & (after > 0)
    return (after - before) * known, known
