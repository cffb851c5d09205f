"""Rank tests over groups and arms, on people's means and on the judges' scores, with effect sizes and adjusted p."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenedit.results.results import Agreement
from evenedit.stats.agreement import human_consensus as people
from evenedit.stats.agreement.inter_rater import Ratings
from evenedit.stats.agreement.overlap import Overlap, Place, Rows
from evenedit.stats.agreement.preference import cases
from evenedit.stats.agreement.rank_permutation import flipped_p, permuted_how, relabelled_p
from evenedit.stats.engine.additive import mean_of
from evenedit.stats.engine.families import holm
from evenedit.stats.engine.ranks import Integers, kruskal_wallis, mann_whitney, wilcoxon

REFERENCE = "White"
"""The group that the published study sets against everybody else."""
NO_TEST = "undefined: one group, or all values are equal"
DISTANCE = ".distance"
"""The ending of an axis that is measured as distance from the middle."""
TESTS = ("kruskal_wallis_H", "mann_whitney_U", "wilcoxon_T")
"""The tests whose p is adjusted."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """One number per item, exact."""

    rows: Rows
    total: NDArray[np.int64]
    count: NDArray[np.int64]
    """An item's mean is total over count."""

    def at(self, keep: NDArray[np.bool_]) -> _Sample:
        return _Sample(self.rows[keep], self.total[keep], self.count[keep])


def group_tests(evidence: Overlap) -> Iterator[Agreement]:
    """Run Kruskal-Wallis over the main factor, White against the rest, mitigated against baseline; Holm over axes."""
    tests: list[Agreement] = []
    matched, axes = list(cases(evidence)), evidence.table.rubric.axes
    for raters in (*(("all", "complete") if evidence.people else ()), *(("ensemble",) if evidence.judges else ())):
        distances = [axis + DISTANCE for axis in axes if evidence.table.rubric.questions[axis].sided == "two"]
        for axis in (*axes, *distances):
            for condition in evidence.conditions() if axis in axes else ():
                sample = _sample(evidence, axis, raters, evidence.rows(condition))
                sample = sample.at(sample.count > 0)
                tests += _over_editors(evidence, Place(axis, condition, None, raters), sample)
            for condition, before, after in matched:
                tests += _paired(evidence, Place(axis, condition, None, raters), before, after)
    yield from _adjusted(evidence, tests)


def _sample(evidence: Overlap, axis: str, raters: str, rows: Rows) -> _Sample:
    """Return the answers of a set of raters per row; distances are taken rating by rating."""
    question = axis.removesuffix(DISTANCE)
    ratings: Ratings = evidence.ensemble(question, rows)[:, None]
    if raters != "ensemble":
        ratings = evidence.ratings(question, rows)
        ratings = people.balanced_ratings(ratings) if raters == "complete" else ratings
    score = ratings.astype(np.int64)
    if axis.endswith(DISTANCE):
        score = np.where(score > 0, np.abs(score - evidence.table.rubric.no_change(question)), 0)
    count = (ratings > 0).sum(axis=1, dtype=np.int64)
    return _Sample(rows, score.sum(axis=1), count)


def _editors(evidence: Overlap, place: Place, rows: Rows) -> list[tuple[str | None, Rows]]:
    """Return all editors and each; all only where every item has equally many people."""
    if not len(rows):
        return []
    return evidence.editors(rows)[:1] if place.raters == "complete" else evidence.editors(rows)


def _over_editors(evidence: Overlap, place: Place, sample: _Sample) -> Iterator[Agreement]:
    for editor, rows in _editors(evidence, place, sample.rows):
        part = sample.at(np.isin(sample.rows, rows))
        yield from _groups(evidence, replace(place, editor=editor), part)


def _units(evidence: Overlap, place: Place, sample: _Sample) -> tuple[Integers, Rows, str]:
    """Return the integers that a test ranks, a row of each unit, and the name of the unit.

    Units are items for people, and faces for judges, whose edits of a face are many and similar.
    """
    if place.raters != "ensemble":
        return people.integer_means(sample.total, sample.count)[0], sample.rows, "item"
    total, count, rows = by_face(evidence, sample.rows, sample.total, sample.count)
    return people.integer_means(total, count)[0], rows, "face"


def by_face(
    evidence: Overlap, rows: Rows, total: NDArray[np.int64], count: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Rows]:
    """Return sums of each face's rows, and one row of each."""
    _, first, face = np.unique(evidence.unit[rows], return_index=True, return_inverse=True)
    sums = [np.bincount(face.ravel(), weights=x).astype(np.int64) for x in (total, count)]
    return sums[0], sums[1], rows[first]


