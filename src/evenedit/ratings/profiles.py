"""Who the raters are, as far as it may be shown: counts without small cells, and groups of five people or more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ParticipantCounts:
    """How the participants of one survey answered one question about themselves."""

    survey: int
    """1, 2 or 3."""
    question: str
    """What was asked: age, sex, or the id of a question of the study's own."""
    title: str
    """How tables print it."""
    people: int
    """Participants whose ratings count."""
    counts: Mapping[str, int]
    """People by answer, five or more each; "Missing" where nothing is known of them."""
    rest: int
    """People with other answers, of which none may be shown by itself."""
    mean: float | None = None
    """Of ages, where ten people or more told theirs."""
    deviation: float | None = None
    """Standard deviation of the ages."""


@dataclass(frozen=True, slots=True)
class RaterQuestion:
    """A question by which raters are put into groups."""

    id: str
    title: str
    groups: Mapping[str, int]
    """Raters by group: those that may be shown."""
    raters: Mapping[str, str]
    """The group of each rater in one of them; it never leaves the computer's memory."""
    population: Mapping[str, float] = field(default_factory=dict)
    """The share of each group to which rates are weighted; empty: each group weighs the same."""


@dataclass(frozen=True, slots=True)
class RaterProfiles:
    """What is known of the people who rated."""

    counts: tuple[ParticipantCounts, ...]
    questions: tuple[RaterQuestion, ...] = ()
    """Of survey 1, whose ratings are compared by group of rater."""
    version: str = ""
    """Changes with the groups of the raters; made with the survey's key, so that nobody can work them out from it."""
