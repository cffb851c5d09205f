"""Gaps between groups as findings: which groups differ from the others, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from evenedit.protocol import ROLES
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.results.finding import ALPHA
from evenedit.results.results import GapKey, GapTest, GroupDifference
from evenedit.stats.agreement.prediction_powered import PeopleGap
from evenedit.stats.disparity.gaps import group_differences
from evenedit.stats.engine.shift_tests import PanelTests, find_measure
from evenedit.stats.findings.design import SMALLEST
from evenedit.stats.findings.levels import Sight
from evenedit.stats.robustness.null_pairs import FalseDifference

FEWEST_PROMPTS = 5
"""From fewer prompts, how prompts differ is not known well enough to speak of others."""
FEW_FACES = 5
MANY_TESTS = 6
RARE = 0.10
"""A group of fewer than `FEW_FACES` faces cannot be clear among more than `MANY_TESTS` tests of a rate below `RARE`."""


@dataclass(frozen=True, slots=True)
class GapEvidence:
    """A gap with its test, the people's test of it, and who saw it."""

    evidence: PanelTests
    test: GapTest
    people: PeopleGap | None
    """The test of judges corrected by people, where people rated enough."""
    sight: Sight
    faces: Mapping[str, int]
    """Faces with a valid score, by group."""
    prompts: int
    false_calls: FalseDifference | None = None
    """What judges report of the named group on null pairs; None where people decide, or without null pairs."""

    @property
    def key(self) -> GapKey:
        """The coordinates of the gap's test."""
        return self.test.key(self.evidence.rater)

    @property
    def phrase(self) -> str:
        """What the edits have in common that the rate counts, where an instrument brings it along."""
        measure = find_measure(self.evidence.panel, Measure(self.test.measure).to(MeasureKind.RATE))
        return measure.phrase if measure is not None else ""

    @property
    def p(self) -> float | None:
        """The p-value that decides: of people's ratings where there are enough, else of the raters'."""
        return self.test.p if self.people is None else self.people.tests.smallest_p

    @property
    def groups(self) -> tuple[GroupDifference, ...]:
        """Each group with its difference, corrected by people where there are enough."""
        if self.people is None:
            return self.test.groups
        differences = zip(group_differences(self.people.tests), self.people.intervals, strict=True)
        return tuple(
            replace(g, low=max(ends[0], -1.0) if ends else None, high=min(ends[1], 1.0) if ends else None)
            for g, ends in differences
        )

    @property
    def shrunken(self) -> float:
        """Highest minus lowest rate after shrinkage."""
        return self.test.shrunken if self.people is None else self.people.tests.gap * self.people.tests.shrinkage

    def named(self) -> list[GroupDifference]:
        """Return the groups that differ from the others, the surest first; of two groups the disadvantaged one."""
        groups = [g for g in self.groups if g.p is not None]
        if len(self.groups) == 2:
            return [max(self.groups, key=lambda g: self.harm * g.value)]
        chosen = sorted((g for g in groups if (g.p or 0.0) < ALPHA), key=lambda g: (g.p, -self.harm * g.value))
        return chosen or sorted(groups, key=lambda g: (g.p, -self.harm * g.value))[:1]

    @property
    def harm(self) -> int:
        """The sign of a harmful difference: a larger rate, except of success."""
        return -1 if Measure(self.test.measure).name == ROLES.applied else 1

    def can_be_clear(self, tests: int) -> bool:
        """Return whether the design allows a clear finding about its named group."""
        if self.prompts < 2 or self.p is None:
            return False
        named = min(self.groups, key=lambda g: 2.0 if g.p is None else g.p)
        faces = self.faces.get(named.level, 0)
        if self.people is not None and (named.low is None or named.high is None or named.low <= 0 <= named.high):
            return False
        rate = sum(g.rate for g in self.groups) / len(self.groups)
        rare = min(rate, 1 - rate) < RARE
        return faces >= SMALLEST and not (faces < FEW_FACES and tests > MANY_TESTS and rare)


def gap_places(one: PanelTests, test: GapTest) -> tuple[dict[str, int], int]:
    """Return the faces of each group that a gap's rate was read on, and the number of prompts."""
    panel = one.panel
    measure = find_measure(panel, Measure(test.measure).to(MeasureKind.RATE))
    assert measure is not None and test.editor is not None
    row = panel.editors.index(test.editor)
    counted = panel.sums[measure.count][row] > 0
    levels = panel.axes.levels[test.factor]
    faces = {level: int((counted & panel.axes.mask({test.factor: level})).sum()) for level in levels}
    cells = panel.cells[:, :, row, panel.columns.index(measure.count)]
    return faces, int((cells.sum(axis=0) > 0).sum())