def _groups(evidence: Overlap, place: Place, sample: _Sample) -> Iterator[Agreement]:
    values, rows, unit = _units(evidence, place, sample)
    main = evidence.table.factors[0]
    level = evidence.labels(main.name, rows)
    labelled = level != ""
    size = len(sample.rows), int(sample.count.sum())
    over = replace(place, group={main.name: "*"})
    h = kruskal_wallis(values[labelled], level[labelled])
    note = f"unit: {unit}, over {main.plural}"
    face = evidence.unit[rows]
    moved = _moves_faces(evidence, unit)
    p = relabelled_p(values[labelled], level[labelled], face[labelled], evidence.rules) if h and moved else h and h.p
    yield _test(
        evidence, over, "kruskal_wallis_H", h and h.statistic, p, size,
        f"{note}, ties corrected, df {h.df}" if h else f"{note}; {NO_TEST}",
        permuted_how(evidence.rules) if moved else "chi-square",
    )  # fmt: skip
    if h:
        yield evidence.row(over, "epsilon_squared", h.epsilon_squared, None, None, *size, f"H / (n - 1), {note}")
    if main.name != "race":  # the published comparison of White with everybody else has no counterpart
        return
    one_group, rest = values[level == REFERENCE], values[labelled & (level != REFERENCE)]
    against = replace(place, group={main.name: REFERENCE})
    note = f"unit: {unit}, {REFERENCE} against all others"
    u = mann_whitney(one_group, rest)
    method = note if u else f"{note}; {NO_TEST}"
    how, p = (u.method, u.p) if u else ("", None)
    if u and moved:
        white = np.where(level == REFERENCE, REFERENCE, "rest")[labelled]
        how, p = permuted_how(evidence.rules), relabelled_p(values[labelled], white, face[labelled], evidence.rules)
    yield _test(evidence, against, "mann_whitney_U", u and u.statistic, p, size, method, how)
    if u:
        yield evidence.row(against, "cliffs_delta", u.cliffs_delta, None, None, *size, note)


def _paired(evidence: Overlap, place: Place, before: Rows, after: Rows) -> Iterator[Agreement]:
    """Mitigated minus baseline of the same case."""
    earlier, later = (_sample(evidence, place.axis, place.raters, rows) for rows in (before, after))
    both = (earlier.count > 0) & (later.count > 0)
    for editor, rows in _editors(evidence, place, after[both]):
        of = both & np.isin(after, rows)
        yield from _signed(evidence, replace(place, editor=editor), earlier.at(of), later.at(of))


def _signed(evidence: Overlap, place: Place, before: _Sample, after: _Sample) -> Iterator[Agreement]:
    both, one = people.integer_means(
        np.concatenate([after.total, before.total]), np.concatenate([after.count, before.count])
    )
    difference = both[: len(after.rows)] - both[len(after.rows) :]
    n = int(before.count.sum() + after.count.sum())
    size = len(after.rows), n
    ones = np.ones(len(after.rows), dtype=np.int64)
    total, count, _ = by_face(evidence, after.rows, difference.astype(np.int64), ones)
    unit, values = (
        ("item", difference) if place.raters != "ensemble" else ("face", people.integer_means(total, count)[0])
    )
    note = f"unit: {unit}, mitigated minus baseline"
    yield from evidence.estimate(place, [(mean_of("mean_delta"), (difference / one,))], after.rows, n, note)
    w = wilcoxon(values)
    method = f"{note}, {w.nonzero} differ" if w else f"{note}; undefined: no pair differs"
    how, p = (w.method, w.p) if w else ("", None)
    if w and _moves_faces(evidence, unit):
        how = permuted_how(evidence.rules, "signs of faces flipped")
        p = flipped_p(values, evidence.unit[after.rows], evidence.rules)
    yield _test(evidence, place, "wilcoxon_T", w and w.statistic, p, size, method, how)
    if w:
        yield evidence.row(place, "rank_biserial", w.rank_biserial, None, None, *size, note)


def _moves_faces(evidence: Overlap, unit: str) -> bool:
    """Return whether p permutes faces, as for ranked items. The published rules take items as independent."""
    return unit == "item" and evidence.rules.preset != "published"


def _test(
    evidence: Overlap,
    place: Place,
    name: str,
    value: float | None,
    p: float | None,
    size: tuple[int, int],
    method: str,
    p_from: str,
) -> Agreement:
    method = method if p is None else f"{method}; {p_from}"
    return evidence.row(place, name, value, None, None, *size, method, p)


def _adjusted(evidence: Overlap, rows: Sequence[Agreement]) -> Iterator[Agreement]:
    """Yield rows with Holm's p within a family: the axes of one test, arm, editor and set of raters."""
    families: dict[tuple[object, ...], list[Agreement]] = {}
    for row in rows:
        if row.statistic in TESTS and row.p is not None and row.axis in evidence.table.rubric.axes:
            families.setdefault((row.statistic, row.condition, row.raters, row.editor), []).append(row)
    adjusted = {
        id(row): evidence.with_note(row, f"Holm over {len(family)} axes", p_adjusted=p)
        for family in families.values()
        for row, p in zip(family, holm([row.p for row in family]), strict=True)
    }
    yield from (adjusted.get(id(row), row) for row in rows)
