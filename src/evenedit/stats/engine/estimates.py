"""A panel's estimates: every measure, for every editor and group, with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from evenedit.core.records import Estimate
from evenedit.protocol import QUESTIONS
from evenedit.protocol.measures import MeasureKind
from evenedit.stats.engine.bootstrap import Bootstrap
from evenedit.stats.engine.draws import Draws
from evenedit.stats.engine.intervals import Interval, wilson
from evenedit.stats.engine.panel import Panel, RatioMeasure
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.variance import Uncertainty, wilson_interval

SCALE = (1.0, 5.0)
"""No mean of scores lies outside."""
NEGLIGIBLE = 1e-15
"""A variance below this is rounding."""


def ratio(total: int, count: int) -> float | None:
    """Divide two integers; None where the count is 0."""
    return total / count if count else None


def estimates(bootstrap: Bootstrap, groups: list[dict[str, str]], rules: AnalysisRules) -> Iterator[Estimate]:
    """Yield the estimate of every measure × editor × group of a panel."""
    panel = bootstrap.panel
    effects = bootstrap.design_effects
    for group in groups:
        mask = panel.axes.mask(group)
        draws, pull = bootstrap.group(mask), effects.of(group, rules.confidence)
        for row, (editor, members) in enumerate(panel.rows()):
            for at, measure in enumerate(panel.measures):
                total, count, applicable = (
                    panel.column_sum(c, members, mask) for c in (measure.total, measure.count, measure.applicable)
                )
                if applicable == 0:
                    continue
                interval, method = headline(bootstrap, draws, pull, row, at, total, count, rules.confidence)
                yield Estimate(
                    measure=measure.name,
                    experiment=panel.experiment,
                    condition=measure.condition or panel.condition,
                    editor=editor,
                    group=group,
                    value=ratio(total, count),
                    low=interval[0] if interval else None,
                    high=interval[1] if interval else None,
                    n=count,
                    missing=applicable - count,
                    method=method,
                    wilson=wilson(total, count, rules.confidence) if measure.is_rate else None,
                )


def headline(
    bootstrap: Bootstrap,
    draws: Draws,
    pull: NDArray[np.float64],
    row: int,
    at: int,
    total: int,
    count: int,
    confidence: float,
) -> tuple[Interval | None, str]:
    """Return the headline interval of a measure of an editor, and its method; `pull` is the group's design effect."""
    name = bootstrap.panel.axes.cluster_name
    measure = bootstrap.panel.measures[at]
    if count == 0:
        return None, "none: no valid score"
    if draws.clusters < 2:
        return None, f"none: one {name}"
    if measure.is_share and total in (0, count):
        # every draw repeats the 0 or 1: how alike rows are is what the other groups and rates show
        alike = float(pull[row, at])
        unknown = np.isclose(alike, count / draws.clusters * NormalDist().inv_cdf(0.5 + confidence / 2) ** 2)
        how = f"wilson({name}s)" if unknown else "wilson(design effect of others)"
        return wilson_interval(total / count, alike / count), how
    if measure.name.kind == MeasureKind.SHIFT and abs(total) == count:
        low, high = wilson(draws.clusters, draws.clusters, confidence) or (0.0, 1.0)
        ends = (2 * low - 1, high) if total > 0 else (-high, 1 - 2 * low)  # what is not on this side may be opposed
        return ends, f"wilson({name}s)"
    if measure.name.kind == MeasureKind.SHIFT and total == 0 and draws.over_cells[row, at] <= NEGLIGIBLE:
        high = (wilson(0, draws.clusters, confidence) or (0.0, 1.0))[1]  # nothing moved: either way so much may hide
        return (-high, high), f"wilson({name}s)"
    variance, freedom = (float(x[row, at]) for x in (draws.uncertainty.variance, draws.uncertainty.freedom))
    if np.isnan(variance):
        return None, "none: too few draws have a valid score"
    if variance <= NEGLIGIBLE:
        return None, "none: no variation to draw from"
    value = total / count
    if measure.is_share:
        return wilson_interval(value, float(pull[row, at]) / count), method(bootstrap, at)
    reach = float(Uncertainty(np.asarray(variance), np.asarray(freedom)).half_width(confidence))
    low, high = value - reach, value + reach
    if measure.name.kind == MeasureKind.MEAN and measure.name.name in QUESTIONS:
        low, high = max(low, SCALE[0]), min(high, SCALE[1])
    if measure.name.kind == MeasureKind.SHIFT:
        low, high = max(low, -1.0), min(high, 1.0)
    return (low, high), method(bootstrap, at)


def method(bootstrap: Bootstrap, at: int) -> str:
    """Return the name of what was drawn for a measure, and how often."""
    axes = bootstrap.panel.axes
    crossed = len(axes.prompts) > 1 and not bootstrap.single_prompt[at]
    return f"bootstrap({axes.cluster_name}{' x prompt' if crossed else ''}, {bootstrap.draws})"


def shares(
    panel: Panel, measure: RatioMeasure, members: list[int], levels: Mapping[str, NDArray[np.bool_]]
) -> dict[str, float]:
    """Return a measure at each level that has a valid score."""
    values = {
        level: ratio(panel.column_sum(measure.total, members, mask), panel.column_sum(measure.count, members, mask))
        for level, mask in levels.items()
    }
    return {level: value for level, value in values.items() if value is not None}
