"""Do judges err more for some groups? Judge minus people, group by group: its gap, and labels permuted over faces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from evenedit.protocol import AXES
from evenedit.results.results import Agreement
from evenedit.stats.agreement import human_consensus as people
from evenedit.stats.agreement.overlap import Overlap, Place, Rows
from evenedit.stats.agreement.power_of_people import detectable_error
from evenedit.stats.disparity.gaps import gap_intervals
from evenedit.stats.engine.multiplicity import holm, holm_of_live
from evenedit.stats.engine.permutation import TIE, between_of, p_values, strata

STREAM = 4
"""These permutations' own random numbers."""
MOST = 1999
"""Permutations of the one test of each axis."""
GAP_DRAWS = 1000
"""Draws of a gap's noise."""
ALIKE = "no test"
"""How the method of an axis begins on which nothing could be shown."""
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
        joint = list(_joint(evidence, errors))
        yield from joint
        for editor in dict.fromkeys(row.editor for row in made):
            yield from _adjusted(
                evidence, [r for r in made if r.editor == editor], [r for r in joint if r.editor == editor]
            )


def _adjusted(evidence: Overlap, made: list[Agreement], joint: list[Agreement]) -> Iterator[Agreement]:
    """Each gap's p after two steps: one test of each axis, Holm over axes; then the factors of the axis, Holm again.

    Axes on which judges err alike for every face could show nothing and are in no family.
    """
    live = [not row.method.startswith(ALIKE) for row in joint]
    adjusted = holm_of_live([row.value or 0.0 for row in joint], live)
    first = dict(zip([row.axis for row in joint], adjusted, strict=True))
    axes = f"one test of each axis, Holm over {sum(live)} of {len(joint)} axes, those whose errors vary"
    for row in joint:
        how = f"{axes}{evidence.mark}"
        yield replace(row, statistic=f"{row.statistic}_holm", value=first[row.axis], method=how)
    for axis in first:
        family = [r for r in made if r.axis == axis and r.statistic == "mean_difference_gap_p"]
        for row, p in zip(family, holm([r.value or 0.0 for r in family]), strict=True):
            how = f"{axes}, then over {len(family)} factors{evidence.mark}"
            yield replace(row, statistic=f"{row.statistic}_holm", value=max(p, first[axis]), method=how)


def _joint(evidence: Overlap, errors: list[_Errors]) -> Iterator[Agreement]:
    """For every axis and editor one test: do errors go with the labels of faces, whichever factor they are of?

    The factor that is furthest apart counts, each in standard deviations of its own draws: in a sum, factors that make
    no difference would hide one that does.
    """
    draws = min(evidence.rules.permutations, MOST)
    for e in errors:
        faces, first, face = np.unique(evidence.unit[e.rows], return_index=True, return_inverse=True)
        labels = [evidence.labels(f.name, e.rows[first]) for f in evidence.table.factors]
        varying = [np.unique(x, return_inverse=True)[1].astype(np.int8) for x in labels if len(np.unique(x)) > 1]
        if not varying or len(faces) < 2:
            continue
        total, count = (
            np.bincount(face.ravel(), weights=w)[:, None].astype(np.float64) for w in (e.parts, np.ones(len(e.rows)))
        )
        order = _orders(len(faces), draws, evidence.rules.seed)
        apart = []
        for codes in varying:
            moved = np.concatenate([codes[None], codes[order]])
            between = np.cbrt(between_of(moved, int(codes.max()) + 1, total, count)[:, 0])
            spread = float(between[1:].std())
            if spread > TIE:
                apart.append((between - between[1:].mean()) / spread)
        furthest = np.max(apart, axis=0) if apart else np.zeros(draws + 1)
        p = float((1 + (furthest[1:] >= furthest[0] - TIE).sum()) / (1 + draws))
        method = (
            f"permutation(faces with all their labels, {draws}); the factor that is furthest apart by its own draws"
        )
        if not apart:
            method = f"{ALIKE}: judges err alike for every face"
        yield evidence.row(e.place, "mean_difference_by_group_p", p, None, None, len(e.rows), e.ratings, method)


@lru_cache(maxsize=8)
def _orders(faces: int, draws: int, seed: int) -> NDArray[np.int64]:
    """[draw, face]: faces in random order; the same for every axis."""
    return np.random.default_rng([seed, STREAM, faces]).permuted(np.tile(np.arange(faces), (draws, 1)), axis=1)


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
        method = "inverted, clustered by face" if interval else "no interval: a group of one face, or no variation"
        yield evidence.row(place, "mean_difference_gap", gap, low, high, *size, f"highest minus lowest group; {method}")
        method = f"permutation({how}, {evidence.rules.permutations})"
        yield evidence.row(place, "mean_difference_gap_p", float(p[at]), None, None, *size, method)
        if e.place.editor is None:
            tests = len({k.place.axis for k in kept}) * len(factors)
            found = _detectable(code, total[:, at] / e.one, count[:, at], tests)
            method = f"one group's, in 80 of 100 such samples, over {tests} tests"
            method += "; undefined: none of up to 1.5 points, or no variation" if found is None else ""
            yield evidence.row(place, "mean_difference_gap_detectable", found, None, None, *size, method)


def _detectable(
    code: NDArray[np.int8], total: NDArray[np.float64], count: NDArray[np.int64], tests: int
) -> float | None:
    """How much more judges must err for one group until a test of so many is likely to show it; None where no size."""
    read = count > 0
    mean, group = total[read] / count[read], code[read]
    sizes = [int(n) for n in np.bincount(group) if n]
    inside = len(mean) - len(sizes)
    if len(sizes) < 2 or inside < 1:
        return None
    around = mean - (np.bincount(group, weights=mean) / np.maximum(np.bincount(group), 1))[group]
    spread = float(np.sqrt((around**2).sum() / inside))
    return detectable_error(sizes, spread, tests) if spread > TIE else None


def _gap(
    evidence: Overlap, code: NDArray[np.int8], total: NDArray[np.float64], count: NDArray[np.int64]
) -> tuple[float, tuple[float, float] | None]:
    """Highest minus lowest mean over groups, and the interval of true gaps under which it is nothing unusual."""
    means, errors, sizes = [], [], []
    for level in np.unique(code):
        of = (code == level) & (count > 0)
        if of.any():
            faces, size = int(of.sum()), float(count[of].sum())
            mean = float(total[of].sum() / size)
            around = total[of] - mean * count[of]
            error = float(np.sqrt((around**2).sum() * faces / (faces - 1)) / size) if faces > 1 else np.nan
            reach = 0.5 + evidence.rules.confidence / 2
            means.append(mean)
            errors.append(error * float(stdtrit(faces - 1, reach) / ndtri(reach)) if faces > 1 else np.nan)
            sizes.append(size)
    gap = float(max(means) - min(means))
    if len(means) < 2 or not all(error > 0 for error in errors):
        return gap, None
    # as gaps of rates have it: from -4 to 4 taken as 0 to 1, errors lie near the middle, where the scale is even
    rates, own = (np.array([x]) / (2 * WIDEST) for x in (means, errors))
    apart = np.zeros((GAP_DRAWS, 1, len(means)))
    low, high = gap_intervals(
        rates + 0.5, own, apart, np.array([sizes]), evidence.rules.confidence, evidence.rules.seed
    )[:, 0]
    return gap, (2 * WIDEST * float(low), min(WIDEST, 2 * WIDEST * float(high)))
