"""Which judge is asked about which edit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenedit.core.records import Experiment, Request
from evenedit.judges.raters import JudgeRater


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
    """Every edit to every judge; with `pairwise`, each mitigated edit beside its baseline in both orders too."""
    made = [Assignment(r, rater) for r in requests for rater in raters]
    if pairwise:
        before = {r.case: r for r in requests if r.experiment is Experiment.DIAGNOSIS}
        pairs = [(r, before[r.case]) for r in requests if r.experiment is Experiment.MITIGATION]
        made += [Assignment(r, rater, b, first) for r, b in pairs for rater in raters for first in (True, False)]
    return made
