"""Seats: so many per task, each held by one person at a time, and back when abandoned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from evenedit.storage.survey_schema import seats

RENEW = 60.0
"""Seconds: a seat's expiry is moved at most this often."""


class Slots:
    """Who sits where. Every method works inside the caller's transaction."""

    def __init__(self, minutes: float, clock: Callable[[], float]) -> None:
        self._lasts = minutes * 60
        self._clock = clock

    def is_free(self) -> sa.ColumnElement[bool]:
        """Nobody's, or left by somebody who stopped answering."""
        return sa.or_(seats.c.participant.is_(None), seats.c.expires < self._clock())

    def free(self, db: sa.Connection, survey: int, task: int | None = None) -> int:
        """How many are free."""
        query = sa.select(sa.func.count()).select_from(seats).where(seats.c.survey == survey, self.is_free())
        return int(db.execute(query if task is None else query.where(seats.c.task == task)).scalar_one())

    def take(self, db: sa.Connection, participant: int, survey: int, task: int | None) -> int | None:
        """Make a free seat the participant's and return its task; never-taken ones first, then expired ones."""
        free = sa.select(seats).where(seats.c.survey == survey, self.is_free())
        if task is not None:
            free = free.where(seats.c.task == task)
        free = free.order_by(seats.c.participant.is_not(None), seats.c.number, seats.c.task).limit(1)
        while True:
            seat = db.execute(free.with_for_update(skip_locked=True)).one_or_none()
            if seat is None and self.free(db, survey, task) == 0:
                return None
            if seat is None:  # all that are free are being claimed at this moment: wait for one to be settled
                seat = db.execute(free.with_for_update()).one_or_none()
            if seat is not None:
                taken = sa.update(seats).where(seats.c.id == seat.id)
                db.execute(taken.values(participant=participant, expires=self._clock() + self._lasts))
                return int(seat.task)

    def stay(self, db: sa.Connection, holder: Any) -> None:
        """Who answers keeps the seat, or gets one of the same task back if there is one."""
        if holder.seat is None:
            self.take(db, holder.id, holder.survey, holder.task)
        elif holder.expires is not None and holder.expires < self._clock() + self._lasts - RENEW:
            renewed = sa.update(seats).where(seats.c.id == holder.seat, seats.c.participant == holder.id)
            db.execute(renewed.values(expires=self._clock() + self._lasts))

    def keep(self, db: sa.Connection, participant: int, survey: int, task: int) -> bool:
        """Keep the seat for good, or a free one of the same task; False where there is none."""
        mine = sa.update(seats).where(seats.c.participant == participant).values(expires=None)
        if db.execute(mine).rowcount:
            return True
        return self.take(db, participant, survey, task) is not None and bool(db.execute(mine).rowcount)

    def leave(self, db: sa.Connection, participant: int) -> bool:
        """Give the seat back; False where there was none."""
        gone = sa.update(seats).where(seats.c.participant == participant).values(participant=None, expires=None)
        return bool(db.execute(gone).rowcount)
