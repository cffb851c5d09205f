"""Rank tests over groups and arms, on people's means and on the judges' scores, with effect sizes and adjusted p."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenedit.protocol import AXES, QUESTIONS
from evenedit.results.results import Agreement
from evenedit.stats.agreement import human_consensus as people
from evenedit.stats.agreement.inter_rater import Ratings
from evenedit.stats.agreement.overlap import Overlap, Place, Rows
from evenedit.stats.agreement.rank_permutation import flipped_p, permuted_how, relabelled_p
from evenedit.stats.disparity.preference import cases
from evenedit.stats.engine.additive import mean_of
from evenedit.stats.engine.equivalence import MARGIN, Equivalence, tost, tost_two
from evenedit.stats.engine.multiplicity import benjamini_hochberg, holm
from evenedit.stats.engine.ranks import Whole, kruskal_wallis, mann_whitney, wilcoxon

REFERENCE = "White"
"""The group that the published study sets against everybody else."""
NO_TEST = "undefined: one group, or all values are equal"
DISTANCE = ".distance"
"""The ending of an axis that is measured as distance from the middle."""


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
    """Kruskal-Wallis over the main factor, White against the rest, mitigated against baseline; Holm over axes."""
    made: list[Agreement] = []
    matched = list(cases(evidence))
    for raters in (*(("all", "complete") if evidence.people else ()), *(("ensemble",) if evidence.judges else ())):
        for axis in _axes():
            for condition in evidence.conditions():
                sample = _sample(evidence, axis, raters, evidence.rows(condition))
                sample = sample.at(sample.count > 0)
                made += _over_editors(evidence, Place(axis, condition, None, raters), sample)
            for condition, before, after in matched:
                made += _paired(evidence, Place(axis, condition, None, raters), before, after)
    yield from made
    yield from _adjusted(evidence, made)


def _axes() -> list[str]:
    return [*AXES, *(axis + DISTANCE for axis in AXES if QUESTIONS[axis].sided == "two")]


def _sample(evidence: Overlap, axis: str, raters: str, rows: Rows) -> _Sample:
    """What some raters say of each row; a distance is taken rating by rating."""
    question = axis.removesuffix(DISTANCE)
    ratings: Ratings = evidence.ensemble(question, rows)[:, None]
    if raters != "ensemble":
        ratings = evidence.ratings(question, rows)
        ratings = people.complete(ratings) if raters == "complete" else ratings
    score = ratings.astype(np.int64)
    if axis.endswith(DISTANCE):
        score = np.where(score > 0, np.abs(score - 3), 0)
    count = (ratings > 0).sum(axis=1, dtype=np.int64)
    return _Sample(rows, score.sum(axis=1), count)


def _editors(evidence: Overlap, place: Place, rows: Rows) -> list[tuple[str | None, Rows]]:
    """All editors and each; all only for the people of whom there are equally many per item."""
    if not len(rows):
        return []
    return evidence.editors(rows)[:1] if place.raters == "complete" else evidence.editors(rows)


def _over_editors(evidence: Overlap, place: Place, sample: _Sample) -> Iterator[Agreement]:
    for editor, rows in _editors(evidence, place, sample.rows):
        part = sample.at(np.isin(sample.rows, rows))
        here = replace(place, editor=editor)
        if place.raters != "ensemble":  # the judges' own are among the estimates, with the headline intervals
            yield from _sides(evidence, here, part)
        yield from _groups(evidence, here, part)


def _sides(evidence: Overlap, place: Place, sample: _Sample) -> Iterator[Agreement]:
    """A two-sided axis as shares to either side and as distance from the middle."""
    n = int(sample.count.sum())
    if place.axis.endswith(DISTANCE):
        where = replace(place, axis=place.axis.removesuffix(DISTANCE))
        each = sample.total / sample.count
        yield from evidence.estimate(
            where, [(mean_of("distance_from_middle"), (each,))], sample.rows, n, "mean of |s - 3|"
        )
        return
    if QUESTIONS[place.axis].sided == "two":
        rounded = (2 * sample.total + sample.count) // (2 * sample.count)
        for rate in evidence.rules.rates.values():
            if rate.question == place.axis:
                up = rate.at_least is not None
                met = rounded >= (rate.at_least or 0) if up else rounded <= (rate.at_most or 0)
                wanted = [(mean_of(f"rate_{rate.id}", is_share=True), (met,))]
                yield from evidence.estimate(place, wanted, sample.rows, n, f"share of items {rate.rule}, mean half up")


def _units(evidence: Overlap, place: Place, sample: _Sample) -> tuple[Whole, Rows, str]:
    """What a test ranks, as whole numbers: people's means of items; judges' means of faces, whose edits are many and
    alike. Also a row of each unit, and what a unit is."""
    if place.raters != "ensemble":
        return people.whole_means(sample.total, sample.count)[0], sample.rows, "item"
    total, count, rows = by_face(evidence, sample.rows, sample.total, sample.count)
    return people.whole_means(total, count)[0], rows, "face"


def by_face(
    evidence: Overlap, rows: Rows, total: NDArray[np.int64], count: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Rows]:
    """Sums of each face's rows, and one row of each."""
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
    yield from _test(
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
    yield from _test(evidence, against, "mann_whitney_U", u and u.statistic, p, size, method, how)
    if u:
        yield evidence.row(against, "cliffs_delta", u.cliffs_delta, None, None, *size, note)
    # equivalence is over faces whoever rated: rows of one face are alike
    total, count, faces = by_face(evidence, sample.rows, sample.total, sample.count)
    mean, label = total / count, evidence.labels(main.name, faces)
    same = tost_two(mean[label == REFERENCE], mean[(label != REFERENCE) & (label != "")])
    yield _tost(evidence, against, "mann_whitney_tost_p", same, size)


def _paired(evidence: Overlap, place: Place, before: Rows, after: Rows) -> Iterator[Agreement]:
    """Mitigated minus baseline of the same case."""
    earlier, later = (_sample(evidence, place.axis, place.raters, rows) for rows in (before, after))
    both = (earlier.count > 0) & (later.count > 0)
    for editor, rows in _editors(evidence, place, after[both]):
        of = both & np.isin(after, rows)
        yield from _signed(evidence, replace(place, editor=editor), earlier.at(of), later.at(of))


def _signed(evidence: Overlap, place: Place, before: _Sample, after: _Sample) -> Iterator[Agreement]:
    both, one = people.whole_means(
        np.concatenate([after.total, before.total]), np.concatenate([after.count, before.count])
    )
    difference = both[: len(after.rows)] - both[len(after.rows) :]
    n = int(before.count.sum() + after.count.sum())
    size = len(after.rows), n
    ones = np.ones(len(after.rows), dtype=np.int64)
    total, count, _ = by_face(evidence, after.rows, difference.astype(np.int64), ones)
    unit, values = ("item", difference) if place.raters != "ensemble" else ("face", people.whole_means(total, count)[0])
    note = f"unit: {unit}, mitigated minus baseline"
    yield from evidence.estimate(place, [(mean_of("mean_delta"), (difference / one,))], after.rows, n, note)
    w = wilcoxon(values)
    method = f"{note}, {w.nonzero} differ" if w else f"{note}; undefined: no pair differs"
    how, p = (w.method, w.p) if w else ("", None)
    if w and _moves_faces(evidence, unit):
        how = permuted_how(evidence.rules, "signs of faces flipped")
        p = flipped_p(values, evidence.unit[after.rows], evidence.rules)
    yield from _test(evidence, place, "wilcoxon_T", w and w.statistic, p, size, method, how)
    if w:
        yield evidence.row(place, "rank_biserial", w.rank_biserial, None, None, *size, note)
    yield _tost(evidence, place, "wilcoxon_tost_p", tost(total / count / one), size)


def _moves_faces(evidence: Overlap, unit: str) -> bool:
    """Whether p is found by moving faces: where items are ranked. As published, they are taken as independent."""
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
) -> Iterator[Agreement]:
    yield evidence.row(place, name, value, None, None, *size, method)
    yield evidence.row(place, f"{name}_p", p, None, None, *size, f"{method}; {p_from}" if p is not None else method)


