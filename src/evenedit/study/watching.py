"""How a run goes on, looked at from beside it: counts, failures by reason, rates and the time that is left."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

from evenedit.study.plan import duration
from evenedit.study.status import StudyStatus, status_of
from evenedit.study.study import Study

EVERY = 5.0
"""Seconds between two looks."""
WINDOW = 120.0
"""Seconds over which a rate is taken."""


def watch(
    study: Study, every: float = EVERY, pause: Callable[[float], None] = time.sleep
) -> Iterator[tuple[StudyStatus, str]]:
    """Yield the status and the pace again and again, until every edit and rating has ended."""
    looks: deque[tuple[float, int, int]] = deque()
    while True:
        now = status_of(study, review=False)
        looks.append((time.monotonic(), now.ended, now.rated))
        while len(looks) > 2 and looks[-1][0] - looks[0][0] > WINDOW:
            looks.popleft()
        yield now, _pace(now, looks)
        if now.planned and not now.left and not now.unrated:
            return
        pause(every)


def _pace(now: StudyStatus, looks: deque[tuple[float, int, int]]) -> str:
    seconds = looks[-1][0] - looks[0][0]
    if not seconds:
        return "pace: known after the next look"
    parts = []
    for name, column, left in (("edits", 1, now.left), ("ratings", 2, now.unrated)):
        rate = (looks[-1][column] - looks[0][column]) / seconds
        if rate:
            parts.append(f"{rate:.2f} {name}/s, {left:,} left, about {duration(left / rate)}")
    return "pace: " + ("; ".join(parts) or f"nothing ended in the last {seconds:.0f} s")
