"""Work in threads of this process: for what waits (APIs, judges), and for a CPU editor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(items: Iterable[Item], work: Callable[[Item], Result], threads: int) -> Iterator[list[Result]]:
    """Do `work` on every item in threads; yield results as they come.

    On Ctrl-C nothing new is begun; what is under way is finished and yielded, then KeyboardInterrupt is raised.
    """
    return in_lanes([(items, threads)], work)


def in_lanes(lanes: Sequence[tuple[Iterable[Item], int]], work: Callable[[Item], Result]) -> Iterator[list[Result]]:
    """The same in lanes, each with threads of its own, so that a slow one does not hold up the others."""
    pools = [
        (items, ThreadPoolExecutor(threads, thread_name_prefix=f"evenedit-{number}"), threads)
        for number, (items, threads) in enumerate(lanes)
    ]
    return _in_pools(pools, work)


def in_pool(
    executor: Executor, items: Iterable[Item], work: Callable[[Item], Result], width: int
) -> Iterator[list[Result]]:
    """The same in any pool of `width` workers; the pool is shut at the end."""
    return _in_pools([(items, executor, width)], work)


def _in_pools(
    lanes: Sequence[tuple[Iterable[Item], Executor, int]], work: Callable[[Item], Result]
) -> Iterator[list[Result]]:
    queues = [iter(items) for items, *_ in lanes]
    pending: list[set[Future[Result]]] = [set() for _ in lanes]
    ended: SimpleQueue[Future[Result]] = SimpleQueue()
    interrupted = False
    with ExitStack() as stack:
        pools = [stack.enter_context(pool) for _, pool, _ in lanes]
        try:
            while True:
                try:
                    for (*_, width), queue, pool, waiting in zip(lanes, queues, pools, pending, strict=True):
                        while not interrupted and len(waiting) < 2 * width:  # keep the queue short
                            item = next(queue, None)
                            if item is None:
                                break
                            future = pool.submit(work, item)
                            waiting.add(future)
                            future.add_done_callback(ended.put)
                    if not any(pending):
                        break
                    done = {ended.get()}
                    while not ended.empty():
                        done.add(ended.get())
                except KeyboardInterrupt:
                    interrupted = True
                    pending = [{future for future in waiting if not future.cancel()} for waiting in pending]
                    for future in set().union(*pending):
                        if future.done():  # it may have been taken out just when we were interrupted
                            ended.put(future)
                    continue
                done &= set().union(*pending)
                pending = [waiting - done for waiting in pending]
                if done:
                    yield [future.result() for future in done]
        finally:
            for waiting in pending:
                for future in waiting:
                    future.cancel()
    if interrupted:
        raise KeyboardInterrupt
