"""A run's budget: no new call is begun once it is spent; what is under way is finished and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


class Budget:
    """Calls to services and what they cost, counted while they are made."""

    def __init__(self, max_calls: int | None = None, max_cost: float | None = None) -> None:
        self.max_calls = max_calls
        self.max_cost = max_cost
        self.calls = 0
        self._costs: list[Callable[[], float]] = []

    @property
    def cost(self) -> float:
        """Dollars spent so far."""
        return sum(cost() for cost in self._costs)

    @property
    def spent(self) -> bool:
        """Whether no further call may begin."""
        return (self.max_calls is not None and self.calls >= self.max_calls) or (
            self.max_cost is not None and self.cost >= self.max_cost
        )

    def watch(self, cost: Callable[[], float]) -> None:
        """Watch a cost that grows while the run goes on."""
        self._costs.append(cost)

    def admit(self, items: Iterable[Item], each: float | None = None) -> Iterator[Item]:
        """Let calls begin, one by one, until the budget is spent; `each` is the price of one, where it is fixed."""
        begun = 0
        self.watch(lambda: begun * (each or 0.0))
        for item in items:
            if self.spent:
                return
            self.calls += 1
            begun += 1
            yield item

    def __str__(self) -> str:
        return f"{self.calls:,} calls, US$ {self.cost:,.2f}"
