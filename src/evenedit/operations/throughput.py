"""How fast something goes on."""

from __future__ import annotations

import time
from collections import deque

WINDOW = 120.0
"""Seconds over which a rate is taken."""


class Throughput:
    """How fast something goes on, over the last looks at it."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int]] = deque()

    def look(self, done: int) -> None:
        """Note how much is done now."""
        self._looks.append((time.monotonic(), done))
        while len(self._looks) > 2 and (self.seconds > WINDOW or self._looks[0][1] == self._looks[1][1]):
            self._looks.popleft()  # too long ago, or before it began

    @property
    def seconds(self) -> float:
        """From the first look that counts to the last."""
        return self._looks[-1][0] - self._looks[0][0]

    @property
    def rate(self) -> float:
        """What was done per second."""
        return (self._looks[-1][1] - self._looks[0][1]) / self.seconds if self.seconds else 0.0
