"""The codebook of exported tables: what was asked, in every language, and what each stored answer means."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evenedit.config.study_file import StudyFile, SurveySection
from evenedit.core.records import Kind, Question
from evenedit.core.spreadsheet import as_csv
from evenedit.ratings.table import MISSING, RatingTable
from evenedit.survey.languages import FIRST, Languages, wording_digest
from evenedit.survey.questions import ABOUT, columns_of, shown_words, survey_questions


def codebook_of_people(file: StudyFile, answers: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the codebook of the survey's tables: the questions as people are asked."""
    people = answers.groupby("asked")["rater"].nunique()
    wanted = [question for survey in ABOUT for question in survey_questions(survey, file.rubric)]
    return [_entry(file, question, {Kind.HUMAN: int(people.get(question.id, 0))}) for question in wanted]


def codebook_of_table(file: StudyFile, table: RatingTable) -> list[dict[str, Any]]:
    """Return the codebook of a study's tables of ratings: every question of its rubric."""
    book = []
    for spec in file.rubric.specs:
        columns = [table.at(column) for column in spec.columns]
        answered = np.asarray((table.values[:, :, columns] > MISSING).any(axis=(1, 2)))
        counts = Counter(kind for kind, any_answer in zip(table.kinds, answered, strict=True) if any_answer)
        book.append(_entry(file, spec.question, counts))
    return book


def _entry(file: StudyFile, question: Question, answered: Mapping[Kind, int]) -> dict[str, Any]:
    """Return what a codebook says of a question; `answered` counts the raters of each kind who answered it."""
    section = file.sections.survey or SurveySection()
    languages = Languages(file.folder, list(dict.fromkeys([FIRST, *section.languages])), file.rubric)
    columns = list(columns_of(question, file.rubric))
    spec = file.rubric.spec_by_column.get(columns[0])
    words = {code: languages.wording(question, code) for code in languages.codes}
    by_language = {
        code: w["labels"] if len(w["labels"]) == len(question.labels) else shown_words(question)
        for code, w in words.items()
    }
    codes = spec.question.labels if spec and spec.row.kind != "ordinal" else [""] * len(question.labels)
    return {
        "question": question.id,
        "kind": spec.row.kind if spec else "categorical",
        "about": spec.row.about if spec else "outputs",
        "title": {code: w["title"] for code, w in words.items()},
        "text": {code: w["text"] for code, w in words.items()},
        "columns": columns,
        "answers": [
            {"position": at + 1, "code": codes[at], "label": {code: labels[at] for code, labels in by_language.items()}}
            for at in range(len(question.labels))
        ],
        "rates": {r.id: f"{r.question} {r.rule}" for r in file.rates.values() if r.question in columns},
        "asked_of": list(spec.row.answered_by) if spec else ["people"],
        "answered_by": {kind.value: count for kind, count in answered.items() if count},
        "digest": wording_digest(question),
    }


def codebook_files(book: Sequence[dict[str, Any]]) -> dict[str, bytes]:
    """Return a codebook as a table with a row for each answer, and as JSON."""
    text = json.dumps(book, ensure_ascii=False, indent=2) + "\n"
    return {"codebook.csv": as_csv(_as_table(book)), "codebook.json": text.encode()}


def _as_table(book: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return the codebook as a table with a row for each answer."""
    rows = []
    for question in book:
        rates = "; ".join(f"{name}: {rule}" for name, rule in question["rates"].items())
        answered = "; ".join(f"{count} {kind}" for kind, count in question["answered_by"].items())
        is_set = question["kind"] == "set"
        for answer in question["answers"]:
            at = answer["position"] - 1
            rows.append(
                {"column": question["columns"][at if is_set else 0]}
                | {key: question[key] for key in ("question", "kind", "about")}
                | {"position": 1 if is_set else answer["position"], "code": answer["code"]}
                | {f"{key}.{code}": text for key in ("title", "text") for code, text in question[key].items()}
                | {f"label.{code}": text for code, text in answer["label"].items()}
                | {"rates": rates, "asked_of": " ".join(question["asked_of"])}
                | {"answered_by": answered, "digest": question["digest"]}
            )
    return pd.DataFrame(rows)
