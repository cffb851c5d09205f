"""Direction of change: the levels of a factor that portraits and edits are seen as, and where edits move.

Portraits and edits are read alike, one picture at a time. The second reading of a portrait shows what reading noise
alone does. All numbers are ratios of integer columns, with face x prompt clustered variances.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.core.records import ConditionKind, Experiment, Kind, Outcome
from evenedit.protocol import Factor
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.ratings.table import Scores
from evenedit.results.directions import Direction
from evenedit.stats.engine.contrasts import everybody_test
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import GroupEstimates
from evenedit.stats.engine.measures import MeasureTable
from evenedit.stats.engine.panel import Axes, Column, RatioMeasure, build_panel, by_face
from evenedit.stats.engine.rules import AnalysisRules

FEWEST_EVENTS = 10
"""A flow of fewer edits, both ways together, is not tested."""
CONDITIONS = (ConditionKind.BASELINE, ConditionKind.FLOOR)
"""The baseline, and the null edit beside it."""
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SeenReadings:
    """The level that each picture is seen as, by edit: 1 is the factor's first level, 0 is missing or CANNOT_TELL."""

    factor: Factor
    before: Column
    """The reading of the edit's portrait: the same for all edits of a portrait."""
    after: Column
    """The reading of the edit."""
    reread: Column
    """The second reading of the edit's portrait, from a mirrored copy."""
    unasked: Flags
    """Whether the edit's prompt does not ask for a change of this factor."""
    per_judge: Mapping[str, Column] = field(default_factory=dict)
    """Each judge's own reading of the edit."""

    def considered(self, edits: pd.DataFrame, condition: str = ConditionKind.BASELINE) -> Flags:
        """Return the edits of the diagnosis under a condition that were made and not asked to change the factor."""
        wanted = {"experiment": Experiment.DIAGNOSIS, "condition": condition, "outcome": Outcome.EDITED}
        chosen = [(edits[column] == value).to_numpy() for column, value in wanted.items()]
        return np.asarray(np.logical_and.reduce([*chosen, self.unasked]))


class Quantity(NamedTuple):
    """One number as columns by edit."""

    measure: Measure
    before: str
    after: str
    kind: MeasureKind
    """What it is to the engine: a share (rate), a difference of shares (shift) or a mean."""
    total: Column
    among: Flags
    """The edits that it counts where both pictures are read."""


def quantities(factor: Factor, before: Column, after: Column) -> Iterator[Quantity]:
    """Yield every number about a factor from the readings before and after."""
    moved = (before > 0) & (after > 0) & (before != after)
    unread = (before == 0) | (after == 0)
    every_edit, name = np.ones(len(before), dtype=np.bool_), f"{factor.name}_seen"
    share, signed = MeasureKind.RATE, MeasureKind.SHIFT
    yield Quantity(Measure.rate(f"{name}_changed"), "", "", share, _integers(moved), every_edit)
    if factor.ordered or all(level.years is not None for level in factor.levels):
        steps = np.where(moved, after - before, 0)
        yield Quantity(Measure.mean(f"{name}_steps"), "", "", MeasureKind.MEAN, _integers(steps), every_edit)
    for at, level in enumerate(factor.codes, start=1):
        arrived, left = moved & (after == at), moved & (before == at)
        toward, destination = (
            Measure.seen(k, factor.name, level) for k in (MeasureKind.TOWARD, MeasureKind.DESTINATION)
        )
        yield Quantity(toward, "", level, signed, _integers(arrived) - _integers(left), every_edit)
        yield Quantity(destination, "", level, share, _integers(arrived), (before != at) & (moved | unread))
        for other_at, other in enumerate(factor.codes, start=1):
            forth, back = (_integers((before == a) & (after == b)) for a, b in ((at, other_at), (other_at, at)))
            transition = Measure.seen(MeasureKind.TRANSITION, factor.name, level, other)
            yield Quantity(transition, level, other, share, forth, before == at)
            if other_at > at:
                flow = Measure.seen(MeasureKind.FLOW, factor.name, level, other)
                yield Quantity(flow, level, other, signed, forth - back, np.isin(before, (at, other_at)))


def seen_readings(scores: Scores) -> list[SeenReadings]:
    """Return the readings of every factor that the rubric asks about."""
    table, matches = scores.table, []
    for factor in table.factors:
        columns = [f"{factor.name}_{when}" for when in ("before", "after", "again")]
        if not all(column in table.rubric for column in columns):
            continue
        levels = len(factor.codes)  # what comes after them is CANNOT_TELL
        before, after, repeated = (_level(scores.of(column), levels) for column in columns)
        judged = table.values[:, :, table.at(columns[1])]
        judges = {table.raters[at]: _level(judged[at], levels) for at in table.of_kind(Kind.VLM)}
        matches.append(SeenReadings(factor, before, after, repeated, ~table.asked_for(f"{factor.name}_drift"), judges))
    return matches


