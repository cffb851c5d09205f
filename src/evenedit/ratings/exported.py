"""An export's folder read back as the table it was written from.

edits.csv says what edits there are, in which order, and what reviewers settled; scores.csv and verdicts.csv who rated
them; readings.csv what instruments read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Kind
from evenedit.protocol import PromptSet, Rubric
from evenedit.protocol.factors import parse_number
from evenedit.ratings.from_csv import (
    Factors,
    Tabular,
    answer_codes,
    expected_answer,
    read_edits,
    read_frames,
    read_table,
)
from evenedit.ratings.human_csv import table_with_people
from evenedit.ratings.table import RatingTable, Reading, ReadingNote
from evenedit.ratings.to_csv import EDITS, READING_COLUMNS, READINGS, SCORES, SETTLED, VERDICTS

CHANCE = "probability"
"""The column of edits.csv with each edit's chance to be among those that people rate."""


def read_exported(
    folder: Path,
    ratings: Sequence[Tabular],
    prompts: PromptSet,
    factors: Factors,
    raters: Mapping[str, Kind],
    notes: Sequence[ReadingNote],
    rubric: Rubric | None = None,
) -> tuple[RatingTable, dict[str, float]]:
    """Return the table with people's ratings, and the sampling probabilities of the drawn edits by request id.

    `raters` come in this order, then those only the files name; `notes` name the readings.
    """
    files = [path for path in (folder / SCORES, folder / VERDICTS) if path.is_file() and len(read_table(path))]
    judged = [frame[(frame["judge"] != "").to_numpy()] for frame in read_frames(files, factors, rubric)]
    frames = [read_edits(folder / EDITS, factors), *(frame for frame in judged if len(frame))]
    table = table_with_people(frames, ratings, prompts, factors, raters, rubric).joined()
    rows = {str(ident): row for row, ident in enumerate(table.edits["request_id"])}
    edits = read_table(folder / EDITS)
    facts = edits[edits["request_id"].isin(list(rows))] if "request_id" in edits.columns else edits.iloc[:0]
    readings = _readings(folder / READINGS, rows, notes) if (folder / READINGS).is_file() else ()
    return replace(table, settled=_settled(facts, rows, table.rubric), readings=readings).split(), _chances(facts)


def _settled(edits: pd.DataFrame, rows: Mapping[str, int], rubric: Rubric) -> NDArray[np.int8]:
    """[edit, question]: what reviewers settled."""
    values = np.zeros((len(rows), len(rubric.columns)), dtype=np.int8)
    for at, (name, question) in enumerate(rubric.questions.items()):
        column, codes = f"{SETTLED}{name}", answer_codes(question)
        for ident, text in _cells(edits, column).items():
            if text.casefold() not in codes:
                expected = expected_answer(question)
                raise EvenEditError(f"{EDITS}: {column} of edit {ident} is '{text}'; expected {expected}")
            values[rows[ident], at] = codes[text.casefold()]
    return values


def _chances(edits: pd.DataFrame) -> dict[str, float]:
    cells = _cells(edits, CHANCE)
    return {ident: _number(text, f"{EDITS}: {CHANCE} of edit {ident}") for ident, text in cells.items()}


def _cells(edits: pd.DataFrame, column: str) -> dict[str, str]:
    """Return the non-empty cells of a column by request id."""
    if column not in edits.columns:
        return {}
    return {str(i): str(text) for i, text in zip(edits["request_id"], edits[column], strict=True) if text != ""}


def _readings(path: Path, rows: Mapping[str, int], notes: Sequence[ReadingNote]) -> tuple[Reading, ...]:
    """Return the instruments' readings, in the order of the notes, then of the file."""
    frame = read_table(path)
    if missing := [column for column in READING_COLUMNS if column not in frame.columns]:
        raise EvenEditError(f"{path} lacks the columns: {', '.join(missing)}")
    named = {(note.instrument, note.measure): note for note in notes}
    values = {key: np.full(len(rows), np.nan) for key in named}
    reasons = {key: [""] * len(rows) for key in named}
    cells = frame[list(READING_COLUMNS)].astype(str).itertuples(index=False, name=None)
    for line, (ident, rater, measure, value, reason) in enumerate(cells, 2):
        if ident not in rows:
            raise EvenEditError(f"{path.name} line {line}: there is no edit '{ident}' in {EDITS}")
        key = rater, measure
        read = np.nan if value == "" else _number(value, f"{path.name} line {line}: value")
        values.setdefault(key, np.full(len(rows), np.nan))[rows[ident]] = read
        reasons.setdefault(key, [""] * len(rows))[rows[ident]] = reason
    return tuple(named.get(key, ReadingNote(*key)).reading(values[key], reasons[key]) for key in values)


def _number(text: str, what: str) -> float:
    value = parse_number(text)
    if value is None:
        raise EvenEditError(f"{what} is '{text}'; expected a number")
    return value
