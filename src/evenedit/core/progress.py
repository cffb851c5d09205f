"""Progress with counts, rate and time left: a bar on a terminal or in a notebook, plain lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import TracebackType
from typing import Any

from evenedit.core.log import log

LINE_EVERY = 10.0
"""Seconds between plain lines."""


class Progress:
    """Counts work done; use as a context manager."""

    def __init__(self, title: str, total: int, done: int = 0, note: Callable[[], str] | None = None) -> None:
        self.title, self.total, self.done = title, total, done
        self.note = note or str
        """Added to the end of every line."""
        self._before = done
        self._started = self._printed = time.monotonic()
        self._bar = _bar(title, total, done) if total > done and log.isEnabledFor(logging.INFO) else None

    def __enter__(self) -> Progress:
        return self

    def advance(self, count: int) -> None:
        """Note that `count` more are done."""
        self.done += count
        if self._bar is not None:
            self._bar.set_postfix_str(self.note(), refresh=False)
            self._bar.update(count)
        elif time.monotonic() - self._printed > LINE_EVERY:
            self._printed = time.monotonic()
            self._line()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self.total > self._before:
            self._line()

    def _line(self) -> None:
        seconds = time.monotonic() - self._started
        rate = (self.done - self._before) / seconds if seconds else 0.0
        left = f", {_words((self.total - self.done) / rate)} left" if rate and self.done < self.total else ""
        note = self.note()
        log.info(f"{self.title}: {self.done:,}/{self.total:,}, {rate:.1f}/s{left}{' · ' if note else ''}{note}")


def _bar(title: str, total: int, done: int) -> Any:
    """Return a progress bar if one can be drawn; a notebook uses its own widgets if they are installed."""
    notebook = _in_notebook()
    if not notebook and not sys.stderr.isatty():
        return None
    tqdm = import_module("tqdm.auto" if notebook and find_spec("ipywidgets") else "tqdm").tqdm
    return tqdm(total=total, initial=done, desc=title, unit="", dynamic_ncols=True, leave=True)


def _in_notebook() -> bool:
    """Return whether this code runs in a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _words(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
