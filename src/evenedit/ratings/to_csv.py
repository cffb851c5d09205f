"""Every rating as CSV, in the format that `evenedit analyze` reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.core.images import write_whole
from evenedit.core.records import Experiment, Outcome, Question
from evenedit.core.spreadsheet import as_csv
from evenedit.protocol import ROLES, Rubric
from evenedit.ratings.from_csv import CONFIDENCE, FILE_COLUMNS
from evenedit.ratings.table import BLOCK, MISSING, NOT_ASKED, STATUSES, RatingTable

EDITS, SCORES, VERDICTS, READINGS = "edits.csv", "scores.csv", "verdicts.csv", "readings.csv"
SETTLED, ENSEMBLE = "settled.", "score."
"""Before a question's id in edits.csv: what reviewers settled, and the one score of the judges together."""
READING_COLUMNS = ("request_id", "instrument", "measure", "value", "reason")


class Words(NamedTuple):
    """What a judge wrote beside its answers about one edit."""

    observations: str = ""
    """What it saw, as a JSON object of texts."""
    evidence: str = ""
    """Its summary of the evidence."""
    reason: str = ""
    """Why there is no answer."""


def _shared(table: RatingTable) -> list[str]:
    """Columns that say which edit a row is about."""
    labels = [f.name for f in table.factors]
    return [
        "request_id",
        "experiment",
        "condition",
        "editor",
        "source_id",
        *({BLOCK} & set(table.edits.columns)),
        *labels,
        "prompt_id",
        "asks",
        "seed",
        "outcome",
    ]


def _edits(table: RatingTable) -> pd.DataFrame:
    """Return the edits with the axes that their prompts ask to change."""
    return table.edits.assign(asks=table.asked_axes())


def write_tables(
    table: RatingTable,
    out: Path,
    *,
    extra_columns: Mapping[str, Any] | None = None,
    words: Mapping[tuple[str, str], Words] | None = None,
) -> list[Path]:
    """Write edits.csv, scores.csv and, where there are any, verdicts.csv and readings.csv; null pairs come last.

    `extra_columns` are further columns of edits.csv, empty for null pairs; `words` what judges wrote, by rater and
    request id.
    """
    table = table.joined()
    out.mkdir(parents=True, exist_ok=True)
    stereotype = (table.edits["experiment"] == Experiment.STEREOTYPE).to_numpy()
    extra = {name: pd.Series(column) for name, column in (extra_columns or {}).items()}
    frames = {EDITS: _edits(table).reset_index(drop=True).assign(**extra, **_settled(table))}
    for name, rows in ((SCORES, ~stereotype), (VERDICTS, stereotype)):
        frames[name] = _rated(table, rows, words or {}, is_verdict=name == VERDICTS)
    frames[READINGS] = _readings(table)
    for name, frame in frames.items():
        if frame.empty and name not in (EDITS, SCORES):
            (out / name).unlink(missing_ok=True)  # of an earlier export
        else:
            write_whole(out / name, as_csv(frame))
    return [out / name for name in frames if (out / name).exists()]


def answer_column(values: NDArray[np.int8], question: Question) -> pd.Series[Any]:
    """Answers to one question as a file has them: the number of a scale, the word of a choice, empty without one."""
    if question.sided == "choice":
        labels = ("", *question.labels)
        return pd.Series([labels[value] for value in values], dtype=object)
    answers = pd.Series(values).astype("Int64")
    return answers.where(answers > MISSING)


def _rated(
    table: RatingTable, rows: NDArray[np.bool_], words: Mapping[tuple[str, str], Words], *, is_verdict: bool
) -> pd.DataFrame:
    """Return one row per edit and rater, and one per edit without any rater."""
    answered = (table.status != NOT_ASKED) | (table.values > MISSING).any(axis=2)
    parts = [
        _of_rater(table, number, np.flatnonzero(rows & answered[number]), words, is_verdict=is_verdict)
        for number in range(len(table.raters))
    ]
    unrated = rows & ~answered.any(axis=0) & (table.edits["outcome"] != Outcome.EDITED).to_numpy()
    parts.append(_edits(table).iloc[np.flatnonzero(unrated)][_shared(table)])
    questions = _questions(table.rubric, is_verdict=is_verdict)
    sure = [f"{CONFIDENCE}{question}" for question in questions.values() if question != ROLES.preference]
    columns = [*_shared(table), "judge", "kind", "status", *questions, *sure, *Words._fields]
    filled = [part for part in parts if len(part)]
    return pd.concat(filled, ignore_index=True).reindex(columns=columns) if filled else pd.DataFrame(columns=columns)


def _questions(rubric: Rubric, *, is_verdict: bool) -> dict[str, str]:
    """Return the question of each column of a file."""
    of_people = [column for column, spec in rubric.spec_by_column.items() if spec.row.about == "people"]
    if is_verdict:
        return {FILE_COLUMNS.get(column, column): column for column in of_people}
    return {column: column for column in rubric.columns if column not in (*of_people, *rubric.replaced)}


def _of_rater(
    table: RatingTable, number: int, rows: NDArray[np.intp], words: Mapping[tuple[str, str], Words], *, is_verdict: bool
) -> pd.DataFrame:
    """Return one rater's answers about these edits."""
    rater = table.raters[number]
    part = _edits(table).iloc[rows][_shared(table)].reset_index(drop=True)
    part["judge"], part["kind"] = rater, table.kinds[number].value
    part["status"] = ["" if code == NOT_ASKED else STATUSES[code].value for code in table.status[number, rows]]
    replacements = {old: new for new, old in table.rubric.replaced.items()}
    for column, question in _questions(table.rubric, is_verdict=is_verdict).items():
        at = table.at(question)
        values = table.values[number, rows, at]
        sure = np.full(len(rows), np.nan) if table.confidence is None else table.confidence[number, rows, at]
        if question in replacements:  # a prompt with a target age has its accuracy in this column
            other = table.at(replacements[question])
            instead = table.values[number, rows, other]
            if table.confidence is not None:
                sure = np.where(instead > MISSING, table.confidence[number, rows, other], sure)
            values = np.maximum(values, instead)
        part[column] = answer_column(values, table.rubric.questions[question])
        part[f"{CONFIDENCE}{question}"] = sure
    words_of_rater = [words.get((rater, str(ident)), Words()) for ident in part["request_id"]]
    return part.assign(**{name: [getattr(one, name) for one in words_of_rater] for name in Words._fields})


def _settled(table: RatingTable) -> dict[str, pd.Series[Any]]:
    """Columns of what reviewers settled, where they settled anything."""
    if table.settled is None or not table.settled.any():
        return {}
    columns = enumerate(table.rubric.questions.items())
    return {f"{SETTLED}{name}": answer_column(table.settled[:, at], question) for at, (name, question) in columns}


def _readings(table: RatingTable) -> pd.DataFrame:
    """Return one row per reading of an edit, or the reason why it is missing."""
    idents = table.edits["request_id"].to_numpy(dtype=object)
    parts = []
    for reading in table.readings:
        reasons = np.array(reading.reasons, dtype=object)
        rows = np.flatnonzero(~np.isnan(reading.values) | (reasons != ""))
        what = {"instrument": reading.rater, "measure": reading.measure}
        columns = {"request_id": idents[rows], "value": reading.values[rows], "reason": reasons[rows]}
        parts.append(pd.DataFrame(columns).assign(**what))
    filled = [part for part in parts if len(part)]
    return pd.concat(filled, ignore_index=True)[list(READING_COLUMNS)] if filled else pd.DataFrame()
