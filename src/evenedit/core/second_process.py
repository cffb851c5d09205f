"""A second process of this Python that takes one piece of work while this one goes on with another.

The piece is a function of a module with what it is given, so the result is the same wherever it is made: without a
second process, or where it ends early, this process makes it when the result is asked for. It is a new interpreter,
not a fork and not a copy of the program that runs, so threads and scripts without a main guard do no harm.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from types import TracebackType
from typing import IO, Any, TypeVar

T = TypeVar("T")

LARGE = 1000
"""Edits from which on a second process saves more time than its start takes."""
_SERVE = "import sys; from evenedit.core.second_process import serve; serve(sys.argv[1:])"
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")
"""Both processes are busy, so neither gains from threads of its own."""
_LENGTH = 8
"""Bytes before each message that say how long it is."""


class SecondProcess:
    """A second process for as long as the context lasts; none where it is not wanted or there is one processor only.

    `ready` are the modules that its work will need: it loads them while this process does something else.
    """

    def __init__(self, *, wanted: bool = True, ready: Sequence[str] = ()) -> None:
        self._ready = ready
        self._wanted = wanted and (os.cpu_count() or 1) > 1 and bool(sys.executable) and not hasattr(sys, "frozen")
        self._process: subprocess.Popen[bytes] | None = None
        self._busy = False

    def __enter__(self) -> SecondProcess:
        if self._wanted:
            with suppress(OSError):
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-c", _SERVE, *self._ready],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, **_ONE_THREAD, "PYTHONPATH": os.pathsep.join(sys.path)},
                )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()  # it has nothing of its own to finish
            self._process.communicate()
            self._process = None

    def give(self, work: Callable[..., T], *given: Any) -> Callable[[], T]:
        """Begin some work there; what is returned waits for the result. It does one piece of work at a time."""
        alone = partial(work, *given)
        if self._process is None or self._busy:
            return alone
        assert self._process.stdin is not None
        try:
            _send(self._process.stdin, pickle.dumps((work, given)))
        except OSError:
            return alone
        self._busy = True
        return partial(self._result, alone)

    def _result(self, alone: Callable[[], T]) -> T:
        """What the process made of its work; where it failed, this one makes it, and so raises what went wrong."""
        message = None
        if self._process is not None:
            assert self._process.stdout is not None
            message = _receive(self._process.stdout)
        if message is None:  # it has ended: it stays busy, so that it is given nothing more
            return alone()
        self._busy = False
        made: T = pickle.loads(message)
        return made


ALONE = SecondProcess(wanted=False)
"""No second process: whatever is given is done by this one."""


def serve(ready: Sequence[str]) -> None:
    """What the second process does: work as it comes in, until there is no more."""
    messages, results = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever is printed is no result
    for module in ready:
        import_module(module)
    while (message := _receive(messages)) is not None:
        work, given = pickle.loads(message)
        _send(results, pickle.dumps(work(*given)))


def _send(stream: IO[bytes], message: bytes) -> None:
    stream.write(len(message).to_bytes(_LENGTH, "big"))
    stream.write(message)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes | None:
    """The next message; None where the other side has ended."""
    length = stream.read(_LENGTH)
    if len(length) < _LENGTH:
        return None
    message = stream.read(int.from_bytes(length, "big"))
    return message if len(message) == int.from_bytes(length, "big") else None
