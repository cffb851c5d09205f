"""Records that the survey service and its pages exchange, and the exceptions for calls it refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from evenedit.core.records import Question


class VisitStage(StrEnum):
    """The stage a participant has reached."""

    GUIDE = "guide"
    CHECK = "check"
    CONSENT = "consent"
    CHOOSE = "choose"
    TASK = "task"
    DONE = "done"


class VisitEnding(StrEnum):
    """How a visit ended; each has its own completion code or redirect."""

    COMPLETED = "completed"
    NO_CONSENT = "no_consent"
    NO_SLOT = "no_seat"
    SCREENED_OUT = "screened_out"
    FAILED_CHECKS = "failed_checks"
    WITHDRAWN = "withdrawn"

    @property
    def in_words(self) -> str:
        """The name of the ending on staff pages."""
        return "no free slot" if self is VisitEnding.NO_SLOT else self.value.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Arrival:
    """A participant as the platform's link identifies them."""

    platform: str
    """prolific, panel, invitation or preview."""
    participant: str
    """The platform's id of the person; kept in the database only."""
    study: str = ""
    session: str = ""
    survey: int = 0
    """Which survey the link names; 0: the study's first."""
    signed: bool = False
    """Whether the platform, or we, have signed the link: only then nobody else can have written the id into it."""


@dataclass(frozen=True, slots=True)
class Visit:
    """The state of one participant's visit."""

    token: str
    """Opaque and unguessable; the browser's cookie."""
    survey: int
    """1: about each output; 2: which keeps the identity; 3: who got the role."""
    stage: VisitStage
    ending: VisitEnding | None = None
    preview: bool = False
    """A preview never counts."""


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """One question to be answered about one item."""

    slot: str
    """The image it is about: A, B, or "" for a question about the item as a whole."""
    question: Question
    order: Sequence[int] = ()
    """The positions of the answers as they are shown; empty for their own order."""


@dataclass(frozen=True, slots=True)
class ParticipantItem:
    """One page of the evaluation."""

    number: int
    """1-based place in the participant's task."""
    id: str
    """Opaque, this participant's own."""
    instruction: str
    """What the editor was asked to do; for an instructed check, what to answer."""
    pictures: Mapping[str, str]
    """Opaque picture ids by their position on the page: source (or source_1, source_2), A, B."""
    questions: Sequence[AskedQuestion]
    answers: Mapping[tuple[str, str], int]
    """Given so far, by image (A, B or "") and column of answers: a question's id, or an option's of a set."""
    role: str = ""
    """Survey 3: the target role …"""
    coded: str = ""
    """… and the gender it is stereotypically coded with."""
    instructed: int | None = None
    """An instructed check, which says so to the participant: the answer it asks for on every question."""
    translations: Mapping[str, str] = field(default_factory=dict)
    """The request in other languages, by language."""


@dataclass(frozen=True, slots=True)
class TaskCard:
    """One task on the dashboard."""

    number: int
    items: int
    open: bool


@dataclass(frozen=True, slots=True)
class Completion:
    """The completion code or redirect that ends a visit."""

    ending: VisitEnding
    code: str
    """Empty for a preview."""
    redirect: str | None


class NotAllowedError(Exception):
    """A call that is not allowed at this stage; the message can be shown to the participant."""


class ResumeCodeRequiredError(NotAllowedError):
    """An id that nobody has signed belongs to a visit of another browser: its resume code is needed."""

    def __init__(self) -> None:
        super().__init__("a visit with this id was started in another browser; please enter its resume code")


class IncompleteTaskError(NotAllowedError):
    """Answers are missing."""

    def __init__(self, items: Sequence[int]) -> None:
        super().__init__(f"answers are missing on {len(items)} items")
        self.items = tuple(items)
