"""What was stated before the first edit, and how the study kept to it: `results.json["preregistration"]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Standing = Literal["", "confirmatory", "exploratory"]
"""Empty where the study was not sealed."""


@dataclass(frozen=True, slots=True)
class PlanChange:
    """Something that is not as it was sealed."""

    what: str
    """The key of the plan, such as thresholds.race_change.at_least."""
    before: str
    """As it was sealed."""
    after: str
    """As it is now."""


@dataclass(frozen=True, slots=True)
class HypothesisOutcome:
    """What came of one hypothesis for one editor."""

    rule: str
    """The hypothesis, as a gate takes it."""
    why: str
    """Why it was expected, in the study's words."""
    editor: str
    """The editor; empty where there is no such estimate."""
    answer: str
    """pass, fail or undecided, as a gate answers; empty where there is no such estimate."""
    evidence: str
    """The estimate with its interval, or the reason why there is none."""
    standing: Standing
    """confirmatory where it was sealed and nothing was changed since, else exploratory."""


@dataclass(frozen=True, slots=True)
class Preregistration:
    """The seal of a study, and what was changed after it."""

    sealed: str
    """When."""
    seal: str
    """The digest of what was sealed, to be compared with one that was published then."""
    changes: tuple[PlanChange, ...] = ()
    """What is not as it was sealed, with before and after."""
    hypotheses: tuple[HypothesisOutcome, ...] = ()
    """What came of each sealed hypothesis, editor by editor."""
