"""Connections to a study's database: its SQLite file, or PostgreSQL by URL."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from evenedit.core.errors import EvenEditError
from evenedit.storage.file_systems import journal_mode
from evenedit.storage.migrations import STUDY, create_file, keep_copy

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


def postgres_engine(url: str) -> sa.Engine:
    """Connect to a PostgreSQL database."""
    url = url.replace("postgresql://", "postgresql+psycopg://", 1)
    try:
        engine = sa.create_engine(url, json_serializer=_dumps, pool_pre_ping=True)
        with engine.connect():
            pass
    except ModuleNotFoundError:
        raise EvenEditError(
            "study.toml asks for a PostgreSQL store, which needs the 'postgres' extra. "
            "Try: pip install 'evenedit[postgres]'"
        ) from None
    except sa.exc.OperationalError as error:
        safe = sa.make_url(url).render_as_string(hide_password=True)
        raise EvenEditError(f"PostgreSQL at {safe} does not answer: {str(error.orig).strip()}") from None
    return engine


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
