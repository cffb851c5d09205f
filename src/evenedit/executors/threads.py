"""Work in threads of this process: for what waits (APIs, judges), and for a CPU editor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(items: Iterable[Item], work: Callable[[Item], Result], threads: int) -> Iterator[list[Result]]:
    """Do `work` on each item; yield what has finished, in batches, until all is done.

    On Ctrl-C nothing new is begun; what is under way is finished and yielded, then KeyboardInterrupt is raised.
    """
    return in_pool(ThreadPoolExecutor(threads, thread_name_prefix="evenedit"), items, work, threads)


def in_pool(
    executor: Executor, items: Iterable[Item], work: Callable[[Item], Result], width: int
) -> Iterator[list[Result]]:
    """The same in any pool of `width` workers; the pool is shut at the end."""
    queue = iter(items)
    pending: set[Future[Result]] = set()
    interrupted = False
    with executor as pool:
        try:
            while True:
                try:
                    while not interrupted and len(pending) < 2 * width:  # keep the queue short
                        item = next(queue, None)
                        if item is None:
                            break
                        pending.add(pool.submit(work, item))
                    if not pending:
                        break
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                except KeyboardInterrupt:
                    interrupted = True
                    pending = {future for future in pending if not future.cancel()}
                    continue
                yield [future.result() for future in done]
        finally:
            for future in pending:
                future.cancel()
    if interrupted:
        raise KeyboardInterrupt
