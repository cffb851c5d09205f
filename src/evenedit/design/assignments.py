"""Which judge is asked about which edit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenedit.core.given import KIND
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
    """Every edit to every judge; with `pairwise`, each mitigated edit beside its baseline in both orders too.

    A simulated judge is not asked about what a given object made: it could not rate it. A judge that answers some
    questions alone is asked where one of them is.
    """
    made = [Assignment(r, rater) for r in requests for rater in raters if _can_rate(rater, r)]
    if pairwise:
        before = {r.case: r for r in requests if r.experiment is Experiment.DIAGNOSIS}
        pairs = [(r, before[r.case]) for r in requests if r.experiment is Experiment.MITIGATION]
        choosing = [rater for rater in raters if _answers(rater, (IDENTITY.id,))]
        able = [(r, b, rater) for r, b in pairs for rater in choosing if _can_rate(rater, r)]
        made += [Assignment(r, rater, b, first) for r, b, rater in able for first in (True, False)]
    return made


def _can_rate(rater: JudgeRater, request: Request) -> bool:
    given = request.settings.get("kind") == KIND and not is_simulated(request.editor)
    asked = STEREOTYPE_QUESTIONS if request.experiment is Experiment.STEREOTYPE else AXES
    return not (given and is_simulated(rater.id)) and _answers(rater, asked)


def _answers(rater: JudgeRater, asked: Sequence[str]) -> bool:
    """Whether the judge answers one of these questions; one that does not say answers all."""
    answers = getattr(rater.judge, "answers", None)
    return answers is None or not answers.isdisjoint(asked)
