"""Differences between the groups of a factor: gaps with their tests and bounds, contrasts and trends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from evenedit.core.records import Estimate
from evenedit.protocol import Factor
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.results.results import Bound, Contrast, GapTest, GroupDifference
from evenedit.stats.engine.anom import GroupTests, group_tests, slope_weights
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import rate_range
from evenedit.stats.engine.panel import Panel
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.variance import Uncertainty

Ends = tuple[float | None, float | None]
NONE: Ends = (None, None)


def gaps(crossed: CrossedPanel, rules: AnalysisRules) -> Iterator[tuple[Estimate, GapTest]]:
    """Yield gap.<rate> and its test over each factor with two levels or more, for every editor and pooled.

    The value is highest minus lowest. The interval is that of the largest true difference between two groups.
    """
    panel = crossed.panel
    rows = panel.rows()
    for factor, levels in panel.axes.levels.items():
        if len(levels) < 2:
            continue
        labelled = np.isin(panel.axes.labels[factor], levels)
        for (row, at), tests in group_tests(crossed, factor, rules.confidence).items():
            measure = panel.measures[at]
            if not (measure.is_rate and panel.rubric.words(measure.name.name).gap):
                continue
            editor, members = rows[row]
            name = measure.name.to(MeasureKind.GAP)
            ends = NONE if tests.range_interval is None else tests.range_interval
            count = panel.column_sum(measure.count, members, labelled)
            missing = panel.column_sum(measure.applicable, members, labelled) - count
            where, high = (name, *panel.place(editor), {factor: "*"}), None if ends[1] is None else min(1.0, ends[1])
            estimate = Estimate(*where, tests.gap, ends[0], high, count, missing, _range_method(tests))
            faces = int((panel.sums[measure.count][members].sum(axis=0)[labelled] > 0).sum())
            yield estimate, gap_test(tests, name, panel, editor, factor, faces)


def gap_test(tests: GroupTests, measure: str, panel: Panel, editor: str | None, factor: str, faces: int) -> GapTest:
    """Return the test of a gap from the tests of its groups."""
    rates = dict(zip(tests.levels, tests.rates, strict=True))
    smallest = tests.smallest_p
    first = None if smallest is None else tests.p.index(smallest)
    return GapTest(
        *(measure, *panel.place(editor), factor),
        value=tests.gap,
        highest=max(rates, key=rates.__getitem__),
        lowest=min(rates, key=rates.__getitem__),
        p=smallest,
        faces=faces,
        method=_test_method(tests),
        t=None if first is None else tests.t[first],
        df=None if first is None else tests.freedom,
        shrunken=tests.gap * tests.shrinkage,
        tau=tests.tau,
        groups=group_differences(tests),
    )


def group_differences(tests: GroupTests) -> tuple[GroupDifference, ...]:
    """Return each group of a test with its difference."""
    rows = zip(tests.levels, tests.rates, tests.deviations, tests.intervals, tests.p, strict=True)
    groups = []
    for level, rate, value, ends, p in rows:
        low, high = (None, None) if ends is None else (_clip(ends[0]), _clip(ends[1]))
        groups.append(GroupDifference(level, rate, _clip(value), low, high, p))
    return tuple(groups)


def _clip(value: float) -> float:
    """Return a difference of shares within -1 and 1; an estimate from few labels can lie outside."""
    return min(max(value, -1.0), 1.0)


def contrasts(crossed: CrossedPanel, rules: AnalysisRules) -> Iterator[Contrast]:
    """Yield the rate of each level minus the rate of everybody else, for every editor and pooled."""
    panel = crossed.panel
    for factor, levels in panel.axes.levels.items():
        if len(levels) < 2:
            continue
        counts = [crossed.of({factor: level}).count for level in levels]
        size = np.sum(counts, axis=0)
        for position, level in enumerate(levels):
            rest = np.maximum(size - counts[position], 1.0)
            weights = [np.ones_like(size) if at == position else -n / rest for at, n in enumerate(counts)]
            value, sure = weighted_sum(crossed, factor, weights)
            low, high = np.clip(sure.interval(value, rules.confidence), -1.0, 1.0)
            for (row, (editor, _)), (at, measure) in product(enumerate(panel.rows()), enumerate(panel.measures)):
                n, ends = counts[position][row, at], known_ends(low[row, at], high[row, at])
                if measure.is_rate and 0 < n < size[row, at]:
                    where = measure.name, *panel.place(editor), {factor: level}
                    yield Contrast(*where, float(value[row, at]), *ends, int(n))


def known_ends(low: float, high: float) -> Ends:
    """Return the ends of an interval; None where there is none."""
    return NONE if np.isnan(low) else (float(low), float(high))


def weighted_sum(
    crossed: CrossedPanel, factor: str, weights: Sequence[NDArray[np.float64] | float]
) -> tuple[NDArray[np.float64], Uncertainty]:
    """Return a weighted sum of the estimates of a factor's groups, groups without a score left out.

    Its variance is the larger of its own and the one pooled over the groups.
    """
    groups = [crossed.of({factor: level}) for level in crossed.panel.axes.levels[factor]]
    value = np.sum([np.nan_to_num(w * g.value) for w, g in zip(weights, groups, strict=True)], axis=0)
    return value, crossed.uncertainty(groups, weights).larger(crossed.pooled((factor,)).of(weights))


def trends(crossed: CrossedPanel, factors: Sequence[Factor], rules: AnalysisRules) -> Iterator[Estimate]:
    """Yield trend.<rate>, the least-squares slope of the group rates over an ordered factor's levels."""
    panel = crossed.panel
    for factor in (f for f in factors if f.ordered and len(panel.axes.levels.get(f.name, ())) > 1):
        levels = panel.axes.levels[factor.name]
        value, sure = weighted_sum(crossed, factor.name, slope_weights(factor, levels))
        low, high = sure.interval(value, rules.confidence)
        scored = np.min([crossed.of({factor.name: level}).count for level in levels], axis=0) > 0
        labelled = np.isin(panel.axes.labels[factor.name], levels)
        for (row, (editor, members)), (at, measure) in product(enumerate(panel.rows()), enumerate(panel.measures)):
            if not measure.is_rate or not scored[row, at]:  # a level without scores leaves no slope
                continue
            count = panel.column_sum(measure.count, members, labelled)
            missing = panel.column_sum(measure.applicable, members, labelled) - count
            where = measure.name.to(MeasureKind.TREND), *panel.place(editor), {factor.name: "*"}
            ends = known_ends(low[row, at], high[row, at])
            method = "slope of group rates" + ("; none: nothing varies" if ends == NONE else ", t")
            yield Estimate(*where, float(value[row, at]), *ends, count, missing, method)


def _test_method(tests: GroupTests) -> str:
    """Return how the groups were tested."""
    if tests.smallest_p is None:
        return "none: nothing varies" if tests.t[0] is None else "none: too few faces"
    separated = all(t is None for t in tests.t)
    return "exact permutation of faces" if separated else "analysis of means, pooled variance"


def _range_method(tests: GroupTests) -> str:
    """Return how the interval of a gap was made."""
    if tests.range_interval is None:
        return "none: nothing varies"
    return "tukey-kramer, pooled variance" if tests.t[0] is not None else "korn-graubard(source)"


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
        place = measure.replace("rate.", "gap.", 1), experiment, condition, editor, factor
        least, most = max(0.0, *(a[0] - b[1] for a, b in pairs)), max(a[1] - b[0] for a, b in pairs)
        yield Bound(*place, max(shares) - min(shares), least, most, sum(e.missing for e in members), rater)
