"""How far a way of asking moves a judge's answers: paired shifts, faces as the unit.

Every edit is answered before and after, so each is its own control. Variances are over faces; all edits of a face go
together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.core.records import Estimate
from evenedit.protocol import FACTORS, Factor
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.ratings.table import QUESTION_IDS
from evenedit.results.judge_checks import Moved, Shift
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import estimates
from evenedit.stats.engine.measures import AXIS_QUESTIONS, MeasureTable
from evenedit.stats.engine.panel import Axes, Panel, RatioMeasure, build_panel, by_face
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.variance import NEGLIGIBLE, Uncertainty

NOISE = "again"
"""The comparison that shows how much answers change by themselves."""
MEASURES = ("mean", "size", "changed", "changed_two")


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
) -> list[Shift]:
    """Return every shift, of everybody and of each group; `applicable` [edit, question] marks questions that apply."""
    results: list[Shift] = []
    for panel in _panels(edits, applicable, comparisons, factors):
        crossed = CrossedPanel(panel)
        groups = panel.axes.groups()
        by_place = {
            (e.measure, e.editor, tuple(e.group.items())): e for e in estimates(crossed, groups, rules) if e.editor
        }
        for group in groups:
            beyond = _beyond(crossed, group, rules)
            for judge in panel.editors:
                for question in AXIS_QUESTIONS:
                    numbers = {m: by_place.get((_name(m, question), judge, tuple(group.items()))) for m in MEASURES}
                    first = numbers["mean"]
                    if first is not None:
                        results.append(
                            Shift(
                                judge=judge,
                                comparison=panel.condition,
                                question=question,
                                group=group,
                                n=first.n,
                                missing=first.missing,
                                beyond=beyond.get((judge, question)),
                                **{m: _moved(e) for m, e in numbers.items()},
                            )
                        )
    return results


def _panels(
    edits: pd.DataFrame, applicable: NDArray[np.bool_], comparisons: Sequence[Comparison], factors: Sequence[Factor]
) -> Iterator[Panel]:
    """Yield one panel per comparison, with judges in the place of editors and the noise as extra columns."""
    noise = {c.judge: c for c in comparisons if c.id == NOISE}
    for ident in dict.fromkeys(c.id for c in comparisons):
        members = [c for c in comparisons if c.id == ident]
        rows = pd.concat([edits.assign(editor=c.judge) for c in members], ignore_index=True)
        ledger = MeasureTable()
        applies = np.concatenate([applicable] * len(members))
        _write(ledger, members, applies)
        if ident != NOISE and all(c.judge in noise for c in members):
            _write(ledger, [noise[c.judge] for c in members], applies, NOISE)
        axes = by_face(rows, factors)
        one_prompt: Axes = replace(axes, prompts=("",), prompt_at=np.zeros_like(axes.prompt_at))
        yield build_panel(rows, one_prompt, ledger.columns, ledger.measures, experiment="judges-check", condition=ident)


def _name(measure: str, question: str, prefix: str = "") -> Measure:
    """Return the measure name; shares are rates, so that they have an interval at 0 and 1."""
    kind = MeasureKind.RATE if measure.startswith("changed") else MeasureKind.DELTA
    return Measure.of(kind, f"{prefix}{measure}.{question}")


def _write(ledger: MeasureTable, members: Sequence[Comparison], applies: NDArray[np.bool_], prefix: str = "") -> None:
    before = np.concatenate([c.before for c in members]).astype(np.int64)
    after = np.concatenate([c.after for c in members]).astype(np.int64)
    for question in AXIS_QUESTIONS:
        at = QUESTION_IDS.index(question)
        both = ((before[:, at] > 0) & (after[:, at] > 0)).astype(np.int64)
        shift = (after[:, at] - before[:, at]) * both
        size = np.abs(shift)
        columns = {"mean": shift, "size": size, "changed": size > 0, "changed_two": size >= 2}
        for measure, column in columns.items():
            name = _name(measure, question, prefix)
            ledger.add(
                RatioMeasure(name, f"sum.{name}", f"n.{prefix}{question}", f"asked.{question}"),
                column.astype(np.int64),
                both,
                applies[:, at].astype(np.int64),
            )


def _moved(estimate: Estimate | None) -> Moved:
    if estimate is None:
        return Moved(None)
    if estimate.low == estimate.high:  # no draw differs: that says nothing about other faces
        return Moved(estimate.value)
    return Moved(estimate.value, estimate.low, estimate.high)


def _beyond(crossed: CrossedPanel, group: Mapping[str, str], rules: AnalysisRules) -> dict[tuple[str, str], Moved]:
    """Return the share changed beyond repeated calls, with a t interval over faces."""
    panel = crossed.panel
    names = [m.name for m in panel.measures]
    mask = panel.axes.mask(group)
    sums, (by_face, _) = crossed.group(mask), crossed.influences([(mask, 1.0)])
    differences = {}
    for question in AXIS_QUESTIONS:
        pair = [_name("changed", question), _name("changed", question, NOISE)]
        if not set(pair) <= set(names):
            continue
        changed, noise = (names.index(name) for name in pair)
        for row, judge in enumerate(panel.editors):
            value = float(sums.value[row, changed] - sums.value[row, noise])
            if np.isnan(value):
                continue
            faces = float(sums.faces[row, changed])
            spread = float(np.square(by_face[:, row, changed] - by_face[:, row, noise]).sum())
            if faces < 2 or spread <= NEGLIGIBLE:
                differences[judge, question] = Moved(value)
                continue
            sure = Uncertainty(np.asarray(spread * faces / (faces - 1)), np.asarray(faces - 1))
            reach = float(sure.half_width(rules.confidence))
            differences[judge, question] = Moved(value, value - reach, value + reach)
    return differences
