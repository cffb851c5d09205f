"""The front desk of a survey: who sits where, and every answer they gave.

    arrive -> guide -> check -> consent -> (choose) -> task -> done

All calls are thread-safe and return only after what they acknowledge is on disk. Nothing returned here names a group,
an editor, a condition or a check item: ids are opaque, so a page can show all of it to a participant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from evenedit.records import Question


class Stage(StrEnum):
    """Where a participant is."""

    GUIDE = "guide"
    CHECK = "check"
    CONSENT = "consent"
    CHOOSE = "choose"
    TASK = "task"
    DONE = "done"


class Ending(StrEnum):
    """How a visit ended; each has its own completion code or redirect."""

    COMPLETED = "completed"
    NO_CONSENT = "no_consent"
    NO_SEAT = "no_seat"
    SCREENED_OUT = "screened_out"
    FAILED_CHECKS = "failed_checks"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class Arrival:
    """Somebody at the door, as a platform introduces them."""

    platform: str
    """prolific, panel or invitation."""
    participant: str
    """The platform's id of the person; kept in the database only."""
    study: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True)
class Visit:
    """One participant's way through the survey."""

    token: str
    """Opaque and unguessable; the browser's cookie."""
    survey: int
    """1: five axes for each output; 2: which keeps the identity; 3: who got the role."""
    stage: Stage
    ending: Ending | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """One question to be answered about one item."""

    slot: str
    """A, B, or "" for a question about the item as a whole."""
    question: Question


@dataclass(frozen=True, slots=True)
class Item:
    """One page of the evaluation."""

    number: int
    """1-based place in the participant's task."""
    id: str
    """Opaque, this participant's own."""
    instruction: str
    """What the editor was asked to do; for an instructed check, what to answer."""
    pictures: Mapping[str, str]
    """Opaque picture ids by slot: source (or source_1, source_2), A, B."""
    asked: Sequence[Asked]
    answers: Mapping[tuple[str, str], int]
    """Given so far, by slot and question id."""


@dataclass(frozen=True, slots=True)
class TaskCard:
    """One task on the dashboard."""

    number: int
    items: int
    open: bool


@dataclass(frozen=True, slots=True)
class Completion:
    """What a participant takes home."""

    ending: Ending
    code: str
    redirect: str | None


class Desk:
    """The desk of one study's survey."""

    def arrive(self, arrival: Arrival) -> Visit:
        """Greet a participant; the same person comes back to the same visit, on any device."""
        raise NotImplementedError

    def visit(self, token: str) -> Visit | None:
        """The visit of a cookie; None for one we never gave out, or after withdrawal."""
        raise NotImplementedError

    def read_guide(self, token: str) -> Visit:
        """The guide was read; on to the comprehension check."""
        raise NotImplementedError

    def check(self, token: str, answers: Mapping[str, int]) -> Visit:
        """Mark the comprehension check; one more try is allowed, then the visit ends screened out."""
        raise NotImplementedError

    def consent(self, token: str, agreed: bool) -> Visit:
        """Record the decision with its time; without consent the visit ends."""
        raise NotImplementedError

    def tasks(self) -> list[TaskCard]:
        """The dashboard of the published design."""
        raise NotImplementedError

    def claim(self, token: str, task: int | None = None) -> Visit:
        """Take a seat, atomically: the next one, or one of the task picked; without a free seat the visit ends."""
        raise NotImplementedError

    def items(self, token: str) -> list[Item]:
        """All items of the participant's task, in their order, with answers so far."""
        raise NotImplementedError

    def picture(self, token: str, picture: str) -> bytes | None:
        """A picture of the participant's own task as JPEG without metadata; None for any other id."""
        raise NotImplementedError

    def save(
        self, token: str, item: str, slot: str, question: str, value: int, sequence: int, milliseconds: int = 0
    ) -> int:
        """Keep one answer; returns the highest sequence number stored for it.

        `sequence` counts the participant's answers in the order they were given: a late duplicate or an older
        answer never replaces a newer one.
        """
        raise NotImplementedError

    def submit(self, token: str) -> Visit:
        """Finish the task; raises Incomplete while answers are missing. Submitting again changes nothing."""
        raise NotImplementedError

    def completion(self, token: str) -> Completion | None:
        """Code or redirect of a visit that has ended."""
        raise NotImplementedError

    def withdraw(self, token: str) -> None:
        """Erase the answers and the platform's id, and give the seat back."""
        raise NotImplementedError


class Refused(Exception):
    """A call that this visit may not make now; the message can be shown."""


class Incomplete(Refused):
    """Answers are missing."""

    def __init__(self, items: Sequence[int]) -> None:
        super().__init__(f"answers are missing on {len(items)} items")
        self.items = tuple(items)
