"""Limits on guesses, and on other things of which few are needed. A guess counts before it is checked."""

from __future__ import annotations

import time
from collections import deque
from ipaddress import IPv6Address, ip_address
from threading import Lock

from fastapi import Request

from evenedit.web.errors import HttpProblem

TRIES = 5
"""Wrong guesses from one address before it has to wait."""
ACCOUNT_TRIES = 30
"""Wrong guesses at one account's password, from anywhere, before everybody who guesses at it has to wait."""
WAIT = 15 * 60
"""Seconds over which guesses are counted."""
TIDY = 10_000
"""How many addresses are remembered before those whose time is over are forgotten."""


class Limit:
    """Counts guesses by whom they come from, or by what they are about."""

    def __init__(self, tries: int = TRIES, counted: str = "wrong tries") -> None:
        self._tries, self._counted = tries, counted
        self._times: dict[str, deque[float]] = {}
        self._lock = Lock()

    def take(self, key: str) -> float:
        """Count a try now, before it is known to be wrong; refuse it if there were too many.

        Returns the moment, by which a try that was right can be given back.
        """
        now = time.monotonic()
        with self._lock:
            if len(self._times) > TIDY:
                self._times = {k: times for k, times in self._times.items() if times[-1] >= now - WAIT}
            times = self._times.setdefault(key, deque())
            while times and times[0] < now - WAIT:
                times.popleft()
            if len(times) < self._tries:
                times.append(now)
                return now
            wait = int(times[0] + WAIT - now) + 1
        problem = HttpProblem(429, f"Too many {self._counted}. Please try again in {wait // 60 + 1} minutes.")
        problem.headers = {"Retry-After": str(wait)}
        raise problem

    def give_back(self, key: str, moment: float) -> None:
        """Uncount a try that was right."""
        with self._lock:
            times = self._times.get(key)
            if times and moment in times:
                times.remove(moment)
            if not times:
                self._times.pop(key, None)


def address_of(request: Request) -> str:
    """Return the address of a request; an IPv6 address is reduced to its network of 64 bits."""
    host = request.client.host if request.client else ""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return f"{IPv6Address(int(address) >> 64 << 64)}/64"
    return str(address)
