"""Connections to a study's database: its SQLite file, or PostgreSQL by URL."""

from __future__ import annotations

import json
import sqlite3
from contextlib import suppress
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
    engine = sa.create_engine(f"sqlite:///{path}", json_serializer=_dumps, poolclass=NullPool)
    mode = journal_mode(path)

    def pragmas(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute(f"PRAGMA journal_mode={mode}")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA busy_timeout=10000")

    sa.event.listen(engine, "connect", pragmas)
    return engine


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
