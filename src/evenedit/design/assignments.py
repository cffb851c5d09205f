"""Assign edits to judges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenedit.core.python_objects import KIND
from evenedit.core.records import Experiment, Request, is_simulated
from evenedit.judges.raters import JudgeRater
from evenedit.protocol.rubric import AXES, IDENTITY, STEREOTYPE_QUESTIONS


@dataclass(frozen=True, slots=True)
class Assignment:
    """One edit for one judge to rate, or a mitigated edit to compare with its baseline."""

    request: Request
    rater: JudgeRater
    baseline: Request | None = None
    """The pairwise question: the same edit without mitigation."""
    baseline_first: bool = True

    @property
    def revision(self) -> str:
        """The rater's revision; each order of a pair has its own."""
        return self.rater.revision + ("" if self.baseline is None else "-ab" if self.baseline_first else "-ba")

    @property
    def key(self) -> tuple[str, str, str]:
        """Rater, revision and request."""
        return self.rater.id, self.revision, self.request.id


def assignments(requests: Sequence[Request], raters: Sequence[JudgeRater], *, pairwise: bool) -> list[Assignment]:
    """Assign the edits to the judges; with `pairwise`, also each mitigated edit with its baseline in both orders.

    A simulated judge gets no edit of a Python object, because it cannot rate it. A judge that answers only some
    questions gets the edits that have one of them.
    """
    result = [Assignment(r, rater) for r in requests for rater in raters if _can_rate(rater, r)]
    if pairwise:
        before = {r.case: r for r in requests if r.experiment is Experiment.DIAGNOSIS}
        pairs = [(r, before[r.case]) for r in requests if r.experiment is Experiment.MITIGATION]
        choosing = [rater for rater in raters if _answers(rater, (IDENTITY.id,))]
        able = [(r, b, rater) for r, b in pairs for rater in choosing if _can_rate(rater, r)]
        result += [Assignment(r, rater, b, first) for r, b, rater in able for first in (True, False)]
    return result


def _can_rate(rater: JudgeRater, request: Request) -> bool:
    from_python = request.settings.get("kind") == KIND and not is_simulated(request.editor)
    questions = STEREOTYPE_QUESTIONS if request.experiment is Experiment.STEREOTYPE else AXES
    return not (from_python and is_simulated(rater.id)) and _answers(rater, questions)


def _answers(rater: JudgeRater, questions: Sequence[str]) -> bool:
    """Return whether the judge answers one of the questions; a judge without `answers` answers all."""
    answers = getattr(rater.judge, "answers", None)
    return answers is None or not answers.isdisjoint(questions)
