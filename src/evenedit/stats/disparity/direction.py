"""Direction of change: the levels of a factor that portraits and edits are seen as, and where edits move.

Portraits and edits are read alike, one picture at a time. The second reading of a portrait shows what reading noise
alone does. All numbers are ratios of integer columns, with face x prompt clustered variances.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.core.records import ConditionKind, Experiment, Outcome
from evenedit.protocol import Factor
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.results.directions import Direction
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import headline
from evenedit.stats.engine.intervals import Interval
from evenedit.stats.engine.measures import MeasureTable
from evenedit.stats.engine.panel import Column, RatioMeasure, build_panel, by_face
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.shift_tests import shift_p
from evenedit.stats.engine.variance import Uncertainty

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
    again: Column
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
    everyone, name = np.ones(len(before), dtype=np.bool_), f"{factor.name}_seen"
    share, signed = MeasureKind.RATE, MeasureKind.SHIFT
    yield Quantity(Measure.rate(f"{name}_changed"), "", "", share, _whole(moved), everyone)
    if factor.ordered or all(level.years is not None for level in factor.levels):
        steps = np.where(moved, after - before, 0)
        yield Quantity(Measure.mean(f"{name}_steps"), "", "", MeasureKind.MEAN, _whole(steps), everyone)
    for at, level in enumerate(factor.codes, start=1):
        came, left = moved & (after == at), moved & (before == at)
        toward, destination = (
            Measure.seen(k, factor.name, level) for k in (MeasureKind.TOWARD, MeasureKind.DESTINATION)
        )
        yield Quantity(toward, "", level, signed, _whole(came) - _whole(left), everyone)
        yield Quantity(destination, "", level, share, _whole(came), (before != at) & (moved | unread))
        for other_at, other in enumerate(factor.codes, start=1):
            forth, back = (_whole((before == a) & (after == b)) for a, b in ((at, other_at), (other_at, at)))
            transition = Measure.seen(MeasureKind.TRANSITION, factor.name, level, other)
            yield Quantity(transition, level, other, share, forth, before == at)
            if other_at > at:
                flow = Measure.seen(MeasureKind.FLOW, factor.name, level, other)
                yield Quantity(flow, level, other, signed, forth - back, np.isin(before, (at, other_at)))


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
    edits, before, after, again = edits.iloc[rows], r.before[rows], r.after[rows], r.again[rows]
    read = (before > 0) & (after > 0)
    twice = read & (again > 0)
    of_edits = list(quantities(r.factor, before, after))
    of_portraits = list(quantities(r.factor, before, again))
    differences = [
        # a difference of two shares is no share
        one._replace(kind=MeasureKind.SHIFT if one.kind == MeasureKind.RATE else one.kind, total=one.total - two.total)
        for one, two in zip(of_edits, of_portraits, strict=True)
    ]
    panels = [
        _Panel(edits, factors, numbers, valid, condition, rules.confidence)
        for numbers, valid in ((of_edits, read), (of_portraits, twice), (differences, twice))
    ]
    seen = {c for at, c in enumerate(r.factor.codes, start=1) if (before == at).any() or (after == at).any()}
    for row, editor in enumerate(panels[0].crossed.panel.editors):
        for at, one in enumerate(of_edits):
            kind = one.measure.kind
            total, n, events, missing = panels[0].sums(row, at)
            if not n or not {one.before, one.after} <= {"", *seen}:
                continue
            value, ends, p, faces, prompts = panels[0].estimate(row, at)
            is_tested = condition == ConditionKind.BASELINE and (
                (kind == MeasureKind.FLOW and events >= FEWEST_EVENTS)
                or (kind == MeasureKind.TOWARD and len(r.factor.codes) > 2)  # of two levels, the flow says the same
            )
            # the changed edits of a destination are others than the changed readings of portraits
            controls = [] if kind == MeasureKind.DESTINATION else panels[1:]
            (control, around), (beyond, reach) = [c.estimate(row, at)[:2] for c in controls] or [(None, None)] * 2
            yield Direction(
                factor=r.factor.name,
                measure=one.measure,
                before=one.before,
                after=one.after,
                experiment=Experiment.DIAGNOSIS.value,
                condition=condition,
                editor=editor,
                value=value or 0.0,
                low=ends[0] if ends else None,
                high=ends[1] if ends else None,
                total=total,
                n=n,
                missing=missing,
                faces=faces,
                prompts=prompts,
                p=p if is_tested else None,
                control=control,
                control_low=around[0] if around else None,
                control_high=around[1] if around else None,
                beyond=beyond,
                beyond_low=reach[0] if reach else None,
                beyond_high=reach[1] if reach else None,
            )


class _Panel:
    """Numbers of the same edits, with their intervals."""

    def __init__(
        self,
        edits: pd.DataFrame,
        factors: Sequence[Factor],
        numbers: Sequence[Quantity],
        valid: Flags,
        condition: str,
        confidence: float,
    ) -> None:
        ledger = MeasureTable()
        self._keys = [str(number.measure) for number in numbers]
        for key, number in zip(self._keys, numbers, strict=True):
            counted = number.among & valid
            total = np.where(counted, number.total, 0)
            name = Measure.of(number.kind, key)
            every = np.ones(len(edits), dtype=np.int64)
            ledger.add(RatioMeasure(name, f"sum.{key}", f"n.{key}", "every"), total, _whole(counted), every)
            ledger.columns |= {
                f"events.{key}": _whole(total != 0),
                f"missing.{key}": _whole(number.among & ~valid),
            }
        where = {"experiment": Experiment.DIAGNOSIS.value, "condition": condition}
        panel = build_panel(edits, by_face(edits, factors), ledger.columns, ledger.measures, **where)
        self.crossed = CrossedPanel(panel)
        self._confidence = confidence
        self._everyone = panel.axes.mask({})
        self._sure = self.crossed.uncertainty([self.crossed.all_faces], [1.0])

    def sums(self, row: int, at: int) -> tuple[int, int, int, int]:
        """Return numerator, denominator, edits in the numerator and missing edits of one editor's number."""
        total, n, events, missing = (
            self.crossed.panel.column_sum(f"{column}.{self._keys[at]}", [row], self._everyone)
            for column in ("sum", "n", "events", "missing")
        )
        return total, n, events, missing

    def estimate(self, row: int, at: int) -> tuple[float | None, Interval | None, float | None, int, int]:
        """Return value, interval, p against 0, faces and prompts of one editor's number."""
        sums, sure = self.crossed.all_faces, self._sure
        if not sums.count[row, at]:
            return None, None, None, 0, 0
        interval, _ = headline(self.crossed, {}, sums, sure, row, at, self._confidence)
        value, faces = float(sums.value[row, at]), int(sums.faces[row, at])
        p = shift_p(value, Uncertainty(sure.variance[row, at], sure.freedom[row, at]), faces)
        return value, interval, p, faces, int(sums.prompts[row, at])


def _whole(values: NDArray[np.bool_] | NDArray[np.int64]) -> Column:
    return np.asarray(values, dtype=np.int64)
