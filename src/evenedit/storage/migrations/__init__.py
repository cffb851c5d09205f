"""Migrations of the study's and the survey's database, applied by Alembic when a database is opened.

A new database gets the tables that the code describes. An earlier one is migrated: each database has a history of
schema versions, a folder here with one migration for each version after the first. To change a table, change it in
`storage/schema.py` or `storage/survey_schema.py`, count that file's `VERSION` up, and add a migration
`versions/schema_<VERSION>.py` whose `revision` is the new version and whose `down_revision` is the one before.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from filelock import FileLock
from sqlalchemy.pool import NullPool

from evenedit.core.errors import EvenEditError
from evenedit.storage import schema, survey_schema
from evenedit.storage.locks import ADVISORY_KEY


@dataclass(frozen=True, slots=True)
class History:
    """The schema versions of one database."""

    name: str
    """The name of the database in error messages."""
    scripts: str
    """Where Alembic finds its migrations: a folder, or `package:folder`."""
    version: int
    """The version that this release works with."""
    metadata: sa.MetaData
    """The tables at that version."""
    facts: sa.Table
    """The table of the database's facts."""
    revision_table: str
    """The table in which Alembic stores the version."""
    file_mode: int
    """Permissions of a new SQLite file."""
    first_facts: Callable[[], dict[str, str]] = dict
    """The facts that a new database begins with."""


MOVED = ".moved"
"""Added to the name of an SQLite file whose rows were moved to PostgreSQL."""
COPY_MODE = 0o600
"""Permissions of a copy: databases of surveys hold people's ids."""
STUDY = History(
    name="study",
    scripts=f"{__name__}:study",
    version=schema.VERSION,
    metadata=schema.metadata,
    facts=schema.facts,
    revision_table="alembic_version",
    file_mode=0o644,
)
SURVEY = History(
    name="survey",
    scripts=f"{__name__}:survey",
    version=survey_schema.VERSION,
    metadata=survey_schema.metadata,
    facts=survey_schema.facts,
    revision_table="survey_alembic_version",
    file_mode=0o600,
    first_facts=lambda: {"key": secrets.token_hex(32)},
)


def bring_up_to_date(engine: sa.Engine, history: History) -> None:
    """Apply the migrations that a database lacks. A database that lacks none is only read.

    All migrations are applied in one transaction, and by one process if several open the database at the same time.
    """
    with engine.connect() as db:
        if is_current(db, history):
            return
    with engine.begin() as db:
        _wait_for_other_migrations(db, history)
        if not is_current(db, history):
            _migrate(db, history)


def keep_copy(path: Path, history: History) -> Path | None:
    """Copy an SQLite database into its folder if it is about to be migrated; the copy is named by its schema."""
    engine = sa.create_engine(f"sqlite:///{path}", poolclass=NullPool)
    with engine.connect() as db:
        if _stored_version(db, history) is None or is_current(db, history):
            return None
    copy = path.with_name(f"{path.stem}.before-schema-{history.version}{path.suffix}")
    if copy.exists():
        return None
    copy_file(path, copy, COPY_MODE)
    return copy


def kept_copies(path: Path) -> list[Path]:
    """Return the copies of an SQLite database from before migrations or a move to PostgreSQL."""
    before = sorted(path.parent.glob(f"{path.stem}.before-schema-*{path.suffix}"))
    return [*before, *path.parent.glob(f"{path.name}{MOVED}")]


def copy_file(path: Path, copy: Path, mode: int) -> None:
    """Copy an SQLite database that may be in use; the copy appears when it is complete."""
    temporary = copy.with_name(f".{copy.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.touch(mode)
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(temporary)) as target:
        source.backup(target)
    temporary.replace(copy)


def create_file(path: Path, history: History) -> None:
    """Create an SQLite database under another name and rename it, so that a kill leaves no incomplete file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock")):
        if path.exists():  # another process created it meanwhile
            return
        temporary = path.with_name(f".{path.name}.new")
        temporary.unlink(missing_ok=True)
        temporary.touch(history.file_mode)
        engine = sa.create_engine(f"sqlite:///{temporary}", poolclass=NullPool)
        bring_up_to_date(engine, history)
        engine.dispose()
        temporary.replace(path)


def is_current(db: sa.Connection, history: History) -> bool:
    """Return whether a database needs no migration; raise if a newer release has changed it."""
    version = _stored_version(db, history)
    if version is not None and not _is_known(version, history):
        raise EvenEditError(
            f"the {history.name}'s database has schema {version}; this EvenEdit knows {history.version}. "
            "Upgrade: pip install --upgrade evenedit"
        )
    return version == str(history.version)


def _stored_version(db: sa.Connection, history: History) -> str | None:
    """Return the version that Alembic stored in a database, or None in a new one."""
    if not sa.inspect(db).has_table(history.revision_table):
        return None
    version: str | None = db.execute(sa.text(f"SELECT version_num FROM {history.revision_table}")).scalar_one_or_none()
    return version


def _is_known(version: str, history: History) -> bool:
    return version.isdecimal() and int(version) <= history.version


def _wait_for_other_migrations(db: sa.Connection, history: History) -> None:
    """Let one process migrate at a time, until the end of the transaction."""
    if db.dialect.name == "sqlite":
        db.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        db.execute(sa.text(f"SELECT pg_advisory_xact_lock({ADVISORY_KEY})"), {"name": f"migrate {history.name}"})


def _migrate(db: sa.Connection, history: History) -> None:
    from alembic import command  # slow to import, and seldom needed
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", history.scripts)
    config.attributes["connection"] = db
    config.attributes["history"] = history
    if _stored_version(db, history) is not None:
        command.upgrade(config, "head")
        return
    history.metadata.create_all(db, checkfirst=False)
    for key, value in history.first_facts().items():
        db.execute(history.facts.insert(), {"key": key, "value": value})
    command.stamp(config, "head")
