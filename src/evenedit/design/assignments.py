"""Who answers questions about edits, and before which edit each sits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evenedit.core.interfaces import Case, Judge
from evenedit.core.records import Kind, Request


def _as_it_is(case: Case) -> Case:
    return case


@dataclass(frozen=True, slots=True)
class Rater:
    """Somebody who answers questions about edits."""

    id: str
    revision: str
    kind: Kind
    judge: Judge
    sees_labels: bool = False
    shown: Callable[[Case], Case] = _as_it_is
    """How the case is shown to it: as the study has it, or otherwise to check the judge."""


@dataclass(frozen=True, slots=True)
class Seat:
    """A rater's place before one edit, or before a mitigated edit and its baseline."""

    request: Request
    rater: Rater
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
