"""Do judges err more for some groups? Judge minus people, group by group: its gap, and labels permuted over faces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from evenedit.protocol import AXES
from evenedit.results.results import Agreement
from evenedit.stats.agreement import human_consensus as people
from evenedit.stats.agreement.overlap import Overlap, Place, Rows
from evenedit.stats.disparity.gaps import gap_intervals
from evenedit.stats.engine.multiplicity import holm, holm_testable
from evenedit.stats.engine.permutation import TIE, between_group_variance, p_values, strata

STREAM = 4
"""These permutations' own random numbers."""
MOST = 1999
"""Permutations of the one test of each axis."""
GAP_DRAWS = 1000
"""Draws of a gap's noise."""
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
    """Yield, for every axis and factor, the gap between groups in judge minus people, with its test."""
    for condition in evidence.conditions():
        errors = list(_errors(evidence, condition))
        gaps = [
            row for factor in evidence.table.factors for row in _by_factor(evidence, factor.name, factor.codes, errors)
        ]
        axis_tests = list(_axis_tests(evidence, errors))
        for editor in dict.fromkeys(row.editor for row in gaps):
            p_by_axis = {place.axis: p for place, p in axis_tests if place.editor == editor}
            yield from _adjusted(evidence, [row for row in gaps if row.editor == editor], p_by_axis)


def _adjusted(evidence: Overlap, gaps: list[Agreement], p_by_axis: Mapping[str, float | None]) -> Iterator[Agreement]:
    """Yield gaps with p after two steps: one test of each axis, Holm over axes; then Holm over the axis's factors.

    An axis on which judges err alike for every face has no p and is in no family.
    """
    live = [p is not None for p in p_by_axis.values()]
    adjusted = holm_testable([p if p is not None else 1.0 for p in p_by_axis.values()], live)
    first = dict(zip(p_by_axis, adjusted, strict=True))
    note = f"one test of each axis, Holm over {sum(live)} of {len(live)} axes, those whose errors vary"
    for axis in dict.fromkeys(row.axis for row in gaps):
        family = [row for row in gaps if row.axis == axis]
        for row, p in zip(family, holm([row.p or 0.0 for row in family]), strict=True):
            yield evidence.with_note(row, f"{note}, then over {len(family)} factors", p_adjusted=max(p, first[axis]))


def _axis_tests(evidence: Overlap, errors: list[_Errors]) -> Iterator[tuple[Place, float | None]]:
    """Yield, for every axis and editor, p of one test: do errors go with the labels of faces, of whichever factor?

    The factor that is furthest apart counts, each in standard deviations of its own draws: in a sum, factors that make
    no difference would hide one that does. p is None where judges err alike for every face.
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
        scaled = []
        for codes in varying:
            moved = np.concatenate([codes[None], codes[order]])
            between = np.cbrt(between_group_variance(moved, int(codes.max()) + 1, total, count)[:, 0])
            spread = float(between[1:].std())
            if spread > TIE:
                scaled.append((between - between[1:].mean()) / spread)
        if not scaled:
            yield e.place, None
            continue
        furthest = np.max(scaled, axis=0)
        yield e.place, float((1 + (furthest[1:] >= furthest[0] - TIE).sum()) / (1 + draws))


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
            mean, one = people.integer_means(total, count)
            parts = evidence.ensemble(question, rows).astype(np.int64) * one - mean
            yield _Errors(Place(question, condition, editor), rows, parts.astype(np.int64), one, int(count.sum()))


def _by_factor(evidence: Overlap, factor: str, levels: tuple[str, ...], errors: list[_Errors]) -> Iterator[Agreement]:
    """Yield the gap over the groups of a factor per question and editor, all tested with the same permutations."""
    factors = evidence.table.factors
    every = np.unique(np.concatenate([e.rows for e in errors])) if errors else np.empty(0, dtype=np.intp)
    every = every[np.isin(evidence.labels(factor, every), levels)]
    faces, first = np.unique(evidence.unit[every], return_index=True)
    label = {f.name: evidence.labels(f.name, every[first]) for f in factors}
    present = [level for level in levels if (label[factor] == level).any()]
    if len(present) < 2:
        return
    code = np.array([present.index(level) for level in label[factor]], dtype=np.int8)
    compared = [e for e in errors if len(np.unique(evidence.labels(factor, e.rows))) > 1]
    if not compared:
        return
    total, count = (np.zeros((len(faces), len(compared)), dtype=np.int64) for _ in range(2))
    for at, e in enumerate(compared):
        included = np.isin(evidence.unit[e.rows], faces)
        face = np.searchsorted(faces, evidence.unit[e.rows[included]])
        np.add.at(total[:, at], face, e.parts[included])
        np.add.at(count[:, at], face, 1)
    varying = {f: v for f, v in label.items() if len(np.unique(v)) > 1}
    within, how = strata(varying, factor, evidence.rules.permutations)
    rng = np.random.default_rng([evidence.rules.seed, STREAM, [f.name for f in factors].index(factor)])
    p = p_values(code, within, total, count, evidence.rules.permutations, rng)
    for at, e in enumerate(compared):
        gap, interval = _gap(evidence, code, total[:, at] / e.one, count[:, at])
        place = replace(e.place, group={factor: "*"})
        size = len(e.rows), e.ratings
        low, high = interval or (None, None)
        method = "inverted, clustered by face" if interval else "no interval: a group of one face, or no variation"
        method = f"highest minus lowest group; {method}; permutation({how}, {evidence.rules.permutations})"
        yield evidence.row(place, "mean_difference_gap", gap, low, high, *size, method, float(p[at]))


def _gap(
    evidence: Overlap, code: NDArray[np.int8], total: NDArray[np.float64], count: NDArray[np.int64]
) -> tuple[float, tuple[float, float] | None]:
    """Return the highest minus the lowest group mean, and its interval by test inversion."""
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
    rates, scaled = (np.array([x]) / (2 * WIDEST) for x in (means, errors))
    no_shared_noise = np.zeros((GAP_DRAWS, 1, len(means)))
    low, high = gap_intervals(
        rates + 0.5, scaled, no_shared_noise, np.array([sizes]), evidence.rules.confidence, evidence.rules.seed
    )[:, 0]
    return gap, (2 * WIDEST * float(low), min(WIDEST, 2 * WIDEST * float(high)))
