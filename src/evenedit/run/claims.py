"""Which pieces of work are this run's, where several runs share a study: claimed in blocks, so that few commits do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from itertools import islice
from threading import Lock
from typing import Generic, TypeVar

from evenedit.storage.leases import Leases

AHEAD = 2.0
"""Seconds of work that are claimed at once, about: what is claimed and not begun, no other run can take."""
MOST = 256
"""The largest block."""
Item = TypeVar("Item")


class Claim(Enum):
    """Which of several runs has a piece of work."""

    THIS_RUN = "this run"
    HELD = "another run"
    DONE = "done"


class Claims(Generic[Item]):
    """The claims of one stage. Threads share them."""

    def __init__(
        self, leases: Leases, key: Callable[[Item], str], undone: Callable[[Sequence[Item]], Iterable[Item]]
    ) -> None:
        self.leases, self.key, self.undone = leases, key, undone
        self.held: list[Item] = []
        """What other runs work on."""
        self._claims: dict[str, Claim] = {}
        """Of what was claimed and has not begun."""
        self._size = 1
        self._claimed_at = 0.0
        self._lock = Lock()

    def claim(self, item: Item, following: Iterable[Item]) -> Claim:
        """Return whose a piece of work is; some of the pieces that follow are claimed with it."""
        if not self.leases.shared:
            return Claim.THIS_RUN
        with self._lock:
            key = self.key(item)
            if key not in self._claims:
                self._claim_block([item, *islice(following, self._next_size() - 1)])
            claim = self._claims.pop(key)
            if claim is Claim.HELD:
                self.held.append(item)
            return claim

    def these(self, items: Sequence[Item]) -> Iterator[Item]:
        """Yield the pieces of work that are this run's, one after the other."""
        for at, item in enumerate(items):
            if self.claim(item, islice(items, at + 1, None)) is Claim.THIS_RUN:
                yield item

    def wait(self) -> list[Item]:
        """Give back what was not begun, and wait for the other runs; return what they leave undone."""
        self.leases.release(self._claims)
        held = {self.key(item): item for item in self.held}
        self._claims, self.held = {}, []
        undone = lambda: {self.key(item) for item in self.undone(list(held.values()))}  # noqa: E731
        return [held[key] for key in self.leases.wait(list(held), undone)]

    def _claim_block(self, block: Sequence[Item]) -> None:
        items = {self.key(item): item for item in block}
        claimed = self.leases.claim([key for key in items if key not in self._claims])
        undone = {self.key(item) for item in self.undone([items[key] for key in claimed])}
        self.leases.release(claimed - undone)
        for key in items.keys() - self._claims.keys():
            is_open = Claim.THIS_RUN if key in undone else Claim.DONE
            self._claims[key] = is_open if key in claimed else Claim.HELD

    def _next_size(self) -> int:
        """Return the size of the next block: larger while blocks are worked off fast."""
        now = time.monotonic()
        fast = now - self._claimed_at < AHEAD
        self._size, self._claimed_at = min(MOST, 2 * self._size) if fast else max(1, self._size // 2), now
        return self._size
