"""Labels can be wrong, and a few faces can carry a group: what is left of a gap without either.

How many faces would have to be labelled otherwise until a gap is no longer shown: the face whose move between the two
groups at the gap's ends takes most of it away is moved first, then the next, until the permutation test has p of 0.05
or more. That number suffices. Where all ways of labelling fewer faces otherwise are few enough to be tried, they are,
and the number is exact; else it is told as "at most".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.results.finding import ALPHA
from evenedit.results.results import GapTest
from evenedit.stats.engine.panel import Panel
from evenedit.stats.engine.permutation import TIE, between_group_variance, permuted, strata
from evenedit.stats.engine.rules import AnalysisRules

RELABELLINGS = 499
"""Permutations of each test with faces labelled otherwise."""
STREAM = 8
"""These tests' own random numbers."""
HANDFUL = 0.25
"""A quarter of a group's faces that holds more than half of its events carries the group."""
TRIED = 400
"""Ways to label so many faces otherwise that are tried at most."""
LISTED = 20_000
"""Ways that are looked through at most, to find those that differ."""
SMALLEST = 6
"""Faces a group needs before a few of them are told from the rest."""


class LabelErrorTolerance(NamedTuple):
    """So many faces, labelled otherwise, leave a gap with p of 0.05 or more."""

    faces: int
    """How many suffice."""
    exact: bool
    """No fewer do, whichever they are: all were tried."""


@dataclass(frozen=True)
class Labelling:
    """The labels of one gap's faces, what was seen of each, and its permutation test."""

    codes: NDArray[np.int8]
    """[face]: the position of its label."""
    within: NDArray[np.int64]
    """[face]: among which faces its label is permuted."""
    total: NDArray[np.int64]
    """[face]: how often the rate was met."""
    count: NDArray[np.int64]
    """[face]: how often it was read."""
    rules: AnalysisRules
    """With which seed, and how many permutations at most."""

    def shows(self, codes: NDArray[np.int8]) -> bool:
        """Return whether the test would show the gap with these labels."""
        order = np.lexsort((self.total, self.count, codes, self.within))
        total, count = (x[order, None].astype(np.float64) for x in (self.total, self.count))
        labels, levels = codes[order], int(codes.max()) + 1
        observed = between_group_variance(labels[None], levels, total, count)
        reached = (between_group_variance(labels[self._orders], levels, total, count) >= observed - TIE).sum()
        return bool((1 + reached) / (1 + len(self._orders)) < ALPHA)

    @cached_property
    def _orders(self) -> NDArray[np.int64]:
        """Return permutations of faces [permutation, face]; independent of the labels."""
        rng, places = np.random.default_rng([self.rules.seed, STREAM]), np.arange(len(self.codes), dtype=np.int64)
        draws = min(self.rules.permutations, RELABELLINGS)
        return np.concatenate(list(permuted(places, np.sort(self.within), draws, rng)))


def labels_to_overturn(panel: Panel, test: GapTest, rules: AnalysisRules) -> LabelErrorTolerance | None:
    """Return the number of relabelled faces that leaves a gap with p of 0.05 or more; None without one."""
    levels = panel.axes.levels[test.factor]
    labelled = np.isin(panel.axes.labels[test.factor], levels)
    labels = {f: panel.axes.labels[f][labelled] for f in panel.axes.levels}
    within, _ = strata(labels, test.factor, rules.permutations)
    codes = np.array([levels.index(level) for level in labels[test.factor]], dtype=np.int8)
    total, count = (x[labelled] for x in _sums(panel, test))
    labelling = Labelling(codes, within, total, count, rules)
    enough = _one_by_one(labelling, levels.index(test.highest), levels.index(test.lowest))
    if enough is None:
        return None
    for fewer in range(1, enough):
        ways = _ways(labelling, fewer)
        if ways is None:
            return LabelErrorTolerance(enough, exact=False)
        if not all(labelling.shows(codes) for codes in ways):
            return LabelErrorTolerance(fewer, exact=True)
    return LabelErrorTolerance(enough, exact=True)


def _one_by_one(labelling: Labelling, high: int, low: int) -> int | None:
    """Return the number of faces moved greedily between the gap's ends until it is no longer shown."""
    codes = labelling.codes
    for moved in range(1, len(codes)):
        face = _furthest(codes, labelling.total, labelling.count, high, low)
        if face is None:
            return None
        codes = codes.copy()
        codes[face] = low if codes[face] == high else high
        if not labelling.shows(codes):
            return moved
    return None


def _ways(labelling: Labelling, faces: int) -> list[NDArray[np.int8]] | None:
    """Return all distinct labellings that differ in this number of faces; None where there are too many."""
    read = [int(face) for face in np.flatnonzero(labelling.count > 0)]
    groups = int(labelling.codes.max()) + 1
    if comb(len(read), faces) * (groups - 1) ** faces > LISTED:
        return None
    seen_of = (labelling.codes, labelling.within, labelling.total, labelling.count)
    alike = list(zip(*(x.tolist() for x in seen_of), strict=True))
    labellings: dict[tuple[tuple[int, ...], ...], NDArray[np.int8]] = {}
    for chosen in combinations(read, faces):
        for others in product(range(groups), repeat=faces):
            seen = tuple(sorted((*alike[face], other) for face, other in zip(chosen, others, strict=True)))
            if seen in labellings or any(labelling.codes[f] == o for f, o in zip(chosen, others, strict=True)):
                continue
            codes = labelling.codes.copy()
            codes[list(chosen)] = others
            if len(np.unique(codes[read])) == groups:
                labellings[seen] = codes
            if len(labellings) > TRIED:
                return None
    return list(labellings.values())


def _furthest(
    codes: NDArray[np.int8], total: NDArray[np.int64], count: NDArray[np.int64], high: int, low: int
) -> int | None:
    """Return the face whose move to the other end of the gap reduces it most; None if a group would be empty."""
    tops = {level: float(total[codes == level].sum()) for level in (high, low)}
    sizes = {level: float(count[codes == level].sum()) for level in (high, low)}
    least, best = np.inf, None
    for face in np.flatnonzero(np.isin(codes, (high, low)) & (count > 0)):
        sign = -1 if codes[face] == high else 1
        size = sizes[high] + sign * count[face], sizes[low] - sign * count[face]
        if min(size) <= 0:
            continue
        gap = (tops[high] + sign * total[face]) / size[0] - (tops[low] - sign * total[face]) / size[1]
        if gap < least:
            least, best = gap, int(face)
    return best


def influential_faces(panel: Panel, test: GapTest, level: str) -> tuple[int, int] | None:
    """Return the fewest faces with more than half of a group's events, and all its faces; None where they are many."""
    total, count = _sums(panel, test)
    members = panel.axes.mask({test.factor: level}) & (count > 0)
    events = np.sort(total[members])[::-1]
    if len(events) < SMALLEST or events.sum() == 0:
        return None
    few = int(np.searchsorted(np.cumsum(events), events.sum() / 2, side="right")) + 1
    return (few, len(events)) if few <= HANDFUL * len(events) else None


def _sums(panel: Panel, test: GapTest) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return per face how often the gap's rate was met, and how often it was read."""
    rate = Measure(test.measure).to(MeasureKind.RATE)
    measure = next(m for m in panel.measures if m.name == rate)
    assert test.editor is not None
    row = panel.editors.index(test.editor)
    return panel.sums[measure.total][row], panel.sums[measure.count][row]
