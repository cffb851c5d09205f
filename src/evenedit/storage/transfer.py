"""Copy every row of a database into another one of the same schema, between SQLite and PostgreSQL."""

from __future__ import annotations

import itertools
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from evenedit.core.errors import EvenEditError
from evenedit.storage.migrations import History, bring_up_to_date

AT_ONCE = 2000
"""Rows per insert."""


def sqlite_engine(path: Path) -> sa.Engine:
    """Open an SQLite file without changing its settings."""
    return sa.create_engine(f"sqlite:///{path}", poolclass=NullPool)


def counts(engine: sa.Engine, history: History) -> dict[str, int]:
    """Count the rows of each table."""
    with engine.connect() as db:
        return {table.name: _count(db, table) for table in history.metadata.sorted_tables}


def copy_rows(source: sa.Engine, target: sa.Engine, history: History) -> dict[str, int]:
    """Copy all rows into a database that holds no study, in one transaction; return their number by table.

    The source is read as it was at one moment, whatever is written to it meanwhile.
    """
    bring_up_to_date(target, history)
    with source.connect().execution_options(**_snapshot(source)) as old, target.begin() as new:
        _refuse_used(new, history)
        if old.dialect.name == "sqlite":
            old.exec_driver_sql("BEGIN")
        new.execute(sa.delete(history.facts))  # among them a new key: the survey keeps its own
        copied = {table.name: _copy(old, new, table) for table in history.metadata.sorted_tables}
        counted = {table.name: _count(new, table) for table in history.metadata.sorted_tables}
        if counted != copied:
            raise EvenEditError(f"rows were lost: {copied} were read and {counted} were written; nothing was changed")
        old.rollback()
    return copied


def _snapshot(engine: sa.Engine) -> dict[str, str]:
    return {} if engine.dialect.name == "sqlite" else {"isolation_level": "REPEATABLE READ"}


def _refuse_used(db: sa.Connection, history: History) -> None:
    used = [t.name for t in history.metadata.sorted_tables if t is not history.facts and _count(db, t)]
    if used:
        raise EvenEditError(
            f"the target database already holds a {history.name} (rows in {', '.join(used)}); name an empty database"
        )


def _copy(old: sa.Connection, new: sa.Connection, table: sa.Table) -> int:
    rows = old.execute(sa.select(table)).mappings()
    count = 0
    while group := [dict(row) for row in itertools.islice(rows, AT_ONCE)]:
        new.execute(sa.insert(table), group)
        count += len(group)
    _go_on_counting(new, table)
    return count


def _go_on_counting(db: sa.Connection, table: sa.Table) -> None:
    """Let PostgreSQL number new rows after those that came with their numbers."""
    keys = list(table.primary_key.columns)
    if (
        db.dialect.name == "sqlite"
        or len(keys) != 1
        or not isinstance(keys[0].type, sa.Integer)
        or keys[0].foreign_keys
    ):
        return
    last = sa.select(sa.func.coalesce(sa.func.max(keys[0]), 0) + 1).scalar_subquery()
    sequence = sa.func.pg_get_serial_sequence(table.name, keys[0].name)
    db.execute(sa.select(sa.func.setval(sequence, last, False)))


def _count(db: sa.Connection, table: sa.Table) -> int:
    return int(db.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())
