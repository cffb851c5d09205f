"""The survey's database, opened to read or to write."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from evenedit.core.errors import EvenEditError
from evenedit.core.records import is_simulated
from evenedit.storage import survey_schema as tables
from evenedit.storage.engines import file_engine, postgres_engine, raise_unreadable, transact
from evenedit.storage.group_commit import GroupCommit, RowLocks, T, Work, Writer, immediate
from evenedit.storage.integrity import damage
from evenedit.storage.locks import file_lock
from evenedit.storage.migrations import SURVEY, bring_up_to_date, create_file, keep_copy, kept_copies

Prepared = Callable[[sa.Connection, Mapping[str, Any]], sa.CursorResult[Any]]


class SurveyStore:
    """The survey's data. Any number of processes can read it; on SQLite only one can write."""

    def __init__(self, folder: Path, url: str | None = None, *, write: bool = True) -> None:
        self.writable = write
        self._folder = folder
        self._file: tuple[int, int] | None = None
        """On SQLite: which file was opened."""
        self.insert: Any = postgresql.insert if url else sqlite.insert
        self._writer: Writer | None = None
        with ExitStack() as resources:  # closes what is open if a later step raises
            if url:
                self._open_postgres(url, resources)
            else:
                self._open_sqlite(folder, resources)
            self._resources = resources.pop_all()

    def _open_postgres(self, url: str, resources: ExitStack) -> None:
        self._reader = postgres_engine(url, pool_size=16, json_serializer=None)
        resources.callback(self._reader.dispose)
        bring_up_to_date(self._reader, SURVEY)
        if self.writable:
            self._start_writer(RowLocks(self._reader), resources)

    def _open_sqlite(self, folder: Path, resources: ExitStack) -> None:
        path = folder / tables.DATABASE
        if self.writable:
            resources.enter_context(file_lock(folder / tables.LOCK, _refusal(folder)))
        if not path.exists():
            if not self.writable:
                raise EvenEditError(f"there is no survey in {folder} yet. Try: evenedit survey sample {folder}")
            create_file(path, SURVEY)
        _refuse_empty(path)
        _only_for_owner(path)
        self._file = _identity(path)
        self._reader = _engine(path)
        resources.callback(self._reader.dispose)
        with raise_unreadable("survey", path):
            keep_copy(path, SURVEY)
            bring_up_to_date(self._reader, SURVEY)
        if self.writable:
            writing = _engine(path)
            resources.callback(writing.dispose)
            immediate(writing)
            self._start_writer(GroupCommit(writing), resources)

    def _start_writer(self, writer: Writer, resources: ExitStack) -> None:
        self._writer = writer
        resources.callback(writer.close)

    def close(self) -> None:
        """Finish writing, then close the database and release its lock."""
        self._resources.close()

    def write(self, work: Work[T]) -> T:
        """Run a piece of work in a transaction and return its result after the commit."""
        return self.later(work).result()

    def later(self, work: Work[T]) -> Future[T]:
        """Submit a piece of work; the future has its result after the commit."""
        if self._writer is None:
            raise EvenEditError("the survey's database was opened for reading only")
        return self._writer.submit(work)

    def rows(self, query: Any) -> list[Any]:
        """Return the rows of a query."""
        return transact(self._reader, lambda db: list(db.execute(query).all()))

    def row(self, query: Any) -> Any | None:
        """Return the only row of a query, or None."""
        return transact(self._reader, lambda db: db.execute(query).one_or_none())

    def prepared(self, statement: Any) -> Prepared:
        """Compile a statement once, for speed where it is executed for every answer."""
        compiled = statement.compile(dialect=self._reader.dialect)
        text, names = str(compiled), compiled.positiontup
        if names is None:
            return lambda db, values: db.exec_driver_sql(text, dict(values))
        return lambda db, values: db.exec_driver_sql(text, tuple(values[name] for name in names))

    def damage(self) -> list[str]:
        """Return the database's own messages about damage; empty if it is intact."""
        return damage(self._reader, tables.metadata)

    def fact(self, key: str) -> str | None:
        """Return a fact about the survey, or None."""
        row = self.row(sa.select(tables.facts.c.value).where(tables.facts.c.key == key))
        return None if row is None else str(row.value)

    def try_writing(self) -> None:
        """Take the write lock and change nothing; raise if the database cannot be written.

        A file that was moved away or replaced could still be written, but the data would be lost.
        """
        if self._file and self._file != _identity(self._folder / tables.DATABASE):
            raise EvenEditError(
                f"{self._folder / tables.DATABASE} is no longer the file that was opened; restart the server"
            )
        query = sa.select(tables.facts.c.key).where(tables.facts.c.key == "key").with_for_update()
        self.later(lambda db: db.execute(query).scalar_one()).result(timeout=10)

    @property
    def key(self) -> bytes:
        """The secret for pseudonyms, opaque ids and invitations. It never leaves the database."""
        return bytes.fromhex(str(self.fact("key")))

    def pseudonym(self, survey: int, platform: str, participant: str) -> str:
        """Return the name of a participant in exported tables: a keyed hash.

        A simulated person keeps their name, so that every table shows that they are simulated.
        """
        message = f"pseudonym\0{survey}\0{platform}\0{participant}".encode()
        if is_simulated(participant):
            return f"{participant}-{hashlib.sha256(message).hexdigest()[:4]}"
        kind = "preview" if platform == tables.PREVIEW else "person"
        return f"{kind}-" + hmac.new(self.key, message, hashlib.sha256).hexdigest()[:12]

    def forget_erased(self) -> None:
        """Remove deleted data from SQLite's write-ahead log, and the copies that were kept of the survey's file."""
        if not self.writable:
            return
        if self._reader.dialect.name == "sqlite":
            with self._reader.connect() as db:
                db.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        for copy in kept_copies(self._folder / tables.DATABASE):
            copy.unlink(missing_ok=True)


def note(db: sa.Connection, at: float, actor: str, action: str, detail: Mapping[str, Any]) -> None:
    """Add a line to the survey's log."""
    db.execute(sa.insert(tables.log), {"at": at, "actor": actor, "action": action, "detail": dict(detail)})


def _refusal(folder: Path) -> str:
    return (
        f"another process has the survey in {folder} open; SQLite allows one at a time. "
        "Use the admin pages of the running server, stop it, or set [store] url to a PostgreSQL database"
    )


def _identity(path: Path) -> tuple[int, int]:
    """Return the device and inode of a file; raise if there is none."""
    status = path.stat()
    return status.st_dev, status.st_ino


def _refuse_empty(path: Path) -> None:
    """Refuse a file of 0 bytes, which SQLite takes for a new database: the survey would begin anew, with a new key."""
    if path.stat().st_size == 0:
        raise EvenEditError(
            f"the survey's database {path} is empty (0 bytes); a copy probably failed; restore it from a backup, "
            "or move it away to begin the survey again (with other pseudonyms and invitations)"
        )


def _only_for_owner(path: Path) -> None:
    """Close the file to others before SQLite makes its log, which gets the mode of the file."""
    for file in (path, *(path.with_name(path.name + tail) for tail in ("-wal", "-shm", "-journal"))):
        with suppress(FileNotFoundError):
            if file.stat().st_mode & 0o777 != SURVEY.file_mode and file.stat().st_uid == os.getuid():
                file.chmod(SURVEY.file_mode)


def _engine(path: Path) -> sa.Engine:
    pragmas = ("foreign_keys=ON", "secure_delete=ON")
    return file_engine(path, *pragmas, pool_size=8, connect_args={"check_same_thread": False})
