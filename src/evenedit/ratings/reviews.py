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

import sqlalchemy as sa

from evenedit.core.records import Kind, Rating, Status
from evenedit.protocol import Rubric, default_rubric
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

    def ratings(self) -> Iterator[Rating]:
        """Return the review as ratings; one without an answer only states that the reviewer looked."""
        for question, value in self.answers.items() or [("", None)]:
            yield Rating(self.request_id, question, self.rater, Kind.REVIEW, Status.SCORED, value, self.note)


def settled(reviews: Sequence[Mapping[str, int]], reviewers: int, rubric: Rubric | None = None) -> dict[str, int]:
    """Return the values that a case's reviews settle, given the number of reviews required."""
    if len(reviews) < reviewers:
        return {}
    if len(reviews) == 1:
        return dict(reviews[0])
    both = {q: agreed(q, answer, reviews[1][q], rubric) for q, answer in reviews[0].items() if q in reviews[1]}
    third = reviews[2] if len(reviews) > 2 else {}
    values = {question: third.get(question) if value is None else value for question, value in both.items()}
    return {question: value for question, value in values.items() if value is not None}


def unresolved_questions(reviews: Sequence[Review], rubric: Rubric | None = None) -> tuple[str, ...]:
    """Return the questions on which the first two reviewers differ too much to settle them."""
    if len(reviews) < 2:
        return ()
    first, second = (review.answers for review in reviews[:2])
    columns = (rubric or default_rubric()).columns
    return tuple(q for q in columns if q in first and q in second and agreed(q, first[q], second[q], rubric) is None)


def agreed(question: str, first: int, second: int, rubric: Rubric | None = None) -> int | None:
    """Combine two answers; None if a third review is needed."""
    if (rubric or default_rubric()).questions[question].sided == "choice":
        return first if first == second else None
    return (first + second + 1) // 2 if abs(first - second) <= 1 else None


class Reviews:
    """The reviews of one study, in its database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def history(self) -> list[Review]:
        """Return every review, oldest first, including undone ones."""
        return self._read(sa.select(_reviews))

    def in_force(self) -> dict[str, list[Review]]:
        """Return the reviews of each case in their order, by request id."""
        reviews: dict[str, list[Review]] = {}
        for review in self._read(sa.select(_reviews).where(_reviews.c.undone.is_(None))):
            reviews.setdefault(review.request_id, []).append(review)
        return reviews

    def of(self, request_id: str) -> list[Review]:
        """Return the reviews of one case in their order, including undone ones."""
        return self._read(sa.select(_reviews).where(_reviews.c.request_id == request_id))

    def notes(self, request_id: str) -> dict[str, str]:
        """Return what each reviewer wrote about a case."""
        return {review.rater: review.note for review in self.of(request_id) if review.undone is None}

    def disclosed(self, reviewers: int) -> list[Review]:
        """Return the reviews in force of cases with enough reviews; earlier ones stay hidden from other reviewers."""
        return [r for reviews in self.in_force().values() if len(reviews) >= reviewers for r in reviews]

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


class ReviewRatings:
    """What reviewers answered about cases that enough of them have looked at."""

    kind = Kind.REVIEW

    def __init__(self, reviews: Reviews, reviewers: int) -> None:
        self._reviews = reviews.disclosed(reviewers)

    @property
    def raters(self) -> Sequence[str]:
        """Everybody with such a review, by name."""
        return sorted({review.rater for review in self._reviews})

    def ratings(self) -> Iterator[Rating]:
        """Return the review as ratings; one without an answer only states that the reviewer looked."""
        for review in self._reviews:
            yield from review.ratings()


def _rows(db: sa.Connection, query: sa.Select[Any]) -> list[Review]:
    """Reviews with their answers, those of the shipped questions first and in their order."""
    reviews = [Review(*row) for row in db.execute(query.order_by(_reviews.c.id)).all()]
    order = default_rubric().columns
    shipped = {question: at for at, question in enumerate(order)}

    def place(answer: tuple[str, int]) -> tuple[int, str]:
        return shipped.get(answer[0], len(order)), answer[0]

    return [replace(review, answers=dict(sorted(review.answers.items(), key=place))) for review in reviews]


def _hold(db: sa.Connection, request_id: str) -> None:
    """Lock the case until the transaction ends: its row on PostgreSQL, the database on SQLite."""
    db.execute(requests.update().where(requests.c.id == request_id).values(id=request_id))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
