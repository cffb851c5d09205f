"""Which gaps are clear: adjusted for all tests of the report, answerable by the design, and carried by no one prompt.

A clear gap holds for these prompts (labels permuted over faces) and, with five prompts or more, for prompts like these
(prompts drawn as well); with fewer it is a claim about these prompts. And since the first takes the prompts as given,
a gap that comes from one prompt alone (where old faces cannot be aged further, say) passes it, although it tells about
that prompt and not about the editor. So a clear gap must stay when any one prompt is left out: the same group is still
ahead and the test of what is left has p < 0.05.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.results.finding import ALPHA
from evenedit.results.results import Contrast, GapKey, GapTest
from evenedit.stats.engine.panel import Panel
from evenedit.stats.engine.permutation import p_values, step_down_adjust, strata
from evenedit.stats.engine.prompt_null import FEWEST_PROMPTS
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.shift_tests import PanelTests, find_measure
from evenedit.stats.findings.design import SMALLEST, can_compare_groups

RELABELLINGS = 999
"""Permutations of each test with a prompt left out."""
STREAM = 5
"""These tests' own random numbers."""
Grade = Literal["clear", "suggestive", "none"]


@dataclass(frozen=True, slots=True)
class GradedGap:
    """A gap with what it counts as, and why it is not clear where its p would allow it."""

    evidence: PanelTests
    test: GapTest
    p: float
    """Adjusted for all gaps of the report: the larger for these prompts and for prompts like these."""
    grade: Grade
    comparable: bool
    """Whether the groups have faces enough to be compared."""
    prompt: str | None = None
    """The prompt without which the gap is gone."""
    prompts: int = 2
    """How many prompts it was read on."""
    small: bool = False
    """Whether a group at its end has too few faces."""
    these: float = 1.0
    """The adjusted p for these prompts."""

    @property
    def key(self) -> GapKey:
        """The coordinates of the gap's test."""
        return self.test.key(self.evidence.rater)

    @property
    def only_here(self) -> bool:
        """True if it was read on too few prompts to say anything about others."""
        return 1 < self.prompts < FEWEST_PROMPTS

    @property
    def only_these(self) -> bool:
        """True if it is shown for these prompts and not for prompts like these, adjusted or not."""
        other = self.test.p_prompts
        return other is not None and (self.these < ALPHA <= self.p or self.test.p < ALPHA <= other)


def grade_gaps(
    several: Sequence[PanelTests], contrasts: Sequence[Contrast], weight: float, rules: AnalysisRules
) -> list[GradedGap]:
    """Grade every editor's gaps over all raters, factors and conditions; `weight` is their share of alpha."""
    editor_gaps = [(one, gap) for one in several for gap in one.gaps if gap.test.editor is not None]
    gaps = [gap for _, gap in editor_gaps]
    these = [min(1.0, value / weight) for value in step_down_adjust([gap.these for gap in gaps])]
    # what prompts add must not take the difference away: in no report of twenty
    like_these = step_down_adjust([gap.like_these for gap in gaps])
    p = [
        (value, max(value, other) if len(gap.like_these.drawn) else value)
        for gap, value, other in zip(gaps, these, like_these, strict=True)
    ]
    excluded = {_place(c) for c in contrasts if c.low is not None and c.high is not None and not c.low <= 0 <= c.high}
    first = [_first(one, gap.test, value, excluded) for (one, gap), value in zip(editor_gaps, p, strict=True)]
    assert len({g.key for g in first}) == len(first), "two gap tests have the same key"
    decisive_prompts = _gone_without(
        several, [g for g in first if g.grade != "none" and g.p < ALPHA and g.prompts > 1], rules
    )
    return [_checked(g, decisive_prompts.get(g.key)) for g in first]


def _place(c: Contrast) -> tuple[object, ...]:
    return c.measure, c.experiment, c.condition, c.editor, frozenset(c.group.items())