def _level(values: NDArray[np.int8], levels: int) -> Column:
    return np.where(values <= levels, values, 0).astype(np.int64)


def direction_results(
    edits: pd.DataFrame, readings: Sequence[SeenReadings], factors: Sequence[Factor], rules: AnalysisRules
) -> list[Direction]:
    """Return the directions of change of every factor, condition and editor; `factors` are the portraits' labels."""
    return [
        direction
        for one in readings
        for condition in CONDITIONS
        for direction in _directions(edits, one, condition, factors, rules)
    ]


def _directions(
    edits: pd.DataFrame, r: SeenReadings, condition: str, factors: Sequence[Factor], rules: AnalysisRules
) -> Iterator[Direction]:
    rows = np.flatnonzero(r.considered(edits, condition))
    if not len(rows):
        return
    edits, before, after, reread = edits.iloc[rows], r.before[rows], r.after[rows], r.reread[rows]
    read = (before > 0) & (after > 0)
    twice = read & (reread > 0)
    changes, noise = (list(quantities(r.factor, before, later)) for later in (after, reread))
    differences = [
        # a difference of two shares is no share
        x._replace(kind=MeasureKind.SHIFT if x.kind == MeasureKind.RATE else x.kind, total=x.total - y.total)
        for x, y in zip(changes, noise, strict=True)
    ]
    axes = by_face(edits, factors)
    of_edits, controls, beyond_controls = (
        _numbers(edits, axes, r.factor, several, valid, condition, rules.confidence)
        for several, valid in ((changes, read), (noise, twice), (differences, twice))
    )
    seen = {""} | {c for at, c in enumerate(r.factor.codes, start=1) if ((before == at) | (after == at)).any()}
    for place, d in of_edits.items():
        if not {d.before, d.after} <= seen:
            continue
        control, beyond = controls.get(place), beyond_controls.get(place)
        # the changed edits of a destination are others than the changed readings of portraits
        if control is None or beyond is None or Measure(d.measure).kind == MeasureKind.DESTINATION:
            yield d
            continue
        d = replace(d, control=control.value, control_low=control.low, control_high=control.high)
        yield replace(d, beyond=beyond.value, beyond_low=beyond.low, beyond_high=beyond.high)


def _numbers(
    edits: pd.DataFrame,
    axes: Axes,
    factor: Factor,
    several: Sequence[Quantity],
    valid: Flags,
    condition: str,
    confidence: float,
) -> dict[tuple[str, str], Direction]:
    """Return every quantity with its interval by editor and measure, where an edit counts."""
    ledger = MeasureTable()
    every = np.ones(len(edits), dtype=np.int64)
    for q in several:
        counted = q.among & valid
        total = np.where(counted, q.total, 0)
        names = f"total.{q.measure}", f"n.{q.measure}", "every"
        measure = RatioMeasure(Measure.of(q.kind, q.measure), *names, signed=q.kind == MeasureKind.SHIFT)
        ledger.add(measure, total, _integers(counted), every)
        ledger.columns |= {f"events.{q.measure}": np.abs(total), f"missing.{q.measure}": _integers(q.among & ~valid)}
    experiment = Experiment.DIAGNOSIS.value
    panel = build_panel(edits, axes, ledger.columns, ledger.measures, experiment=experiment, condition=condition)
    overall, every_face = GroupEstimates.of(CrossedPanel(panel), {}, confidence), axes.mask({})
    sums = overall.sums
    numbers = {}
    for (row, editor), (at, q) in product(enumerate(panel.editors), enumerate(several)):
        columns = (f"{name}.{q.measure}" for name in ("total", "n", "events", "missing"))
        net, n, events, missing = (panel.column_sum(column, [row], every_face) for column in columns)
        test = everybody_test(overall, row, at, 0.0)
        if test is None:
            continue
        is_tested = condition == ConditionKind.BASELINE and (
            (q.measure.kind == MeasureKind.FLOW and events >= FEWEST_EVENTS)
            or (q.measure.kind == MeasureKind.TOWARD and len(factor.codes) > 2)  # of two levels the flow says the same
        )
        place = factor.name, q.measure, q.before, q.after, panel.experiment, panel.condition, editor
        counts = net, n, missing, int(sums.faces[row, at]), int(sums.prompts[row, at])
        p = test.p if is_tested else None
        numbers[editor, str(q.measure)] = Direction(*place, test.value, test.low, test.high, *counts, p)
    return numbers


def _integers(values: NDArray[np.bool_] | NDArray[np.int64]) -> Column:
    return np.asarray(values, dtype=np.int64)
