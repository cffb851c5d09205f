"""Tests over everybody: a shift against 0, a one-sided rate against a tolerance, a choice of two against one half."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from evenedit.core.records import ConditionKind, Experiment
from evenedit.protocol import Rubric, default_rubric
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.shifts import WANTED_OF_NOTHING
from evenedit.results.results import GapTest
from evenedit.stats.engine.contrasts import everybody_test
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import GroupEstimates
from evenedit.stats.engine.panel import Panel, RatioMeasure
from evenedit.stats.engine.rules import AnalysisRules

EVEN = 0.5
"""The share of an answer that is as likely as its opposite."""
AGAINST_EVEN: tuple[str, ...] = ("followed", "prefers_mitigated")
"""Shares that are held against one half."""


@dataclass(frozen=True, slots=True)
class ShiftTest:
    """A share or shift over everybody, held against a limit."""

    measure: Measure
    experiment: str
    condition: str
    editor: str
    value: float
    low: float | None
    high: float | None
    limit: float
    """0 for a shift, the study's tolerance for a share that cannot cancel out, one half for a choice of two."""
    p: float | None
    """Not adjusted; None where nothing varies."""
    n: int
    missing: int
    faces: int
    prompts: int
    above: float = 0.0
    below: float = 0.0
    """Of a two-sided shift: the share of answers above no change, and below."""
    these_prompts: bool = False
    """Whether the interval takes the prompts as fixed."""
    phrase: str = ""
    """What the edits have in common, where an instrument brings the rate along."""
    rubric: Rubric = field(default_factory=default_rubric, repr=False, compare=False)

    @property
    def two_sided(self) -> bool:
        """Whether it is the difference of two sides."""
        return self.measure.kind == MeasureKind.SHIFT and self.measure.name in self.rubric.two_sided

    @property
    def sides(self) -> tuple[str, str, str]:
        """The words for either side of no change, and what moved."""
        return self.rubric.sides(self.measure.name)


@dataclass(frozen=True, slots=True)
class PanelTests:
    """What one rater's answers in one experiment and condition were tested for."""

    rater: str
    panel: Panel
    crossed: CrossedPanel
    gaps: tuple[GapTest, ...]
    shares: tuple[ShiftTest, ...]


def compute_shift_tests(crossed: CrossedPanel, rules: AnalysisRules) -> Iterator[ShiftTest]:
    """Yield the test of every shift, one-sided share and choice of two of a panel, for every editor."""
    panel, overall = crossed.panel, GroupEstimates.of(crossed, {}, rules.confidence)
    all_clusters, sums = panel.axes.mask({}), overall.sums
    instead = {m.name.to(MeasureKind.RATE) for m in panel.measures if m.name.kind == MeasureKind.SHIFT and m.is_share}
    for at, measure in enumerate(panel.measures):
        if measure.name in instead:  # some prompts ask for the change, and another measure leaves them out
            continue
        limit = _limit(measure, panel.experiment, rules, panel.rubric)
        if limit is None or measure.condition not in (None, panel.condition):
            continue
        if panel.condition == ConditionKind.FLOOR and measure.name.name in WANTED_OF_NOTHING:
            continue
        for row, editor in enumerate(panel.editors):
            test = everybody_test(overall, row, at, limit, two_sided=limit == EVEN)
            if test is None:
                continue
            count, applicable = (panel.column_sum(c, [row], all_clusters) for c in (measure.count, measure.applicable))
            question = measure.name.name
            sides = ("above", "below") if measure.name.kind == MeasureKind.SHIFT else ()
            above, below = (
                (panel.column_sum(f"{side}.{question}", [row], all_clusters) / count / measure.unit for side in sides)
                if question in panel.rubric.two_sided and sides
                else (0.0, 0.0)
            )
            yield ShiftTest(
                measure=measure.name,
                experiment=panel.experiment,
                condition=panel.condition,
                editor=editor,
                value=test.value,
                low=test.low,
                high=test.high,
                limit=limit,
                p=test.p,
                n=count,
                missing=applicable - count,
                faces=int(sums.faces[row, at]),
                prompts=int(sums.prompts[row, at]),
                above=above,
                below=below,
                these_prompts=test.these_prompts,
                phrase=measure.phrase,
                rubric=panel.rubric,
            )


def _limit(counted: RatioMeasure, experiment: str, rules: AnalysisRules, rubric: Rubric) -> float | None:
    """Return the value that a measure is tested against; None where it is not tested over everybody."""
    measure = counted.name
    name = measure.name.removeprefix("measured_")
    if experiment != Experiment.DIAGNOSIS:
        return EVEN if measure.kind == MeasureKind.RATE and name in AGAINST_EVEN else None
    if measure.kind == MeasureKind.SHIFT and name in rubric.two_sided:
        return 0.0
    one_sided = name in rubric.one_sided or counted.phrase
    if measure.kind in (MeasureKind.RATE, MeasureKind.SHIFT) and one_sided:
        return rubric.tolerance(name, rules.tolerance)
    return None


def find_measure(panel: Panel, name: str) -> RatioMeasure | None:
    """Return the measure of a panel with this name."""
    return next((m for m in panel.measures if m.name == name), None)
