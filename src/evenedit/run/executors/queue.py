"""The open edits of one editor, handed out to idle workers one by one or in batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock
from zlib import crc32

from evenedit.core.errors import EvenEditError, LoadError
from evenedit.core.records import Edit, Outcome
from evenedit.run.claims import Claim
from evenedit.run.streak import FailureStreak
from evenedit.run.worker import EditTask


class EditQueue:
    """Tasks in lots, one for each worker: edits of one portrait are in one lot, so a worker meets it again.

    After a failure the next task has another portrait and another prompt where there is one, so that a broken editor is
    told from a difficult case. Nothing is handed out once the editor is stopped or the budget is spent.
    """

    def __init__(
        self,
        tasks: Iterable[EditTask],
        streak: FailureStreak | None = None,
        begin: Callable[[EditTask], bool] = lambda _task: True,
        claim: Callable[[EditTask, Iterable[EditTask]], Claim] = lambda _task, _following: Claim.THIS_RUN,
        settle: Callable[[Edit], None] = lambda _edit: None,
        batch: int = 1,
    ) -> None:
        self.batch = batch
        """Edits that are made in one call at most."""
        self._single: set[str] = set()
        """Edits that are made one by one, since a batch with them failed."""
        self.streak = streak or FailureStreak("editor", 0)
        self._lots = [deque(tasks)]
        self._begin = begin
        """Whether an edit may begin; asked right before."""
        self._claim = claim
        """Whose an edit is; asked before it begins, with the edits that follow."""
        self._settle = settle
        """Told how an edit that began has ended."""
        self._started: set[str] = set()
        self._lock = Lock()

    def __len__(self) -> int:
        return 0 if self.streak.stop else sum(map(len, self._lots))

    def __iter__(self) -> Iterator[Sequence[EditTask]]:
        while batch := self.take_batch():
            yield batch

    def split(self, size: int) -> None:
        """Distribute the tasks over so many lots."""
        tasks = [task for lot in self._lots for task in lot]
        self._lots = [deque() for _ in range(size)]
        for task in tasks:
            self._lots[crc32("".join(task.images[:1]).encode()) % size].append(task)

    def take(self, worker: int = 0) -> EditTask | None:
        """Return the next task for a worker: from its lot, or from the longest lot if that is empty."""
        with self._lock:
            return self._next(worker)

    def take_batch(self, worker: int = 0) -> Sequence[EditTask]:
        """Return the next tasks for one call; empty if there is nothing left to do."""
        taken: list[EditTask] = []
        with self._lock:
            while len(taken) < self.batch and (task := self._next(worker)) is not None:
                if task.request.id not in self._single:
                    taken.append(task)
                elif taken:
                    self._put_back(task)
                    break
                else:
                    return [task]
        return taken

    def _next(self, worker: int) -> EditTask | None:
        while len(self):
            lot = self._lots[worker % len(self._lots)]
            lot = lot or max(self._lots, key=len)
            task = self._other() or lot.popleft()
            if task.request.id in self._started or self._may_begin(task, lot):
                self._started.add(task.request.id)
                return task
        return None

    def _may_begin(self, task: EditTask, following: Iterable[EditTask]) -> bool:
        claim = self._claim(task, following)
        if claim is Claim.THIS_RUN and not self._begin(task):
            self._lots = [deque()]
            return False
        return claim is Claim.THIS_RUN

    def put_back(self, task: EditTask) -> None:
        """Put a task back in front of all others."""
        with self._lock:
            self._put_back(task)

    def requeue_singly(self, batch: Sequence[EditTask]) -> None:
        """Put the tasks of a batch back to be done one by one, so that the faulty one is identified."""
        with self._lock:
            self._single.update(task.request.id for task in batch)
            for task in reversed(batch):
                self._put_back(task)

    def _put_back(self, task: EditTask) -> None:
        max(self._lots, key=len).appendleft(task)

    def note(self, task: EditTask, edit: Edit) -> None:
        """Record how a task ended."""
        failure = str(edit.detail.get("failure", "")) if edit.outcome is Outcome.FAILED else ""
        self.streak.note(failure, str(edit.detail.get("error", "")), task.images[0], task.request.prompt_id)
        self._settle(edit)

    def end(self, error: Exception) -> None:
        """Stop the editor, since all further edits would fail in the same way."""
        if isinstance(error, EvenEditError):
            self.streak.end(str(error), mistake=error)
        elif isinstance(error, LoadError):
            self.streak.end(str(error), error.failure)
        else:
            self.streak.end(f"{type(error).__name__}: {error}", "crash")

    def _other(self) -> EditTask | None:
        """Return a task with another portrait and prompt than the last failures; None if there is none."""
        portraits, prompts = self.streak.portraits, self.streak.prompts
        if not portraits:
            return None
        for lot in self._lots:
            for place, task in enumerate(lot):
                if task.images[0] not in portraits and task.request.prompt_id not in prompts:
                    del lot[place]
                    return task
        return None
