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


class Pace:
    """How fast something goes on, over the last looks at it."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int]] = deque()

    def look(self, done: int) -> None:
        """Note how much is done now."""
        self._looks.append((time.monotonic(), done))
        while len(self._looks) > 2 and self.seconds > WINDOW:
            self._looks.popleft()

    @property
    def seconds(self) -> float:
        """From the first look that counts to the last."""
        return self._looks[-1][0] - self._looks[0][0]

    @property
    def rate(self) -> float:
        """What was done per second."""
        return (self._looks[-1][1] - self._looks[0][1]) / self.seconds if self.seconds else 0.0


def watch(
    study: Study, every: float = EVERY, pause: Callable[[float], None] = time.sleep
) -> Iterator[tuple[StudyStatus, str]]:
    """Yield the status and the pace again and again, until every edit and rating has ended."""
    edits, ratings = Pace(), Pace()
    while True:
        now = status_of(study, review=False)
        yield now, _pace(now, edits, ratings)
        if now.planned and not now.left and not now.unrated:
            return
        pause(every)


def _pace(now: StudyStatus, edits: Pace, ratings: Pace) -> str:
    edits.look(now.ended)
    ratings.look(now.rated)
    if not edits.seconds:
        return "pace: known after the next look"
    parts = []
    for name, pace, left in (("edits", edits, now.left), ("ratings", ratings, now.unrated)):
        if pace.rate:
            parts.append(f"{pace.rate:.2f} {name}/s, {left:,} left, about {duration(left / pace.rate)}")
    return "pace: " + ("; ".join(parts) or f"nothing ended in the last {edits.seconds:.0f} s")
