"""A panel's estimates: every measure, for every editor and group, with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from evenedit.core.records import Estimate
from evenedit.protocol.measures import MeasureKind
from evenedit.stats.engine.crossed import CrossedPanel, GroupSums
from evenedit.stats.engine.intervals import Interval, wilson
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.variance import NEGLIGIBLE, Uncertainty, Values, effective_size, korn_graubard

FEW_PROMPTS = 8
RARE = 0.10
"""Fewer prompts than `FEW_PROMPTS` cannot show how a rate below this varies over prompts."""
FEW_EVENTS = 5
"""A group's own variance is not relied on with fewer events, or fewer edits without one."""
DOMINANT = 0.5
"""A rate of which one prompt holds more than this share is a statement about these prompts."""


class ShareSize(NamedTuple):
    """The number of independent rows a share rests on."""

    size: float
    these_prompts: bool
    """Whether prompts are taken as fixed."""


@dataclass(frozen=True, slots=True)
class GroupEstimates:
    """The estimates of the faces that carry some labels, with their intervals; places are editor row and measure."""

    crossed: CrossedPanel
    group: Mapping[str, str]
    confidence: float
    sums: GroupSums
    sure: Uncertainty

    @classmethod
    def of(cls, crossed: CrossedPanel, group: Mapping[str, str], confidence: float) -> GroupEstimates:
        """Return the estimates of a group of a panel's faces."""
        sums = crossed.of(group)
        return cls(crossed, group, confidence, sums, crossed.uncertainty([sums], [1.0]))

    def interval(self, row: int, at: int) -> tuple[Interval | None, str]:
        """Return the interval of one measure of one editor, and its method."""
        sums, name, measure = self.sums, self.crossed.panel.axes.cluster_name, self.crossed.panel.measures[at]
        if sums.count[row, at] == 0:
            return None, "none: no valid score"
        if sums.faces[row, at] < 2:
            return None, f"none: one {name}"
        value, variance = float(sums.value[row, at]), float(self.sure.variance[row, at])
        units = f"{name} x prompt" if sums.prompts[row, at] > 1 else name
        if measure.is_share:
            size, these = self.share_size(row, at)
            return korn_graubard(value, size, self.confidence), f"korn-graubard({name if these else units})"
        is_shift = measure.name.kind == MeasureKind.SHIFT
        if variance <= NEGLIGIBLE and is_shift and value in (-1.0, 0.0, 1.0):
            return _degenerate_shift(value, float(sums.faces[row, at]), self.confidence), f"korn-graubard({name})"
        if not variance > NEGLIGIBLE:
            return None, "none: nothing varies"
        reach = float(self.sure.at(row, at).half_width(self.confidence))
        low, high = measure.limits
        return (max(value - reach, low), min(value + reach, high)), f"t({units})"

    def share_size(self, row: int, at: int) -> ShareSize:
        """Return the effective size of a share.

        A group in which the event always or never occurred has no variance of its own: it takes the design effect of
        all groups of its factor or, where nothing varies at all, counts faces. With few events its size is at most
        that. With few prompts and rare events, or one prompt that holds most of them, the variance over prompts is not
        known and prompts are taken as fixed.
        """
        sums = self.sums
        value, n, prompts = (float(x[row, at]) for x in (sums.value, sums.count, sums.prompts))
        these = prompts > 1 and ((prompts < FEW_PROMPTS and value < RARE) or sums.top_prompt[row, at] > DOMINANT)
        effect = _design_effect(self.crossed, self.group) if n * min(value, 1 - value) < FEW_EVENTS else None
        borrowed = float(sums.faces[row, at]) if value in (0.0, 1.0) else n
        if effect is not None and effect[row, at] > 0:
            borrowed = min(n, max(1.0, n / float(effect[row, at])))
        if value in (0.0, 1.0):
            return ShareSize(borrowed, these)
        variance, freedom = (sums.over_faces, sums.face_freedom) if these else (self.sure.variance, self.sure.freedom)
        size = effective_size(value, float(variance[row, at]), float(freedom[row, at]), n, self.confidence)
        return ShareSize(min(size, borrowed), these)


def estimates(crossed: CrossedPanel, groups: list[dict[str, str]], rules: AnalysisRules) -> Iterator[Estimate]:
    """Yield the estimates of every group, editor and measure of a panel."""
    panel = crossed.panel
    for group in groups:
        mask, of_group = panel.axes.mask(group), GroupEstimates.of(crossed, group, rules.confidence)
        for (row, (editor, members)), (at, measure) in product(enumerate(panel.rows()), enumerate(panel.measures)):
            total, count, applicable = (
                panel.column_sum(c, members, mask) for c in (measure.total, measure.count, measure.applicable)
            )
            if applicable == 0:
                continue
            interval, method = of_group.interval(row, at)
            low, high = interval or (None, None)
            place = measure.name, panel.experiment, measure.condition or panel.condition, editor, group
            numbers = measure.ratio(total, count), low, high, count, applicable - count
            rowwise = wilson(total, count, rules.confidence) if measure.is_rate else None
            yield Estimate(*place, *numbers, method, rowwise)


def rate_range(e: Estimate) -> tuple[float, float]:
    """Return the least and the largest that a rate could be, whatever its missing scores would have been.

    Manski (1990), Nonparametric bounds on treatment effects.
    """
    hits = round((e.value or 0.0) * e.n)
    every = e.n + e.missing
    return hits / every, (hits + e.missing) / every


def _design_effect(crossed: CrossedPanel, group: Mapping[str, str]) -> Values | None:
    """Return the design effect of a group's shares from the pooled variance of its factor; None for everybody."""
    if not group:
        return None
    combinations = list(product(*(crossed.panel.axes.levels[factor] for factor in group)))
    return crossed.pooled(tuple(group), contrast=False).design_effect(combinations.index(tuple(group.values())))


def _degenerate_shift(value: float, faces: float, confidence: float) -> Interval:
    """Return the interval of a shift that is -1, 0 or 1 in every edit, with faces as the units."""
    if value == 0:
        high = korn_graubard(0.0, faces, confidence)[1]
        return -high, high
    low, high = korn_graubard(1.0, faces, confidence)
    return (2 * low - 1, high) if value > 0 else (-high, 1 - 2 * low)
