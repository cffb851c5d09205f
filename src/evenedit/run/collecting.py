"""Commit the results of workers in short intervals."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from evenedit.core.progress import Progress

COMMIT_EVERY = 0.1
"""Seconds: results that come faster are committed together."""
Result = TypeVar("Result")


class Collect(Protocol):
    """How a stage has its results committed."""

    def __call__(
        self,
        title: str,
        total: int,
        done_before: int,
        batches: Iterator[list[Result]],
        save: Callable[[list[Result]], None],
        note: Callable[[], str] | None = None,
    ) -> None:
        """Commit what comes back."""
        ...


def collect(
    title: str,
    total: int,
    done_before: int,
    batches: Iterator[list[Result]],
    save: Callable[[list[Result]], None],
    note: Callable[[], str] | None = None,
) -> None:
    """Commit results as they arrive; no result is lost, whatever ends the loop."""
    waiting: list[Result] = []
    committed = time.monotonic()
    with Progress(title, total, done_before, note) as progress:
        try:
            for batch in batches:
                waiting += batch
                if time.monotonic() - committed > COMMIT_EVERY:
                    save(waiting)
                    waiting, committed = [], time.monotonic()
                progress.advance(len(batch))
        finally:
            try:
                save(waiting)
            except KeyboardInterrupt:  # nothing or all of it is stored, and storing twice does no harm
                save(waiting)
                raise
