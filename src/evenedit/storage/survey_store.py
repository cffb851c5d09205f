"""The survey's database, opened to read or to write."""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TextIO

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from evenedit.core.errors import EvenEditError
from evenedit.core.records import is_simulated
from evenedit.storage import survey_schema as tables
from evenedit.storage.group_commit import GroupCommit, RowLocks, T, Work, Writer, immediate

Prepared = Callable[[sa.Connection, Mapping[str, Any]], sa.CursorResult[Any]]


class Database:
    """Reads by many, writes by one writer; a second writing process is turned away on SQLite."""

    def __init__(self, folder: Path, url: str | None = None, *, write: bool = True) -> None:
        self._lock: TextIO | None = None
        self._writer: Writer | None = None
        self.insert: Any = postgresql.insert if url else sqlite.insert
        if url:
            self._reader = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1), pool_size=16)
            tables.meta.create_all(self._reader)
            if write:
                self._writer = RowLocks(self._reader)
        else:
            path = folder / tables.DATABASE
            if write:
                self._lock = _hold(folder)
                self._writing = _sqlite(path)
                immediate(self._writing)
                tables.meta.create_all(self._writing)
                os.chmod(path, 0o600)  # noqa: PTH101 - it holds participants' ids
                self._writer = GroupCommit(self._writing)
            elif not path.exists():
                raise EvenEditError(f"there is no survey in {folder} yet. Try: evenedit survey sample {folder}")
            self._reader = _sqlite(path)
        self.writable = write
        if write:
            self.write(self._begin)

    def close(self) -> None:
        """Finish writing and let go."""
        if self._writer:
            self._writer.close()
        self._reader.dispose()
        if self._lock:
            self._writing.dispose()
            self._lock.close()

    def write(self, work: Work[T]) -> T:
        """Do the work and return once it is on disk."""
        return self.later(work).result()

    def later(self, work: Work[T]) -> Future[T]:
        """Hand the work in; its future has the result once it is on disk."""
        if self._writer is None:
            raise EvenEditError("the survey's database was opened for reading only")
        return self._writer.submit(work)

    def rows(self, query: Any) -> list[Any]:
        """The rows of a query, as of now."""
        with self._reader.connect() as db:
            return list(db.execute(query).all())

    def row(self, query: Any) -> Any | None:
        """The only row of a query, or None."""
        with self._reader.connect() as db:
            return db.execute(query).one_or_none()

    def prepared(self, statement: Any) -> Prepared:
        """A statement compiled once: what runs for every answer is spared SQLAlchemy's bookkeeping."""
        compiled = statement.compile(dialect=self._reader.dialect)
        text, names = str(compiled), compiled.positiontup
        if names is None:
            return lambda db, values: db.exec_driver_sql(text, dict(values))
        return lambda db, values: db.exec_driver_sql(text, tuple(values[name] for name in names))

    def fact(self, key: str) -> str | None:
        """A remembered fact."""
        row = self.row(sa.select(tables.facts.c.value).where(tables.facts.c.key == key))
        return None if row is None else str(row.value)

    @property
    def key(self) -> bytes:
        """What pseudonyms, opaque ids and invitations are made with; it never leaves the database."""
        return bytes.fromhex(str(self.fact("key")))

    def pseudonym(self, survey: int, platform: str, participant: str) -> str:
        """The name under which a participant's answers leave the database: a keyed hash.

        A simulated person keeps their name, so that no table can lose the mark.
        """
        message = f"pseudonym\0{survey}\0{platform}\0{participant}".encode()
        if is_simulated(participant):
            return f"{participant}-{hashlib.sha256(message).hexdigest()[:4]}"
        return "person-" + hmac.new(self.key, message, hashlib.sha256).hexdigest()[:12]

    def forget_erased(self) -> None:
        """Leave nothing of what was deleted in SQLite's write-ahead log."""
        if self._lock:
            with self._reader.connect() as db:
                db.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    def _begin(self, db: sa.Connection) -> None:
        facts = {"schema": tables.SCHEMA_VERSION, "key": secrets.token_hex(32)}
        statement = self.insert(tables.facts).on_conflict_do_nothing()
        db.execute(statement, [{"key": key, "value": value} for key, value in facts.items()])
        version = db.execute(sa.select(tables.facts.c.value).where(tables.facts.c.key == "schema")).scalar_one()
        if version != tables.SCHEMA_VERSION:
            raise EvenEditError(
                f"the survey's database has schema {version}; this EvenEdit knows {tables.SCHEMA_VERSION}. "
                "Upgrade: pip install --upgrade evenedit"
            )


def note(db: sa.Connection, at: float, actor: str, action: str, detail: Mapping[str, Any]) -> None:
    """Add a line to the survey's log."""
    db.execute(sa.insert(tables.log), {"at": at, "actor": actor, "action": action, "detail": dict(detail)})


def _hold(folder: Path) -> TextIO:
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / tables.LOCK).open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise EvenEditError(
            f"another process has the survey in {folder} open; SQLite takes one at a time. "
            "Use the admin pages of the running server, stop it, or set [store] url to a PostgreSQL database"
        ) from None
    return file


def _sqlite(path: Path) -> sa.Engine:
    engine = sa.create_engine(f"sqlite:///{path}", pool_size=8, connect_args={"check_same_thread": False})
    sa.event.listen(engine, "connect", _pragmas)
    return engine


def _pragmas(connection: Any, _record: object) -> None:
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=10000", "foreign_keys=ON", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}")