def _first(one: PanelTests, test: GapTest, both: tuple[float, float], excluded: set[tuple[object, ...]]) -> GradedGap:
    """Return a gap's grade before prompts are left out; `both`: p for these prompts, and the larger p for others."""
    these, p = both
    panel = one.panel
    rate = Measure(test.measure).to(MeasureKind.RATE)
    measure = find_measure(panel, rate)
    assert measure is not None and test.editor is not None
    row = panel.editors.index(test.editor)
    counted = panel.sums[measure.count][row] > 0
    levels = panel.axes.levels[test.factor]
    sizes = {level: int((counted & panel.axes.mask({test.factor: level})).sum()) for level in levels}
    able = can_compare_groups(sizes)
    small = min(sizes[test.highest], sizes[test.lowest]) < SMALLEST
    at = panel.columns.index(measure.count)
    prompts = int((panel.cells[:, :, row, at].sum(axis=0) > 0).sum())
    differs = any(
        (rate, test.experiment, test.condition, test.editor, frozenset({(test.factor, level)})) in excluded
        for level in (test.highest, test.lowest)
    )
    grade: Grade = "suggestive" if test.p < ALPHA and able else "none"
    if grade == "suggestive" and p < ALPHA and differs and prompts > 1 and not small:
        grade = "clear"
    return GradedGap(one, test, p, grade, able, prompts=prompts, small=small, these=these)


def _checked(g: GradedGap, prompt: str | None) -> GradedGap:
    if prompt is None:
        return g
    return replace(g, grade="suggestive", prompt=prompt)


def _gone_without(
    several: Sequence[PanelTests], candidates: Sequence[GradedGap], rules: AnalysisRules
) -> dict[GapKey, str]:
    """Return, by gap that one prompt decides, the prompt whose omission leaves least of it."""
    decisive: dict[GapKey, str] = {}
    for one in several:
        for number, factor in enumerate(one.panel.axes.levels):
            subset = [g for g in candidates if g.evidence is one and g.test.factor == factor]
            if subset:
                p, ahead = _left_out(one.panel, factor, number, subset, rules)
                for at, g in enumerate(subset):
                    worst = int(np.argmax(np.where(ahead[at], p[at], 2.0)))
                    if not ahead[at, worst] or p[at, worst] >= ALPHA:
                        decisive[g.key] = one.panel.axes.prompts[worst]
    return decisive


def _left_out(
    panel: Panel, factor: str, number: int, gaps: Sequence[GradedGap], rules: AnalysisRules
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return p of each gap without each prompt [gap, prompt], and whether the same group is still ahead."""
    levels = panel.axes.levels[factor]
    labelled = np.isin(panel.axes.labels[factor], levels)
    labels = {f: panel.axes.labels[f][labelled] for f in panel.axes.levels}
    within, _ = strata(labels, factor, rules.permutations)
    codes = np.array([levels.index(level) for level in labels[factor]], dtype=np.int8)
    total: list[NDArray[np.int64]] = []
    count: list[NDArray[np.int64]] = []
    ahead = np.zeros((len(gaps), len(panel.axes.prompts)), dtype=np.bool_)
    for at, g in enumerate(gaps):
        measure = find_measure(panel, Measure(g.test.measure).to(MeasureKind.RATE))
        assert measure is not None and g.test.editor is not None
        row = panel.editors.index(g.test.editor)
        hits, valid = (panel.cells[labelled, :, row, panel.columns.index(c)] for c in (measure.total, measure.count))
        rest = [np.rint(x.sum(axis=1, keepdims=True) - x).astype(np.int64) for x in (hits, valid)]  # [face, prompt]
        total.append(rest[0])
        count.append(rest[1])
        high, low = (codes == levels.index(level) for level in (g.test.highest, g.test.lowest))
        tops, counts = ([x[m].sum(axis=0) for m in (high, low)] for x in rest)
        share = [np.divide(t, c, out=np.full(t.shape, np.nan), where=c > 0) for t, c in zip(tops, counts, strict=True)]
        ahead[at] = share[0] > share[1]
    rng = np.random.default_rng([rules.seed, STREAM, number])
    permutations = min(rules.permutations, RELABELLINGS)
    p = p_values(codes, within, np.concatenate(total, axis=1), np.concatenate(count, axis=1), permutations, rng)
    return p.reshape(len(gaps), -1), ahead
