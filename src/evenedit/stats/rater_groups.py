"""People's rates by who rated: each group of raters, everybody, and everybody weighted to a population of raters.

Weighted rates (post-stratification) answer what people would say had each group the share that the study names, or the
same share where it names none. Intervals take ratings of one person and of one face as dependent. A group of which
fewer than five people rated some portraits has no rate there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenedit.core.records import Kind
from evenedit.core.suppression import shown_counts
from evenedit.protocol.measures import Measure
from evenedit.ratings.combine import applicable_questions
from evenedit.ratings.profiles import RaterQuestion
from evenedit.ratings.table import QUESTION_IDS, RatingTable
from evenedit.results.rater_groups import RaterRate
from evenedit.stats.engine.measures import met_rates
from evenedit.stats.engine.panel import of_diagnosis
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.variance import Uncertainty, clustered_variance

ALL_RATERS, WEIGHTED = "", "*"
METHOD = "mean of ratings; two-way clustered (raters, faces)"
Column = NDArray[np.float64]
Codes = NDArray[np.int64]
_OTHERS = ""
"""Raters in no group that may be shown; the last of the names, which -1 points at."""


def rater_rates(table: RatingTable, rules: AnalysisRules) -> list[RaterRate]:
    """Return every rate of baseline outputs by group of raters and by group of portraits."""
    if table.profiles is None or not table.profiles.questions:
        return []
    rated = rated_portraits(table, table.rubric.ordinal)
    portraits: list[tuple[Mapping[str, str], NDArray[np.bool_]]] = [({}, np.ones(len(rated.faces), dtype=np.bool_))]
    for factor in table.factors:
        portraits += [({factor.name: level}, m) for level, m in levels_of(rated.labels[factor.name], factor.codes)]
    return [
        rate
        for question in table.profiles.questions
        for ratings in rated.axes
        for name, met in met_rates(ratings.score.astype(np.int64), ratings.axis, rules.rates)
        for group, faces in portraits
        for rate in _rates(rated, question, ratings, met.astype(np.float64), Measure.rate(name), group, faces, rules)
    ]


def _rates(
    rated: RatedPortraits,
    question: RaterQuestion,
    ratings: PersonRatings,
    met: Column,
    measure: str,
    group: Mapping[str, str],
    faces: NDArray[np.bool_],
    rules: AnalysisRules,
) -> Iterator[RaterRate]:
    included = faces[ratings.face]
    part, y = ratings.only(included), met[included]
    member = rated.groups(question)[part.rater]
    masks = {name: member == at for name, at in rated.visible_groups(question, part.rater).items()}

    def rate_of(raters: str, influence: Column, value: float, among: NDArray[np.bool_], method: str) -> RaterRate:
        low, high = interval(value, influence[among], part.rater[among], part.face[among], rules.confidence)
        people = len(np.unique(part.rater[among]))
        return RaterRate(question.id, raters, measure, group, value, low, high, people, int(among.sum()), method)

    if not len(y):
        return
    all_ratings = np.ones(len(y), dtype=np.bool_)
    yield rate_of(ALL_RATERS, (y - y.mean()) / len(y), float(y.mean()), all_ratings, METHOD)
    for name, mask in masks.items():
        share = float(y[mask].mean())
        yield rate_of(name, np.where(mask, (y - share) / mask.sum(), 0.0), share, mask, METHOD)
    weights = _weights(question)
    if weights and set(weights) <= set(masks):
        means = {name: float(y[masks[name]].mean()) for name in weights}
        influence = sum(
            (np.where(masks[n], w * (y - means[n]) / masks[n].sum(), 0.0) for n, w in weights.items()), np.zeros(len(y))
        )
        among = np.logical_or.reduce([masks[name] for name in weights])
        value = sum(w * means[name] for name, w in weights.items())
        shares = ", ".join(f"{name} {w:.0%}" for name, w in weights.items())
        yield rate_of(WEIGHTED, influence, value, among, f"{METHOD}; post-stratified ({shares})")


def _weights(question: RaterQuestion) -> dict[str, float]:
    """Return the positive weight of each group; the weights sum to 1."""
    shares = {name: question.population.get(name, 0.0) for name in question.groups} if question.population else {}
    if not sum(shares.values()) > 0:
        shares = dict.fromkeys(question.groups, 1.0)
    total = sum(shares.values())
    return {name: share / total for name, share in shares.items() if share > 0}


@dataclass(frozen=True, slots=True)
class PersonRatings:
    """The ratings of one question on a 1–5 scale, one row for each person and output."""

    axis: str
    score: Column
    rater: Codes
    """Position among the people of the table."""
    face: Codes

    def only(self, rows: NDArray[np.bool_]) -> PersonRatings:
        """Return a subset of the ratings."""
        return PersonRatings(self.axis, self.score[rows], self.rater[rows], self.face[rows])


@dataclass(frozen=True, slots=True)
class RatedPortraits:
    """All ratings of people by axis, with the labels of raters and portraits."""

    people: tuple[str, ...]
    faces: tuple[str, ...]
    labels: dict[str, NDArray[np.str_]]
    """[face] by factor."""
    axes: tuple[PersonRatings, ...]

    def groups(self, question: RaterQuestion) -> Codes:
        """Return the group position of each person [person]; -1 for none."""
        order = {group: at for at, group in enumerate(question.groups)}
        return np.array([order.get(question.raters.get(person, ""), -1) for person in self.people], dtype=np.int64)

    def visible_groups(self, question: RaterQuestion, raters: Codes) -> dict[str, int]:
        """Return the groups that can be shown for these ratings without disclosing a person, with their positions.

        Five people or more each, and none that everybody's number gives away together with those of the others.
        """
        names = [*question.groups, _OTHERS]
        visible = shown_counts(Counter(names[at] for at in self.groups(question)[np.unique(raters)]))
        return {name: at for at, name in enumerate(question.groups) if visible and name in visible.cells}


def rated_portraits(table: RatingTable, axes: Sequence[str]) -> RatedPortraits:
    """Return people's ratings of the diagnosis, without questions that do not apply to the prompt."""
    edits = table.edits
    included = of_diagnosis(edits)
    faces = tuple(sorted(map(str, edits["source_id"][included].unique())))
    at = {face: number for number, face in enumerate(faces)}
    face_of = np.array([at.get(str(face), -1) for face in edits["source_id"]], dtype=np.int64)
    first = edits[included].drop_duplicates("source_id").set_index("source_id")
    labels = {
        f.name: np.array([str(first[f.name][face]) for face in faces], dtype=np.str_)
        for f in table.factors
        if f.name in first
    }
    places = table.of_kind(Kind.HUMAN)
    applies = applicable_questions(table)
    ratings = []
    for axis in axes:
        question = QUESTION_IDS.index(axis)
        values = np.where(included & applies[:, question], table.values[places][:, :, question], 0)
        rater, edit = np.nonzero(values)
        if len(rater):
            score = values[rater, edit].astype(np.float64)
            ratings.append(PersonRatings(axis, score, rater.astype(np.int64), face_of[edit]))
    people = tuple(table.raters[place] for place in places)
    return RatedPortraits(people, faces, labels, tuple(ratings))


def interval(
    value: float, influence: Column, raters: Codes, faces: Codes, confidence: float
) -> tuple[float | None, float | None]:
    """Return the t interval, clustered by rater and face, with the degrees of freedom of the fewer of both.

    None with fewer than three raters or faces.
    """
    clusters = min(len(np.unique(raters)), len(np.unique(faces)))
    if clusters < 3:
        return None, None
    variance = clustered_variance(influence, raters, faces).variance
    reach = float(Uncertainty(variance, np.asarray(clusters - 1.0)).half_width(confidence))
    return max(value - reach, 0.0), min(value + reach, 1.0)


def levels_of(labels: NDArray[np.str_], known: Sequence[str]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield the levels that occur, in order, with the faces of each."""
    for level in known:
        if (members := labels == level).any():
            yield level, members
