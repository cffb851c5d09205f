"""Export the ratings as pseudonymised CSV tables. A platform's ids never leave the database."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenedit.config.study_file import StudyFile
from evenedit.core.images import write_whole
from evenedit.core.records import ConditionKind
from evenedit.core.spreadsheet import as_csv
from evenedit.protocol import Factor, Rubric
from evenedit.ratings.to_csv import answer_column
from evenedit.storage.store import Store
from evenedit.storage.survey_store import SurveyStore
from evenedit.survey.answers import counted_answers, people_frame
from evenedit.survey.codebook import codebook_files, codebook_of_people
from evenedit.survey.profiles import participants_frame, rater_profiles
from evenedit.survey.quality import Quality
from evenedit.survey.questions import APPROPRIATE, PREFERENCE, ROLE
from evenedit.survey.sample import sample_name
from evenedit.survey.tasks import CASE

Describer = Callable[[Any, str], dict[str, Any]]
_IN_LOWER_CASE = (PREFERENCE.id, ROLE.id)
"""Questions whose codes the published tables write in lower case."""


def files(file: StudyFile, store: Store, database: SurveyStore) -> dict[str, bytes]:
    """Return all tables by file name.

    ratings: one row per person and output, in the columns that `evenedit analyze --ratings` reads; choices: surveys 2
    and 3, one row per answer; quality: one row per person; participants: how many people gave which answer about
    themselves, without small cells. No table says of one person what they said about themselves. codebook: what was
    asked, and what each stored answer means.
    """
    frame, quality = people_frame(file, database)
    cases = frame[frame["kind"] == CASE]
    describe = _describer(file, store, {q.rater: "; ".join(q.excluded) for q in quality})
    ratings = _ratings(cases[cases["survey"] == 1], describe, file)
    choices = _choices(cases[cases["survey"] != 1], describe, file)
    tables = {"ratings": ratings, "choices": choices, "quality": _quality(quality)}
    if section := file.sections.survey:
        known = rater_profiles(section, database, counted_answers(frame, quality))
        tables |= {"participants": participants_frame(known)} if known else {}
    written = {f"{name}.csv": as_csv(table) for name, table in tables.items()}
    return written | codebook_files(codebook_of_people(file, frame))


def write(file: StudyFile, store: Store, database: SurveyStore, folder: Path) -> list[Path]:
    """Write every table to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, content in files(file, store, database).items():
        write_whole(folder / name, content)
        paths.append(folder / name)
    return paths


def _describer(file: StudyFile, store: Store, excluded: Mapping[str, str]) -> Describer:
    """Return a function that describes an output in the columns that an analysis reads."""
    requests, sources = store.requests(), store.sources()
    chances = {survey: store.cases(sample_name(file, survey)) for survey in (1, 2, 3)}

    def describe(row: Any, output: str) -> dict[str, Any]:
        request = requests[output]
        labels = sources[request.source_ids[0]].attributes if len(request.source_ids) == 1 else {}
        return {
            "experiment": request.experiment.value,
            "condition": str(request.condition),
            "editor": request.editor,
            "source_id": "+".join(request.source_ids),
            **{f.name: labels.get(f.name, "") for f in file.factors},
            "prompt_id": request.prompt_id,
            "seed": request.seed,
            "request_id": output,
            "rater": row.rater,
            "task": row.task,
            "place": row.place,
            "probability": chances[row.survey].get(row.baseline),
            "counted": bool(row.counted),
            "excluded": excluded.get(row.rater, ""),
        }

    return describe


def _edit_columns(factors: Sequence[Factor]) -> list[str]:
    return ["experiment", "condition", "editor", "source_id", *(f.name for f in factors), "prompt_id", "seed"]


def _rated(rubric: Rubric) -> list[str]:
    """Return the columns of answers about an output; a question that takes another's place has no column of its own."""
    specs = rubric.spec_by_column.items()
    return [c for c, s in specs if s.row.about == "pair" and not s.row.replaces and "people" in s.row.answered_by]


def _rating_columns(factors: Sequence[Factor], rated: Sequence[str]) -> list[str]:
    return [
        *(*_edit_columns(factors), "request_id", "rater"),
        *(*rated, "duration_ms", "shown_first", "task", "place", "probability", "counted", "excluded"),
    ]


def _choice_columns(factors: Sequence[Factor]) -> list[str]:
    return [
        *(*_edit_columns(factors), "request_id", "rater", "task", "place", "probability", "counted", "excluded"),
        *("question", "answer", "mitigated_id", "duration_ms"),
    ]


def _ratings(frame: pd.DataFrame, describe: Describer, file: StudyFile) -> pd.DataFrame:
    rows = []
    rubric, rated = file.rubric, _rated(file.rubric)
    for (_, _, output), part in frame.groupby(["rater", "item", "output"], sort=False):
        first = next(part.itertuples())
        values = {rubric.replaced.get(q, q): v for q, v in zip(part["question"], part["value"], strict=True)}
        single = first.mitigated == ""
        rows.append(
            describe(first, str(output))
            | {column: values.get(column, 0) for column in rated}
            | {"duration_ms": int(part["milliseconds"].max()), "shown_first": single or first.slot == "A"}
        )
    table = pd.DataFrame(rows, columns=_rating_columns(file.factors, rated))
    return table.assign(**{c: answer_column(table[c].to_numpy(np.int64), rubric.questions[c]) for c in rated})


def _choices(frame: pd.DataFrame, describe: Describer, file: StudyFile) -> pd.DataFrame:
    rows = []
    for row in frame.itertuples():
        answer: Any = row
        rows.append(
            describe(answer, answer.output or answer.baseline)
            | {"question": answer.question, "answer": _answer(answer.question, answer.value, file.rubric)}
            | {"mitigated_id": answer.mitigated, "duration_ms": answer.milliseconds}
        )
    return pd.DataFrame(rows, columns=_choice_columns(file.factors))


def _answer(question: str, value: int, rubric: Rubric) -> str | int:
    """Return the code of an answer; of a scale its position."""
    if question == APPROPRIATE.id:
        return (ConditionKind.BASELINE.value, "mitigated", "same")[value - 1]
    wanted = rubric.questions[question]
    if wanted.sided != "choice":
        return value
    return wanted.labels[value - 1].lower() if question in _IN_LOWER_CASE else wanted.labels[value - 1]


def _quality(raters: Sequence[Quality]) -> pd.DataFrame:
    rows = [asdict(q) | {"excluded": "; ".join(q.excluded)} for q in raters]
    return pd.DataFrame(rows, columns=[field.name for field in fields(Quality)])
