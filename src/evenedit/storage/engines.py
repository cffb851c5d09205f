"""Connections to a study's database: its SQLite file, or PostgreSQL by URL."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.pool import NullPool
from tenacity import (
    Retrying,
    retry_if_exception,
    retry_if_exception_type,
    stop_after_attempt,
    stop_after_delay,
    wait_exponential,
)

from evenedit.core.errors import EvenEditError
from evenedit.core.log import log
from evenedit.storage.file_systems import journal_mode
from evenedit.storage.migrations import STUDY, create_file, keep_copy

T = TypeVar("T")
OUTAGE = 600.0
"""Seconds for which a server that went away is waited for."""
ATTEMPTS = 5
"""How often a transaction is begun that the server interrupts."""
_ADVICE = "restore it from a backup, or move it away to start the study again (images are kept)"


def sqlite_engine(path: Path) -> sa.Engine:
    """Open a study's SQLite file; the first time, make it."""
    if path.exists():
        _refuse_damaged(path)
        keep_copy(path, STUDY)
    else:
        create_file(path, STUDY)
    return file_engine(path, json_serializer=_dumps, poolclass=NullPool)


def file_engine(path: Path, *pragmas: str, **options: Any) -> sa.Engine:
    """Open an SQLite file whose changes are on disk when they are committed."""
    engine = sa.create_engine(f"sqlite:///{path}", **options)
    settings = (f"journal_mode={journal_mode(path)}", "synchronous=FULL", "busy_timeout=10000", *pragmas)

    def set_up(connection: Any, _record: object) -> None:
        for setting in settings:
            connection.execute(f"PRAGMA {setting}")

    sa.event.listen(engine, "connect", set_up)
    return engine


@contextmanager
def raise_unreadable(name: str, path: Path | str = "") -> Iterator[None]:
    """Raise an error of the study where its database, or that of its survey, cannot be read."""
    try:
        yield
    except sa.exc.DatabaseError as error:
        what = f"the {name}'s database {path}".rstrip()
        raise EvenEditError(f"{what} cannot be read ({error.orig}); restore it from a backup") from None


def _refuse_damaged(path: Path) -> None:
    if path.stat().st_size == 0:
        raise EvenEditError(f"the study's database {path} is empty (0 bytes); a copy probably failed; {_ADVICE}")
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            names = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    except sqlite3.DatabaseError as error:
        raise EvenEditError(f"the study's database {path} cannot be read ({error}); {_ADVICE}") from None
    finally:
        with suppress(UnboundLocalError):
            db.close()
    if "facts" not in names:
        raise EvenEditError(f"{path} is an SQLite file but not an EvenEdit study; {_ADVICE}")


def postgres_engine(url: str, **options: Any) -> sa.Engine:
    """Connect to a PostgreSQL database, with further options of the engine."""
    url = url.replace("postgresql://", "postgresql+psycopg://", 1)
    try:
        engine = sa.create_engine(url, **{"json_serializer": _dumps, "pool_pre_ping": True, **options})
        with engine.connect():
            pass
    except ModuleNotFoundError:
        raise EvenEditError(
            "study.toml asks for a PostgreSQL store, which needs the 'postgres' extra. "
            "Try: pip install 'evenedit[postgres]'"
        ) from None
    except sa.exc.OperationalError as error:
        raise EvenEditError(f"PostgreSQL at {_safe(url)} does not answer: {str(error.orig).strip()}") from None
    sa.event.listen(engine, "do_connect", _Waiting(f"PostgreSQL at {_safe(url)}").connect)
    return engine


def transact(engine: sa.Engine, work: Callable[[sa.Connection], T]) -> T:
    """Do something in a transaction; do it again if the server went away meanwhile, so it must be safe to repeat."""

    def once() -> T:
        with engine.begin() as db:
            return work(db)

    result: T = _interrupted(once)
    return result


class _Waiting:
    """Connections to a server that may be restarted while it is used: what asks for one waits, with one message."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._lock = Lock()
        self._absent = False

    def connect(self, dialect: Any, _record: object, arguments: Any, options: Any) -> Any:
        """Return a connection as soon as the server gives one."""
        retry = Retrying(
            retry=retry_if_exception_type(dialect.loaded_dbapi.OperationalError),
            stop=stop_after_delay(OUTAGE),
            wait=wait_exponential(multiplier=0.2, max=5.0),
            before_sleep=lambda _: self._note(absent=True),
            reraise=True,
        )
        connection = retry(dialect.connect, *arguments, **options)
        self._note(absent=False)
        return connection

    def _note(self, *, absent: bool) -> None:
        with self._lock:
            changed, self._absent = absent != self._absent, absent
        if changed and absent:
            log.warning(f"{self._server} does not answer; waiting for it, up to {OUTAGE / 60:.0f} minutes")
        elif changed:
            log.warning(f"{self._server} answers again")


def _was_interrupted(error: BaseException) -> bool:
    return isinstance(error, sa.exc.DBAPIError) and error.connection_invalidated


_interrupted = Retrying(retry=retry_if_exception(_was_interrupted), stop=stop_after_attempt(ATTEMPTS), reraise=True)


def _safe(url: str) -> str:
    return sa.make_url(url).render_as_string(hide_password=True)


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
