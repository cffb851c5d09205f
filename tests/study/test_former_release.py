"""A study that the former release wrote: it is read as it is, nothing is made again, and its numbers stay."""

import json
import re
import sqlite3
import tarfile
from pathlib import Path
from typing import Any

import pytest

from conftest import HERE, Command

GROWS = {"runs", "measurements", "replies", "ratings"}
"""Tables to which a run adds rows: one of its own, and what instruments read, which this release measures anew."""


@pytest.fixture
def former(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The study as it was left, with a key for its judge and nobody who listens at the judge's address."""
    monkeypatch.setenv("GEMINI_API_KEY", "fixture")
    with tarfile.open(HERE / "fixtures" / "study-0.1.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "study"


def columns_of(folder: Path) -> dict[str, list[str]]:
    """Every table of the study's database with its columns."""
    with sqlite3.connect(folder / "study.db") as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {name: [row[1] for row in database.execute(f"PRAGMA table_info({name})")] for name in names}
    database.close()
    return found


def rows_of(folder: Path, columns: dict[str, list[str]]) -> dict[str, list[str]]:
    """Everything in these tables and columns."""
    found = {}
    with sqlite3.connect(folder / "study.db") as database:
        for table, names in columns.items():
            quoted = ", ".join(f'"{name}"' for name in names)
            found[table] = sorted(map(repr, database.execute(f"SELECT {quoted} FROM {table}")))
    database.close()
    return found


def test_a_run_makes_nothing_again(former: Path, evenedit: Command) -> None:
    columns = columns_of(former)
    before = rows_of(former, columns)
    assert {"edits", "replies", "ratings", "measurements", "calls"} <= before.keys()
    done = evenedit("run", former)
    assert done.returncode == 0, done.stderr
    after = rows_of(former, columns)
    assert {table for table in before if before[table] != after[table]} == GROWS
    assert all(set(before[table]) <= set(after[table]) for table in before), "nothing that was there is lost"
    assert len(after["runs"]) == len(before["runs"]) + 1
    for table in ("replies", "ratings"):
        assert all("'skin'" in row for row in set(after[table]) - set(before[table])), "no judge is asked again"


def by_coordinates(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The numbers of each row by everything in it that is no number."""
    found = {}
    for row in rows:
        numbers = {key: value for key, value in row.items() if isinstance(value, int | float)}
        found[json.dumps({key: value for key, value in row.items() if key not in numbers}, sort_keys=True)] = numbers
    assert len(found) == len(rows)
    return found


def test_the_report_tells_the_numbers_that_were_told(former: Path, evenedit: Command) -> None:
    assert evenedit("run", former).returncode == 0
    done = evenedit("report", former)
    assert done.returncode == 0, done.stderr
    (written,) = former.rglob("results.json")
    results = json.loads(written.read_text())
    expected = json.loads((former.parent / "expected-results.json").read_text())
    assert expected["counts"].items() <= results["counts"].items()
    for key in ("estimates", "agreement"):
        now, then = (by_coordinates([*map(as_told_then, side[key])]) for side in (results, expected))
        for row, numbers in then.items():
            assert now[row] == pytest.approx(numbers, rel=1e-12), row
    now, then = ({place(row): row for row in side["estimates"] if is_rate(row)} for side in (results, expected))
    assert then.keys() <= now.keys()
    for at, row in then.items():
        ends = [(x["low"], x["high"]) for x in (row, now[at])]
        if of_everybody(row):
            continue
        if None in ends[0] or row["value"] in (0, 1):  # how alike its rows are is now borrowed from other groups
            assert (None in ends[0]) == (None in ends[1])
        else:  # few events no longer speak for themselves alone
            assert ends[1][0] <= ends[0][0] + 1e-12 and ends[0][1] <= ends[1][1] + 1e-12, at


def is_rate(row: dict[str, Any]) -> bool:
    return str(row.get("measure", "")).startswith("rate.")


def of_everybody(row: dict[str, Any]) -> bool:
    """Whether an estimate is over everybody, where labels are now held fixed and prompts known from all measures."""
    return row.get("group") == {} and "measure" in row


def as_told_then(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what a later release makes otherwise: the interval of a rate, since few events no longer speak for
    themselves alone; every interval over everybody; the interval of a gap whose groups are all at 0 or 1, which had
    none; the interval of a gap in the judges' error; p of people's rank tests, which now permute faces."""
    changed: tuple[str, ...] = ()
    statistic = str(row.get("statistic", ""))
    settled = str(row.get("measure", "")).startswith("gap.") and row["value"] in (0, 1)
    if is_rate(row) or of_everybody(row) or settled or statistic == "mean_difference_gap":
        changed = ("low", "high", "method")
    if re.fullmatch(r"(kruskal_wallis_H|mann_whitney_U|wilcoxon_T|mean_difference_gap)_p(_holm|_bh)?", statistic):
        changed = ("value", "method")
    return {k: v for k, v in row.items() if k not in changed}


def place(row: dict[str, Any]) -> str:
    """Where a row stands: all that is no number, and not how its interval was made."""
    return json.dumps([row[k] for k in ("measure", "experiment", "condition", "editor", "group")], sort_keys=True)
