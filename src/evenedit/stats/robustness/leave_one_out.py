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
                yield LeaveOneOut(
                    measure=measure.name.to(MeasureKind.GAP),
                    experiment=panel.experiment,
                    condition=panel.condition,
                    editor=editor,
                    factor=name,
                    value=float(value),
                    low=float(gaps.min()),
                    high=float(gaps.max()),
                    face=panel.axes.clusters[faces[np.abs(gaps - value).argmax()]],
                    same_extremes=int(((highest == high) & (lowest == low)).sum()),
                    faces=len(faces),
                )


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
    edits = scores.edits
    chosen = of_diagnosis(edits)
    for editor in sorted(edits["editor"][chosen].unique()):
        rows = np.flatnonzero(chosen & (edits["editor"] == editor).to_numpy())
        subset = edits.iloc[rows]
        seed = np.unique(subset["seed"].to_numpy(), return_inverse=True)[1]
        if seed.max(initial=0) == 0:
            continue
        case = subset.groupby(["source_id", "prompt_id"], sort=True).ngroup().to_numpy().astype(np.int64)
        main = scores.table.factors[0]
        codes = list(main.codes)
        level = np.array([codes.index(c) if c in codes else -1 for c in subset[main.name]], dtype=np.int64)
        answers = scored.rows(rows)
        for name, rate in rules.rates.items():
            value, _ = answers.of(rate.question)
            valid, met = rate.counted(value), rate.met(value).astype(np.int64)
            spread = _spread(met[valid], seed[valid], case[valid], level[valid])
            if spread is not None:
                yield SeedSpread(
                    Measure.rate(name), Experiment.DIAGNOSIS.value, ConditionKind.BASELINE, editor, *spread
                )


def _spread(
    met: NDArray[np.int64], seed: NDArray[np.intp], case: NDArray[np.int64], level: NDArray[np.int64]
) -> tuple[int, float, float, float | None, float | None, float, float | None, int] | None:
    seeds = np.unique(seed)
    if len(seeds) < 2:
        return None
    rates = [float(met[seed == s].mean()) for s in seeds]
    gaps = []
    for s in seeds:
        shares = [float(met[(seed == s) & (level == c)].mean()) for c in np.unique(level[(seed == s) & (level >= 0)])]
        if len(shares) > 1:
            gaps.append(max(shares) - min(shares))
    count = np.bincount(case)
    hits = np.bincount(case, weights=met)
    several = count > 1
    if not several.any():
        return None
    n, h = count[several], hits[several]
    within = float((h * (n - h) / n / (n - 1)).mean())  # unbiased variance between the seeds of a case
    variance = float(met.var(ddof=1)) if len(met) > 1 else 0.0
    return (
        len(seeds),
        min(rates),
        max(rates),
        min(gaps) if gaps else None,
        max(gaps) if gaps else None,
        float(((h > 0) & (h < n)).mean()),
        min(1.0, within / variance) if variance > 0 else None,
        int(several.sum()),
    )
