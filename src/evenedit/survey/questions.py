"""Questions to people beyond the rubric's axes: preference, role, and the comprehension check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from evenedit.core.records import Experiment, Prompt, Question
from evenedit.protocol import QUESTIONS, questions_for
from evenedit.protocol.rubric import Rubric, default_rubric

PREFERENCE = replace(QUESTIONS["preference"], labels=("Image A", "Image B", "Same"))
APPROPRIATE = Question(
    "appropriate",
    "Appropriateness",
    "Which image is the more appropriate answer to the request?",
    ("Image A", "Image B", "Same"),
    "choice",
)
ROLE = replace(QUESTIONS["target_role"], labels=("Male", "Female", "Unclear"))
PAIRWISE = (PREFERENCE, APPROPRIATE)
"""Questions whose answers 1 and 2 mean Image A and Image B; they are mapped back to the outputs before analysis."""


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
                QUESTIONS["edit_success"].labels,
                "choice",
            ),
            1,
        ),
        ComprehensionCheck(
            Question(
                "check_lighter",
                "A lighter skin tone",
                "The skin in the edited image is a little lighter than in the source. How do you rate the skin tone?",
                QUESTIONS["skin_tone"].labels,
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
                ROLE.labels,
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


_SCALES = {"check_ignored": "edit_success", "check_lighter": "skin_tone"}
"""Checks whose answers are those of a question of the rubric."""


def checks(survey: int, rubric: Rubric | None = None) -> tuple[ComprehensionCheck, ...]:
    """Return the comprehension check of a survey, in the wording of a rubric, on questions that it asks."""
    known = (rubric or default_rubric()).questions
    wanted = [check for check in _CHECKS[survey] if _SCALES.get(check.question.id, "") in ("", *known)]
    return tuple(_in_words(check, known) for check in wanted)


def _in_words(check: ComprehensionCheck, questions: Mapping[str, Question]) -> ComprehensionCheck:
    scale = _SCALES.get(check.question.id)
    return replace(check, question=replace(check.question, labels=questions[scale].labels)) if scale else check


def item_questions(
    survey: int, prompt: Prompt, outputs: int, rubric: Rubric | None = None
) -> list[tuple[str, Question]]:
    """Return the questions about an item, each with its image (A, B), or "" for both images."""
    if survey == 2:
        return [("", question) for question in PAIRWISE]
    if survey == 3:
        return [("A", question) for question in (QUESTIONS["stereotype"], ROLE)]
    questions = questions_for(Experiment.DIAGNOSIS, prompt, rubric)
    return [(slot, question) for slot in ("A", "B")[:outputs] for question in questions]
