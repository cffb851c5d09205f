"""Labels can be wrong, and a few faces can carry a group: what is left of a gap without either.

How many faces would have to be labelled otherwise until a gap is no longer shown: the face whose move between the two
groups at the gap's ends takes most of it away is moved first, then the next, until the permutation test has p of 0.05
or more. The number is one that suffices; fewer may do where other faces are moved, so it is told as "at most".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.results.finding import ALPHA
from evenedit.results.results import GapTest
from evenedit.stats.engine.panel import Panel
from evenedit.stats.engine.permutation import p_values, strata
from evenedit.stats.engine.rules import AnalysisRules

RELABELLINGS = 499
"""Permutations of each test with faces labelled otherwise."""
STREAM = 8
"""These tests' own random numbers."""
HANDFUL = 0.25
"""A quarter of a group's faces that holds more than half of its events carries the group."""
SMALLEST = 6
"""Faces a group needs before a few of them are told from the rest."""


def faces_to_relabel(panel: Panel, test: GapTest, rules: AnalysisRules) -> int | None:
    """How many faces, labelled otherwise, suffice to leave a gap with p of 0.05 or more; None where none do."""
    levels = panel.axes.levels[test.factor]
    labelled = np.isin(panel.axes.labels[test.factor], levels)
    labels = {f: panel.axes.labels[f][labelled] for f in panel.axes.levels}
    within, _ = strata(labels, test.factor, rules.permutations)
    codes = np.array([levels.index(level) for level in labels[test.factor]], dtype=np.int8)
    total, count = (x[labelled] for x in _sums(panel, test))
    high, low = levels.index(test.highest), levels.index(test.lowest)
    for moved in range(1, len(codes)):
        face = _furthest(codes, total, count, high, low)
        if face is None:
            return None
        codes = codes.copy()
        codes[face] = low if codes[face] == high else high
        rng = np.random.default_rng([rules.seed, STREAM])
        draws = min(rules.permutations, RELABELLINGS)
        if p_values(codes, within, total[:, None], count[:, None], draws, rng)[0] >= ALPHA:
            return moved
    return None


def _furthest(
    codes: NDArray[np.int8], total: NDArray[np.int64], count: NDArray[np.int64], high: int, low: int
) -> int | None:
    """The face whose move to the group at the gap's other end leaves least of it; None where a group would be empty."""
    tops = {level: float(total[codes == level].sum()) for level in (high, low)}
    sizes = {level: float(count[codes == level].sum()) for level in (high, low)}
    least, found = np.inf, None
    for face in np.flatnonzero(np.isin(codes, (high, low)) & (count > 0)):
        sign = -1 if codes[face] == high else 1
        size = sizes[high] + sign * count[face], sizes[low] - sign * count[face]
        if min(size) <= 0:
            continue
        gap = (tops[high] + sign * total[face]) / size[0] - (tops[low] - sign * total[face]) / size[1]
        if gap < least:
            least, found = gap, int(face)
    return found


def carried_by(panel: Panel, test: GapTest, level: str) -> tuple[int, int] | None:
    """The fewest faces that hold more than half of a group's events, and all its faces, where they are a handful."""
    total, count = _sums(panel, test)
    mine = panel.axes.mask({test.factor: level}) & (count > 0)
    events = np.sort(total[mine])[::-1]
    if len(events) < SMALLEST or events.sum() == 0:
        return None
    few = int(np.searchsorted(np.cumsum(events), events.sum() / 2, side="right")) + 1
    return (few, len(events)) if few <= HANDFUL * len(events) else None


def _sums(panel: Panel, test: GapTest) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """[face]: how often the gap's rate was met, and how often it was read."""
    rate = Measure(test.measure).to(MeasureKind.RATE)
    measure = next(m for m in panel.measures if m.name == rate)
    assert test.editor is not None
    row = panel.editors.index(test.editor)
    return panel.sums[measure.total][row], panel.sums[measure.count][row]
