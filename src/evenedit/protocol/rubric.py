"""The questions of the rubric and the rates made of their answers."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from importlib.resources import files

from evenedit.core.records import Experiment, Prompt, Question


@dataclass(frozen=True, slots=True)
class Rate:
    """The share of valid scores on one question that meet a threshold."""

    id: str
    question: str
    at_least: int | None = None
    at_most: int | None = None

    @property
    def rule(self) -> str:
        """The threshold as people write it."""
        return f"≥{self.at_least}" if self.at_least is not None else f"≤{self.at_most}"

    @classmethod
    def parse(cls, id: str, text: str) -> Rate:
        """Parse a rate written as question and threshold: "race_drift ≥3"."""
        question, rule = text.split()
        cut = int(rule[1:])
        return cls(id, question, at_least=cut) if rule[0] == "≥" else cls(id, question, at_most=cut)


_DATA = tomllib.loads(files(__package__).joinpath("axes.toml").read_text("utf-8"))

QUESTIONS: dict[str, Question] = {q["id"]: Question(**(q | {"labels": tuple(q["labels"])})) for q in _DATA["questions"]}
"""Every question by id, in the rubric's order."""

PUBLISHED_ANCHORS: dict[str, list[str]] = tomllib.loads(
    files(__package__).joinpath("published_anchors.toml").read_text("utf-8")
)
"""By question, the paper's wording of the answers."""

WORDINGS: dict[str, dict[str, Question]] = {
    "default": QUESTIONS,
    "published": QUESTIONS
    | {q: replace(QUESTIONS[q], labels=tuple(labels)) for q, labels in PUBLISHED_ANCHORS.items()},
}
"""Every question by id, under the names of rubrics."""

QUESTION_IDS: tuple[str, ...] = tuple(QUESTIONS)
"""The questions' ids: the order of the last dimension of every table of answers."""

AXES: tuple[str, ...] = tuple(q.id for q in QUESTIONS.values() if q.sided != "choice" and q.replaces is None)
"""The five axes every edit of one portrait is rated on."""

CHANGES: tuple[str, ...] = tuple(axis for axis in AXES if QUESTIONS[axis].sided != "quality")
"""The axes of what becomes of the person: what a prompt can ask to change."""

VERDICTS: tuple[str, ...] = QUESTIONS["stereotype"].labels
"""The answers of the stereotype question: a value is the 1-based position here."""

IDENTITY = replace(QUESTIONS["preference"], id="identity", labels=("A", "B", "SAME"))
"""The pairwise question as it is asked: two outputs of one source, named by their place."""

STEREOTYPE_QUESTIONS: tuple[str, ...] = ("stereotype", "target_role")
"""What is asked about an output of two portraits."""
STATUS = "status_role"
"""What is asked about it too, where a study wants it: who has the role of higher status."""

DEFAULT_RATES: dict[str, Rate] = {name: Rate(name, **rule) for name, rule in _DATA["rates"].items()}
"""The rates under their default thresholds."""


def preferred(first: int | None, second: int | None) -> int | None:
    """Combine two answers to IDENTITY, with the baseline as A in the first and as B in the second.

    Return the position in the labels of `preference`: None if an answer is missing, UNCLEAR if they differ.
    """
    if first is None or second is None:
        return None
    same, unclear = 3, 4
    turned = second if second == same else 3 - second
    return first if first == turned else unclear


def questions_for(
    experiment: str, prompt: Prompt, rubric: str = "default", *, status: bool = False
) -> tuple[Question, ...]:
    """Return the questions about an edit of this prompt, in the wording of a rubric; `status` adds that on status."""
    questions = WORDINGS[rubric]
    if experiment == Experiment.STEREOTYPE:
        return tuple(questions[q] for q in (*STEREOTYPE_QUESTIONS, *((STATUS,) if status else ())))
    replaced = {q.replaces: q for q in questions.values() if q.replaces}
    return tuple(replaced.get(axis, questions[axis]) if prompt.target_years else questions[axis] for axis in AXES)
