"""Processes that begin afresh, without running the user's script again."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import parent_process
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any


class WorkerProcess(SpawnProcess):
    """A process that imports what it needs and nothing else.

    Python's own would first run the script that started it, which fails, or begins everything again, where the script
    does not ask for `__name__ == "__main__"`.
    """

    @staticmethod
    def _Popen(process_obj: BaseProcess) -> Any:  # noqa: N802
        with _without_main():
            return SpawnProcess._Popen(process_obj)


class WorkerContext(SpawnContext):
    """Spawned processes (a forked one cannot use CUDA, nor begin safely beside threads)."""

    Process = WorkerProcess


def end_with_parent() -> None:
    """Have this process end when the one that started it does, even if that one was killed."""
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: Any) -> None:
    parent.join()
    os._exit(1)


@contextmanager
def _without_main() -> Iterator[None]:
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
