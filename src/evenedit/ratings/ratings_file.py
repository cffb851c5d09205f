"""Write every rating of a report as one long CSV file, and rebuild the table of ratings from it."""

from __future__ import annotations

import gzip
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from evenedit.core.errors import EvenEditError
from evenedit.core.images import write_whole
from evenedit.core.records import Kind, Rating, Status
from evenedit.core.spreadsheet import as_csv, as_written
from evenedit.protocol import Factor, Rubric
from evenedit.ratings.build import build_table
from evenedit.ratings.table import (
    ASKED_BETWEEN,
    BLOCK,
    NOT_ASKED,
    STATUSES,
    RatingTable,
    edit_columns,
)

FILE = "ratings.csv.gz"
NUMBERS = {"seed": "int64", "rater_number": "int64", "value": "int8", "confidence": "float32"}
"""Types of the columns of numbers; the others are text."""
NO_ANSWER = ""
"""The question of a row that holds no answer: it says how the call ended, or that nobody was asked about the edit."""


def write_ratings(table: RatingTable, path: Path) -> Path:
    """Write the rows of `ratings_frame` as compressed CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, gzip.compress(as_csv(ratings_frame(table)), 6, mtime=0))
    return path


def ratings_frame(table: RatingTable) -> pd.DataFrame:
    """Return one row for each edit, rater and question that has an answer, and one for each call without any.

    Null pairs come last.
    """
    table = table.joined()
    parts = [_unrated(table), *(_of_rater(table, number) for number in range(len(table.raters)))]
    rows = pd.concat([part for part in parts if len(part)], ignore_index=True) if any(map(len, parts)) else parts[0]
    rows = rows.sort_values(["row", "rater_number"], kind="stable")
    frame = table.edits.assign(asks=table.asked_axes()).iloc[rows["row"]].reset_index(drop=True)
    for column in rows.columns.drop("row"):
        frame[column] = rows[column].to_numpy()
    return frame.astype(NUMBERS)


def _of_rater(table: RatingTable, number: int) -> pd.DataFrame:
    values, status = table.values[number], table.status[number]
    rows, questions = np.nonzero(values)
    main = [at for at, column in enumerate(table.rubric.columns) if table.rubric.in_main_call(column)]
    silent = np.flatnonzero((status != NOT_ASKED) & ~values[:, main].any(axis=1))
    every = np.concatenate([rows, silent])
    confidence = np.full(len(every), np.nan, dtype=np.float32)
    if table.confidence is not None:
        confidence[: len(rows)] = table.confidence[number][rows, questions]
    return pd.DataFrame(
        {
            "row": every,
            "rater_number": number,
            "rater": table.raters[number],
            "kind": table.kinds[number].value,
            "status": [STATUSES[code].value if code != NOT_ASKED else "" for code in status[every]],
            "question": [*(table.rubric.columns[at] for at in questions), *[NO_ANSWER] * len(silent)],
            "value": np.concatenate([values[rows, questions], np.zeros(len(silent), dtype=np.int8)]),
            "confidence": confidence,
        }
    )


def _unrated(table: RatingTable) -> pd.DataFrame:
    """Return the edits that no rater was asked about."""
    is_rated = (table.status != NOT_ASKED).any(axis=0) | table.values.any(axis=(0, 2))
    columns = {"row": np.flatnonzero(~is_rated), "rater_number": -1, "rater": "", "kind": "", "status": ""}
    return pd.DataFrame(columns | {"question": NO_ANSWER, "value": np.int8(0), "confidence": np.float32(np.nan)})


def read_frame(path: Path) -> pd.DataFrame:
    """Read the rows that `write_ratings` wrote, each column with its type."""
    if not path.is_file():
        raise EvenEditError(f"{path}: no such file; write the report again to have it")
    try:
        frame = pd.read_csv(
            path,
            compression="gzip",
            dtype=defaultdict(lambda: "str", NUMBERS),
            keep_default_na=False,
            na_values={"confidence": [""]},
        )
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise EvenEditError(f"{path} is not a readable table of ratings: {error}; write the report again") from None
    for name in frame.columns.difference(list(NUMBERS)):
        frame[name] = frame[name].map({cell: as_written(cell) for cell in frame[name].unique()}).astype("str")
    return frame


def read_ratings(
    path: Path, factors: Sequence[Factor], reviewers: int | None = None, rubric: Rubric | None = None
) -> RatingTable:
    """Rebuild the table that `write_ratings` wrote, without the numeric readings of instruments."""
    columns = [*edit_columns(factors), "rater_number", "rater", "kind", "status", "question", "value", "confidence"]
    frame = read_frame(path)
    absent = [name for name in columns if name not in frame.columns]
    if absent:
        raise EvenEditError(f"{path} has no column {', '.join(absent)}: write the report again with this release")
    of_edits = [*edit_columns(factors), *({BLOCK} & set(frame.columns))]
    edits = frame.drop_duplicates("request_id")[of_edits].reset_index(drop=True)
    raters = frame[frame["rater_number"] >= 0].drop_duplicates("rater_number").sort_values("rater_number")
    by_rater = dict(list(frame.groupby("rater_number")))
    names = zip(raters["rater_number"], raters["rater"], raters["kind"], strict=True)
    sources = [StoredRows(str(rater), Kind(kind), by_rater[number]) for number, rater, kind in names]
    asks = dict(zip(frame["prompt_id"], frame["asks"], strict=True)) if "asks" in frame.columns else {}
    by_prompt = {str(prompt): tuple(axes.split(ASKED_BETWEEN)) for prompt, axes in asks.items() if axes}
    return build_table(edits, factors, sources, reviewers=reviewers, asks=by_prompt, rubric=rubric)


@dataclass(frozen=True, slots=True)
class StoredRows:
    """The rows of one rater, read back as ratings."""

    rater: str
    kind: Kind
    rows: pd.DataFrame

    @property
    def raters(self) -> Sequence[str]:
        """The one rater."""
        return [self.rater]

    def ratings(self) -> Iterator[Rating]:
        """Yield every answer, and for a call without any its outcome."""
        columns = (self.rows[name] for name in ("request_id", "question", "status", "value", "confidence"))
        for request, question, status, value, confidence in zip(*columns, strict=True):
            ended = Status(status) if status else Status.SCORED
            stated = None if np.isnan(confidence) else float(confidence)
            yield Rating(request, question, self.rater, self.kind, ended, int(value) or None, confidence=stated)
