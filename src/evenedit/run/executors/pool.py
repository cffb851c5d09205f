"""A pool of workers that may die or hang.

Each has one task at a time, so the faulty edit is known. If a worker dies or hangs with a batch, the edits of the batch
are retried one by one.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from evenedit.core.errors import EvenEditError, Failed, Failure, LoadError
from evenedit.core.records import Edit, Outcome
from evenedit.run.executors.queue import EditQueue
from evenedit.run.interruption import LOOK, graceful
from evenedit.run.worker import EditTask, failed, not_loaded, out_of_time


class WorkerLostError(Exception):
    """A worker died with its task."""

    def __init__(self, message: str, *, loading: bool = False) -> None:
        super().__init__(message)
        self.loading = loading
        """Whether it died while it loaded the editor, and by what it did there."""


class WorkerPool(Protocol):
    """Workers of some kind, handed tasks that are made in one call: most often one."""

    @property
    def size(self) -> int:
        """The number of workers, including those that are still starting."""
        ...

    @property
    def loaded(self) -> bool:
        """A worker has loaded the editor, so that the others can be expected to."""
        ...

    @property
    def started_at(self) -> Mapping[Any, float]:
        """The start time (time.monotonic) of each worker that is editing; workers that still load are left out."""
        ...

    @property
    def loading(self) -> Mapping[Any, float]:
        """The time at which each worker that still loads the editor got its task."""
        ...

    def start_worker(self) -> None:
        """Start a worker asynchronously."""
        ...

    def idle(self) -> list[Any]:
        """Return the workers that are ready and have no task."""
        ...

    def assign(self, member: Any, tasks: Sequence[EditTask]) -> None:
        """Send a worker its next tasks."""
        ...

    def wait(self, seconds: float) -> list[tuple[Any, list[Edit] | Exception]]:
        """Wait for a result, at most so long; return edits, the error a worker raised, or `WorkerLostError`."""
        ...

    def end(self, member: Any) -> None:
        """End a worker, whatever it is doing."""
        ...

    def shutdown(self) -> None:
        """Stop all workers."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that an edit may take; a batch of edits, so many times as long."""

    each: float
    first: float
    """The first of a worker, which may load weights on the way."""
    load: float
    """For loading the editor, before the first edit."""


