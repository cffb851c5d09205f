"""How a run goes on, looked at from beside it: counts, failures by reason, pace, cost, and the rates so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from evenedit.core.errors import EvenEditError
from evenedit.operations.plan import duration
from evenedit.operations.run_view import PAUSE, cost_so_far, interim_rates, under_way
from evenedit.operations.status import StudyStatus, status_of
from evenedit.operations.throughput import Throughput
from evenedit.study.context import StudyContext

EVERY = 5.0
"""Seconds between two looks."""


def watch(
    study: StudyContext, every: float = EVERY, pause: Callable[[float], None] = time.sleep
) -> Iterator[tuple[StudyStatus, str]]:
    """Yield the status and what a run is at again and again, until every edit and rating has ended."""
    edits, ratings, rates = Throughput(), Throughput(), _Rates(study)
    while True:
        now = status_of(study, review=False)
        complete = bool(now.planned and not now.left and not now.unrated)
        lines = [_pace(now, edits, ratings), *([] if under_way(study) else ["no run is under way"])]
        if now.planned:
            lines += [f"cost: {cost_so_far(study)}", *rates.lines(complete=complete)]
        yield now, "\n".join(lines)
        if complete:
            return
        pause(every)


class _Rates:
    """The rates so far, computed again after at least fifty times as long as they took, and at the end."""

    def __init__(self, study: StudyContext) -> None:
        self.study = study
        self._lines: list[str] = []
        self._rest_until = 0.0

    def lines(self, *, complete: bool) -> list[str]:
        """Return each rate with its interval in words, marked as interim where it is."""
        started = time.monotonic()
        if complete or started >= self._rest_until:
            self._lines = [self._title(complete), *self._each()]
            self._rest_until = time.monotonic() + PAUSE * (time.monotonic() - started)
        return self._lines if len(self._lines) > 1 else []

    def _title(self, complete: bool) -> str:
        if complete:
            return "rates of all planned edits (tests and findings: evenedit report):"
        at = time.strftime("%H:%M:%S UTC", time.gmtime())
        return f"INTERIM rates at {at}; they will change, so do not base decisions on them:"

    def _each(self) -> Iterator[str]:
        try:
            for rate in interim_rates(self.study):
                interval = "" if rate.low is None or rate.high is None else f" ({rate.low:.1%} to {rate.high:.1%})"
                yield f"  {rate.editor}: {rate.what} {rate.value:.1%}{interval}, n {rate.n:,}"
        except EvenEditError as error:
            yield f"  cannot be computed: {error}"


def _pace(now: StudyStatus, edits: Throughput, ratings: Throughput) -> str:
    edits.look(now.ended)
    ratings.look(now.rated)
    if not edits.seconds:
        return "pace: shown after the next refresh"
    parts = []
    for name, pace, left in (("edits", edits, now.left - now.outcomes["failed"]), ("ratings", ratings, now.unrated)):
        if pace.rate:
            parts.append(f"{pace.rate:.2f} {name}/s, {left:,} left, about {duration(left / pace.rate)}")
    return "pace: " + ("; ".join(parts) or f"nothing finished in the last {edits.seconds:.0f} s")
