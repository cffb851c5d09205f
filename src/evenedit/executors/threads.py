"""Work in threads of this process: for what waits (APIs, judges), and for a CPU editor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(items: Iterable[Item], work: Callable[[Item], Result], threads: int) -> Iterator[list[Result]]:
    """Do `work` on each item; yield what has finished, in batches, until all is done.

    On Ctrl-C nothing new is begun; what is under way is finished and yielded, then KeyboardInterrupt is raised.
    """
    return in_lanes([(items, threads)], work)


def in_lanes(lanes: Sequence[tuple[Iterable[Item], int]], work: Callable[[Item], Result]) -> Iterator[list[Result]]:
    """The same in lanes, each with threads of its own, so that a slow one does not hold up the others."""
    queues = [iter(items) for items, _ in lanes]
    pending: list[set[Future[Result]]] = [set() for _ in lanes]
    interrupted = False
    with ExitStack() as stack:
        pools = [
            stack.enter_context(ThreadPoolExecutor(threads, thread_name_prefix=f"evenedit-{number}"))
            for number, (_, threads) in enumerate(lanes)
        ]
        try:
            while True:
                try:
                    for (_, threads), queue, pool, waiting in zip(lanes, queues, pools, pending, strict=True):
                        while not interrupted and len(waiting) < 2 * threads:  # keep the queue short
                            item = next(queue, None)
                            if item is None:
                                break
                            waiting.add(pool.submit(work, item))
                    if not any(pending):
                        break
                    done, _ = wait(set().union(*pending), return_when=FIRST_COMPLETED)
                except KeyboardInterrupt:
                    interrupted = True
                    pending = [{future for future in waiting if not future.cancel()} for waiting in pending]
                    continue
                pending = [waiting - done for waiting in pending]
                yield [future.result() for future in done]
        finally:
            for waiting in pending:
                for future in waiting:
                    future.cancel()
    if interrupted:
        raise KeyboardInterrupt
