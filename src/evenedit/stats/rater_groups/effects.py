"""Do groups of raters rate differently, and portraits of some groups more so? Permutations over raters and over faces.

Each score is first freed of what its output gets from everybody and of how severe its rater is with everybody (an
additive model of outputs and raters): what is left over can only be that some raters see some portraits otherwise. An
effect of a group of raters on a group of portraits must be larger than chance twice: when groups are permuted over
raters, since raters differ, and when labels are permuted over faces, since faces differ. Its p is the larger of both.
All tests are adjusted together (Westfall and Young).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenedit.protocol import Factor
from evenedit.ratings.profiles import RaterQuestion
from evenedit.ratings.table import RatingTable
from evenedit.results.rater_groups import RaterEffect, RaterTest
from evenedit.stats.engine.measures import AXIS_QUESTIONS
from evenedit.stats.engine.multiplicity import step_down
from evenedit.stats.engine.permutation import permuted, strata
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.rater_groups.ratings import (
    Codes,
    Column,
    PersonRatings,
    RatedPortraits,
    centred,
    deviation,
    fewest,
    interval,
    levels_of,
    rated_portraits,
)

STREAM = 11
"""The tests' own random numbers, apart from all others."""
TIE = 1e-9
Draws = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A test before it is adjusted: the observed statistic and those of permuted raters and faces, all standardised."""

    kind: Literal["level", "pattern", "own"]
    question: RaterQuestion
    factor: str | None
    ratings: PersonRatings
    by_raters: tuple[float, Draws]
    by_faces: tuple[float, Draws] | None
    own_group: Column | None = None
    """[rating]: whether the rater's group corresponds to the portrait's."""


def rater_tests(table: RatingTable, rules: AnalysisRules) -> list[RaterTest]:
    """Return all tests of rater groups, adjusted jointly; empty without two groups of five raters."""
    if table.profiles is None or not table.profiles.questions:
        return []
    rated = rated_portraits(table, AXIS_QUESTIONS)
    candidates = list(_candidates(rated, table, rules))
    if not candidates:
        return []
    raters = _adjusted([c.by_raters for c in candidates])
    faces = _adjusted([c.by_faces or (np.inf, np.zeros(len(c.by_raters[1]))) for c in candidates])
    return [
        _test(c, max(r[0], f[0]) if c.by_faces else r[0], max(r[1], f[1]) if c.by_faces else r[1], rules)
        for c, r, f in zip(candidates, raters, faces, strict=True)
    ]


def rater_effects(table: RatingTable, rules: AnalysisRules) -> list[RaterEffect]:
    """Return how each rater group rates each group of portraits, compared with other raters."""
    if table.profiles is None:
        return []
    rated = rated_portraits(table, AXIS_QUESTIONS)
    return [
        effect
        for question in table.profiles.questions
        for ratings in rated.axes
        for factor in table.factors
        for effect in _effects(rated, question, ratings, factor, rules)
    ]


def _effects(
    rated: RatedPortraits, question: RaterQuestion, ratings: PersonRatings, factor: Factor, rules: AnalysisRules
) -> Iterator[RaterEffect]:
    group = rated.groups(question)[ratings.rater]
    known = ratings.only(group >= 0)
    group = group[group >= 0]
    levels = list(levels_of(rated.labels[factor.name], factor.codes))
    if len(levels) < 2 or not len(group):
        return
    visible = {level: rated.visible_groups(question, ratings.rater[faces[ratings.face]]) for level, faces in levels}
    for at, name in enumerate(question.groups):
        for level, faces in levels:
            if name not in visible[level]:
                continue
            cell = (group == at) & faces[known.face]
            slope = _slope(known, cell.astype(np.float64), rules)
            if slope:
                yield RaterEffect(question.id, name, known.axis, {factor.name: level}, *slope, n=int(cell.sum()))


def _slope(
    ratings: PersonRatings, marked: Column, rules: AnalysisRules
) -> tuple[float, float | None, float | None] | None:
    """Return how much higher marked ratings are, adjusted for outputs and raters, with an interval."""
    x = centred(marked, ratings.rater, ratings.edit)
    square = float((x**2).sum())
    if square < 1e-6 * max(len(x), 1):
        return None
    y = centred(ratings.score, ratings.rater, ratings.edit)
    value = float((x * y).sum() / square)
    error = deviation(x * (y - value * x) / square, ratings.rater, ratings.face)
    return value, *interval(value, error, fewest(ratings.rater, ratings.face), rules.confidence)


def _candidates(rated: RatedPortraits, table: RatingTable, rules: AnalysisRules) -> Iterator[_Candidate]:
    """Yield every test, with the same permutations of raters for all and of faces per factor."""
    assert table.profiles is not None
    order = _permuted_people(len(rated.people), rules)
    faces = {f.name: _permuted_faces(rated, f, number, rules) for number, f in enumerate(table.factors)}
    for question in table.profiles.questions:
        groups = rated.groups(question)
        drawn = groups[order]
        for ratings in rated.axes:
            level = centred(ratings.score, ratings.edit)
            yield _level(question, ratings, level, groups, drawn, len(rated.people))
            left = centred(ratings.score, ratings.rater, ratings.edit)
            for factor in table.factors:
                codes, permuted_codes, levels = faces[factor.name]
                if len(levels) < 2:
                    continue
                cell = _Cell(ratings, left, len(rated.people), len(rated.faces))
                yield _pattern(cell, question, factor, groups, drawn, codes, permuted_codes, len(levels))
                if (match := _matches(question, factor, levels)) is not None:
                    yield _own_group(cell, question, factor, groups, drawn, codes, permuted_codes, match)


@dataclass(frozen=True, slots=True)
class _Cell:
    """What is left of the scores, summed by rater and face."""

    ratings: PersonRatings
    left: Column
    people: int
    faces: int

    @property
    def sums(self) -> NDArray[np.float64]:
        """Return the sums of residuals, [person, face]."""
        place = self.ratings.rater * self.faces + self.ratings.face
        totals = np.bincount(place, weights=self.left, minlength=self.people * self.faces)
        return totals.astype(np.float64).reshape(self.people, -1)

    @property
    def counts(self) -> NDArray[np.float64]:
        """Return the numbers of ratings, [person, face]."""
        place = self.ratings.rater * self.faces + self.ratings.face
        return np.bincount(place, minlength=self.people * self.faces).reshape(self.people, -1).astype(np.float64)


def _level(
    question: RaterQuestion, ratings: PersonRatings, left: Column, groups: Codes, drawn: Codes, people: int
) -> _Candidate:
    """Test whether one group rates higher: the spread of group means of output residuals."""
    sums = np.bincount(ratings.rater, weights=left, minlength=people).astype(np.float64)[:, None]
    counts = np.bincount(ratings.rater, minlength=people).astype(np.float64)[:, None]
    size = len(question.groups)
    observed = _squares(groups[None], size, sums, counts)
    return _Candidate("level", question, None, ratings, _scaled(observed, _squares(drawn, size, sums, counts)), None)


def _pattern(
    cell: _Cell,
    question: RaterQuestion,
    factor: Factor,
    groups: Codes,
    drawn: Codes,
    codes: Codes,
    permuted_codes: Codes,
    levels: int,
) -> _Candidate:
    """Test whether rater groups differ by group of portraits: the sum of squares over all cells."""
    size, sums, counts = len(question.groups), cell.sums, cell.counts
    face = _one_hot(codes[None], levels)[0]
    observed = _squares(groups[None], size, sums @ face, counts @ face)
    by_raters = _scaled(observed, _squares(drawn, size, sums @ face, counts @ face))
    rater = _one_hot(groups[None], size)[0]
    by_face = _squares(permuted_codes, levels, (rater.T @ sums).T, (rater.T @ counts).T)
    by_faces = _scaled(observed, by_face)
    return _Candidate("pattern", question, factor.name, cell.ratings, by_raters, by_faces)


def _own_group(
    cell: _Cell,
    question: RaterQuestion,
    factor: Factor,
    groups: Codes,
    drawn: Codes,
    codes: Codes,
    permuted_codes: Codes,
    match: NDArray[np.float64],
) -> _Candidate:
    """Test whether people rate their own group differently: the sum over pairs of the same group."""
    sums, levels = cell.sums, match.shape[1]
    face = _one_hot(codes[None], levels)[0]
    per_rater = (sums @ face) @ match.T  # [person, group]: what each would add as a member of each group
    observed = _picked(per_rater, groups[None])
    by_raters = _scaled(np.abs(observed), np.abs(_picked(per_rater, drawn)))
    per_face = ((_one_hot(groups[None], match.shape[0])[0].T @ sums).T) @ match  # [face, level]
    by_faces = _scaled(np.abs(observed), np.abs(_picked(per_face, permuted_codes)))
    group, level = groups[cell.ratings.rater], codes[cell.ratings.face]
    matches = np.where((group >= 0) & (level >= 0), match[group, level], 0.0)
    return _Candidate("own", question, factor.name, cell.ratings, by_raters, by_faces, matches)


def _matches(question: RaterQuestion, factor: Factor, levels: list[str]) -> NDArray[np.float64] | None:
    """Return whether each rater group corresponds to each portrait group [group, level]; None without any."""
    same: Mapping[str, tuple[str, ...]] = question.same.get(factor.name, {})
    matches = np.array([[float(level in same.get(group, ())) for level in levels] for group in question.groups])
    return matches if matches.any() and not matches.all() else None


def _one_hot(codes: Codes, size: int) -> NDArray[np.float64]:
    """Return indicators [draw, unit, group]; a code of -1 is in no group."""
    indicators: NDArray[np.float64] = (codes[:, :, None] == np.arange(size)).astype(np.float64)
    return indicators


def _squares(codes: Codes, size: int, sums: NDArray[np.float64], counts: NDArray[np.float64]) -> Draws:
    """Return squared sums over counts [draw], over groups of the first axis and all columns of the second."""
    total = np.zeros(len(codes))
    for group in range(size):
        members = (codes == group).astype(np.float64)
        top, bottom = members @ sums, members @ counts
        total += np.divide(top**2, bottom, out=np.zeros_like(top), where=bottom > 0).sum(axis=1)
    return total


def _picked(table: NDArray[np.float64], codes: Codes) -> Draws:
    """Return the sum over units of the column assigned to each [draw]."""
    units = np.arange(len(table))
    return np.asarray(np.where(codes >= 0, table[units, np.maximum(codes, 0)], 0.0).sum(axis=1))


def _scaled(observed: Draws, drawn: Draws) -> tuple[float, Draws]:
    """Return a statistic and its permutations on one scale for all tests; a constant one cannot reject."""
    spread = float(drawn.std())
    if spread < TIE:
        return -np.inf, np.zeros(len(drawn))
    centre = float(drawn.mean())
    return (float(observed[0]) - centre) / spread, (drawn - centre) / spread


def _adjusted(tests: list[tuple[float, Draws]]) -> list[tuple[float, float]]:
    """Return the p of each test, raw and adjusted for all."""
    observed = np.array([value for value, _ in tests])
    null = np.stack([draws for _, draws in tests], axis=1)
    raw = (1 + (null >= observed - TIE).sum(axis=0)) / (1 + len(null))
    live = np.isfinite(observed)
    adjusted = np.ones(len(observed))
    adjusted[live] = step_down(observed[live], null[:, live])
    return [(float(p), float(q)) for p, q in zip(np.where(observed == -np.inf, 1.0, raw), adjusted, strict=True)]


def _permuted_people(people: int, rules: AnalysisRules) -> Codes:
    """Return people in random orders [draw, person], the same for every question."""
    rng = np.random.default_rng([rules.seed, STREAM])
    return rng.permuted(np.tile(np.arange(people, dtype=np.int64), (rules.permutations, 1)), axis=1)


def _permuted_faces(
    rated: RatedPortraits, factor: Factor, number: int, rules: AnalysisRules
) -> tuple[Codes, Codes, list[str]]:
    """Return the levels of the faces, their permutations [draw, face], and the levels that occur."""
    labels = rated.labels[factor.name]
    levels = [level for level, _ in levels_of(labels, factor.codes)]
    codes = np.array([levels.index(x) if x in levels else -1 for x in labels], dtype=np.int64)
    within = strata(rated.labels, factor.name, rules.permutations)[0]
    rng = np.random.default_rng([rules.seed, STREAM, 1 + number])
    drawn = np.concatenate(list(permuted(codes.astype(np.int8), within, rules.permutations, rng)))
    return codes, drawn.astype(np.int64), levels


def _test(c: _Candidate, p: float, p_adjusted: float, rules: AnalysisRules) -> RaterTest:
    slope = _slope(c.ratings, c.own_group, rules) if c.own_group is not None else None
    value, low, high = slope or (None, None, None)
    how = f"permutation(raters, {rules.permutations})"
    return RaterTest(
        kind=c.kind,
        question=c.question.id,
        factor=c.factor,
        axis=c.ratings.axis,
        value=value,
        low=low,
        high=high,
        p=p,
        p_adjusted=p_adjusted,
        raters=len(np.unique(c.ratings.rater)),
        faces=len(np.unique(c.ratings.face)),
        n=len(c.ratings.score),
        method=how if c.by_faces is None else f"{how} and (faces, {rules.permutations})",
    )
