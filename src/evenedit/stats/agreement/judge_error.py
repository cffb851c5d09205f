"""Do judges err more for some groups? Judge minus people, group by group: its gap, and labels permuted over faces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenedit.protocol import AXES
from evenedit.results.results import Agreement
from evenedit.stats.agreement import human_consensus as people
from evenedit.stats.agreement.overlap import Overlap, Place, Rows
from evenedit.stats.engine.intervals import Interval, as_interval, percentile
from evenedit.stats.engine.multiplicity import holm
from evenedit.stats.engine.permutation import p_values, strata

STREAM = 4
"""These permutations' own random numbers."""
WIDEST = 4.0
"""The largest difference two scores of 1 to 5 can have."""


@dataclass(frozen=True, slots=True)
class _Errors:
    """Judge minus people of one question and editor, in whole parts of a point."""

    place: Place
    rows: Rows
    parts: NDArray[np.int64]
    """Differences, each a whole number of 1 / `one`."""
    one: int
    ratings: int


def judge_error(evidence: Overlap) -> Iterator[Agreement]:
    """For every axis and factor: how far apart groups are in judge minus people, and whether chance could do it."""
    for condition in evidence.conditions():
        errors = list(_errors(evidence, condition))
        made = [
            row for factor in evidence.table.factors for row in _by_factor(evidence, factor.name, factor.codes, errors)
        ]
        yield from made
        for editor in dict.fromkeys(row.editor for row in made):
            family = [row for row in made if row.editor == editor and row.statistic.endswith("_p")]
            adjusted = holm([row.value for row in family if row.value is not None])
            for row, p in zip(family, adjusted, strict=True):
                how = f"Holm over {len(family)} gaps of axes by factors{evidence.mark}"
                yield replace(row, statistic=f"{row.statistic}_holm", value=p, method=how)


def _errors(evidence: Overlap, condition: str) -> Iterator[_Errors]:
    for question in AXES:
        every = evidence.rows(condition)
        answered = (evidence.ratings(question, every) > 0).any(axis=1) & (evidence.ensemble(question, every) > 0)
        for editor, rows in evidence.editors(every[answered]):
            ratings = evidence.ratings(question, rows)
            total, count = people.totals(ratings)
            mean, one = people.whole_means(total, count)
            parts = evidence.ensemble(question, rows).astype(np.int64) * one - mean
            yield _Errors(Place(question, condition, editor), rows, parts.astype(np.int64), one, int(count.sum()))


def _by_factor(evidence: Overlap, factor: str, levels: tuple[str, ...], errors: list[_Errors]) -> Iterator[Agreement]:
    """The gap over one factor's groups for every question and editor, all tested with the same permutations."""
    factors = evidence.table.factors
    every = np.unique(np.concatenate([e.rows for e in errors])) if errors else np.empty(0, dtype=np.intp)
    every = every[np.isin(evidence.labels(factor, every), levels)]
    faces, first = np.unique(evidence.unit[every], return_index=True)
    label = {f.name: evidence.labels(f.name, every[first]) for f in factors}
    present = [level for level in levels if (label[factor] == level).any()]
    if len(present) < 2:
        return
    code = np.array([present.index(level) for level in label[factor]], dtype=np.int8)
    kept = [e for e in errors if len(np.unique(evidence.labels(factor, e.rows))) > 1]
    if not kept:
        return
    total, count = (np.zeros((len(faces), len(kept)), dtype=np.int64) for _ in range(2))
    for at, e in enumerate(kept):
        here = np.isin(evidence.unit[e.rows], faces)
        face = np.searchsorted(faces, evidence.unit[e.rows[here]])
        np.add.at(total[:, at], face, e.parts[here])
        np.add.at(count[:, at], face, 1)
    varying = {f: v for f, v in label.items() if len(np.unique(v)) > 1}
    within, how = strata(varying, factor, evidence.rules.permutations)
    rng = np.random.default_rng([evidence.rules.seed, STREAM, [f.name for f in factors].index(factor)])
    p = p_values(code, within, total, count, evidence.rules.permutations, rng)
    for at, e in enumerate(kept):
        gap, interval = _gap(evidence, code, total[:, at] / e.one, count[:, at])
        place = replace(e.place, group={factor: "*"})
        size = len(e.rows), e.ratings
        low, high = interval or (None, None)
        method = f"bootstrap(faces, {evidence.rules.draws}), basic" if interval else "no interval: a group of one face"
        yield evidence.row(place, "mean_difference_gap", gap, low, high, *size, f"highest minus lowest group; {method}")
        method = f"permutation({how}, {evidence.rules.permutations})"
        yield evidence.row(place, "mean_difference_gap_p", float(p[at]), None, None, *size, method)


def _gap(
    evidence: Overlap, code: NDArray[np.int8], total: NDArray[np.float64], count: NDArray[np.int64]
) -> tuple[float, tuple[float, float] | None]:
    """Highest minus lowest mean over groups, and its interval from faces drawn within groups."""
    means, draws = [], []
    for level in np.unique(code):
        of = (code == level) & (count > 0)
        if of.any():
            means.append(total[of].sum() / count[of].sum())
            both = np.stack([total[of], count[of]], axis=1)
            drawn = evidence.drawing.drawn(both) if of.sum() > 1 else np.full((evidence.rules.draws, 2), np.nan)
            draws.append(drawn[:, 0] / drawn[:, 1])
    gap = float(max(means) - min(means))
    spread = np.max(draws, axis=0) - np.min(draws, axis=0)
    return gap, _reflected(gap, spread, evidence.rules.confidence)


def _reflected(gap: float, draws: NDArray[np.float64], confidence: float) -> Interval | None:
    """The reflected bootstrap interval of max - min, whose draws are biased upwards; around the estimate."""
    bounds = as_interval(percentile(draws, confidence))
    if bounds is None:
        return None
    low, high = bounds
    return max(0.0, min(gap, 2 * gap - high)), min(WIDEST, max(gap, 2 * gap - low))
