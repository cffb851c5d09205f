"""A run's budget: no new call is begun once it is spent; what is under way is finished and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import RLock
from typing import TypeVar

Item = TypeVar("Item")


class Budget:
    """Calls to services and what they cost, counted while they are made, by any number of threads."""

    def __init__(self, max_calls: int | None = None, max_cost: float | None = None) -> None:
        self.max_calls = max_calls
        self.max_cost = max_cost
        self.calls = 0
        self.priced = True
        """Whether the price of every call is known."""
        self._costs: list[Callable[[], float]] = []
        self._denied = False
        self._lock = RLock()

    @property
    def cost(self) -> float:
        """Dollars spent so far."""
        return sum(cost() for cost in self._costs)

    @property
    def spent(self) -> bool:
        """Whether no further call may begin."""
        with self._lock:
            return (
                self._denied
                or (self.max_calls is not None and self.calls >= self.max_calls)
                or (self.max_cost is not None and self.cost >= self.max_cost)
            )

    def watch(self, cost: Callable[[], float]) -> None:
        """Watch a cost that grows while the run goes on."""
        self._costs.append(cost)

    def begin(self, reserve: float = 0.0) -> bool:
        """Whether one more call may begin, which is counted then. Ask right before the call, not when it is queued.

        `reserve` is what it is expected to cost, where that must fit in as a whole.
        """
        with self._lock:
            if self.spent or (self.max_cost is not None and self.cost + reserve > self.max_cost):
                self._denied = True
                return False
            self.calls += 1
            return True

    def admit(self, items: Iterable[Item], each: float | None = None) -> Iterator[Item]:
        """Let calls begin, one by one, until the budget is spent; `each` is the price of one, where it is fixed."""
        begun = 0
        self.watch(lambda: begun * (each or 0.0))
        for item in items:
            if not self.begin():
                return
            begun += 1
            yield item

    def __str__(self) -> str:
        return f"{self.calls:,} calls, {self.dollars}"

    @property
    def dollars(self) -> str:
        """The cost in words."""
        return f"US$ {self.cost:,.2f}" if self.priced else "price not known"


class Meter:
    """Tokens and dollars of a run so far, in words for the progress line."""

    def __init__(self, budget: Budget, counters: Iterable[Callable[[], Mapping[str, int]]]) -> None:
        self.budget = budget
        self.counters = list(counters)
        """Each gives the tokens in and out so far."""

    def __str__(self) -> str:
        counts = [counter() for counter in self.counters]
        tokens = [sum(count[way] for count in counts) for way in ("input", "output")]
        if not any(tokens):
            return ""
        return f"{_short(tokens[0])} tokens in, {_short(tokens[1])} out · {self.budget.dollars}"


def _short(count: int) -> str:
    for size, unit in ((1_000_000, " M"), (1_000, " k")):
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return str(count)
