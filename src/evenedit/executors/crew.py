"""A crew of workers that may die: each has one task at a time, so a death is blamed on the right edit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from evenedit.records import Edit, Failed, Failure
from evenedit.worker import Task, failed


class Lost(Exception):
    """A worker died with its task."""


class Crew(Protocol):
    """Workers of some kind, handled one task at a time."""

    def hire(self) -> Any:
        """Start a worker."""
        ...

    def give(self, member: Any, task: Task) -> None:
        """Hand a worker its next task."""
        ...

    def wait(self) -> list[tuple[Any, Edit | Exception]]:
        """Wait until a busy worker is done or dead: what it made, the error it raised, or Lost."""
        ...

    def dismiss(self) -> None:
        """Stop all workers."""
        ...


def work_off(crew: Crew, tasks: Sequence[Task], size: int, retries: int) -> Iterator[list[Edit]]:
    """Do all tasks; yield edits as they come. A lost task is tried again by a new worker, a few times.

    On Ctrl-C nothing new is begun; what is under way is finished and yielded, then KeyboardInterrupt is raised.
    """
    waiting = list(reversed(tasks))
    busy: dict[Any, Task] = {}
    deaths: Counter[str] = Counter()
    interrupted = False
    try:
        idle = [crew.hire() for _ in range(min(size, len(tasks)))]
        while waiting or busy:
            try:
                while idle and waiting and not interrupted:
                    member, task = idle.pop(), waiting.pop()
                    crew.give(member, task)
                    busy[member] = task
                if not busy:
                    break
                finished = crew.wait()
            except KeyboardInterrupt:
                interrupted = True
                continue
            batch: list[Edit] = []
            for member, result in finished:
                task = busy.pop(member)
                ident = task.request.id
                if isinstance(result, Edit):
                    batch.append(result)
                    idle.append(member)
                elif not isinstance(result, Lost):
                    raise result
                else:
                    deaths[ident] += 1
                    if deaths[ident] > retries:
                        batch.append(failed(ident, Failed(Failure.CRASH, str(result))))
                    else:
                        waiting.append(task)
                    idle.append(crew.hire())
            if batch:
                yield batch
    finally:
        crew.dismiss()
    if interrupted:
        raise KeyboardInterrupt
