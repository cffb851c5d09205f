"""Limits on wrong passwords and codes, and on other things of which few are needed."""

from __future__ import annotations

import time
from collections import deque
from threading import Lock

from evenedit.web.errors import HttpProblem

TRIES = 5
"""Wrong guesses from one address before it has to wait."""
ALL_TRIES = 50
"""Wrong guesses from everywhere before everybody has to wait: many addresses can be one person's."""
WAIT = 15 * 60
"""Seconds over which wrong guesses are counted."""


class Limit:
    """Counts wrong guesses by address."""

    def __init__(self, tries: int = TRIES, all_tries: int = ALL_TRIES, counted: str = "wrong tries") -> None:
        self._tries, self._all_tries, self._counted = tries, all_tries, counted
        self._wrong: dict[str, deque[float]] = {}
        self._lock = Lock()

    def check(self, address: str) -> None:
        """Refuse an address that has guessed too often."""
        now = time.monotonic()
        with self._lock:
            for times in self._wrong.values():
                while times and times[0] < now - WAIT:
                    times.popleft()
            self._wrong = {where: times for where, times in self._wrong.items() if times}
            mine = list(self._wrong.get(address, ()))
            everybody = sorted(moment for times in self._wrong.values() for moment in times)
        blocked = [t[-most] for t, most in ((mine, self._tries), (everybody, self._all_tries)) if len(t) >= most]
        if blocked:
            wait = int(max(blocked) + WAIT - now) + 1
            problem = HttpProblem(429, f"Too many {self._counted}. Please try again in {wait // 60 + 1} minutes.")
            problem.headers["Retry-After"] = str(wait)
            raise problem

    def count(self, address: str) -> None:
        """Remember a wrong guess."""
        with self._lock:
            self._wrong.setdefault(address, deque()).append(time.monotonic())
