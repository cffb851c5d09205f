"""How unequal judges would have to err between two groups to explain a gap away, where nobody checked them.

Judges call a share of the edits that show nothing (one minus specificity) and miss a share of those that show it (one
minus sensitivity). If both groups truly had one rate, the gap that was seen would be the judges'. The boundary runs
from "they call that many unaffected edits of the group that is ahead" to "they miss that many of the other's".
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from scipy.special import ndtri

from evenedit.core.records import Estimate
from evenedit.results.results import ExplainedGap, GapTest

POINTS = 6
"""Points of the boundary that are written down."""
POWER = 0.8
"""Share of samples of so many labels in which people alone would show the gap."""


def error_explaining_gap(test: GapTest, high: Estimate, low: Estimate, confidence: float) -> ExplainedGap | None:
    """Return the unequal error that would produce the gap of two rates; None without one."""
    a, b = high.value, low.value
    if test.editor is None or a is None or b is None or a <= b:
        return None
    return ExplainedGap(
        highest=test.highest,
        lowest=test.lowest,
        false_calls=(a - b) / (1 - b),
        misses=1 - b / a,
        boundary=tuple(boundary(a, b)),
        labels=_labels(high, low, confidence),
    )


def boundary(a: float, b: float) -> Iterator[tuple[float, float]]:
    """Yield pairs (false calls in the group ahead, misses in the other) that make the true rates equal."""
    most = (a - b) / (1 - b)
    for step in range(POINTS):
        called = most * step / (POINTS - 1)
        true = (a - called) / (1 - called) if called < 1 else b
        yield called, max(0.0, 1 - b / true) if true > 0 else 0.0


def _labels(high: Estimate, low: Estimate, confidence: float) -> int | None:
    """Return the edits per group that people must rate to show the gap, with the same clustering by face."""
    quantile = 0.5 + confidence / 2
    spread, effects = 0.0, []
    for e in (high, low):
        assert e.value is not None
        variance = e.value * (1 - e.value)
        spread += variance
        if e.low is None or e.high is None or not variance:
            continue
        error = (e.high - e.low) / 2 / float(ndtri(quantile))
        effects.append(max(1.0, error**2 * e.n / variance))
    if not effects:
        return None
    effect = sum(effects) / len(effects)
    gap = float(high.value or 0.0) - float(low.value or 0.0)
    return ceil((float(ndtri(quantile)) + float(ndtri(POWER))) ** 2 * spread * effect / gap**2)
