"""A run's budget over every paid call: money is reserved before a call is sent and settled when it has ended.

So no new call begins once the budget is spent, and what is under way fits in. Only the last call, sent when nothing
else is under way, may cost more than was left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Condition

CAUTION = 3.0
"""A call is reserved at this multiple of the most expensive call so far, or of the expected cost: answers differ in
length."""
ROUNDING = 1e-9
"""Dollars: twenty calls of 0.10 fit into 2.00."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """The place of one call in the budget."""

    dollars: float


class Budget:
    """Calls to services and what they cost, counted while they are made, by any number of threads."""

    def __init__(self, max_calls: int | None = None, max_cost: float | None = None) -> None:
        self.max_calls = max_calls
        self.max_cost = max_cost
        self.calls = 0
        self.priced = True
        """Whether the price of every call is known."""
        self._settled = 0.0
        self._reserved = 0.0
        self._under_way = 0
        self._costs: list[Callable[[], float]] = []
        self._denied = False
        self._changed = Condition()

    @property
    def cost(self) -> float:
        """Dollars spent so far, those of batch jobs under way as they are reserved."""
        return self._settled + sum(cost() for cost in self._costs)

    @property
    def spent(self) -> bool:
        """The budget allows no further call."""
        with self._changed:
            return (
                self._denied
                or (self.max_calls is not None and self.calls >= self.max_calls)
                or (self.max_cost is not None and self.cost >= self.max_cost)
            )

    def watch(self, cost: Callable[[], float]) -> None:
        """Add a cost that is counted by the caller."""
        self._costs.append(cost)

    def begin(self, dollars: float = 0.0) -> bool:
        """Count one more call that somebody else accounts for; return False if it does not fit into the budget."""
        with self._changed:
            if self.spent or not self._fits(dollars):
                self._denied = True
                return False
            self.calls += 1
            return True

    def carry(self, calls: int, dollars: float) -> None:
        """Count calls of an earlier run that this one continues."""
        with self._changed:
            self.calls += calls
            self._settled += dollars

    def take_back(self, calls: int) -> None:
        """Uncount calls that were counted and not made."""
        with self._changed:
            self.calls -= calls

    def reserve(self, dollars: float = 0.0, expected: float | None = None) -> Reservation | None:
        """Reserve one more call, which must be settled when it has ended; return None if the budget is spent.

        Ask right before the call, not when it is queued. Where it would fit if what is under way cost less than was
        reserved for it, this waits. `expected` is its expected cost, which counts when nothing else is under way.
        """
        with self._changed:
            while True:
                if self._denied or (self.max_calls is not None and self.calls >= self.max_calls):
                    break
                if self._fits(dollars) or (not self._under_way and expected is not None and self._fits(expected)):
                    self.calls += 1
                    self._under_way += 1
                    self._reserved += dollars
                    return Reservation(dollars)
                if not self._under_way:
                    break
                self._changed.wait()
            self._denied = True
            self._changed.notify_all()
            return None

    def settle(self, reservation: Reservation, dollars: float) -> None:
        """Record what a call cost."""
        with self._changed:
            self._under_way -= 1
            self._reserved = self._reserved - reservation.dollars if self._under_way else 0.0
            self._settled += dollars
            self._changed.notify_all()

    def _fits(self, dollars: float) -> bool:
        if self.max_cost is None:
            return True
        return self.cost < self.max_cost and self.cost + self._reserved + dollars <= self.max_cost + ROUNDING

    def __str__(self) -> str:
        return f"{self.calls:,} calls, {self.dollars}"

    @property
    def dollars(self) -> str:
        """The cost in words."""
        return f"US$ {self.cost:,.2f}" if self.priced else "price not known"


class Account:
    """The calls of one model: what each is expected to cost before, and what it cost.

    If money is limited, the first call is the only one under way, since it shows what the others will cost. Then no
    more calls are under way at once than have ended.
    """

    def __init__(self, budget: Budget, price: Mapping[str, float] | None = None, expected: float = 0.0) -> None:
        self.budget = budget
        self.price = price or {}
        """Dollars per token, in and out."""
        self.expected = expected
        """Dollars of one call, by the tokens measured in earlier runs or assumed."""
        self._limited = budget.max_cost is not None and any(self.price.values())
        self._dearest = 0.0
        self._total = 0.0
        self._ended = 0
        self._under_way = 0
        self._changed = Condition()

    def begin(self) -> Reservation | None:
        """Reserve one call; return None if the budget is spent."""
        if not self._limited:
            return self.budget.reserve()
        with self._changed:
            self._changed.wait_for(lambda: self._under_way <= self._ended)
            self._under_way += 1
            # Without a known price, reserve all that is left, so that no other call is under way.
            cautious = CAUTION * max(self.expected, self._dearest) or math.inf
            mean = self._total / self._ended if self._ended else self.expected
        reservation = self.budget.reserve(cautious, mean)
        if reservation is None:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()
        return reservation

    def settle(self, reservation: Reservation, tokens: tuple[int, int]) -> None:
        """Record the tokens that a call was charged for; none if it failed."""
        dollars = sum(n * self.price.get(way, 0.0) for way, n in zip(("input", "output"), tokens, strict=True))
        if self._limited:
            with self._changed:
                self._under_way -= 1
                if dollars:
                    self._ended += 1
                    self._total += dollars
                    self._dearest = max(self._dearest, dollars)
                self._changed.notify_all()
        self.budget.settle(reservation, dollars)


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
