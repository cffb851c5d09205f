"""A pool of workers that may die or hang.

Each has one task at a time, so it is known which edit is to blame; where a worker dies or hangs with a batch, each edit
of it is tried again by itself.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
    """Workers of some kind, handed tasks that are made in one call: most often one."""

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

    def give(self, member: Any, tasks: Sequence[EditTask]) -> None:
        """Hand a worker its next tasks."""
        ...

    def wait(self, seconds: float) -> list[tuple[Any, list[Edit] | Exception]]:
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
    """Seconds that an edit may take; a batch of edits, so many times as long."""

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
    busy: dict[Any, Sequence[EditTask]] = field(default_factory=dict)
    used: set[Any] = field(default_factory=set)
    """Workers that have made an edit."""
    deaths: Counter[str] = field(default_factory=Counter)

    def hand_out(self) -> None:
        """Give everybody who is free a task; while nobody has loaded the editor yet, only one."""
        for member in self.pool.idle():
            if self.busy and not self.pool.loaded:
                return
            tasks = self.queue.take_batch(self.seats.setdefault(member, len(self.seats)))
            if not tasks:
                return
            self.busy[member] = tasks
            self.pool.give(member, tasks)

    def collect(self) -> list[Edit]:
        """What ended by now, hung workers included."""
        ended = self.pool.wait(LOOK)
        results = [edit for member, result in ended for edit in self._result(member, result)]
        return results + list(self._late())

    def _result(self, member: Any, result: list[Edit] | Exception) -> list[Edit]:
        tasks = self.busy.pop(member)
        self.used.add(member)
        if isinstance(result, EvenEditError):
            self.queue.end(result)
            return []
        if isinstance(result, Lost) and result.loading and not self.pool.loaded:
            result = CannotLoad(Failure.CRASH, f"it cannot be loaded ({result})")
        if isinstance(result, CannotLoad):
            return self._stopped(tasks, result)
        if isinstance(result, Lost):
            self._replace()
            return self._again(tasks, [failed(t.request.id, Failed(Failure.CRASH, str(result))) for t in tasks])
        if isinstance(result, Exception):
            raise result
        broken = [edit for edit in result if _broke_the_gpu(edit)]
        ended = [self._ended(t, edit) for t, edit in zip(tasks, result, strict=True) if edit not in broken]
        if broken:
            self.pool.end(member)
            self._replace()
            ids = {edit.request_id for edit in broken}
            ended += self._again([t for t in tasks if t.request.id in ids], broken)
        return ended

    def _late(self) -> Iterator[Edit]:
        now = time.monotonic()
        for member, begun in list(self.pool.begun.items()):
            limit = self.limits.each if member in self.used else self.limits.first
            if member in self.busy and now - begun > limit * len(self.busy[member]):
                tasks = self._end(member)
                if len(tasks) > 1:
                    self.queue.put_back_alone(tasks)
                else:
                    yield self._ended(tasks[0], out_of_time(tasks[0].request.id, limit))
        for member, given in list(self.pool.loading.items()):
            if member in self.busy and now - given > self.limits.load:
                yield from self._stopped(self._end(member), not_loaded(self.limits.load))

    def _end(self, member: Any) -> Sequence[EditTask]:
        """End a worker that is out of time and have another take its place; return what it worked on."""
        tasks = self.busy.pop(member)
        self.pool.end(member)
        self._replace()
        return tasks

    def _stopped(self, tasks: Sequence[EditTask], error: CannotLoad) -> list[Edit]:
        """Stop an editor that cannot be loaded, unless another worker has it: then only this worker is to blame.

        One edit is recorded as failed by it; the others of a batch were not begun.
        """
        if not self.pool.loaded:
            self.queue.end(error)
        for task in reversed(tasks[1:]):
            self.queue.put_back(task)
        return [self._ended(tasks[0], failed(tasks[0].request.id, error))]

    def _again(self, tasks: Sequence[EditTask], edits: Sequence[Edit]) -> list[Edit]:
        """Have what ended its worker tried again by another: a batch edit by edit, an edit a few times."""
        if len(tasks) > 1:
            self.queue.put_back_alone(tasks)
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
            self.pool.hire()


def _broke_the_gpu(edit: Edit) -> bool:
    """Whether an edit failed with a GPU that is broken for the rest of the process."""
    return edit.outcome is Outcome.FAILED and edit.detail.get("failure") == Failure.GPU


def work_off(pool: WorkerPool, queue: EditQueue, size: int, retries: int, limits: Limits) -> Iterator[list[Edit]]:
    """Do all tasks; yield edits as they come. What a worker lost is tried again by another, a few times.

    On Ctrl-C nothing new is begun; what finishes soon is yielded, then KeyboardInterrupt is raised.
    The workers stay for further tasks, unless they are stopped in the midst of these.
    """
    queue.split(size)
    shift = _Shift(pool, queue, retries, limits)
    with graceful() as stop:
        try:
            for _ in range(min(size, math.ceil(len(queue) / queue.batch)) - pool.size):
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
