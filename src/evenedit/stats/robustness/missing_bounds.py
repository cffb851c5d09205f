"""Worst cases: how small and how large each gap could be, whatever the missing scores would have been."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from evenedit.core.records import Estimate
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.results.results import Bound
from evenedit.stats.engine.estimates import rate_range


def bounds(estimates: Iterable[Estimate], rater: str | None = None) -> Iterator[Bound]:
    """Yield a bound for every gap whose groups lack scores.

    A group with h hits among n valid scores and m missing ones has a rate between h / (n + m) and (h + m) / (n + m).
    The gap is largest with one group at its top and another at its bottom, and cannot be smaller than the distance
    between the two intervals that lie furthest apart.
    """
    groups: dict[tuple[str, str, str, str | None, str], list[Estimate]] = defaultdict(list)
    for e in estimates:
        if Measure(e.measure).kind == MeasureKind.RATE and len(e.group) == 1:
            groups[e.measure, e.experiment, e.condition, e.editor, next(iter(e.group))].append(e)
    for (measure, experiment, condition, editor, factor), members in groups.items():
        shares = [e.value for e in members if e.value is not None]
        if len(shares) < 2 or not any(e.missing for e in members):
            continue
        ranges = [rate_range(e) for e in members]
        pairs = [(a, b) for i, a in enumerate(ranges) for j, b in enumerate(ranges) if i != j]
        yield Bound(
            measure.replace("rate.", "gap.", 1),
            experiment,
            condition,
            editor,
            factor,
            max(shares) - min(shares),
            max(0.0, *(a[0] - b[1] for a, b in pairs)),
            max(a[1] - b[0] for a, b in pairs),
            sum(e.missing for e in members),
            rater,
        )
