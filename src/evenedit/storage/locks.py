"""Locks that keep two processes from writing to one study. A process that crashes frees what it held."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import sqlalchemy as sa
from filelock import FileLock, Timeout

from evenedit.core.errors import EvenEditError

ADVISORY_KEY = "hashtext('evenedit ' || :name), hashtext(coalesce(current_schema(), ''))"
"""PostgreSQL's key of a lock: its name, and the schema with the study's tables, since one database can hold several."""


@contextmanager
def file_lock(path: Path, refusal: str) -> Iterator[None]:
    """Hold a lock file; raise `refusal` at once if another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise EvenEditError(refusal) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def database_lock(engine: sa.Engine, name: str, refusal: str, *, shared: bool = False) -> Iterator[None]:
    """Hold a lock in a PostgreSQL database, for processes on several machines; on SQLite do nothing.

    Where it is `shared`, others may share it, and nobody can have it alone. The lock belongs to a connection of its
    own, so that PostgreSQL frees it when the process ends.
    """
    if engine.dialect.name == "sqlite":
        yield
        return
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as db:
        db.detach()
        lock = "pg_try_advisory_lock_shared" if shared else "pg_try_advisory_lock"
        if not db.execute(sa.text(f"SELECT {lock}({ADVISORY_KEY})"), {"name": name}).scalar_one():
            raise EvenEditError(refusal)
        try:
            yield
        finally:  # at once: PostgreSQL takes its time over a connection that is closed
            with suppress(sa.exc.DBAPIError):
                unlock = lock.replace("_try_", "_").replace("lock", "unlock")
                db.execute(sa.text(f"SELECT {unlock}({ADVISORY_KEY})"), {"name": name})


def lock_holders(engine: sa.Engine, name: str) -> int:
    """Count the processes that hold a lock in a PostgreSQL database."""
    (first, second) = (f"CAST({key} AS bigint) & 4294967295" for key in ADVISORY_KEY.split(", ", 1))
    query = (
        "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database "
        "WHERE locktype = 'advisory' AND granted AND datname = current_database() "
        f"AND CAST(classid AS bigint) = {first} AND CAST(objid AS bigint) = {second}"
    )
    with engine.connect() as db:
        return int(db.execute(sa.text(query), {"name": name}).scalar_one())


@contextmanager
def database_turn(engine: sa.Engine, name: str) -> Iterator[None]:
    """Wait until no other process holds this turn in a PostgreSQL database; on SQLite do nothing."""
    if engine.dialect.name == "sqlite":
        yield
        return
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as db:
        db.detach()
        db.execute(sa.text(f"SELECT pg_advisory_lock({ADVISORY_KEY})"), {"name": f"turn {name}"})
        yield
