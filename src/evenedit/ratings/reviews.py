"""What reviewers settled, every review and every undo, and the rule that makes several reviews one value.

| reviewers asked for | the settled value of a question                                                  |
|---------------------|----------------------------------------------------------------------------------|
| one                 | the reviewer's                                                                   |
| two                 | within one point: their mean, half up; further apart: what a third reviewer says |

Answers without an order are settled by two who say the same. A question that a reviewer left open is settled by nobody.
What is kept is never changed: an undo is a mark on its review.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evenedit.core.records import Kind, Rating, Status
from evenedit.protocol import QUESTIONS
from evenedit.ratings.table import MISSING, QUESTION_IDS
from evenedit.storage.schema import requests
from evenedit.storage.schema import reviews as _reviews
from evenedit.storage.store import Store

PREFIX = "review:"
"""A reviewer's rater id is this and the name the reviewer goes by."""


@dataclass(frozen=True, slots=True)
class Review:
    """What one reviewer settled about one edit."""

    id: int
    """Counts up: of two reviews the earlier has the lower."""
    request_id: str
    rater: str
    answers: Mapping[str, int]
    """By question; a question left open is not here."""
    note: str
    at: str
    undone: str | None = None
    """When it was taken back; None while it is in force."""

    @property
    def ratings(self) -> Iterator[Rating]:
        """The review as everybody's ratings are."""
        for question, value in self.answers.items():
            yield Rating(self.request_id, question, self.rater, Kind.REVIEW, Status.SCORED, value, self.note)


@dataclass(frozen=True, slots=True)
class Reviewer:
    """One reviewer with all reviews that can be told."""

    id: str
    ratings: Mapping[str, Mapping[str, int]]
    """Answers by request id and question id."""


def settled(reviews: Sequence[Review], reviewers: int) -> dict[str, int]:
    """What the reviews of one case, in their order, settle where so many were asked for."""
    if len(reviews) < reviewers:
        return {}
    if len(reviews) == 1:
        return dict(reviews[0].answers)
    both = {q: agreed(q, a, reviews[1].answers[q]) for q, a in reviews[0].answers.items() if q in reviews[1].answers}
    third = reviews[2].answers if len(reviews) > 2 else {}
    values = {question: third.get(question) if value is None else value for question, value in both.items()}
    return {question: value for question, value in values.items() if value is not None}


def apart(reviews: Sequence[Review]) -> tuple[str, ...]:
    """The questions on which the first two reviewers are too far apart to settle it between them."""
    if len(reviews) < 2:
        return ()
    first, second = (review.answers for review in reviews[:2])
    return tuple(q for q in QUESTION_IDS if q in first and q in second and agreed(q, first[q], second[q]) is None)


def agreed(question: str, first: int, second: int) -> int | None:
    """What two answers say together; None where a third look is needed."""
    if QUESTIONS[question].sided == "choice":
        return first if first == second else None
    return (first + second + 1) // 2 if abs(first - second) <= 1 else None


class Reviews:
    """The reviews of one study, in its database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def history(self) -> list[Review]:
        """Every review ever given, oldest first, those taken back too."""
        return self._read(sa.select(_reviews))

    def in_force(self) -> dict[str, list[Review]]:
        """By request id, the reviews of each case in their order."""
        found: dict[str, list[Review]] = {}
        for review in self._read(sa.select(_reviews).where(_reviews.c.undone.is_(None))):
            found.setdefault(review.request_id, []).append(review)
        return found

    def of(self, request_id: str) -> list[Review]:
        """The reviews of one case, in their order, those taken back too."""
        return self._read(sa.select(_reviews).where(_reviews.c.request_id == request_id))

    def notes(self, request_id: str) -> dict[str, str]:
        """What each reviewer wrote about a case."""
        return {review.rater: review.note for review in self.of(request_id) if review.undone is None}

    def told(self, reviewers: int) -> list[Review]:
        """The reviews in force of cases that so many have looked at: before that, one must not sway the other."""
        return [r for reviews in self.in_force().values() if len(reviews) >= reviewers for r in reviews]

    def reviewers(self, reviewers: int) -> list[Reviewer]:
        """Everybody with reviews that can be told, by name."""
        found: dict[str, dict[str, Mapping[str, int]]] = {}
        for review in self.told(reviewers):
            found.setdefault(review.rater, {})[review.request_id] = review.answers
        return [Reviewer(rater, ratings) for rater, ratings in sorted(found.items())]

    def settled(self, rows: Mapping[str, int], reviewers: int) -> NDArray[np.int8]:
        """[edit, question]: what is settled about the requests at these rows."""
        values = np.full((len(rows), len(QUESTION_IDS)), MISSING, dtype=np.int8)
        for request_id, reviews in self.in_force().items():
            if request_id in rows:
                for question, value in settled(reviews, reviewers).items():
                    values[rows[request_id], QUESTION_IDS.index(question)] = value
        return values

    def add(
        self,
        request_id: str,
        rater: str,
        answers: Mapping[str, int],
        note: str,
        check: Callable[[Sequence[Review]], None],
    ) -> Review:
        """Keep a review after `check` has seen the case's reviews as they are; it refuses by raising.

        Nobody else writes about this case between the look and the writing.
        """
        with self._store.begin() as db:
            _hold(db, request_id)
            check(_rows(db, sa.select(_reviews).where(_reviews.c.request_id == request_id)))
            review = Review(0, request_id, rater, dict(answers), note, _now())
            row = {name: value for name, value in asdict(review).items() if name != "id"}
            number = db.execute(_reviews.insert().returning(_reviews.c.id), row).scalar_one()
        return replace(review, id=int(number))

    def undo(self, request_id: str, number: int, check: Callable[[Sequence[Review]], None]) -> None:
        """Take a review back, after `check` as above."""
        with self._store.begin() as db:
            _hold(db, request_id)
            check(_rows(db, sa.select(_reviews).where(_reviews.c.request_id == request_id)))
            db.execute(_reviews.update().where(_reviews.c.id == number).values(undone=_now()))

    def _read(self, query: sa.Select[Any]) -> list[Review]:
        with self._store.begin() as db:
            return _rows(db, query)


def _rows(db: sa.Connection, query: sa.Select[Any]) -> list[Review]:
    """Reviews with their answers in the rubric's order."""
    found = [Review(*row) for row in db.execute(query.order_by(_reviews.c.id)).all()]
    return [replace(r, answers={q: r.answers[q] for q in QUESTION_IDS if q in r.answers}) for r in found]


def _hold(db: sa.Connection, request_id: str) -> None:
    """Lock the case until the transaction ends: its row on PostgreSQL, the database on SQLite."""
    db.execute(requests.update().where(requests.c.id == request_id).values(id=request_id))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
