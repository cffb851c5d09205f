"""The tests that findings rest on: every share against what it would be if nothing were wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from evenedit.core.records import ConditionKind, Experiment
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.shifts import ONE_SIDED, TWO_SIDED, WANTED_OF_NOTHING
from evenedit.results.finding import ALPHA
from evenedit.stats.engine.bootstrap import Bootstrap
from evenedit.stats.engine.estimates import NEGLIGIBLE, headline
from evenedit.stats.engine.panel import Panel, RatioMeasure
from evenedit.stats.engine.permutation import TestedGap
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.variance import Uncertainty

EVEN = 0.5
"""The share of an answer that is as likely as its opposite."""
ENUMERATED = 14
"""Up to so many faces that moved, every way in which they could have moved is counted."""
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
    """Not adjusted; None where the design gives none. One-sided against a tolerance, two-sided elsewhere.

    Of a two-sided shift the larger of two: as scored, and with scores halfway between two rounded to either side.
    """
    p_faces: float | None
    """The same over faces alone, the prompts taken as they are."""
    n: int
    missing: int
    faces: int
    prompts: int
    above: int = 0
    below: int = 0
    """Of a two-sided shift: edits above no change, and below."""


@dataclass(frozen=True, slots=True)
class PanelTests:
    """What one rater's answers in one experiment and condition were tested for."""

    rater: str
    panel: Panel
    gaps: tuple[TestedGap, ...]
    shares: tuple[ShiftTest, ...]


def compute_shift_tests(bootstrap: Bootstrap, rules: AnalysisRules) -> Iterator[ShiftTest]:
    """Yield the test of every shift, one-sided share and choice of two of a panel, for every editor."""
    panel = bootstrap.panel
    all_clusters = panel.axes.mask({})
    draws, pull = bootstrap.group(all_clusters), bootstrap.design_effects.of({}, rules.confidence)
    over_faces = Uncertainty(draws.over_faces, np.full_like(draws.over_faces, draws.freedom))
    instead = {m.name.to(MeasureKind.RATE) for m in panel.measures if m.name.kind == MeasureKind.SHIFT and m.is_share}
    for at, measure in enumerate(panel.measures):
        if measure.name in instead:  # some prompts ask for the change, and another measure leaves them out
            continue
        limit = _limit(measure.name, panel.experiment, rules)
        if limit is None or measure.condition not in (None, panel.condition):
            continue
        if panel.condition == ConditionKind.FLOOR and measure.name.name in WANTED_OF_NOTHING:
            continue
        for row, editor in enumerate(panel.editors):
            total, count, applicable = (
                panel.column_sum(c, [row], all_clusters) for c in (measure.total, measure.count, measure.applicable)
            )
            if count == 0:
                continue
            interval, _ = headline(bootstrap, draws, pull, row, at, total, count, rules.confidence)
            question = measure.name.name
            two_sided = question in TWO_SIDED and measure.name.kind == MeasureKind.SHIFT
            yield ShiftTest(
                measure=measure.name,
                experiment=panel.experiment,
                condition=panel.condition,
                editor=editor,
                value=total / count,
                low=interval[0] if interval else None,
                high=interval[1] if interval else None,
                limit=limit,
                p=_p(bootstrap, draws.uncertainty, row, at, limit),
                p_faces=_p(bootstrap, over_faces, row, at, limit),
                n=count,
                missing=applicable - count,
                faces=int((panel.sums[measure.count][row] > 0).sum()),
                prompts=_prompts(panel, measure, row),
                above=panel.column_sum(f"above.{question}", [row], all_clusters) if two_sided else 0,
                below=panel.column_sum(f"below.{question}", [row], all_clusters) if two_sided else 0,
            )


def _prompts(panel: Panel, measure: RatioMeasure, editor: int) -> int:
    """Return how many prompts a measure of one editor was answered on."""
    counted = panel.cells[:, :, editor, panel.columns.index(measure.count)].sum(axis=0)
    return int((counted > 0).sum())


def _limit(measure: Measure, experiment: str, rules: AnalysisRules) -> float | None:
    """Return the value that a measure is tested against; None where it is not tested over everybody."""
    name = measure.name.removeprefix("measured_")
    if experiment != Experiment.DIAGNOSIS:
        return EVEN if measure.kind == MeasureKind.RATE and name in AGAINST_EVEN else None
    if measure.kind == MeasureKind.SHIFT and name in TWO_SIDED:
        return 0.0
    return rules.tolerance if measure.kind in (MeasureKind.RATE, MeasureKind.SHIFT) and name in ONE_SIDED else None


def _p(bootstrap: Bootstrap, sure: Uncertainty, row: int, at: int, limit: float) -> float | None:
    """Return p of the distance from the limit; None without variance."""
    panel, measure = bootstrap.panel, bootstrap.panel.measures[at]
    total, count = panel.sums[measure.total][row], panel.sums[measure.count][row]
    moved, n = int(total.sum()), int(count.sum())
    faces = int((count > 0).sum())
    if faces < 2:
        return None
    if not measure.is_share:
        if not moved:
            return 1.0
        if abs(moved) == n:
            return min(1.0, 2 * 0.5**faces)
    elif moved == 0:
        return 1.0 if limit < EVEN else min(1.0, 2 * 0.5**faces)
    elif moved == n:
        return min(1.0, (2 if limit == EVEN else 1) * limit**faces)
    variance, freedom = (float(x[row, at]) for x in (sure.variance, sure.freedom))
    if not variance > NEGLIGIBLE:  # or not known
        return None
    value = moved / n
    if not measure.is_share:
        rounding = panel.sums.get(f"rounding.{measure.name.name}")
        added = 0.0 if rounding is None else float(rounding[row].sum()) / n / 2
        least = max(0.0, min(np.sign(value) * (value - added), abs(value)))
        p = float(2 * stdtr(freedom, -least / np.sqrt(variance)))
        return max(p, sign_flip_p(total))
    # as the interval of a share has it: the variance at the limit, with as many independent rows
    t = (value - limit) / np.sqrt(variance * limit * (1 - limit) / (value * (1 - value)))
    return float(2 * stdtr(freedom, -abs(t))) if limit == EVEN else float(stdtr(freedom, -t))


def sign_flip_p(moves: NDArray[np.int64]) -> float:
    """Return the exact sign-flip p of the faces' moves; 0 with many faces.

    With few faces that moved, a t-test takes a row of equal moves for more than it is.
    """
    moved = moves[moves != 0]
    if len(moved) > ENUMERATED:
        return 0.0
    signs = np.array(list(product((1, -1), repeat=len(moved))), dtype=np.int64)
    return float((np.abs(signs @ moved) >= abs(int(moved.sum()))).mean())


def testable(t: ShiftTest) -> bool:
    """Return whether a two-sided shift of so many faces can have p < 0.05, if all moved to one side."""
    return t.p is not None and 2 * EVEN**t.faces < ALPHA


def find_measure(panel: Panel, name: str) -> RatioMeasure | None:
    """Return the measure of a panel with this name."""
    return next((m for m in panel.measures if m.name == name), None)
