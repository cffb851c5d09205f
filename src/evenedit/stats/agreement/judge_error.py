"""Do judges err more for some groups? Judges' code minus people's at each rate's threshold, through the engine.

The test is the analysis of means of y = f - h over the edits that both rated, with pooled variance; Holm's adjustment
is over the rates and factors of one condition and editor. False calls are changes that only the judges see, misses
those that only people see, where people see a change if at least half of them do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evenedit.protocol.measures import Measure
from evenedit.results.results import Agreement
from evenedit.stats.agreement.outcomes import CountedOutcome, counted_rates
from evenedit.stats.agreement.overlap import Overlap, Place
from evenedit.stats.engine.anom import GroupTests, group_tests
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import estimates
from evenedit.stats.engine.families import holm
from evenedit.stats.engine.measures import MeasureTable
from evenedit.stats.engine.panel import Panel, by_face

UNIT = 10**6
"""Differences are summed in millionths."""
ERROR_GAP, FALSE_CALLS, MISSES = "judge_error_gap", "false_calls", "misses"
MAJORITY = 0.5


def judge_error(evidence: Overlap) -> Iterator[Agreement]:
    """Yield false calls and misses of every rate by group, and the test of the judges' error over each factor."""
    for condition in evidence.conditions():
        errors, shares = _panels(evidence, condition)
        if not errors.measures:
            continue
        crossed = CrossedPanel(shares)
        for e in estimates(crossed, shares.axes.groups(), evidence.rules):
            if e.value is not None:
                error, _, rate = Measure(e.measure).name.partition(".")
                place = Place(rate, condition, e.editor, group=e.group)
                yield evidence.row(place, error, e.value, e.low, e.high, e.n, e.n, e.method)
        tests = list(_tests(evidence, condition, errors))
        for editor in dict.fromkeys(row.editor for row in tests):
            family = [row for row in tests if row.editor == editor]
            note = f"Holm over {sum(row.p is not None for row in family)} tests of rates and factors"
            for row, p in zip(family, holm([row.p for row in family]), strict=True):
                yield row if p is None else evidence.with_note(row, note, p_adjusted=p)


def _panels(evidence: Overlap, condition: str) -> tuple[Panel, Panel]:
    """Return the panel of judges minus people, and that of false calls and misses, over the edits both rated."""
    rows = evidence.rows(condition)
    people = evidence.table.values[list(evidence.people)][:, rows]
    errors, shares = MeasureTable(), MeasureTable()
    for outcome in counted_rates(evidence.rules, evidence.table.rubric):
        judged, answers = outcome.codes(evidence.judged[rows]), outcome.codes(people)
        n = (~np.isnan(answers)).sum(axis=0)
        seen = np.nansum(answers, axis=0) / np.maximum(n, 1)
        both = (n > 0) & ~np.isnan(judged)
        errors.add_ratio(_of(outcome, "error"), np.where(both, judged - seen, 0.0), both, both, unit=UNIT)
        called = judged == 1
        unchanged, changed = both & (seen < MAJORITY), both & (seen >= MAJORITY)
        shares.add_ratio(_of(outcome, FALSE_CALLS), unchanged & called, unchanged, unchanged)
        shares.add_ratio(_of(outcome, MISSES), changed & ~called, changed, changed)
    edits = evidence.table.edits.iloc[rows]
    axes = by_face(edits, evidence.table.factors)
    first, second = (t.panel(edits, axes, "", condition) for t in (errors, shares))
    return first, second


def _of(outcome: CountedOutcome, error: str) -> Measure:
    return Measure.rate(f"{error}.{outcome.measure.name}")


def _tests(evidence: Overlap, condition: str, panel: Panel) -> Iterator[Agreement]:
    """Yield, by factor, rate and editor, the group whose error is furthest from that of the others."""
    crossed = CrossedPanel(panel)
    for factor, levels in panel.axes.levels.items():
        if len(levels) < 2:
            continue
        sizes = np.sum([crossed.of({factor: level}).count for level in levels], axis=0)
        for (row, at), tests in group_tests(crossed, factor, evidence.rules.confidence).items():
            rate = panel.measures[at].name.name.removeprefix("error.")
            place = Place(rate, condition, panel.rows()[row][0], group={factor: "*"})
            n = int(sizes[row, at])
            yield evidence.row(place, ERROR_GAP, *_furthest(tests, n), p=tests.smallest_p)


def _furthest(tests: GroupTests, n: int) -> tuple[float, float | None, float | None, int, int, str]:
    """Return size and interval of the largest deviation, the number of edits, and whose it is."""
    g = int(np.argmax(np.abs(tests.deviations)))
    value, ends = tests.deviations[g], tests.intervals[g]
    than = "the other group" if len(tests.levels) == 2 else "the mean of all groups"
    what = f"judges minus people, {tests.levels[g]} {'above' if value > 0 else 'below'} {than}"
    if ends is None:
        return abs(value), None, None, n, n, f"{what}; none: nothing varies"
    low, high = ends if value > 0 else (-ends[1], -ends[0])
    return abs(value), max(low, 0.0), min(high, 1.0), n, n, f"{what}; analysis of means, pooled variance"
