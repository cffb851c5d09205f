"""Check a database for damage: SQLite's own checks, or one read of each table of PostgreSQL."""

from __future__ import annotations

import sqlalchemy as sa

from evenedit.storage import schema

MOST = 10
"""The largest number of problems that are listed."""


def damage(engine: sa.Engine, metadata: sa.MetaData) -> list[str]:
    """Return the database's own messages about damage; empty if it is intact."""
    try:
        with engine.connect() as db:
            if engine.dialect.name == "sqlite":
                return _sqlite(db)
            for table in metadata.sorted_tables:
                db.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            return []
    except sa.exc.DatabaseError as error:
        return [str(error.orig)]


def _sqlite(db: sa.Connection) -> list[str]:
    problems = [str(row[0]) for row in db.exec_driver_sql(f"PRAGMA integrity_check({MOST})") if row[0] != "ok"]
    for table, row, parent, _ in db.exec_driver_sql("PRAGMA foreign_key_check"):
        problems.append(f"row {row} of {table} refers to a missing row of {parent}")
    return problems[:MOST]


def dangling(engine: sa.Engine) -> dict[str, int]:
    """Count the rows of a study that belong to no request and no source's picture, by table."""
    counts = {}
    with engine.connect() as db:
        for table in (schema.edits, schema.ratings, schema.replies, schema.measurements):
            ident = table.c.request_id
            lost = sa.and_(ident.not_in(sa.select(schema.requests.c.id)), ident.not_like("picture:%"))
            counts[table.name] = int(db.execute(sa.select(sa.func.count()).select_from(table).where(lost)).scalar_one())
    return {name: count for name, count in counts.items() if count}
