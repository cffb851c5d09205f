"""People's ratings of baseline outputs, one row each, with what is needed to compare groups of raters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from evenedit.core.records import ConditionKind, Experiment, Kind
from evenedit.core.suppression import shown_counts
from evenedit.ratings.combine import applicable_questions
from evenedit.ratings.profiles import RaterQuestion
from evenedit.ratings.table import QUESTION_IDS, RatingTable

Column = NDArray[np.float64]
Codes = NDArray[np.int64]
_OTHERS = ""
"""Raters in no group that may be shown; the last of the names, which -1 points at."""


@dataclass(frozen=True, slots=True)
class PersonRatings:
    """The ratings of one question on a 1–5 scale, one row for each person and output."""

    axis: str
    score: Column
    rater: Codes
    """Position among the people of the table."""
    edit: Codes
    """Position of the rated output in the table."""
    face: Codes

    def only(self, rows: NDArray[np.bool_]) -> PersonRatings:
        """Return a subset of the ratings."""
        return PersonRatings(self.axis, self.score[rows], self.rater[rows], self.edit[rows], self.face[rows])


@dataclass(frozen=True, slots=True)
class RatedPortraits:
    """All ratings of people by axis, with the labels of raters and portraits."""

    people: tuple[str, ...]
    faces: tuple[str, ...]
    labels: dict[str, NDArray[np.str_]]
    """[face] by factor."""
    axes: tuple[PersonRatings, ...]
    editors: NDArray[np.str_]
    """[edit]"""

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

    def of(self, axis: str) -> PersonRatings | None:
        """Return the ratings of an axis."""
        return next((ratings for ratings in self.axes if ratings.axis == axis), None)


def rated_portraits(table: RatingTable, axes: Sequence[str]) -> RatedPortraits:
    """Return people's ratings of the diagnosis, without questions that do not apply to the prompt."""
    edits = table.edits
    included = (
        (edits["experiment"] == Experiment.DIAGNOSIS) & (edits["condition"] == ConditionKind.BASELINE)
    ).to_numpy()
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
            ratings.append(PersonRatings(axis, score, rater.astype(np.int64), edit.astype(np.int64), face_of[edit]))
    people = tuple(table.raters[place] for place in places)
    return RatedPortraits(people, faces, labels, tuple(ratings), edits["editor"].to_numpy(dtype=np.str_))


def centred(values: Column, *groups: Codes, rounds: int = 200) -> Column:
    """Return the residuals of an additive model of the groupings (raters, outputs)."""
    left = values - values.mean() if len(values) else values
    for _ in range(rounds):
        before = left
        for group in groups:
            count = np.maximum(np.bincount(group), 1)
            left = left - (np.bincount(group, weights=left) / count)[group]
        if not len(left) or float(np.abs(left - before).max()) < 1e-9:
            break
    return left


def deviation(influence: Column, *clusters: Codes) -> float:
    """Return the standard error of a sum of influences, clustered by rater and by face.

    Two-way clustered (Cameron, Gelbach and Miller): never less than by one of the two alone.
    """
    one = [_between(influence, cluster) for cluster in clusters]
    if len(clusters) == 1:
        return float(np.sqrt(one[0]))
    both = np.unique(np.stack(clusters), axis=1, return_inverse=True)[1].ravel().astype(np.int64)
    return float(np.sqrt(max(sum(one) - _between(influence, both), *one)))


def _between(influence: Column, cluster: Codes) -> float:
    sums = np.bincount(cluster, weights=influence)[np.unique(cluster)]
    return float((sums**2).sum() * len(sums) / max(len(sums) - 1, 1))


def interval(value: float, error: float, clusters: int, confidence: float) -> tuple[float | None, float | None]:
    """Return the t interval with the degrees of freedom of the fewest clusters; None with fewer than three."""
    if clusters < 3 or not np.isfinite(error):
        return None, None
    half = float(stdtrit(clusters - 1, 0.5 + confidence / 2)) * error
    return value - half, value + half


def fewest(*clusters: Codes) -> int:
    """Return the number of clusters of the grouping with the fewest."""
    return min((len(np.unique(cluster)) for cluster in clusters), default=0)


def levels_of(labels: NDArray[np.str_], known: Sequence[str]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield the levels that occur, in order, with the faces of each."""
    for level in known:
        if (members := labels == level).any():
            yield level, members
