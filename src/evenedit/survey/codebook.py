"""The codebook of a survey's tables: what was asked, in every language, and what each stored answer means."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd

from evenedit.config.study_file import StudyFile, SurveySection
from evenedit.survey.languages import FIRST, Languages, wording_digest
from evenedit.survey.questions import ABOUT, columns_of, survey_questions


def codebook(file: StudyFile, answers: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the questions to people in the order of the rubric, with the number of people who answered each."""
    section = file.sections.survey or SurveySection()
    languages = Languages(file.folder, list(dict.fromkeys([FIRST, *section.languages])), file.rubric)
    people = answers.groupby("asked")["rater"].nunique()
    book = []
    for survey in ABOUT:
        for question in survey_questions(survey, file.rubric):
            columns = list(columns_of(question, file.rubric))
            spec = file.rubric.spec_by_column.get(columns[0])
            words = {code: languages.wording(question, code) for code in languages.codes}
            codes = spec.asked.labels if spec and spec.row.kind != "ordinal" else [""] * len(question.labels)
            rates = {
                rate.id: f"{rate.question} {rate.rule}" for rate in file.rates.values() if rate.question in columns
            }
            book.append(
                {
                    "question": question.id,
                    "survey": survey,
                    "kind": spec.row.kind if spec else "categorical",
                    "title": {code: w["title"] for code, w in words.items()},
                    "text": {code: w["text"] for code, w in words.items()},
                    "columns": columns,
                    "answers": [
                        {
                            "position": at + 1,
                            "code": codes[at],
                            "label": {code: w["labels"][at] for code, w in words.items()},
                        }
                        for at in range(len(question.labels))
                    ],
                    "rates": rates,
                    "asked_of": list(spec.row.answered_by) if spec else ["people"],
                    "people": int(people.get(question.id, 0)),
                    "digest": wording_digest(question),
                }
            )
    return book


def as_table(book: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return the codebook as a table with a row for each answer."""
    rows = []
    for question in book:
        rates = "; ".join(f"{name}: {rule}" for name, rule in question["rates"].items())
        is_set = question["kind"] == "set"
        for answer in question["answers"]:
            at = answer["position"] - 1
            rows.append(
                {"column": question["columns"][at if is_set else 0]}
                | {key: question[key] for key in ("question", "survey", "kind")}
                | {"position": 1 if is_set else answer["position"], "code": answer["code"]}
                | {f"{key}.{code}": text for key in ("title", "text") for code, text in question[key].items()}
                | {f"label.{code}": text for code, text in answer["label"].items()}
                | {"rates": rates, "asked_of": " ".join(question["asked_of"])}
                | {key: question[key] for key in ("people", "digest")}
            )
    return pd.DataFrame(rows)


def as_json(book: Sequence[dict[str, Any]]) -> bytes:
    """Return the codebook as JSON."""
    return (json.dumps(book, ensure_ascii=False, indent=2) + "\n").encode()
