"""Whether a database is whole: SQLite's own checks, or every table of PostgreSQL read once."""

from __future__ import annotations

import sqlalchemy as sa

from evenedit.storage import schema

MOST = 10
"""The most problems that are named."""


def damage(engine: sa.Engine, metadata: sa.MetaData) -> list[str]:
    """What is damaged, in the database's own words; nothing where all is well."""
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
    found = [str(row[0]) for row in db.exec_driver_sql(f"PRAGMA integrity_check({MOST})") if row[0] != "ok"]
    for table, row, parent, _ in db.exec_driver_sql("PRAGMA foreign_key_check"):
        found.append(f"row {row} of {table} belongs to a row of {parent} that is not there")
    return found[:MOST]


def dangling(engine: sa.Engine) -> dict[str, int]:
    """How many rows of a study belong to no request, by table."""
    found = {}
    with engine.connect() as db:
        for table in (schema.edits, schema.ratings, schema.replies, schema.measurements):
            lost = table.c.request_id.not_in(sa.select(schema.requests.c.id))
            found[table.name] = int(db.execute(sa.select(sa.func.count()).select_from(table).where(lost)).scalar_one())
    return {name: count for name, count in found.items() if count}
