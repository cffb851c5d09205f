"""Run a function in a second process while this one continues.

The result does not depend on the process that computes it: if the second process ends early, this one computes it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from importlib import import_module
from multiprocessing import current_process
from typing import Any, TypeVar

from evenedit.core.processes import WorkerContext, end_with_parent

T = TypeVar("T")

PARALLEL_THRESHOLD = 1000
"""Number of edits from which a second process saves more time than it takes to start."""
_SINGLE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")


class SecondProcess:
    """A context manager that owns one worker process.

    There is none if it is not enabled or the machine has one processor. The worker imports `modules` when it starts.
    """

    def __init__(self, *, enabled: bool = True, modules: Sequence[str] = ()) -> None:
        can_start = sys.executable and not hasattr(sys, "frozen") and not current_process().daemon
        self._enabled = enabled and (os.cpu_count() or 1) > 1 and bool(can_start)
        self._modules = tuple(modules)
        self._pool: ProcessPoolExecutor | None = None
        self._busy = False

    def __enter__(self) -> SecondProcess:
        if self._enabled:
            with suppress(OSError, NotImplementedError):  # no semaphores, or no process can be started
                pool = ProcessPoolExecutor(
                    1, mp_context=WorkerContext(), initializer=_init_worker, initargs=(self._modules,)
                )
                pool.submit(int)  # starts the process
                self._pool = pool
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def submit(self, function: Callable[..., T], *arguments: Any) -> Callable[[], T]:
        """Start `function(*arguments)` in the worker and return a function that waits for the result.

        The returned function computes the result itself if the worker is busy or has ended.
        """
        compute = partial(function, *arguments)
        if self._pool is None or self._busy:
            return compute
        try:
            future = self._pool.submit(function, *arguments)
        except (OSError, BrokenProcessPool):
            return compute
        self._busy = True

        def result() -> T:
            try:
                return future.result()
            except BrokenProcessPool:
                return compute()
            finally:
                self._busy = False

        return result


SEQUENTIAL = SecondProcess(enabled=False)
"""Computes every function in this process."""


def _init_worker(modules: Sequence[str]) -> None:
    """End with the parent and on Ctrl-C, use one thread, and import `modules`."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    end_with_parent()
    os.environ.update(_SINGLE_THREAD)
    for module in modules:
        import_module(module)
