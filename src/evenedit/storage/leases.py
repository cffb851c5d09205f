"""Leases: which run works on what, so that runs can share one PostgreSQL study without repeating work.

A lease has an owner and a deadline, by the database's clock. The owner extends the deadline while it runs; the leases
of a dead owner are free when the deadline has passed. The next owner first checks whether the work is already done:
results are stored before their lease is released.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from evenedit.core.log import log
from evenedit.storage.engines import OUTAGE, transact
from evenedit.storage.locks import database_turn

TABLE = sa.Table(
    "leases",
    sa.MetaData(),
    sa.Column("key", sa.String, primary_key=True),
    sa.Column("owner", sa.String, nullable=False, index=True),
    sa.Column("until", sa.Float, nullable=False),
)
"""No part of the study's record: it is made by the first run that shares a study. When none runs it is empty, but for
leases of killed runs that had not expired yet; they mean nothing then."""
LOOK = 0.5
"""Seconds between checks of the leases of other runs."""
NOW = sa.cast(sa.func.extract("epoch", sa.func.clock_timestamp()), sa.Float)
"""The database's clock: machines' own may differ."""


class Leases:
    """The leases of one run."""

    shared = True
    """Whether other runs may be at work."""
    is_sole = True
    """Whether no other run was at work when this one began."""

    def __init__(self, engine: sa.Engine, seconds: float) -> None:
        self.owner = uuid4().hex
        self.seconds = seconds
        """How long a lease lasts after its owner's last heartbeat."""
        self._engine = engine
        self._over: set[str] = set()
        """Leases to release."""
        self._lock = threading.Lock()
        with database_turn(engine, "leases"):
            TABLE.create(engine, checkfirst=True)

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Keep the leases of this run alive; at the end release them and delete expired ones."""
        over = threading.Event()
        thread = threading.Thread(target=self._beat, args=(over,), name="evenedit-leases", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(self.seconds)
            ended = TABLE.delete().where(sa.or_(TABLE.c.owner == self.owner, self._expired))
            transact(self._engine, lambda db: db.execute(ended))

    def claim(self, keys: Collection[str]) -> set[str]:
        """Take the leases of pieces of work, in one transaction; return those that no other run has."""
        if not keys:
            return set()
        until = NOW + self.seconds
        # In one order in every run: two that claim the same block do not wait for each other.
        rows = [{"key": key, "owner": self.owner, "until": until} for key in sorted(keys)]
        insertion = postgresql.insert(TABLE).values(rows)
        statement = insertion.on_conflict_do_update(
            index_elements=["key"],
            set_={"owner": self.owner, "until": until},
            where=sa.or_(self._expired, TABLE.c.owner == self.owner),
        ).returning(TABLE.c.key)

        def claim(db: sa.Connection) -> set[str]:
            self._release(db)
            return {row.key for row in db.execute(statement)}

        return transact(self._engine, claim)

    def release(self, keys: Iterable[str]) -> None:
        """Release leases, with the next claim or wait: what is done is not claimed by others in the meantime."""
        with self._lock:
            self._over.update(keys)

    def _release(self, db: sa.Connection) -> None:
        with self._lock:
            over, self._over = self._over, set()
        if over:
            db.execute(TABLE.delete().where(TABLE.c.owner == self.owner, TABLE.c.key.in_(over)))

    def wait(self, keys: Sequence[str], left: Callable[[], set[str]]) -> set[str]:
        """Wait while other runs work on these, until one is free or none is left; return all that are left to do.

        This includes what other runs still hold: call again for those after working on the free ones.
        """
        logged = False
        while open_ := left() & set(keys):
            free = open_ - transact(self._engine, self._held)
            if free & (now := left()):  # what was stored meanwhile is free too
                return now & open_
            if free:
                continue
            if not logged:
                log.info(f"waiting for {len(open_):,} that other runs are working on")
                logged = True
            time.sleep(LOOK)
        return set()

    @property
    def _expired(self) -> sa.ColumnElement[bool]:
        """Whether the owner is silent; a server that was away gives everyone the time of a lease to be heard again."""
        started = sa.cast(sa.func.extract("epoch", sa.func.pg_postmaster_start_time()), sa.Float)
        alive_before = sa.and_(TABLE.c.until > started - OUTAGE, started + self.seconds > NOW)
        return sa.and_(TABLE.c.until < NOW, sa.not_(alive_before))

    def _held(self, db: sa.Connection) -> set[str]:
        """Return all work that is leased, without what this run has released."""
        self._release(db)
        return {row.key for row in db.execute(sa.select(TABLE.c.key).where(sa.not_(self._expired)))}

    def _beat(self, over: threading.Event) -> None:
        while not over.wait(self.seconds / 4):
            try:
                with self._engine.begin() as db:
                    is_owner = TABLE.c.owner == self.owner
                    db.execute(TABLE.update().where(is_owner).values(until=NOW + self.seconds))
            except sa.exc.SQLAlchemyError as error:  # the next beat may get through
                log.info(f"the database did not answer a heartbeat: {str(error).splitlines()[0]}")


class NoLeases(Leases):
    """Leases for a database with one writer: all work belongs to this run."""

    shared = False

    def __init__(self) -> None:
        self.owner, self.seconds = "", 0.0

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Do nothing: there is nothing to keep alive."""
        yield

    def claim(self, keys: Collection[str]) -> set[str]:
        """Return all: no other run can have them."""
        return set(keys)

    def release(self, keys: Iterable[str]) -> None:
        """Do nothing: no other run waits."""

    def wait(self, keys: Sequence[str], left: Callable[[], set[str]]) -> set[str]:
        """Return the empty set: there are no other runs."""
        return set()
