"""A database gets the schema that the code describes, and keeps its rows when it is migrated."""

import shutil
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from evenedit.core.errors import EvenEditError
from evenedit.storage import migrations
from evenedit.storage.migrations import STUDY, SURVEY, bring_up_to_date
from evenedit.storage.store import Store
from evenedit.storage.survey_store import SurveyStore

HISTORIES = pytest.mark.parametrize("history", [STUDY, SURVEY], ids=lambda history: history.name)


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request, tmp_path):
    """An empty database, on each kind of server in turn."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'empty.db'}"
    else:
        url = request.getfixturevalue("postgres_url").replace("postgresql://", "postgresql+psycopg://", 1)
    made = sa.create_engine(url)
    yield made
    made.dispose()


def rows(path):
    """Every row of an SQLite file by table, without what migrations add."""
    with sqlite3.connect(path) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in names if "alembic" not in name}
    db.close()
    return found


def differences(engine, history):
    """What Alembic would change to make a database equal to the code's tables."""

    def ours(item, name, kind, _reflected, _other):
        return kind != "table" or name.startswith("survey_") == (history is SURVEY)

    options = {"version_table": history.revision_table, "include_object": ours, "compare_server_default": True}
    with engine.connect() as db:
        return compare_metadata(MigrationContext.configure(db, opts=options), history.metadata)


def revision(engine, history):
    with engine.connect() as db:
        return db.exec_driver_sql(f"SELECT version_num FROM {history.revision_table}").scalar_one()


@HISTORIES
def test_the_last_migration_has_the_version_of_the_code(history):
    config = Config()
    config.set_main_option("script_location", history.scripts)
    assert ScriptDirectory.from_config(config).get_current_head() == str(history.version)


def test_a_new_database_has_the_tables_that_the_code_describes(engine):
    for history in (STUDY, SURVEY):  # on PostgreSQL one database holds both
        bring_up_to_date(engine, history)
    for history in (STUDY, SURVEY):
        assert differences(engine, history) == []
        assert revision(engine, history) == str(history.version)


def test_migrations_make_the_tables_that_the_code_describes(engine):
    """A study of schema 1 has all tables but that of submissions."""
    with engine.begin() as db:
        first = [table for name, table in STUDY.metadata.tables.items() if name != "submissions"]
        STUDY.metadata.create_all(db, tables=first)
        db.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
        db.exec_driver_sql("INSERT INTO alembic_version VALUES ('1')")
    bring_up_to_date(engine, STUDY)
    assert differences(engine, STUDY) == [] and revision(engine, STUDY) == "2"


def test_a_missing_column_would_be_noticed(engine):
    bring_up_to_date(engine, STUDY)
    with engine.begin() as db:
        db.exec_driver_sql("ALTER TABLE ratings DROP COLUMN confidence")
    assert [change[0] for change in differences(engine, STUDY)] == ["add_column"]


NEXT = """
import sqlalchemy as sa
from alembic import op

revision = "{version}"
down_revision = "{before}"


def upgrade():
    op.add_column("{table}", sa.Column("added", sa.String))
    {last}
"""


@pytest.fixture
def next_schema(tmp_path):
    """Return a function that adds a migration to a history, as a later release would."""

    def add(history, last="pass"):
        folder = tmp_path / f"next-{history.name}-{len(last)}"
        shutil.copytree(Path(migrations.__file__).parent / history.name, folder)
        version = history.version + 1
        words = NEXT.format(table=history.facts.name, last=last, version=version, before=history.version)
        (folder / "versions" / f"schema_{version}.py").write_text(words)
        return replace(history, version=version, scripts=str(folder))

    return add


@HISTORIES
def test_a_migration_keeps_every_row(engine, history, next_schema):
    bring_up_to_date(engine, history)
    with engine.begin() as db:
        db.execute(history.facts.insert(), {"key": "a fact", "value": "kept"})
    bring_up_to_date(engine, next_schema(history))
    assert revision(engine, history) == str(history.version + 1)
    assert [change[0] for change in differences(engine, history)] == ["remove_column"]
    with engine.connect() as db:
        found = db.exec_driver_sql(f"SELECT value, added FROM {history.facts.name} WHERE key = 'a fact'").one()
    assert tuple(found) == ("kept", None)


@HISTORIES
def test_a_migration_that_fails_leaves_the_database_as_it_was(engine, history, next_schema):
    bring_up_to_date(engine, history)
    with pytest.raises(sa.exc.DatabaseError):
        bring_up_to_date(engine, next_schema(history, 'op.execute("INSERT INTO nowhere VALUES (1)")'))
    assert revision(engine, history) == str(history.version) and differences(engine, history) == []
    bring_up_to_date(engine, next_schema(history))
    assert revision(engine, history) == str(history.version + 1)