@dataclass
class _PoolScheduler:
    """The work of one pool on one queue."""

    pool: WorkerPool
    queue: EditQueue
    retries: int
    limits: Limits
    seats: dict[Any, int] = field(default_factory=dict)
    busy: dict[Any, Sequence[EditTask]] = field(default_factory=dict)
    used: set[Any] = field(default_factory=set)
    """Workers that have made an edit."""
    deaths: Counter[str] = field(default_factory=Counter)

    def hand_out(self) -> None:
        """Assign tasks to idle workers; only to one while no worker has loaded the editor."""
        for member in self.pool.idle():
            if self.busy and not self.pool.loaded:
                return
            tasks = self.queue.take_batch(self.seats.setdefault(member, len(self.seats)))
            if not tasks:
                return
            self.busy[member] = tasks
            self.pool.assign(member, tasks)

    def collect(self) -> list[Edit]:
        """Return the edits that have ended, including those of workers that hang."""
        ended = self.pool.wait(LOOK)
        results = [edit for member, result in ended for edit in self._result(member, result)]
        return results + list(self._end_late())

    def _result(self, member: Any, result: list[Edit] | Exception) -> list[Edit]:
        tasks = self.busy.pop(member)
        self.used.add(member)
        if isinstance(result, EvenEditError):
            self.queue.end(result)
            return []
        if isinstance(result, WorkerLostError) and result.loading and not self.pool.loaded:
            result = LoadError(Failure.CRASH, f"it cannot be loaded ({result})")
        if isinstance(result, LoadError):
            return self._stopped(tasks, result)
        if isinstance(result, WorkerLostError):
            self._replace()
            return self._retry(tasks, [failed(t.request.id, Failed(Failure.CRASH, str(result))) for t in tasks])
        if isinstance(result, Exception):
            raise result
        broken = [edit for edit in result if _broke_the_gpu(edit)]
        ended = [self._ended(t, edit) for t, edit in zip(tasks, result, strict=True) if edit not in broken]
        if broken:
            self.pool.end(member)
            self._replace()
            ids = {edit.request_id for edit in broken}
            ended += self._retry([t for t in tasks if t.request.id in ids], broken)
        return ended

    def _end_late(self) -> Iterator[Edit]:
        now = time.monotonic()
        for member, started in list(self.pool.started_at.items()):
            limit = self.limits.each if member in self.used else self.limits.first
            if member in self.busy and now - started > limit * len(self.busy[member]):
                tasks = self._end(member)
                if len(tasks) > 1:
                    self.queue.requeue_singly(tasks)
                else:
                    yield self._ended(tasks[0], out_of_time(tasks[0].request.id, limit))
        for member, assigned in list(self.pool.loading.items()):
            if member in self.busy and now - assigned > self.limits.load:
                yield from self._stopped(self._end(member), not_loaded(self.limits.load))

    def _end(self, member: Any) -> Sequence[EditTask]:
        """End a worker that has timed out and start another; return its tasks."""
        tasks = self.busy.pop(member)
        self.pool.end(member)
        self._replace()
        return tasks

    def _stopped(self, tasks: Sequence[EditTask], error: LoadError) -> list[Edit]:
        """Stop an editor that cannot be loaded, unless another worker has loaded it.

        One edit is recorded as failed by it; the others of a batch were not begun.
        """
        if not self.pool.loaded:
            self.queue.end(error)
        for task in reversed(tasks[1:]):
            self.queue.put_back(task)
        return [self._ended(tasks[0], failed(tasks[0].request.id, error))]

    def _retry(self, tasks: Sequence[EditTask], edits: Sequence[Edit]) -> list[Edit]:
        """Requeue the tasks of a lost worker: a batch as single edits, an edit a few times."""
        if len(tasks) > 1:
            self.queue.requeue_singly(tasks)
            return []
        self.deaths[tasks[0].request.id] += 1
        if self.deaths[tasks[0].request.id] > self.retries:
            return [self._ended(tasks[0], edits[0])]
        self.queue.put_back(tasks[0])
        return []

    def _ended(self, task: EditTask, edit: Edit) -> Edit:
        self.queue.note(task, edit)
        return edit

    def _replace(self) -> None:
        if len(self.queue) or self.busy:
            self.pool.start_worker()


def _broke_the_gpu(edit: Edit) -> bool:
    """Return whether an edit failed because the GPU is unusable for the rest of the process."""
    return edit.outcome is Outcome.FAILED and edit.detail.get("failure") == Failure.GPU


def run_tasks(pool: WorkerPool, queue: EditQueue, size: int, retries: int, limits: Limits) -> Iterator[list[Edit]]:
    """Run all tasks; yield finished edits. Tasks of a lost worker are retried by another, a few times.

    On Ctrl-C nothing new is begun; what finishes soon is yielded, then KeyboardInterrupt is raised.
    The workers stay for further tasks, unless they are stopped in the midst of these.
    """
    queue.split(size)
    shift = _PoolScheduler(pool, queue, retries, limits)
    with graceful() as stop:
        try:
            for _ in range(min(size, math.ceil(len(queue) / queue.batch)) - pool.size):
                pool.start_worker()
            while shift.busy or (len(queue) and not stop.requested):
                if not stop.requested:
                    if not pool.size:
                        pool.start_worker()
                    shift.hand_out()
                batch = shift.collect()
                if batch:
                    if not stop.requested:
                        shift.hand_out()  # whoever gets the batch may take a while to store it
                    yield batch
                if stop.over:
                    break
        finally:
            if shift.busy:
                pool.shutdown()
    if stop.requested:
        raise KeyboardInterrupt
