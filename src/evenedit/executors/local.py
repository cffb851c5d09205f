"""Work on this machine: a few threads, a bounded queue, results as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def run(tasks: Iterable[Task], work: Callable[[Task], Result], workers: int) -> Iterator[list[Result]]:
    """Do `work` on each task; yield what has finished, in batches, until all is done.

    On Ctrl-C nothing new is started, what is under way is finished and yielded, then KeyboardInterrupt is raised.
    """
    queue = iter(tasks)
    pending: set[Future[Result]] = set()
    interrupted = False
    with ThreadPoolExecutor(workers, thread_name_prefix="evenedit") as pool:
        try:
            while True:
                try:
                    while not interrupted and len(pending) < 2 * workers:
                        task = next(queue, None)
                        if task is None:
                            break
                        pending.add(pool.submit(work, task))
                    if not pending:
                        break
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                except KeyboardInterrupt:
                    interrupted = True
                    for future in [f for f in pending if f.cancel()]:
                        pending.discard(future)
                    continue
                yield [future.result() for future in done]
        finally:
            for future in pending:
                future.cancel()
    if interrupted:
        raise KeyboardInterrupt
