"""What each survey asks: the questions of the study's rubric as people see them, and the comprehension check."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from evenedit.core.hashing import digest
from evenedit.core.records import Experiment, Prompt, Question
from evenedit.protocol import questions_for
from evenedit.protocol.questions import CANNOT_TELL, YES_PARTIAL_NO, About, QuestionSpec
from evenedit.protocol.rubric import ROLES, Rubric, default_rubric

ABOUT: Mapping[int, About] = {1: "pair", 2: "outputs", 3: "people"}
"""What the questions of each survey are about."""
SHUFFLED = 3
"""More options than this are shown in an order of their own to each participant."""
_OUTPUTS = ("BASELINE", "MITIGATED")
"""The first two options of a question that compares the outputs; people know them as Image A and Image B."""
_IMAGES = ("Image A", "Image B")


def as_people_are_asked(spec: QuestionSpec) -> Question:
    """Return a question in people's form: outputs are named by their place, and what only judges answer is left out."""
    wanted = spec.question
    if wanted.labels[:2] != _OUTPUTS:
        return wanted
    judged = {option.code for option in spec.row.options if option.open}
    rest = [word for code, word in zip(wanted.labels, shown_words(wanted), strict=True) if code not in judged]
    return replace(wanted, labels=(*_IMAGES, *rest[2:]), words=())


def shown_words(question: Question) -> list[str]:
    """Return what people read for each answer; a code without words of its own in lower case."""
    words = question.words or ("",) * len(question.labels)
    choice = question.sided in ("choice", "set")
    return [
        word or (label.replace("_", " ").capitalize() if choice and label.isupper() else label)
        for word, label in zip(words, question.labels, strict=True)
    ]


PREFERENCE = as_people_are_asked(default_rubric().spec_by_column[ROLES.preference])
APPROPRIATE = Question(
    "appropriate",
    "Appropriateness",
    "Which image is the more appropriate answer to the request?",
    (*_IMAGES, "Same"),
    "choice",
)
"""A question of survey 2 that belongs to no rubric."""
ROLE = default_rubric().questions[ROLES.target_role]


def survey_questions(survey: int, rubric: Rubric | None = None) -> tuple[Question, ...]:
    """Return every question that a survey can ask."""
    wanted = tuple(
        as_people_are_asked(spec)
        for spec in (rubric or default_rubric()).specs
        if spec.row.about == ABOUT[survey]
        and "people" in spec.row.answered_by
        and not (spec.row.optional and spec.id == ROLES.status)
    )
    return (*wanted, APPROPRIATE) if survey == 2 else wanted


def item_questions(
    survey: int,
    prompt: Prompt,
    experiments: Sequence[Experiment],
    rubric: Rubric | None = None,
    labels: Mapping[str, str] | None = None,
) -> list[tuple[str, Question]]:
    """Return the questions about an item, each with its image (A, B), or "" for both images.

    `experiments` are those of the images, `labels` those of the portrait; None for two portraits.
    """
    rubric = rubric or default_rubric()
    known = survey_questions(survey, rubric)
    if survey == 2:
        specs = rubric.spec_by_column
        return [
            ("", question)
            for question in known
            if question.id not in specs or specs[question.id].applies(Experiment.MITIGATION, prompt.id, labels)
        ]
    wanted = []
    for slot, experiment in zip("AB", experiments, strict=False):
        applicable = {q.id for q in questions_for(experiment, prompt, rubric, labels=labels, by="people", call=None)}
        wanted += [(slot, question) for question in known if question.id in applicable]
    return wanted


def compares_outputs(rubric: Rubric) -> set[str]:
    """Return the questions whose answers 1 and 2 mean Image A and Image B; analysis maps them back to the outputs."""
    return {question.id for question in survey_questions(2, rubric) if question.labels[:2] == _IMAGES}


def columns_of(question: Question, rubric: Rubric) -> Mapping[str, Question]:
    """Return the columns in which the answers to a question are stored: of a set one for each option."""
    if question.sided != "set":
        return {question.id: question}
    return rubric.spec_by_column[f"{question.id}.{question.labels[0]}"].columns


def display_order(question: Question, *seed: int) -> tuple[int, ...]:
    """Return the positions of the answers in the order they are shown to a participant."""
    if question.labels == YES_PARTIAL_NO:
        return (3, 2, 1)
    last = [len(question.labels)] if question.labels[-1] == CANNOT_TELL else []
    first = list(range(1, len(question.labels) + 1 - len(last)))
    if question.sided == "choice" and len(first) > SHUFFLED:
        np.random.default_rng([*seed, int(digest(question.id), 16)]).shuffle(first)
    return (*first, *last)


def instructed_answers(survey: int, rubric: Rubric) -> tuple[int, int]:
    """Return the answers that instructed checks ask for: such as every question of the survey has."""
    usual = (2, 4) if survey == 1 else (2, 3)
    numbers = [len(q.labels) - (q.labels[-1] == CANNOT_TELL) for q in survey_questions(survey, rubric)]
    return usual if min(numbers, default=0) >= max(usual) else (1, 2)


def heeded(column: str, value: int, rubric: Rubric) -> int:
    """Return what is stored in a column where an instructed check is heeded that asks for an answer."""
    spec = rubric.spec_by_column.get(column)
    if spec is None or spec.question.sided != "set":
        return value
    return 1 if list(spec.columns).index(column) + 1 == value else 2


@dataclass(frozen=True, slots=True)
class ComprehensionCheck:
    """One question of the comprehension check."""

    question: Question
    right: int
    """The answer that shows that the guide was understood."""


def same_scale(question: str, rubric: Rubric) -> bool:
    """Return whether a rubric asks a question of the shipped default with the same number of answers."""
    usual = default_rubric().questions[question]
    known = rubric.questions.get(question)
    return known is not None and (known.sided, len(known.labels)) == (usual.sided, len(usual.labels))


@cache
def _built_in_checks() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads(files(__package__).joinpath("checks.toml").read_text("utf-8"))["checks"]
    return rows


def checks(survey: int, rubric: Rubric | None = None) -> tuple[ComprehensionCheck, ...]:
    """Return the comprehension check of a survey, on questions that it asks, in the wording of its rubric."""
    rubric = rubric or default_rubric()
    asked_checks = []
    for row in _built_in_checks():
        scale = row.get("scale", "")
        if survey in row["surveys"] and (not scale or same_scale(scale, rubric)):
            labels = tuple(row.get("labels") or rubric.questions[scale].labels)
            question = Question(row["id"], row["title"], row["text"], labels, "choice")
            asked_checks.append(ComprehensionCheck(question, row["right"]))
    wanted = {question.id: question for question in survey_questions(survey, rubric)}
    for spec in rubric.specs:
        if spec.row.check and spec.id in wanted:
            labels = tuple(shown_words(wanted[spec.id]))
            question = Question(f"check_{spec.id}", spec.question.title, spec.row.check.text, labels, "choice")
            asked_checks.append(ComprehensionCheck(question, spec.row.check.right))
    return tuple(asked_checks)
