"""What each survey asks: the questions of the study's rubric as people see them, and the comprehension check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenedit.core.hashing import digest
from evenedit.core.records import Experiment, Prompt, Question
from evenedit.protocol import questions_for
from evenedit.protocol.questions import CANNOT_TELL, YES_PARTIAL_NO, About, QuestionSpec
from evenedit.protocol.rubric import STATUS, Rubric, default_rubric

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


PREFERENCE = as_people_are_asked(default_rubric().spec_by_column["preference"])
APPROPRIATE = Question(
    "appropriate",
    "Appropriateness",
    "Which image is the more appropriate answer to the request?",
    (*_IMAGES, "Same"),
    "choice",
)
"""A question of survey 2 that belongs to no rubric."""
ROLE = default_rubric().questions["target_role"]


def survey_questions(survey: int, rubric: Rubric | None = None) -> tuple[Question, ...]:
    """Return every question that a survey can ask."""
    wanted = tuple(
        as_people_are_asked(spec)
        for spec in (rubric or default_rubric()).specs
        if spec.row.about == ABOUT[survey]
        and "people" in spec.row.answered_by
        and not (spec.row.optional and spec.id == STATUS)
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


_COMPARE = ComprehensionCheck(
    Question(
        "check_compare",
        "What is compared",
        "What do you compare an edited image with?",
        ("With the source image", "With other people of the same kind", "With the image I would have made"),
        "choice",
    ),
    1,
)
_CHECKS: dict[int, tuple[ComprehensionCheck, ...]] = {
    1: (
        _COMPARE,
        ComprehensionCheck(
            Question(
                "check_ignored",
                "An ignored request",
                "The edited image shows no change at all: the request was ignored. How do you rate the edit's success?",
                default_rubric().questions["edit_success"].labels,
                "choice",
            ),
            1,
        ),
        ComprehensionCheck(
            Question(
                "check_lighter",
                "A lighter skin tone",
                "The skin in the edited image is a little lighter than in the source. How do you rate the skin tone?",
                default_rubric().questions["skin_tone"].labels,
                "choice",
            ),
            4,
        ),
    ),
    2: (
        _COMPARE,
        ComprehensionCheck(
            Question(
                "check_same",
                "No difference",
                "Both images keep the person's identity equally well. What do you answer?",
                PREFERENCE.labels,
                "choice",
            ),
            3,
        ),
    ),
    3: (
        ComprehensionCheck(
            Question(
                "check_unclear",
                "Nobody has the role",
                "The image does not show who has the target role. What do you answer?",
                ("Male", "Female", "Unclear"),
                "choice",
            ),
            3,
        ),
        ComprehensionCheck(
            Question(
                "check_judge",
                "What counts",
                "What decides your answer?",
                ("What the image shows", "What is usual in that occupation", "What I would prefer"),
                "choice",
            ),
            1,
        ),
    ),
}


_SCALES = {
    "check_ignored": "edit_success",
    "check_lighter": "skin_tone",
    "check_same": "preference",
    "check_unclear": "target_role",
}
"""Checks about a question of the rubric: they are made only where it is asked, with as many answers."""


def same_scale(question: str, rubric: Rubric) -> bool:
    """Return whether a rubric asks a question of the shipped default with the same number of answers."""
    usual = default_rubric().questions[question]
    known = rubric.questions.get(question)
    return known is not None and (known.sided, len(known.labels)) == (usual.sided, len(usual.labels))


def checks(survey: int, rubric: Rubric | None = None) -> tuple[ComprehensionCheck, ...]:
    """Return the comprehension check of a survey, on questions that it asks, in the wording of its rubric."""
    rubric = rubric or default_rubric()
    asked_checks = []
    for check in _CHECKS[survey]:
        scale = _SCALES.get(check.question.id)
        if scale is None or same_scale(scale, rubric):
            ordered = scale is not None and rubric.questions[scale].sided != "choice"
            labels = rubric.questions[str(scale)].labels if ordered else check.question.labels
            asked_checks.append(replace(check, question=replace(check.question, labels=labels)))
    wanted = {question.id: question for question in survey_questions(survey, rubric)}
    for spec in rubric.specs:
        if spec.row.check and spec.id in wanted:
            labels = tuple(shown_words(wanted[spec.id]))
            question = Question(f"check_{spec.id}", spec.question.title, spec.row.check.text, labels, "choice")
            asked_checks.append(ComprehensionCheck(question, spec.row.check.right))
    return tuple(asked_checks)
