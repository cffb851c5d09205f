"""Slots of tasks: each is held by one participant at a time and becomes free again when abandoned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from evenedit.storage.survey_schema import slots

RENEW = 60.0
"""Seconds between two renewals of a slot's expiry."""


class Slots:
    """Which participant holds which slot. Every method works inside the caller's transaction."""

    def __init__(self, minutes: float, clock: Callable[[], float]) -> None:
        self._lasts = minutes * 60
        self._clock = clock

    def is_free(self) -> sa.ColumnElement[bool]:
        """Return True if a slot was never taken, or its holder stopped answering."""
        return sa.or_(slots.c.participant.is_(None), slots.c.expires < self._clock())

    def free(self, db: sa.Connection, survey: int, task: int | None = None) -> int:
        """Return the number of free slots."""
        query = sa.select(sa.func.count()).select_from(slots).where(slots.c.survey == survey, self.is_free())
        return int(db.execute(query if task is None else query.where(slots.c.task == task)).scalar_one())

    def take(self, db: sa.Connection, participant: int, survey: int, task: int | None) -> int | None:
        """Give the participant a free slot and return its task. Slots never taken come first, then expired ones."""
        free = sa.select(slots).where(slots.c.survey == survey, self.is_free())
        if task is not None:
            free = free.where(slots.c.task == task)
        free = free.order_by(slots.c.participant.is_not(None), slots.c.number, slots.c.task).limit(1)
        while True:
            slot = db.execute(free.with_for_update(skip_locked=True)).one_or_none()
            if slot is None and self.free(db, survey, task) == 0:
                return None
            if slot is None:  # every free slot is being claimed by another transaction: wait for one of them
                slot = db.execute(free.with_for_update()).one_or_none()
            if slot is not None:
                taken = sa.update(slots).where(slots.c.id == slot.id)
                db.execute(taken.values(participant=participant, expires=self._clock() + self._lasts))
                return int(slot.task)

    def renew(self, db: sa.Connection, holder: Any) -> None:
        """Renew the slot of a participant who answers, or take another free one of the same task."""
        if holder.slot_id is None:
            self.take(db, holder.id, holder.survey, holder.task)
        elif holder.expires is not None and holder.expires < self._clock() + self._lasts - RENEW:
            renewed = sa.update(slots).where(slots.c.id == holder.slot_id, slots.c.participant == holder.id)
            db.execute(renewed.values(expires=self._clock() + self._lasts))

    def keep(self, db: sa.Connection, participant: int, survey: int, task: int) -> bool:
        """Keep the participant's slot for good, or a free one of the same task. Returns False if there is none."""
        kept_slot = sa.update(slots).where(slots.c.participant == participant).values(expires=None)
        if db.execute(kept_slot).rowcount:
            return True
        return self.take(db, participant, survey, task) is not None and bool(db.execute(kept_slot).rowcount)

    def leave(self, db: sa.Connection, participant: int) -> bool:
        """Free the participant's slot. Returns False if there was none."""
        freed = sa.update(slots).where(slots.c.participant == participant).values(participant=None, expires=None)
        return bool(db.execute(freed).rowcount)
