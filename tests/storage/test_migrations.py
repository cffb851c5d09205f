"""Databases of every release are opened with all their rows, and end with the schema that the code describes."""

import sqlite3
import stat
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from evenedit.core.errors import EvenEditError
from evenedit.storage.migrations import STUDY, SURVEY, bring_up_to_date, create_file
from evenedit.storage.store import Store
from evenedit.storage.survey_store import SurveyStore

FIXTURE = Path(__file__).parents[1] / "fixtures" / "study-0.1.tar.xz"
HISTORIES = pytest.mark.parametrize("history", [STUDY, SURVEY], ids=lambda history: history.name)


@pytest.fixture
def released(tmp_path):
    """The databases that release 0.1 made."""
    with tarfile.open(FIXTURE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "study"


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


def shape(path):
    """The statements that made an SQLite file's tables and indexes, in no order."""
    with sqlite3.connect(path) as db:
        found = {sql for (sql,) in db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    db.close()
    return {sql for sql in found if "alembic" not in sql}


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
    config.set_main_option("script_location", f"evenedit.storage.migrations:{history.name}")
    assert ScriptDirectory.from_config(config).get_current_head() == str(history.version)


def test_migrations_make_the_tables_that_the_code_describes(engine):
    for history in (STUDY, SURVEY):  # on PostgreSQL one database holds both
        bring_up_to_date(engine, history)
    for history in (STUDY, SURVEY):
        assert differences(engine, history) == []
        assert revision(engine, history) == str(history.version)


def test_a_missing_column_would_be_noticed(engine):
    bring_up_to_date(engine, STUDY)
    with engine.begin() as db:
        db.exec_driver_sql("ALTER TABLE ratings DROP COLUMN confidence")
    assert [change[0] for change in differences(engine, STUDY)] == ["add_column"]


def test_a_new_file_is_made_as_release_0_1_made_it(released, tmp_path):
    create_file(tmp_path / "study.db", STUDY)
    assert shape(tmp_path / "study.db") == shape(released / "study.db")
    create_file(tmp_path / "survey.db", SURVEY)
    assert shape(tmp_path / "survey.db") > shape(released / "survey.db"), "later schemas only add tables"
    SurveyStore(released).close()
    assert shape(tmp_path / "survey.db") == shape(released / "survey.db"), "an upgraded file is like a new one"


def test_a_study_of_release_0_1_keeps_every_row(released):
    before = rows(released / "study.db")
    store = Store(released)
    assert differences(store._engine, STUDY) == [] and revision(store._engine, STUDY) == "2"
    assert len(store.edits()) == len(before["edits"]) > 0
    assert len(store.requests()) == len(before["requests"]) > 0
    assert len(store.runs()) == len(before["runs"]) > 0
    store.close()
    assert _sorted(rows(released / "study.db")) == _sorted(before)


def test_a_survey_of_release_0_1_keeps_every_row_and_its_key(released):
    before = rows(released / "survey.db")
    survey = SurveyStore(released)
    assert differences(survey._reader, SURVEY) == [] and revision(survey._reader, SURVEY) == "3"
    assert survey.key == bytes.fromhex(dict(before["survey_facts"])["key"])
    survey.close()
    assert len(before["survey_answers"]) > 0
    after = rows(released / "survey.db")
    added = {name for name in after if name not in before}
    consent = {"survey_consents", "survey_consent_texts", "survey_removals"}
    assert added == consent | {"survey_profile_consents", "survey_profiles"}
    assert not any(after.pop(name) for name in added)
    assert dict(after.pop("survey_facts")) == dict(before.pop("survey_facts")) | {"schema": "3"}
    assert _sorted(after) == _sorted(before)


def test_a_file_is_copied_before_it_is_migrated(released):
    before = rows(released / "survey.db")
    SurveyStore(released).close()
    copy = released / "survey.before-schema-3.db"
    assert rows(copy) == before and stat.S_IMODE(copy.stat().st_mode) == 0o600
    copy.unlink()
    SurveyStore(released).close()
    assert not copy.exists(), "a file that is up to date is not copied"


def test_whoever_is_erased_is_not_left_in_the_copy(released):
    survey = SurveyStore(released)
    copy = released / "survey.before-schema-3.db"
    assert copy.exists()
    survey.forget_erased()
    survey.close()
    assert not copy.exists()


def test_the_copy_of_a_study_with_password_hashes_is_for_its_owner_alone(released):
    with sqlite3.connect(released / "study.db") as db:
        db.execute("ALTER TABLE ratings DROP COLUMN confidence")
        db.execute("UPDATE facts SET value = '1' WHERE key = 'schema'")
    db.close()
    Store(released).close()
    (copy,) = released.glob("study.before-schema-*.db")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def _sorted(tables):
    return {name: sorted(map(repr, content)) for name, content in tables.items()}


def test_a_survey_of_release_0_1_can_be_read_without_being_opened_for_writing(released):
    key = dict(rows(released / "survey.db")["survey_facts"])["key"]
    survey = SurveyStore(released, write=False)
    assert survey.key == bytes.fromhex(key)
    survey.close()


def test_a_study_that_was_never_reviewed_gets_the_table_of_reviews(released):
    with sqlite3.connect(released / "study.db") as db:
        db.execute("DROP TABLE reviews")
    db.close()
    store = Store(released)
    assert differences(store._engine, STUDY) == []
    store.close()


def test_a_survey_of_schema_2_keeps_its_consents_and_gets_the_tables_of_schema_3(engine):
    SURVEY.metadata.create_all(engine)
    with engine.begin() as db:
        for table in ("survey_profiles", "survey_profile_consents"):
            db.exec_driver_sql(f"DROP TABLE {table}")
        db.exec_driver_sql("INSERT INTO survey_facts VALUES ('schema', '2'), ('key', 'abcd')")
        db.exec_driver_sql(f"CREATE TABLE {SURVEY.revision_table} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
        db.exec_driver_sql(f"INSERT INTO {SURVEY.revision_table} VALUES ('2')")
        db.exec_driver_sql("INSERT INTO survey_consent_texts VALUES ('v1', 'en', 'You agree.', 1.0)")
    bring_up_to_date(engine, SURVEY)
    with engine.connect() as db:
        assert db.exec_driver_sql("SELECT text FROM survey_consent_texts").scalar_one() == "You agree."
        assert dict(db.exec_driver_sql("SELECT key, value FROM survey_facts").all()) == {"schema": "3", "key": "abcd"}
        assert db.exec_driver_sql("SELECT count(*) FROM survey_profiles").scalar_one() == 0
    assert differences(engine, SURVEY) == [] and revision(engine, SURVEY) == "3"


def _with_schema_1(engine):
    """Make a study's database as the release before 0.1 made it, with one rating."""
    STUDY.metadata.create_all(engine)
    with engine.begin() as db:
        db.exec_driver_sql("ALTER TABLE ratings DROP COLUMN confidence")
        db.exec_driver_sql("INSERT INTO facts VALUES ('schema', '1')")
        db.exec_driver_sql("INSERT INTO ratings VALUES ('r', 'judge', 'v', 'skin_tone', 4)")
        db.exec_driver_sql("INSERT INTO replies VALUES ('r', 'judge', 'v', 'vlm', 'scored', '', '', 1)")


def test_a_database_of_the_first_schema_is_upgraded_and_keeps_its_ratings(engine):
    _with_schema_1(engine)
    bring_up_to_date(engine, STUDY)
    with engine.connect() as db:
        assert db.exec_driver_sql("SELECT value FROM facts WHERE key = 'schema'").scalar_one() == "2"
        assert db.exec_driver_sql("SELECT value, confidence FROM ratings").one() == (4, None)
    assert differences(engine, STUDY) == []


def test_a_store_opens_a_database_of_the_first_schema(tmp_path):
    old = sa.create_engine(f"sqlite:///{tmp_path / 'study.db'}")
    _with_schema_1(old)
    old.dispose()
    store = Store(tmp_path)
    assert [(r.question_id, r.value, r.confidence) for r in store.ratings("judge", "v")] == [("skin_tone", 4, None)]
    store.close()


def test_a_migration_that_fails_leaves_the_database_as_it_was(engine, monkeypatch):
    _with_schema_1(engine)
    broken = "evenedit.storage.migrations._store_version"
    monkeypatch.setattr(broken, lambda db, history: db.exec_driver_sql("INSERT INTO nowhere VALUES (1)"))
    with pytest.raises(sa.exc.DatabaseError):
        bring_up_to_date(engine, STUDY)
    assert not sa.inspect(engine).has_table("alembic_version")
    assert [change[0] for change in differences(engine, STUDY)] == ["add_column"]
    monkeypatch.undo()
    bring_up_to_date(engine, STUDY)
    assert differences(engine, STUDY) == []


@HISTORIES
@pytest.mark.parametrize("version", ["99", "2027-beta"])
def test_a_newer_database_is_refused_and_left_alone(engine, history, version):
    bring_up_to_date(engine, history)
    with engine.begin() as db:
        db.execute(history.facts.update().where(history.facts.c.key == "schema").values(value=version))
    words = rf"{history.name}'s database has schema {version}.*Upgrade: pip install --upgrade evenedit"
    for _ in range(2):
        with pytest.raises(EvenEditError, match=words):
            bring_up_to_date(engine, history)


def test_a_refused_survey_is_not_locked_afterwards(tmp_path):
    SurveyStore(tmp_path).close()
    for version, expected in (("99", pytest.raises(EvenEditError, match="schema 99")), ("2", None)):
        with sqlite3.connect(tmp_path / "survey.db") as db:
            db.execute("UPDATE survey_facts SET value = ? WHERE key = 'schema'", (version,))
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
        assert db.exec_driver_sql("SELECT key FROM survey_facts ORDER BY key").scalars().all() == ["key", "schema"]


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

    monkeypatch.setattr("evenedit.storage.migrations._store_version", interrupted)
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
