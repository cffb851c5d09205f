"""A study that a release left on disk: later code opens it, repeats no edit and no call, and gets the same rates."""

import json
import sqlite3
import tarfile
from pathlib import Path

import pytest

from evenedit.api.study import Study
from tests.support.commands import Command
from tests.support.release_fixture import FOLDER, rates_of


@pytest.fixture(params=sorted(FOLDER.glob("study-*.tar.xz")), ids=lambda path: path.name)
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the unpacked study; nothing listens at the address of its judges."""
    for key in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(key, "fixture")
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "study"


def rows_of(database: Path) -> dict[str, set[str]]:
    """Return all rows of a database by table."""
    connection = sqlite3.connect(database)
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    rows = {name: {repr(row) for row in connection.execute(f'SELECT * FROM "{name}"')} for name in names}
    connection.close()
    return rows


def test_a_run_repeats_no_edit_and_no_call(folder: Path, evenedit: Command) -> None:
    before = rows_of(folder / "study.db")
    assert all(before[table] for table in ("edits", "replies", "ratings", "measurements", "calls"))
    done = evenedit("run", folder)
    assert done.returncode == 0, done.stderr
    after = rows_of(folder / "study.db")
    grown = {table for table in before if before[table] != after[table]}
    measured_anew = {"measurements", "replies", "ratings"}  # pictures are measured by the present version
    assert grown <= {"runs", "history", "alembic_version", "facts", *measured_anew}, grown
    assert all(before[table] <= after[table] for table in ("facts", *measured_anew))
    judged = [{row for row in rows["replies"] if "judge" in row} for rows in (before, after)]
    assert judged[0] == judged[1]
    assert len(after["runs"]) == len(before["runs"]) + 1


def test_its_rates_are_the_same(folder: Path) -> None:
    study = Study.load(folder)
    expected = json.loads((folder.parent / "expected.json").read_text())
    assert expected and rates_of(study) == expected
    study.store.close()


def test_its_answers_can_be_exported(folder: Path, tmp_path: Path, evenedit: Command) -> None:
    done = evenedit("survey", "export", folder, "--out", tmp_path / "ratings")
    assert done.returncode == 0, done.stderr
    exported = [len(path.read_text().splitlines()) for path in (tmp_path / "ratings").rglob("[!c]*.csv")]
    assert exported and max(exported) == 4, exported  # a header and three items
