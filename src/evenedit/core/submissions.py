"""A paid submission to a service: what was sent for one edit, and how far it is."""

from __future__ import annotations

from enum import StrEnum
from typing import Any
from uuid import uuid4

from evenedit.core.errors import Failed


class SubmissionState(StrEnum):
    """How far a submission is. All but rejected ones count against the budget."""

    SENT = "sent"
    """It was about to be sent; no answer is known."""
    ACCEPTED = "accepted"
    """The service has answered: the result can be asked for."""
    ENDED = "ended"
    """The outcome of the edit is stored."""
    FAILED = "failed"
    """The service ended it without a result."""
    REJECTED = "rejected"
    """The service did not take it, so nothing was made."""
    LOST = "lost"
    """The answer never arrived, or the service does not know the job any more."""


OPEN = (SubmissionState.SENT, SubmissionState.ACCEPTED)
"""States of a submission whose result is still to come."""


class JobLostError(Failed):
    """The service does not know a job, or refuses to hand out its result: this edit fails, and no other."""


class PendingError(Failed):
    """A job that goes on at the service: it is not tried again in this run, and followed up by the next."""


class SubmittedJob:
    """The submission of one edit, in memory; a run keeps it in the study's database (`run/submissions.py`)."""

    is_old = False
    """Whether it is of no use to wait for it any longer."""

    def __init__(self) -> None:
        self.id = ""
        self.state: SubmissionState | None = None
        self.answer: Any = None
        """What the service answered to it, as far as its result can be asked for."""

    def begin(self, *, repeatable: bool) -> str:
        """Return the id of what is about to be sent.

        One whose answer never came is sent once more under its id if the service can tell (`repeatable`); if not, it is
        lost, and the next one is another submission.
        """
        if self.state is not SubmissionState.SENT or not repeatable:
            if self.state is SubmissionState.SENT:
                self.end(SubmissionState.LOST)
            self.id = uuid4().hex
            self._set(SubmissionState.SENT, None)
        return self.id

    def accept(self, answer: Any) -> None:
        """Keep what the service answered; call this before its result is asked for."""
        self._set(SubmissionState.ACCEPTED, answer)

    def end(self, state: SubmissionState) -> None:
        """Give it up: what is sent next is another submission."""
        self._set(state, None)

    def _set(self, state: SubmissionState, answer: Any) -> None:
        self.state, self.answer = state, answer
