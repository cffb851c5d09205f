"""Leases: which run works on what, so that any number of runs share one PostgreSQL study and nothing is made twice.

A lease has an owner and a deadline, by the database's clock. Its owner moves the deadline on while it lives; what a
dead owner held comes back when the deadline has passed. Who gets a lease looks whether the work was done meanwhile:
results are stored before their lease is given back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from evenedit.core.log import log
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
"""Seconds between looks at what other runs hold."""
NOW = sa.cast(sa.func.extract("epoch", sa.func.clock_timestamp()), sa.Float)
"""The database's clock: machines' own may differ."""


class Leases:
    """The leases of one run."""

    shared = True
    """Whether other runs may be at work."""

    def __init__(self, engine: sa.Engine, seconds: float) -> None:
        self.owner = uuid4().hex
        self.seconds = seconds
        """How long a lease lasts after its owner was last heard of."""
        self._engine = engine
        with database_turn(engine, "leases"):
            TABLE.create(engine, checkfirst=True)

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Keep the leases of this run alive; give back at the end what is left of them, and clear what has expired."""
        over = threading.Event()
        thread = threading.Thread(target=self._beat, args=(over,), name="evenedit-leases", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(self.seconds)
            with self._engine.begin() as db:
                db.execute(TABLE.delete().where(sa.or_(TABLE.c.owner == self.owner, TABLE.c.until < NOW)))

    def claim(self, key: str) -> bool:
        """Take the lease of a piece of work; False where another run has it."""
        made = postgresql.insert(TABLE).values(key=key, owner=self.owner, until=NOW + self.seconds)
        taken = made.on_conflict_do_update(
            index_elements=["key"],
            set_={"owner": self.owner, "until": NOW + self.seconds},
            where=sa.or_(TABLE.c.until < NOW, TABLE.c.owner == self.owner),
        ).returning(TABLE.c.key)
        with self._engine.begin() as db:
            return db.execute(taken).first() is not None

    def release(self, keys: Iterable[str]) -> None:
        """Give leases back."""
        wanted = list(keys)
        if wanted:
            mine = TABLE.c.owner == self.owner
            with self._engine.begin() as db:
                db.execute(TABLE.delete().where(mine, TABLE.c.key.in_(wanted)))

    def wait(self, keys: Sequence[str], left: Callable[[], set[str]]) -> set[str]:
        """Wait while other runs work on these, until some are free or none is left; return all that is left to do.

        What is still held is in it too: whoever goes on with the free ones has to come back for the others.
        """
        told = False
        while open_ := left() & set(keys):
            held = sa.select(TABLE.c.key).where(TABLE.c.until >= NOW)
            with self._engine.connect() as db:
                free = open_ - {row.key for row in db.execute(held)}
            if free & (now := left()):  # what was stored meanwhile is free too
                return now & open_
            if free:
                continue
            if not told:
                log.info(f"{len(open_):,} are under way in other runs; waiting for them")
                told = True
            time.sleep(LOOK)
        return set()

    def _beat(self, over: threading.Event) -> None:
        while not over.wait(self.seconds / 4):
            try:
                with self._engine.begin() as db:
                    mine = TABLE.c.owner == self.owner
                    db.execute(TABLE.update().where(mine).values(until=NOW + self.seconds))
            except sa.exc.SQLAlchemyError as error:  # the next beat may get through
                log.info(f"the database did not answer a heartbeat: {str(error).splitlines()[0]}")


class Unshared(Leases):
    """For a database with one writer: everything is this run's."""

    shared = False

    def __init__(self) -> None:
        self.owner, self.seconds = "", 0.0

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Nothing has to be kept alive."""
        yield

    def claim(self, key: str) -> bool:
        """Nobody else wants it."""
        return True

    def release(self, keys: Iterable[str]) -> None:
        """Nobody waits for them."""

    def wait(self, keys: Sequence[str], left: Callable[[], set[str]]) -> set[str]:
        """There are no other runs."""
        return set()