def _tost(evidence: Overlap, place: Place, name: str, same: Equivalence | None, size: tuple[int, int]) -> Agreement:
    how = (
        f"two one-sided t-tests over faces, margin ±{MARGIN}" if same else "undefined: fewer than two faces in a group"
    )
    return evidence.row(place, name, same.p if same else None, None, None, *size, how)


def _adjusted(evidence: Overlap, made: Sequence[Agreement]) -> Iterator[Agreement]:
    """Holm within a family: the axes of one test, arm, editor and set of raters. Benjamini-Hochberg over all editors
    and the distances too, for exploration."""
    tests = [row for row in made if row.statistic in TESTS and row.value is not None]
    for tail, adjust, wide in (("holm", holm, False), ("bh", benjamini_hochberg, True)):
        families: dict[tuple[object, ...], list[Agreement]] = {}
        for row in tests:
            if wide or not row.axis.endswith(DISTANCE):
                key = (row.statistic, row.condition, row.raters, *(() if wide else (row.editor,)))
                families.setdefault(key, []).append(row)
        for family in families.values():
            over = f"{len(family)} axes and editors" if wide else f"{len(family)} axes"
            name = "Benjamini-Hochberg" if wide else "Holm"
            for row, p in zip(family, adjust([float(row.value or 0) for row in family]), strict=True):
                yield replace(
                    row, statistic=f"{row.statistic}_{tail}", value=p, method=f"{name} over {over}{evidence.mark}"
                )


TESTS = ("kruskal_wallis_H_p", "mann_whitney_U_p", "wilcoxon_T_p")
"""The p-values that are adjusted."""
