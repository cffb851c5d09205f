"""Statistics that are functions of sums over items: drawing items anew is then one matrix product for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evenedit.stats.engine.intervals import Interval, as_interval, percentile, wilson

Array = NDArray[np.float64]
CACHED = 2**20
"""About so many weights are made at once: more would leave the processor's cache."""
STREAM = 3
"""These draws' own random numbers, apart from those of the panels and the permutation tests."""
NOT_DRAWN = 1
"""With fewer units than two there is nothing to draw from."""


@dataclass(frozen=True, slots=True)
class Additive:
    """A statistic: what each item brings, and what the sums of that say."""

    name: str
    parts: Callable[..., Array]
    """The data as [item, …]: what is summed."""
    of: Callable[[Array], Array]
    """Sums [draw, …] as values [draw], NaN where they say nothing."""
    undefined: str
    """Why there may be no value although there are items."""
    method: str = ""
    """The convention, in words."""
    is_share: bool = False
    """Whether it is the share of items that have something."""

    def __call__(self, *data: NDArray[Any]) -> float | None:
        """Compute the statistic of the data; None where it is not defined."""
        parts = self.parts(*data)
        return _defined(self.of(parts.sum(axis=0)[None])[0]) if len(parts) else None


class ResampledStatistic(NamedTuple):
    """One statistic's value and interval, and how the interval was made or why something is None."""

    value: float | None
    low: float | None
    high: float | None
    method: str


@dataclass(frozen=True, slots=True)
class Resampler:
    """How units are drawn anew."""

    draws: int
    seed: int
    confidence: float

    def drawn(self, summed: NDArray[np.floating]) -> Array:
        """Return sums over resampled units [draw, part] from the parts of each unit [unit, part]."""
        weights = _weights(self.draws, self.seed, len(summed))
        chunk = max(1, CACHED // len(summed))
        parts = [weights[at : at + chunk].astype(np.float64) @ summed for at in range(0, self.draws, chunk)]
        return np.concatenate(parts)

    def estimate(
        self, wanted: Sequence[tuple[Additive, tuple[NDArray[Any], ...]]], unit: NDArray[np.int64], name: str
    ) -> list[ResampledStatistic]:
        """Estimate statistics of the same items with the same draws; `unit` numbers the unit of each item from 0."""
        if not len(unit):
            return [ResampledStatistic(None, None, None, "undefined: nothing to compare") for _ in wanted]
        kinds: dict[tuple[object, ...], Array] = {}  # statistics of the same data often have the same parts
        for statistic, data in wanted:
            key = _same_parts(statistic, data)
            if key not in kinds:
                kinds[key] = statistic.parts(*data)
        units = int(unit.max()) + 1
        member = sparse.csr_array((np.ones(len(unit)), (unit, np.arange(len(unit)))), shape=(units, len(unit)))
        summed = np.concatenate([member @ parts.reshape(len(parts), -1) for parts in kinds.values()], axis=1)
        ends = np.cumsum([parts[0].size for parts in kinds.values()])[:-1]

        def split(sums: Array) -> dict[tuple[object, ...], Array]:
            pieces = np.split(sums, ends, axis=1)
            return {k: x.reshape(len(x), *p.shape[1:]) for (k, p), x in zip(kinds.items(), pieces, strict=True)}

        totals = split(summed.sum(axis=0, keepdims=True))
        drawn = split(self.drawn(summed)) if units > NOT_DRAWN else {}
        values, draws = [], []
        for statistic, data in wanted:
            key = _same_parts(statistic, data)
            values.append(_defined(statistic.of(totals[key])[0]))
            if key in drawn and values[-1] is not None:
                draws.append(statistic.of(drawn[key]))
        bounds = iter(self._bounds(draws))
        return [
            self._to_statistic(statistic, value, next(bounds) if drawn and value is not None else None, name, units)
            for (statistic, _), value in zip(wanted, values, strict=True)
        ]

    def _bounds(self, draws: Sequence[Array]) -> list[Interval | Literal["alike"]]:
        """Return the interval of each statistic's draws; `alike` where they do not vary or too few are defined."""
        if not draws:
            return []
        stacked = np.stack(draws, axis=1)
        known = ~np.isnan(stacked)
        least = np.where(known, stacked, np.inf).min(axis=0)
        most = np.where(known, stacked, -np.inf).max(axis=0)
        bounds = percentile(stacked, self.confidence)
        pairs = (as_interval(bounds[:, at]) if most[at] > least[at] else None for at in range(len(draws)))
        return [pair or "alike" for pair in pairs]

    def _to_statistic(
        self,
        statistic: Additive,
        value: float | None,
        bounds: Interval | Literal["alike"] | None,
        unit: str,
        units: int,
    ) -> ResampledStatistic:
        convention = f"{statistic.method}; " if statistic.method else ""
        if value is None:
            return ResampledStatistic(None, None, None, f"{convention}undefined: {statistic.undefined}")
        if bounds is None:
            return ResampledStatistic(value, None, None, f"{convention}no interval: one {unit}")
        if bounds != "alike":
            return ResampledStatistic(value, *bounds, f"{convention}bootstrap({unit}s, {self.draws})")
        if statistic.is_share and value in (0.0, 1.0):  # every draw says the same, but not for sure
            share = wilson(round(value * units), units, self.confidence)
            assert share is not None
            return ResampledStatistic(value, *share, f"{convention}wilson({unit}s)")
        return ResampledStatistic(value, None, None, f"{convention}no interval: no variation to draw from")


def mean_of(name: str, *, is_share: bool = False) -> Additive:
    """Return the mean of one number per item."""
    return Additive(name, with_ones, ratio, "no item", is_share=is_share)


def with_ones(values: NDArray[Any]) -> Array:
    """Return the number of each item, and 1."""
    return np.stack([values, np.ones(len(values))], axis=1).astype(np.float64)


def ratio(sums: Array) -> Array:
    """Return the first sum over the second."""
    return divide(sums[:, 0], sums[:, 1])


def divide(top: Array, bottom: Array) -> Array:
    """Divide; NaN where the divisor is 0 up to rounding."""
    out = np.full(np.shape(top), np.nan)
    return np.asarray(np.divide(top, bottom, out=out, where=np.abs(bottom) > 1e-12))


def _same_parts(statistic: Additive, data: tuple[NDArray[Any], ...]) -> tuple[object, ...]:
    return (statistic.parts, *map(id, data))


def _defined(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)


@lru_cache(maxsize=8)
def _weights(draws: int, seed: int, units: int) -> NDArray[np.uint16]:
    """Return how often each unit is drawn [draw, unit]; equal for every statistic of so many units."""
    rng = np.random.default_rng([seed, STREAM, units])
    return np.concatenate([w.astype(np.uint16) for w in unit_weights(rng, units, draws, max(1, CACHED // units))])


def unit_weights(rng: np.random.Generator, units: int, draws: int, chunk: int) -> Iterator[NDArray[np.int64]]:
    """Yield chunks [draw, unit] of how often each unit is drawn, n - 1 times with replacement (Rao and Wu 1988)."""
    for start in range(0, draws, chunk):
        size = min(chunk, draws - start)
        drawn = rng.integers(0, units, size=(size, units - 1))
        drawn += (np.arange(size) * units)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * units).reshape(size, units)
