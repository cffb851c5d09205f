"""The submissions of a run to a service: each is in the database before it is sent, and counts against the budget."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any

from evenedit.core.errors import Failed, Failure
from evenedit.core.records import Edit
from evenedit.core.submissions import SubmissionState, SubmittedJob
from evenedit.providers.budget import Budget, Reservation
from evenedit.run.worker import EditTask
from evenedit.storage.store import Store, StoredSubmission

LIFE = timedelta(hours=24)
"""A job that is not done after this time is given up."""
LONGEST_ANSWER = 20_000
"""Characters of an answer that is stored: a job, or the address of a picture, but no picture."""
JOB_IDS = ("id", "request_id", "prompt_id")
"""What services call the id of a job."""


class SubmissionLedger:
    """The submissions of one editor. Threads share it; the writes of one process wait for each other."""

    def __init__(self, store: Store, budget: Budget, price: float, provider: str, run_id: int) -> None:
        self.store, self.budget, self.price, self.provider, self.run_id = store, budget, price, provider, run_id
        self.lock = Lock()
        self._under_way: dict[str, LedgerSubmission] = {}

    def begin(self, task: EditTask) -> bool:
        """Reserve one submission, unless a known job is only to be followed up; return whether the edit may begin."""
        submission = LedgerSubmission(self, task.request.id)
        self._under_way[task.request.id] = submission
        return submission.state is SubmissionState.ACCEPTED or submission.reserve()

    def of(self, request_id: str) -> SubmittedJob:
        """Return the submission of an edit that has begun."""
        return self._under_way[request_id]

    def settle(self, edit: Edit) -> None:
        """Charge what was submitted for an edit that has ended."""
        if submission := self._under_way.pop(edit.request_id, None):
            submission.settle()

    def __enter__(self) -> SubmissionLedger:
        """Return the ledger."""
        return self

    def __exit__(self, *_: object) -> None:
        """Charge what was submitted for edits that did not end, because their editor was stopped."""
        while self._under_way:
            self._under_way.popitem()[1].settle()


class LedgerSubmission(SubmittedJob):
    """The submission of one edit, with its row in the database."""

    def __init__(self, ledger: SubmissionLedger, request_id: str) -> None:
        super().__init__()
        self._ledger, self._request = ledger, request_id
        self._created = datetime.now(UTC)
        self._spare: Reservation | None = None
        """A place in the budget for the next submission."""
        self._charged: list[Reservation] = []
        self._job: str | None = None
        self._is_over = False
        stored = ledger.store.open_submission(request_id)
        if stored is not None:
            self.id, self.state, self.answer = stored.id, stored.state, stored.answer
            self._job, self._created = stored.job, stored.created

    @property
    def is_old(self) -> bool:  # type: ignore[override]
        """Whether it is of no use to wait for it any longer."""
        return datetime.now(UTC) - self._created > LIFE

    def reserve(self) -> bool:
        """Reserve the place of the next submission; return False if the budget is spent."""
        self._spare = self._spare or self._ledger.budget.reserve(self._ledger.price)
        return self._spare is not None

    def settle(self) -> None:
        """Charge every submission that was made, and give back a place that was not used."""
        self._is_over = True
        for reservation in self._charged:
            self._ledger.budget.settle(reservation, self._ledger.price)
        if self._spare is not None:
            self._ledger.budget.settle(self._spare, 0.0)
            self._ledger.budget.take_back(1)

    def _set(self, state: SubmissionState, answer: Any) -> None:
        if state is SubmissionState.SENT:
            self._take_place()
        super()._set(state, answer)
        if state is SubmissionState.REJECTED and self._charged:
            self._spare = self._charged.pop()
        ledger, retained = self._ledger, None
        if state is SubmissionState.ACCEPTED:
            if isinstance(answer, bytes) or len(json.dumps(answer)) > LONGEST_ANSWER:
                return  # a picture: it cannot be asked for again
            retained, self._job = answer, next((str(answer[key]) for key in JOB_IDS if key in answer), None)
        with ledger.lock:
            ledger.store.save_submission(
                StoredSubmission(
                    self.id, self._request, ledger.provider, ledger.price, state, self._created, retained, self._job
                ),
                ledger.run_id,
            )

    def _take_place(self) -> None:
        if self._is_over:
            raise Failed(Failure.REJECTED, "nothing was sent: the edit has run out of time")
        if not self.reserve():
            raise Failed(Failure.REJECTED, "nothing was sent: the budget is spent")
        assert self._spare is not None
        self._charged.append(self._spare)
        self._spare, self._created = None, datetime.now(UTC)
