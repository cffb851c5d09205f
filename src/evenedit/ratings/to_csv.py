"""Every rating as CSV, in the format that `evenedit analyze` reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.core.images import write_whole
from evenedit.core.records import Experiment
from evenedit.protocol import AXES, QUESTIONS
from evenedit.ratings.table import NOT_ASKED, QUESTION_IDS, STATUSES, RatingTable


def _shared(table: RatingTable) -> list[str]:
    """Columns that say which edit a row is about."""
    labels = (f.name for f in table.factors)
    return ["request_id", "experiment", "condition", "editor", "source_id", *labels, "prompt_id", "seed", "outcome"]


def write_tables(table: RatingTable, out: Path) -> list[Path]:
    """Write edits.csv, scores.csv and, where there are any, verdicts.csv."""
    out.mkdir(parents=True, exist_ok=True)
    stereotype = (table.edits["experiment"] == Experiment.STEREOTYPE).to_numpy()
    frames = {"edits.csv": table.edits, "scores.csv": _answers(table, ~stereotype)}
    if stereotype.any():
        frames["verdicts.csv"] = _answers(table, stereotype)
    for name, frame in frames.items():
        write_whole(out / name, frame.to_csv(index=False).encode())
    return [out / name for name in frames]


def _answers(table: RatingTable, rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pd.DataFrame:
    """One row per edit and rater who was asked."""
    parts = []
    for number, (rater, kind) in enumerate(zip(table.raters, table.kinds, strict=True)):
        asked = np.flatnonzero(rows & (table.status[number] != NOT_ASKED))
        part = table.edits.iloc[asked][_shared(table)].copy()
        part["judge"], part["kind"] = rater, kind.value
        part["status"] = [STATUSES[code].value for code in table.status[number, asked]]
        values = table.values[number, asked]
        if rows[asked].any() and (part["experiment"] == Experiment.STEREOTYPE).all():
            part["verdict"], part["role"] = _words(values, "stereotype"), _words(values, "target_role")
        else:
            for axis in AXES:
                column = values[:, QUESTION_IDS.index(axis)]
                if axis == "age_drift":  # a prompt with a target age has its accuracy in this column
                    column = np.maximum(column, values[:, QUESTION_IDS.index("aging_accuracy")])
                answers = pd.Series(column, index=part.index).astype("Int64")
                part[axis] = answers.where(answers > 0)
            part["preference"] = _words(values, "preference")
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def _words(values: NDArray[np.int8], question: str) -> list[str]:
    """The answers to a choice, empty where there is none."""
    labels = ("", *QUESTIONS[question].labels)
    return [labels[value] for value in values[:, QUESTION_IDS.index(question)]]
