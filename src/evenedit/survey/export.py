"""Ratings out: pseudonymised tables as CSV and Parquet. A platform's ids never leave the database."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from evenedit.config.study_file import StudyFile
from evenedit.core.images import write_whole
from evenedit.core.records import Request
from evenedit.protocol import AXES, QUESTIONS
from evenedit.storage.store import Store
from evenedit.storage.survey_store import Database
from evenedit.survey.answers import people_frame
from evenedit.survey.quality import Quality
from evenedit.survey.questions import APPROPRIATE, PREFERENCE, ROLE
from evenedit.survey.tasks import CASE

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""A spreadsheet runs a cell that begins so."""
_REPLACED = {q.id: q.replaces for q in QUESTIONS.values() if q.replaces}
_CHOICES = {
    PREFERENCE.id: ("baseline", "mitigated", "same"),
    APPROPRIATE.id: ("baseline", "mitigated", "same"),
    ROLE.id: ("male", "female", "unclear"),
    "stereotype": QUESTIONS["stereotype"].labels,
}


def files(file: StudyFile, store: Store, database: Database) -> dict[str, bytes]:
    """Every table by file name.

    ratings: one row per person and output, in the columns that `evenedit analyze --ratings` reads; choices: surveys 2
    and 3, one row per answer; quality: one row per person.
    """
    frame, quality = people_frame(file, database)
    cases = frame[frame["kind"] == CASE]
    requests = store.requests()
    chances = store.cases("survey") | store.cases("survey-3")
    excluded = {q.rater: "; ".join(q.excluded) for q in quality}
    describe = _Describe(store, requests, chances, excluded)
    ratings = _ratings(cases[cases["survey"] == 1], describe)
    choices = _choices(cases[cases["survey"] != 1], describe)
    tables = {"ratings": ratings, "choices": choices, "quality": _quality(quality)}
    out = {f"{name}.csv": as_csv(table) for name, table in tables.items()}
    return out | {f"{name}.parquet": _parquet(table) for name, table in tables.items()}


def write(file: StudyFile, store: Store, database: Database, folder: Path) -> list[Path]:
    """Put every table into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, content in files(file, store, database).items():
        write_whole(folder / name, content)
        paths.append(folder / name)
    return paths


def as_csv(table: pd.DataFrame) -> bytes:
    """CSV in UTF-8 that no spreadsheet takes for formulas."""
    safe = table.copy()
    for name in safe.columns:
        if safe[name].dtype == object or pd.api.types.is_string_dtype(safe[name]):
            safe[name] = [_harmless(value) for value in safe[name]]
    return safe.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC).encode()


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _parquet(table: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()


class _Describe:
    """What an output is, in the columns of an analysis."""

    def __init__(
        self,
        store: Store,
        requests: dict[str, Request],
        chances: dict[str, float],
        excluded: dict[str, str],
    ) -> None:
        self._requests = requests
        self._sources = store.sources()
        self._chances = chances
        self._excluded = excluded

    def __call__(self, row: Any, output: str) -> dict[str, Any]:
        request = self._requests[output]
        single = len(request.source_ids) == 1
        labels = self._sources[request.source_ids[0]].attributes if single else {}
        return {
            "experiment": request.experiment.value,
            "condition": request.condition,
            "editor": request.editor,
            "source_id": "+".join(request.source_ids),
            "race": labels.get("race", ""),
            "gender": labels.get("gender", ""),
            "age": labels.get("age", ""),
            "prompt_id": request.prompt_id,
            "seed": request.seed,
            "request_id": output,
            "rater": row.rater,
            "task": row.task,
            "place": row.place,
            "probability": self._chances.get(row.baseline),
            "counted": bool(row.counted),
            "excluded": self._excluded.get(row.rater, ""),
        }


_RATING_COLUMNS = (
    *("experiment", "condition", "editor", "source_id", "race", "gender", "age", "prompt_id", "seed", "request_id"),
    *("rater", *AXES, "duration_ms", "shown_first", "task", "place", "probability", "counted", "excluded"),
)


def _ratings(frame: pd.DataFrame, describe: _Describe) -> pd.DataFrame:
    rows = []
    for (_, _, output), part in frame.groupby(["rater", "item", "output"], sort=False):
        first = next(part.itertuples())
        given = {_REPLACED.get(q, q): v for q, v in zip(part["question"], part["value"], strict=True)}
        alone = first.mitigated == ""
        rows.append(
            describe(first, str(output))
            | {axis: given.get(axis) for axis in AXES}
            | {"duration_ms": int(part["milliseconds"].max()), "shown_first": alone or first.slot == "A"}
        )
    return pd.DataFrame(rows, columns=list(_RATING_COLUMNS)).astype(dict.fromkeys(AXES, "Int64"))


def _choices(frame: pd.DataFrame, describe: _Describe) -> pd.DataFrame:
    rows = []
    for row in frame.itertuples():
        given: Any = row
        rows.append(
            describe(given, given.output or given.baseline)
            | {"question": given.question, "answer": _CHOICES[given.question][given.value - 1]}
            | {"mitigated_id": given.mitigated, "duration_ms": given.milliseconds}
        )
    return pd.DataFrame(rows)


def _quality(found: Sequence[Quality]) -> pd.DataFrame:
    return pd.DataFrame([asdict(q) | {"excluded": "; ".join(q.excluded)} for q in found])
