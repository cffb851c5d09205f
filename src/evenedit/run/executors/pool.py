"""A pool of workers that may die or hang: each has one task at a time, so it is known which edit is to blame."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from evenedit.core.errors import CannotLoad, EvenEditError, Failed, Failure
from evenedit.core.records import Edit, Outcome
from evenedit.run.executors.queue import EditQueue
from evenedit.run.interruption import LOOK, graceful
from evenedit.run.worker import EditTask, failed, not_loaded, out_of_time


class Lost(Exception):
    """A worker died with its task."""

    def __init__(self, message: str, *, loading: bool = False) -> None:
        super().__init__(message)
        self.loading = loading
        """Whether it died while it loaded the editor, and by what it did there."""


class WorkerPool(Protocol):
    """Workers of some kind, handled one task at a time."""

    @property
    def size(self) -> int:
        """How many workers there are, those who are still to arrive among them."""
        ...

    @property
    def loaded(self) -> bool:
        """Whether a worker has loaded the editor, so that the others can be expected to."""
        ...

    @property
    def begun(self) -> Mapping[Any, float]:
        """When each worker that is editing began to (by time.monotonic); none of those that still load."""
        ...

    @property
    def loading(self) -> Mapping[Any, float]:
        """When each worker that has a task and still loads the editor was given it."""
        ...

    def hire(self) -> None:
        """Ask for a worker; it may take its time to arrive."""
        ...

    def idle(self) -> list[Any]:
        """Workers that have arrived and have no task."""
        ...

    def give(self, member: Any, task: EditTask) -> None:
        """Hand a worker its next task."""
        ...

    def wait(self, seconds: float) -> list[tuple[Any, Edit | Exception]]:
        """Wait for something to happen, so long at most: what a worker made, the error it raised, or Lost."""
        ...

    def end(self, member: Any) -> None:
        """End a worker, whatever it does."""
        ...

    def dismiss(self) -> None:
        """Stop all workers."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that an edit may take."""

    each: float
    first: float
    """The first of a worker, which may load weights on the way."""
    load: float
    """For loading the editor, before the first edit."""


@dataclass
class _Shift:
    """The work of one pool on one queue."""

    pool: WorkerPool
    queue: EditQueue
    retries: int
    limits: Limits
    seats: dict[Any, int] = field(default_factory=dict)
    busy: dict[Any, EditTask] = field(default_factory=dict)
    used: set[Any] = field(default_factory=set)
    """Workers that have made an edit."""
    deaths: Counter[str] = field(default_factory=Counter)

    def hand_out(self) -> None:
        """Give everybody who is free a task; while nobody has loaded the editor yet, only one."""
        for member in self.pool.idle():
            if self.busy and not self.pool.loaded:
                return
            task = self.queue.take(self.seats.setdefault(member, len(self.seats)))
            if task is None:
                return
            self.busy[member] = task
            self.pool.give(member, task)

    def collect(self) -> list[Edit]:
        """What ended by now, hung workers included."""
        ended = self.pool.wait(LOOK)
        results = [edit for member, result in ended if (edit := self._result(member, result)) is not None]
        return results + list(self._late())

    def _result(self, member: Any, result: Edit | Exception) -> Edit | None:
        task = self.busy.pop(member)
        self.used.add(member)
        if isinstance(result, EvenEditError):
            self.queue.end(result)
            return None
        if isinstance(result, Lost) and result.loading and not self.pool.loaded:
            result = CannotLoad(Failure.CRASH, f"it cannot be loaded ({result})")
        if isinstance(result, CannotLoad):
            return self._stopped(task, result)
        if isinstance(result, Lost):
            self._replace()
            return self._again(task, failed(task.request.id, Failed(Failure.CRASH, str(result))))
        if isinstance(result, Exception):
            raise result
        if result.outcome is Outcome.FAILED and result.detail.get("failure") == Failure.GPU:
            self.pool.end(member)
            self._replace()
            return self._again(task, result)
        return self._ended(task, result)

    def _late(self) -> Iterator[Edit]:
        now = time.monotonic()
        for member, begun in list(self.pool.begun.items()):
            limit = self.limits.each if member in self.used else self.limits.first
            if member in self.busy and now - begun > limit:
                task = self._end(member)
                yield self._ended(task, out_of_time(task.request.id, limit))
        for member, given in list(self.pool.loading.items()):
            if member in self.busy and now - given > self.limits.load:
                task = self._end(member)
                yield self._stopped(task, not_loaded(self.limits.load))

    def _end(self, member: Any) -> EditTask:
        """End a worker that is out of time and have another take its place; return what it worked on."""
        task = self.busy.pop(member)
        self.pool.end(member)
        self._replace()
        return task

    def _stopped(self, task: EditTask, error: CannotLoad) -> Edit:
        """Stop an editor that cannot be loaded, unless another worker has it: then only this worker is to blame."""
        if not self.pool.loaded:
            self.queue.end(error)
        return self._ended(task, failed(task.request.id, error))

    def _again(self, task: EditTask, edit: Edit) -> Edit | None:
        """Have a task that ended its worker tried again by another, a few times."""
        self.deaths[task.request.id] += 1
        if self.deaths[task.request.id] > self.retries:
            return self._ended(task, edit)
        self.queue.put_back(task)
        return None

    def _ended(self, task: EditTask, edit: Edit) -> Edit:
        self.queue.note(task, edit)
        return edit

    def _replace(self) -> None:
        if len(self.queue) or self.busy:
            self.pool.hire()


def work_off(pool: WorkerPool, queue: EditQueue, size: int, retries: int, limits: Limits) -> Iterator[list[Edit]]:
    """Do all tasks; yield edits as they come. What a worker lost is tried again by another, a few times.

    On Ctrl-C nothing new is begun; what finishes soon is yielded, then KeyboardInterrupt is raised.
    The workers stay for further tasks, unless they are stopped in the midst of these.
    """
    queue.split(size)
    shift = _Shift(pool, queue, retries, limits)
    with graceful() as stop:
        try:
            for _ in range(min(size, len(queue)) - pool.size):
                pool.hire()
            while shift.busy or (len(queue) and not stop.requested):
                if not stop.requested:
                    if not pool.size:
                        pool.hire()
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
                pool.dismiss()
    if stop.requested:
        raise KeyboardInterrupt
