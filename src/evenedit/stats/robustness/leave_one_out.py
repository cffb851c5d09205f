"""Does a gap hang on one face, on a few, or on one seed?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from evenedit.core.records import ConditionKind, Experiment
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.ratings.table import Scores
from evenedit.results.results import GapTest, LeaveOneOut, SeedSpread
from evenedit.stats.engine.measures import Answers
from evenedit.stats.engine.panel import Panel, of_diagnosis
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.shift_tests import find_measure

HANDFUL = 0.25
"""A quarter of a group's faces that holds more than half of its events carries the group."""
SMALLEST = 6
"""Faces a group needs before a few of them are told from the rest."""


def leave_one_out(panel: Panel) -> Iterator[LeaveOneOut]:
    """Yield every gap of a panel with each of its faces left out in turn."""
    for name, levels in panel.axes.levels.items():
        if len(levels) < 2:
            continue
        labels = panel.axes.labels[name]
        member = labels[:, None] == np.array(levels)  # [face, level]
        counted = np.flatnonzero(member.any(axis=1))
        for editor, rows in panel.rows():
            for measure in panel.measures:
                if not measure.is_rate:
                    continue
                total, count = (panel.sums[c][rows].sum(axis=0) for c in (measure.total, measure.count))
                faces = counted[count[counted] > 0]
                full = _extremes((total @ member)[None], (count @ member)[None])
                if full is None or len(faces) < 2:
                    continue
                less = _extremes(
                    total @ member - total[faces, None] * member[faces],
                    count @ member - count[faces, None] * member[faces],
                )
                if less is None:
                    continue
                (value,), (high,), (low,) = full
                gaps, highest, lowest = less
                place = measure.name.to(MeasureKind.GAP), *panel.place(editor), name
                face = panel.axes.clusters[faces[np.abs(gaps - value).argmax()]]
                same = int(((highest == high) & (lowest == low)).sum())
                numbers = float(value), float(gaps.min()), float(gaps.max())
                yield LeaveOneOut(*place, *numbers, face, same, len(faces))


Extremes = tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]


def _extremes(total: NDArray[np.int64], count: NDArray[np.int64]) -> Extremes | None:
    """Return gap, highest and lowest level of each row [omission, level]; None if a row has fewer than two levels."""
    share = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    if ((count > 0).sum(axis=1) < 2).any():
        return None
    highest, lowest = np.nanargmax(share, axis=1), np.nanargmin(share, axis=1)
    at = np.arange(len(share))
    return share[at, highest] - share[at, lowest], highest, lowest


def influential_faces(panel: Panel, test: GapTest, level: str) -> tuple[int, int] | None:
    """Return the fewest faces with more than half of a group's events, and all its faces; None where they are many."""
    measure = find_measure(panel, Measure(test.measure).to(MeasureKind.RATE))
    assert measure is not None and test.editor is not None
    row = panel.editors.index(test.editor)
    total, count = panel.sums[measure.total][row], panel.sums[measure.count][row]
    members = panel.axes.mask({test.factor: level}) & (count > 0)
    events = np.sort(total[members])[::-1]
    if len(events) < SMALLEST or events.sum() == 0:
        return None
    few = int(np.searchsorted(np.cumsum(events), events.sum() / 2, side="right")) + 1
    return (few, len(events)) if few <= HANDFUL * len(events) else None


def seed_variance(scores: Scores, scored: Answers, rules: AnalysisRules) -> Iterator[SeedSpread]:
    """Yield, per rate of an editor with several seeds, its range over seeds and how often seeds disagree."""
    edits, main = scores.edits, scores.table.factors[0]
    chosen = of_diagnosis(edits)
    for editor in sorted(edits["editor"][chosen].unique()):
        rows = np.flatnonzero(chosen & (edits["editor"] == editor).to_numpy())
        subset, answers = edits.iloc[rows], scored.rows(rows)
        for name, rate in rules.rates.items() if subset["seed"].nunique() > 1 else ():
            value, _ = answers.of(rate.question)
            valid = subset.assign(met=rate.met(value).astype(np.float64))[rate.counted(value)]
            by_seed, cases = valid.groupby("seed")["met"].mean(), valid.groupby(["source_id", "prompt_id"])["met"]
            n, met = cases.size()[cases.size() > 1], cases.sum()[cases.size() > 1]
            if len(by_seed) < 2 or n.empty:
                continue
            labelled = valid[valid[main.name].isin(main.codes)]
            levels = labelled.groupby(["seed", main.name])["met"].mean().groupby("seed")
            gaps = (levels.max() - levels.min())[levels.size() > 1].tolist()
            variance, within = float(valid["met"].var()), float((met * (n - met) / n / (n - 1)).mean())
            yield SeedSpread(
                measure=Measure.rate(name),
                experiment=Experiment.DIAGNOSIS.value,
                condition=ConditionKind.BASELINE.value,
                editor=editor,
                seeds=len(by_seed),
                low=float(by_seed.min()),
                high=float(by_seed.max()),
                gap_low=min(gaps, default=None),
                gap_high=max(gaps, default=None),
                disagree=float(((met > 0) & (met < n)).mean()),
                variance_share=min(1.0, within / variance) if variance > 0 else None,
                cases=len(n),
            )
