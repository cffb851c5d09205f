"""Ctrl-C during a run: after the first, what is under way has some seconds to finish; the second ends at once."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from evenedit.core.log import log

PATIENCE = 10.0
"""Seconds that work under way may take after the first Ctrl-C."""


LOOK = 0.2
"""Seconds between checks of time limits and interruptions."""


class Interruption:
    """Whether the user wants to stop, and until when work under way is waited for."""

    def __init__(self) -> None:
        self.requested = False
        self._deadline = math.inf

    @property
    def over(self) -> bool:
        """The time for work under way is up."""
        return time.monotonic() >= self._deadline

    def request(self) -> None:
        """Request the end: nothing new is started, and work under way has a few seconds."""
        self.requested = True
        self._deadline = time.monotonic() + PATIENCE


@contextmanager
def graceful() -> Iterator[Interruption]:
    """Treat the first Ctrl-C as a request; a second one raises KeyboardInterrupt as usual."""
    interruption = Interruption()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield interruption
        return

    def handle(_number: int, _frame: FrameType | None) -> None:
        if interruption.requested:
            raise KeyboardInterrupt
        interruption.request()
        log.info(f"stopping: work under way has up to {PATIENCE:.0f} s to finish. Press Ctrl-C again to stop at once")

    signal.signal(signal.SIGINT, handle)
    try:
        yield interruption
    finally:
        with suppress(ValueError):  # a generator that was dropped may be closed by another thread
            signal.signal(signal.SIGINT, before)
