"""Work in threads of this process: for what waits (APIs, judges), and for a CPU editor.

A thread cannot be ended. A thread that times out is abandoned: its item ends as timed out, another thread takes its
place, and the program does not wait for it at its end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, TypeVar

from evenedit.run.interruption import LOOK, graceful

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Lane(Generic[Item, Result]):
    """Items that are worked off by threads of their own, so that a slow lane does not hold up the others."""

    items: Iterable[Item]
    threads: int
    limit: float | None = None
    """Seconds for one item; None: any time."""
    on_timeout: Callable[[Item, float], Result] | None = None
    """Makes the result of an item that ran out of time, from the item and the limit."""
    count: Callable[[Item], int] = lambda _item: 1
    """How many times as long an item may take."""


class _WorkerThread(Generic[Item]):
    """One thread and what it works on."""

    def __init__(self) -> None:
        self.item: Item | None = None
        self.started_at = 0.0
        self.left = False
        """Whether nobody waits for it any more."""


class _Threads(Generic[Item, Result]):
    """The threads of one lane. Each starts the next one when it gets an item, so there are never more than needed."""

    def __init__(
        self, lane: Lane[Item, Result], work: Callable[[Item], Result], ended: SimpleQueue[tuple[Any, Any]], name: str
    ) -> None:
        self.lane = lane
        self._work = work
        self._ended = ended
        self._name = name
        self._items = iter(lane.items)
        self._taking = Lock()
        self._counting = Lock()
        self._closed = False
        self.threads: set[_WorkerThread[Item]] = set()
        self._start()

    def close(self) -> None:
        """Start nothing new."""
        self._closed = True

    def expire(self) -> Iterator[Result]:
        """Abandon the threads that have timed out, and yield the results of their items."""
        limit = self.lane.limit
        if limit is None or self.lane.on_timeout is None:
            return
        now = time.monotonic()
        for thread in list(self.threads):
            with self._counting:
                item = thread.item
                if item is None or now - thread.started_at < limit * self.lane.count(item):
                    continue
                thread.left = True
                self.threads.discard(thread)
            yield self.lane.on_timeout(item, limit)
            self._start()

    def _start(self) -> None:
        with self._counting:
            if self._closed or len(self.threads) >= self.lane.threads:
                return
            thread = _WorkerThread[Item]()
            self.threads.add(thread)
        Thread(target=self._serve, args=(thread,), name=self._name, daemon=True).start()

    def _serve(self, thread: _WorkerThread[Item]) -> None:
        try:
            while (item := self._next()) is not None:
                with self._counting:
                    thread.item, thread.started_at = item, time.monotonic()
                self._start()
                result = self._work(item)
                with self._counting:
                    if thread.left:
                        return
                    thread.item = None
                self._ended.put((result, None))
        except BaseException as error:
            if not thread.left:
                self._ended.put((None, error))
        finally:
            with self._counting:
                self.threads.discard(thread)
            self._ended.put((None, None))  # so that somebody looks whether this was the last

    def _next(self) -> Item | None:
        with self._taking:
            if self._closed:
                return None
            item = next(self._items, None)
            if item is None:
                self._closed = True
            return item


def in_threads(items: Iterable[Item], work: Callable[[Item], Result], threads: int) -> Iterator[list[Result]]:
    """Do `work` on all items in threads; yield results as they arrive.

    On Ctrl-C nothing new is begun; what finishes soon is yielded, then KeyboardInterrupt is raised.
    """
    return run_in_lanes([Lane(items, threads)], work)


def run_in_lanes(lanes: Sequence[Lane[Item, Result]], work: Callable[[Item], Result]) -> Iterator[list[Result]]:
    """Do `work` in lanes, each with its own threads; raise an error of `work` when the others have ended."""
    ended: SimpleQueue[tuple[Any, Any]] = SimpleQueue()
    error: BaseException | None = None
    with graceful() as stop:
        running = [_Threads(lane, work, ended, f"evenedit-{number}") for number, lane in enumerate(lanes)]
        try:
            while any(threads.threads for threads in running) or not ended.empty():
                batch: list[Result] = []
                for result, raised in _next_completed(ended):
                    error = error or raised
                    if result is not None:
                        batch.append(result)
                for threads in running:
                    batch += threads.expire()
                    if stop.requested or error is not None:
                        threads.close()
                if batch:
                    yield batch
                if stop.over:
                    break
        finally:
            for threads in running:
                threads.close()
    if error is not None:
        raise error
    if stop.requested:
        raise KeyboardInterrupt


def _next_completed(ended: SimpleQueue[Any]) -> Iterator[Any]:
    """Yield what has ended by now; wait a moment for the first."""
    try:
        yield ended.get(timeout=LOOK)
        while True:
            yield ended.get_nowait()
    except Empty:
        return


def in_pool(
    executor: Executor, items: Iterable[Item], work: Callable[[Item], Result], width: int
) -> Iterator[list[Result]]:
    """Do `work` on all items in a pool of `width` workers, then shut it down; yield results as they arrive."""
    queue = iter(items)
    pending: set[Future[Result]] = set()
    ended: SimpleQueue[Future[Result]] = SimpleQueue()
    with graceful() as stop, ExitStack() as stack:
        stack.callback(_shutdown_pool, executor, stop)
        while True:
            while not stop.requested and len(pending) < 2 * width:  # keep the queue short
                item = next(queue, None)
                if item is None:
                    break
                future = executor.submit(work, item)
                pending.add(future)
                future.add_done_callback(ended.put)
            if stop.requested:
                pending = {future for future in pending if not future.cancel()}
            if not pending or stop.over:
                break
            done = {future for future in _next_completed(ended) if not future.cancelled()}
            pending -= done
            if done:
                yield [future.result() for future in done]
    if stop.requested:
        raise KeyboardInterrupt


def _shutdown_pool(executor: Executor, stop: Any) -> None:
    """Shut a pool down; after an interruption, also end processes that are still busy."""
    executor.shutdown(wait=not stop.requested, cancel_futures=True)
    if stop.requested:
        for process in list((getattr(executor, "_processes", None) or {}).values()):
            process.terminate()