def test_a_file_is_copied_before_it_is_migrated(tmp_path, next_schema, monkeypatch):
    store = Store(tmp_path)
    store.set_fact("a fact", "kept")
    store.close()
    before = rows(tmp_path / "study.db")
    later = next_schema(STUDY)
    monkeypatch.setattr("evenedit.storage.engines.STUDY", later)
    monkeypatch.setattr("evenedit.storage.store.STUDY", later)
    Store(tmp_path).close()
    copy = tmp_path / f"study.before-schema-{later.version}.db"
    assert rows(copy) == before and stat.S_IMODE(copy.stat().st_mode) == 0o600
    copy.unlink()
    Store(tmp_path).close()
    assert not copy.exists(), "a file that is up to date is not copied"


def test_a_survey_keeps_its_key_and_erasing_somebody_deletes_the_copy(tmp_path, next_schema, monkeypatch):
    survey = SurveyStore(tmp_path)
    key = survey.key
    survey.close()
    monkeypatch.setattr("evenedit.storage.survey_store.SURVEY", next_schema(SURVEY))
    survey = SurveyStore(tmp_path, write=False)
    assert survey.key == key and (tmp_path / "survey.before-schema-2.db").exists()
    survey.close()
    survey = SurveyStore(tmp_path)
    survey.forget_erased()
    survey.close()
    assert not (tmp_path / "survey.before-schema-2.db").exists()


@HISTORIES
@pytest.mark.parametrize("version", ["99", "2027-beta"])
def test_a_newer_database_is_refused_and_left_alone(engine, history, version):
    bring_up_to_date(engine, history)
    with engine.begin() as db:
        db.exec_driver_sql(f"UPDATE {history.revision_table} SET version_num = '{version}'")
    words = rf"{history.name}'s database has schema {version}.*Upgrade: pip install --upgrade evenedit"
    for _ in range(2):
        with pytest.raises(EvenEditError, match=words):
            bring_up_to_date(engine, history)


def test_a_refused_survey_is_not_locked_afterwards(tmp_path):
    SurveyStore(tmp_path).close()
    for version, expected in (("99", pytest.raises(EvenEditError, match="schema 99")), ("1", None)):
        with sqlite3.connect(tmp_path / "survey.db") as db:
            db.execute("UPDATE survey_alembic_version SET version_num = ?", (version,))
        db.close()
        if expected is None:
            SurveyStore(tmp_path).close()
        else:
            with expected:
                SurveyStore(tmp_path)


def test_several_that_open_a_new_database_at_once_make_it_once(engine):
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: bring_up_to_date(engine, SURVEY), range(6)))
    with engine.connect() as db:
        assert db.exec_driver_sql("SELECT key FROM survey_facts ORDER BY key").scalars().all() == ["key"]


OPEN = """
import sys
from pathlib import Path
from evenedit.storage.store import Store
Store(Path(sys.argv[1])).set_fact(sys.argv[2], "written")
"""


def test_processes_that_open_a_new_study_at_once_lose_nothing(tmp_path):
    running = [subprocess.Popen([sys.executable, "-c", OPEN, str(tmp_path), f"fact{n}"]) for n in range(4)]
    assert [process.wait(60) for process in running] == [0] * 4
    store = Store(tmp_path)
    assert [store.fact(f"fact{n}") for n in range(4)] == ["written"] * 4
    store.close()


def test_a_file_appears_only_when_it_is_complete(tmp_path, monkeypatch):
    def interrupted(*_):
        assert not (tmp_path / "study.db").exists()
        raise KeyboardInterrupt

    monkeypatch.setattr("evenedit.storage.migrations._migrate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Store(tmp_path)
    assert not (tmp_path / "study.db").exists()
    monkeypatch.undo()
    Store(tmp_path).close()
    assert {path.name for path in tmp_path.iterdir() if path.suffix != ".lock"} == {"study.db"}


def test_only_the_owner_can_read_a_surveys_file(tmp_path):
    SurveyStore(tmp_path).close()
    assert stat.S_IMODE((tmp_path / "survey.db").stat().st_mode) == 0o600


def test_a_survey_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "survey.db").write_text("not a database, by far " * 100)
    with pytest.raises(EvenEditError, match="cannot be read"):
        SurveyStore(tmp_path)


LOADED = """
import sys
from pathlib import Path
from evenedit.storage.store import Store
from evenedit.storage.survey_store import SurveyStore
Store(Path(sys.argv[1])).close()
SurveyStore(Path(sys.argv[1])).close()
print("alembic" in sys.modules)
"""


def test_alembic_is_loaded_only_where_a_database_is_migrated(tmp_path):
    def loaded():
        command = [sys.executable, "-c", LOADED, str(tmp_path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert [loaded(), loaded()] == ["True", "False"]


def test_help_loads_no_alembic():
    code = "import sys; sys.argv = ['evenedit', '--help']\nimport atexit; atexit.register(lambda: print(*sys.modules))"
    code += "\nfrom evenedit.cli import main; main()"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "Usage" in shown and "evenedit.cli" in shown and "alembic" not in shown
