"""Processes that begin afresh, without running the user's script again."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any

PARENT_DEATH_SIGNAL = 1
"""What Linux calls PR_SET_PDEATHSIG."""


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
    """Have this process end when the one that started it does, even if that one was killed.

    On Linux the kernel sees to it, since a thread that follows the parent does not run while other code hangs without
    letting go of the interpreter. The thread that starts such a process must live as long as it is needed.
    """
    parent = parent_process()
    if parent is not None:
        with suppress(OSError, AttributeError):  # no Linux
            ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def end_of(code: int | None) -> str:
    """Describe how a process ended."""
    return f"exit code {code}: killed, or out of memory" if code == -signal.SIGKILL else f"exit code {code}"


def send_result(pipe: Connection, result: object) -> None:
    """Send a result; of an error, or anything, that cannot be sent, its words as an error."""
    try:
        pipe.send(result)
    except OSError:
        raise
    except Exception:
        pipe.send(RuntimeError(f"{type(result).__name__}: {result}"))


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
