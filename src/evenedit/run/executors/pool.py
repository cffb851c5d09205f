"""A pool of workers that may die: each has one task at a time, so a death is blamed on the right edit."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import Any, Protocol
from zlib import crc32

from evenedit.core.errors import Failed, Failure
from evenedit.core.records import Edit
from evenedit.run.worker import EditTask, failed


class Lost(Exception):
    """A worker died with its task."""


class WorkerPool(Protocol):
    """Workers of some kind, handled one task at a time."""

    @property
    def size(self) -> int:
        """How many workers there are, those who are still to arrive among them."""
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

    def wait(self) -> list[tuple[Any, Edit | Exception]]:
        """Wait until something happens: what a worker made, the error it raised, or Lost; empty when one arrived."""
        ...

    def dismiss(self) -> None:
        """Stop all workers."""
        ...


class Lots:
    """Tasks in lots, one for each worker: edits of one portrait are in one lot, so a worker meets it again."""

    def __init__(self, tasks: Iterable[EditTask], size: int) -> None:
        self._lots = [deque[EditTask]() for _ in range(size)]
        for task in tasks:
            self._lots[crc32("".join(task.images[:1]).encode()) % size].append(task)

    def __len__(self) -> int:
        return sum(map(len, self._lots))

    def take(self, seat: int) -> EditTask:
        """The next task for the worker at this seat: of its own lot, or of the longest when that is empty."""
        own = self._lots[seat % len(self._lots)]
        return (own or max(self._lots, key=len)).popleft()

    def put_back(self, task: EditTask) -> None:
        """Have a task done again, next of all."""
        max(self._lots, key=len).appendleft(task)


def work_off(pool: WorkerPool, tasks: Iterable[EditTask], size: int, retries: int) -> Iterator[list[Edit]]:
    """Do all tasks; yield edits as they come. A lost task is tried again by another worker, a few times.

    On Ctrl-C nothing new is begun; what is under way is finished and yielded, then KeyboardInterrupt is raised.
    The workers stay for further tasks, unless they are stopped in the midst of these.
    """
    waiting = Lots(tasks, size)
    seats: dict[Any, int] = {}
    busy: dict[Any, EditTask] = {}
    deaths: Counter[str] = Counter()
    interrupted = False

    def hand_out() -> None:
        for member in pool.idle():
            if waiting:
                busy[member] = waiting.take(seats.setdefault(member, len(seats)))
                pool.give(member, busy[member])

    try:
        for _ in range(min(size, len(waiting)) - pool.size):
            pool.hire()
        while busy or (waiting and not interrupted):
            try:
                if not interrupted:
                    hand_out()
                finished = pool.wait()
            except KeyboardInterrupt:
                interrupted = True
                continue
            batch: list[Edit] = []
            for member, result in finished:
                task = busy.pop(member)
                ident = task.request.id
                if isinstance(result, Edit):
                    batch.append(result)
                elif not isinstance(result, Lost):
                    raise result
                else:
                    pool.hire()
                    deaths[ident] += 1
                    if deaths[ident] > retries:
                        batch.append(failed(ident, Failed(Failure.CRASH, str(result))))
                    else:
                        waiting.put_back(task)
            if batch:
                try:
                    if not interrupted:
                        hand_out()  # whoever gets the batch may take a while to store it
                except KeyboardInterrupt:
                    interrupted = True
                yield batch
    finally:
        if busy:
            pool.dismiss()
    if interrupted:
        raise KeyboardInterrupt
