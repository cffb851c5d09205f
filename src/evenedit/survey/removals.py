"""Requests of pictured people to remove their picture. Anybody can make one; staff settle it."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from evenedit.core.errors import EvenEditError
from evenedit.storage.survey_schema import removals
from evenedit.storage.survey_store import SurveyStore
from evenedit.survey.visits import NotAllowedError

LONGEST = 2000
"""Characters of a request."""
MOST = 500
"""Requests that can wait at the same time."""


@dataclass(frozen=True, slots=True)
class RemovalRequest:
    """What somebody asks for, and what came of it."""

    id: int
    at: float
    about: str
    reply: str
    """How to reach them; deleted when the request is settled."""
    settled: float | None
    actor: str
    note: str


def ask(database: SurveyStore, about: str, reply: str, at: float) -> None:
    """Store a request."""

    def work(db: sa.Connection) -> None:
        waiting = sa.select(sa.func.count()).select_from(removals).where(removals.c.settled.is_(None))
        if db.execute(waiting).scalar_one() >= MOST:
            raise NotAllowedError("there are too many open requests at the moment; please write to the study's contact")
        row = {"at": at, "about": about[:LONGEST], "reply": reply[:200], "actor": "", "note": ""}
        db.execute(sa.insert(removals), row)

    database.write(work)


def requests(database: SurveyStore) -> list[RemovalRequest]:
    """Return all requests, waiting ones first."""
    query = sa.select(removals).order_by(removals.c.settled.is_not(None), removals.c.id.desc())
    return [RemovalRequest(r.id, r.at, r.about, r.reply, r.settled, r.actor, r.note) for r in database.rows(query)]


def settle(database: SurveyStore, ident: int, actor: str, note: str, at: float) -> None:
    """Store what was done about a request, and forget how to reach who made it."""

    def work(db: sa.Connection) -> int:
        change = sa.update(removals).where(removals.c.id == ident, removals.c.settled.is_(None))
        return db.execute(change.values(settled=at, actor=actor, note=note[:LONGEST], reply="")).rowcount

    if not database.write(work):
        raise EvenEditError("this request is not waiting")
