"""Is a gap larger than chance? Labels are permuted over faces: a face keeps all its edits.

What is compared with chance is the variance of the rates between groups, each group weighing as many scores as it has.
With two groups that is the gap itself. With more, the gap between the two furthest uses two of them and throws the rest
away: where three of seven groups are apart it is found far less often, and a group of one face makes it large by
chance.

That is a statement about these prompts. Whether it would hold for prompts like these is a second test: see
`prompt_null`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import lgamma, log
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from evenedit.protocol.measures import MeasureKind
from evenedit.results.finding import ALPHA
from evenedit.results.results import GapTest
from evenedit.stats.engine.bootstrap import Bootstrap
from evenedit.stats.engine.estimates import shares
from evenedit.stats.engine.multiplicity import holm_testable, step_down
from evenedit.stats.engine.panel import EXACT_FLOAT32, Panel
from evenedit.stats.engine.prompt_null import FEWEST_PROMPTS, PromptNoise, prompt_noise
from evenedit.stats.engine.rules import AnalysisRules

Label = TypeVar("Label", np.int8, np.int64)
CHUNK = 250
"""Permutations made at once. Changing it changes the random numbers."""
STREAM = 2
"""The test's own random numbers, apart from the bootstrap's."""
NOISE = 9
"""Random numbers of what prompts add."""
NOISY = 1000
"""Permutations on top of which other prompts are drawn."""
TIE = 1e-12
"""Variances closer than this are the same, rounded differently."""


def strata(labels: Mapping[str, NDArray[np.str_]], factor: str, permutations: int) -> tuple[NDArray[np.int64], str]:
    """Return the strata in which labels of `factor` are permuted, and their name: the finest with enough room.

    Permuting within levels of the other factors keeps their gaps out of this one's test. It needs at least
    two levels in every stratum, and more arrangements than permutations are asked for.
    """
    others = [f for f in labels if f != factor]
    for held in ([others] if others else []) + ([[f] for f in others] if len(others) > 1 else []):
        stacked = np.stack([labels[f] for f in held])
        within = np.unique(stacked, axis=1, return_inverse=True)[1].ravel().astype(np.int64)
        sizes = [np.unique(labels[factor][within == s], return_counts=True)[1] for s in range(within.max() + 1)]
        room = sum(lgamma(size.sum() + 1) - sum(lgamma(n + 1) for n in size) for size in sizes)
        if all(len(size) > 1 for size in sizes) and room > log(permutations + 1):
            return within, f"faces within {' x '.join(held)}"
    return np.zeros(len(labels[factor]), dtype=np.int64), "faces"


def permuted(
    labels: NDArray[Label], within: NDArray[np.int64], permutations: int, rng: np.random.Generator
) -> Iterator[NDArray[Label]]:
    """Yield chunks [permutation, face] of labels permuted within strata; the orders do not depend on the labels."""
    places = [np.flatnonzero(within == stratum) for stratum in range(within.max() + 1)]
    for start in range(0, permutations, CHUNK):
        size = min(CHUNK, permutations - start)
        chunk = np.empty((size, len(labels)), dtype=labels.dtype)
        for place in places:
            chunk[:, place] = rng.permuted(np.tile(labels[place], (size, 1)), axis=1)
        yield chunk


def between_group_variance(
    labels: NDArray[np.int8], levels: int, total: NDArray[np.floating], count: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return the variance between levels of `total` over `count`: [permutation, ratio] from [face, ratio]."""
    return np.asarray(_between(labels, levels, total, count, None)[0])


def _between(
    labels: NDArray[np.int8],
    levels: int,
    total: NDArray[np.floating],
    count: NDArray[np.floating],
    noise: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """Return [1, permutation, ratio]; with `noise` [permutation, level, ratio], also the variances with it added."""
    both = np.concatenate([total, count], axis=1)
    width = total.shape[1]
    squares = np.zeros((1 if noise is None else 2, len(labels), width))
    overall, size = (x.sum(axis=0, dtype=np.float64) for x in (total, count))
    sums_of = np.broadcast_to(overall, squares.shape).copy()
    for level in range(levels):
        sums = ((labels == level).astype(both.dtype) @ both).astype(np.float64)
        top, bottom = sums[:, :width], sums[:, width:]
        squares[0] += np.divide(top * top, bottom, out=np.zeros_like(top), where=bottom > 0)
        if noise is not None:
            added = noise[:, level] * bottom
            sums_of[1] += added
            added += top
            squares[1] += np.divide(added * added, bottom, out=np.zeros_like(top), where=bottom > 0)
    size = np.maximum(size, 1.0)
    return np.asarray(np.maximum(squares / size - (sums_of / size) ** 2, 0.0))


def p_values(
    labels: NDArray[np.int8],
    within: NDArray[np.int64],
    total: NDArray[np.int64],
    count: NDArray[np.int64],
    permutations: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return the share of labellings [ratio], the observed one included, with at least the observed variance."""
    observed, reached = np.empty(0), np.zeros(total.shape[1], dtype=np.int64)
    for observed, drawn in _relabelled(labels, within, total, count, permutations, rng):
        reached += (drawn[0] >= observed - TIE).sum(axis=0)
    return np.asarray((1 + reached) / (1 + permutations))


def drawn_variances(
    labels: NDArray[np.int8],
    within: NDArray[np.int64],
    total: NDArray[np.int64],
    count: NDArray[np.int64],
    permutations: int,
    rng: np.random.Generator,
    noise: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the variance between groups, observed [ratio] and of every relabelling [permutation, ratio].

    The last are of as many relabellings as there are draws of `noise`, which is added to them.
    """
    chunks = list(_relabelled(labels, within, total, count, permutations, rng, noise))
    noisy = [drawn[1] for _, drawn in chunks if len(drawn) > 1] or [np.empty((0, total.shape[1]))]
    return chunks[0][0], np.concatenate([drawn[0] for _, drawn in chunks]), np.concatenate(noisy)


def _relabelled(
    labels: NDArray[np.int8],
    within: NDArray[np.int64],
    total: NDArray[np.int64],
    count: NDArray[np.int64],
    permutations: int,
    rng: np.random.Generator,
    noise: NDArray[np.float64] | None = None,
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Yield the observed variances [ratio] and those of a chunk of relabellings; see `_between`."""
    exact = max(int(total.sum(axis=0).max()), int(count.sum(axis=0).max())) < EXACT_FLOAT32
    dtype: type[np.floating] = np.float32 if exact else np.float64
    total_of: NDArray[np.floating] = total.astype(dtype)
    count_of: NDArray[np.floating] = count.astype(dtype)
    levels = int(labels.max()) + 1
    observed = between_group_variance(labels[None], levels, total_of, count_of)[0]
    done = 0
    for chunk in permuted(labels, within, permutations, rng):
        chunk_noise = None if noise is None or done + len(chunk) > len(noise) else noise[done : done + len(chunk)]
        done += len(chunk)
        yield observed, _between(chunk, levels, total_of, count_of, chunk_noise)


class NullDistribution(NamedTuple):
    """A gap beside what chance would show, in standard deviations of that from its mean."""

    excess: float
    """How much further apart its groups are than relabelled ones on average; 0 where none vary."""
    drawn: NDArray[np.float64]
    """[permutation]: how far apart relabelled groups are; empty where they do not vary."""


NO_DRAWS = NullDistribution(0.0, np.empty(0))


@dataclass(frozen=True, slots=True)
class TestedGap:
    """A gap's test with what it was compared with."""

    test: GapTest
    these: NullDistribution
    """Labels permuted over faces, the prompts as they are."""
    like_these: NullDistribution
    """The same with other prompts like these; nothing where they are too few to speak of others."""
    can_reject: bool = True
    """Whether some labelling would have p < 0.05: where none does, it is no test and no part of a family."""


class _RatioTests(NamedTuple):
    """The tests of several ratios: p of each and how far apart groups are, seen and drawn."""

    p: NDArray[np.float64]
    observed: NDArray[np.float64]
    drawn: NDArray[np.float64]

    @classmethod
    def of(cls, observed: NDArray[np.float64], drawn: NDArray[np.float64]) -> _RatioTests:
        p = (1 + (drawn >= observed - TIE).sum(axis=0)) / (1 + len(drawn))
        # the cube root of a variance is nearly normal over few groups and many (Wilson and Hilferty 1931), so that
        # rates and factors can be held against each other
        return cls(p, np.cbrt(observed), np.cbrt(drawn))

    def null(self, ratio: int) -> NullDistribution:
        drawn = self.drawn[:, ratio]
        centre, spread = drawn.mean(), drawn.std()
        return NullDistribution(float((self.observed[ratio] - centre) / spread), (drawn - centre) / spread)

    def can_reject(self) -> NDArray[np.bool_]:
        """Return whether the most extreme labelling has p < 0.05; else no labelling can reject."""
        furthest = np.maximum(self.drawn.max(axis=0), self.observed)
        smallest = (1 + (self.drawn >= furthest - TIE).sum(axis=0)) / (1 + len(self.drawn))
        return np.asarray((self.drawn.std(axis=0) > TIE) & (smallest < ALPHA))


def gap_tests(panel: Panel, rules: AnalysisRules) -> list[GapTest]:
    """Test the gap of every rate over every factor, adjusted over each editor's tests that can reject."""
    return [tested.test for tested in permutation_gap_tests(panel, rules)]


def permutation_gap_tests(panel: Panel, rules: AnalysisRules, bootstrap: Bootstrap | None = None) -> list[TestedGap]:
    """Return the same tests with their null draws, so that all tests of a report can be adjusted jointly.

    With the panel's bootstrap, every gap is tested for other prompts like these, too.
    """
    rows = panel.rows()
    rates = [m for m in panel.measures if m.is_rate]
    families: list[list[TestedGap]] = [[] for _ in rows]
    for number, (factor, levels) in enumerate(panel.axes.levels.items()):
        if len(levels) < 2 or not rates:
            continue
        masks = {level: panel.axes.mask({factor: level}) for level in levels}
        labelled = np.isin(panel.axes.labels[factor], levels)
        labels = {f: panel.axes.labels[f][labelled] for f in panel.axes.levels}
        within, how = strata(labels, factor, rules.permutations)
        total, count = (
            np.stack([panel.sums[c][members].sum(axis=0)[labelled] for c in names for _, members in rows], axis=1)
            for names in ([m.total for m in rates], [m.count for m in rates])
        )
        codes = np.array([levels.index(level) for level in labels[factor]], dtype=np.int8)
        moved = None if bootstrap is None else _prompt_noise(bootstrap, list(masks.values()))
        several = np.zeros(total.shape[1], dtype=np.bool_) if moved is None else moved.prompts >= FEWEST_PROMPTS
        noise = None
        if moved is not None and several.any():
            noise = moved.draw(min(NOISY, rules.permutations), np.random.default_rng([rules.seed, NOISE, number]))
        rng = np.random.default_rng([rules.seed, STREAM, number])
        observed, drawn, noisy = drawn_variances(codes, within, total, count, rules.permutations, rng, noise)
        these, like_these = _RatioTests.of(observed, drawn), _RatioTests.of(observed, noisy)
        can_show = these.can_reject()
        for at, measure in enumerate(rates):
            for row, (editor, members) in enumerate(rows):
                share = shares(panel, measure, members, masks)
                if len(share) < 2:
                    continue
                highest, lowest = max(share, key=share.__getitem__), min(share, key=share.__getitem__)
                column = at * len(rows) + row
                test = GapTest(
                    measure=measure.name.to(MeasureKind.GAP),
                    experiment=panel.experiment,
                    condition=panel.condition,
                    editor=editor,
                    factor=factor,
                    value=share[highest] - share[lowest],
                    highest=highest,
                    lowest=lowest,
                    p=float(these.p[column]),
                    p_holm=1.0,
                    faces=len(codes),
                    method=f"permutation({how}, {rules.permutations})",
                    p_prompts=float(max(these.p[column], like_these.p[column])) if several[column] else None,
                )
                live = bool(can_show[column])
                families[row].append(
                    TestedGap(
                        test,
                        these.null(column) if live else NO_DRAWS,
                        like_these.null(column) if live and several[column] else NO_DRAWS,
                        live,
                    )
                )
    return [tested for family in families for tested in _adjusted(family)]


def _prompt_noise(bootstrap: Bootstrap, masks: Sequence[NDArray[np.bool_]]) -> PromptNoise:
    rates = [at for at, m in enumerate(bootstrap.panel.measures) if m.is_rate]
    return prompt_noise(bootstrap, masks, rates)


def _adjusted(family: list[TestedGap]) -> Iterator[TestedGap]:
    """Yield an editor's gaps, adjusted over those that can reject: by step-down over relabelled faces, and by Holm."""
    testable = [tested.can_reject for tested in family]
    holms = holm_testable([tested.test.p for tested in family], testable)
    adjusted = step_down_adjust([tested.these for tested in family])
    for tested, one, other in zip(family, holms, adjusted, strict=True):
        p = max(tested.test.p, other)
        yield replace(tested, test=replace(tested.test, p_holm=one, p_editor=p, family=sum(testable)))


def step_down_adjust(nulls: Sequence[NullDistribution]) -> list[float]:
    """Return the p of every test, adjusted for all by step-down over their draws; 1 where draws do not vary."""
    adjusted = np.ones(len(nulls))
    varies = [at for at, null in enumerate(nulls) if len(null.drawn)]
    if varies:
        drawn = np.stack([nulls[at].drawn for at in varies], axis=1)
        adjusted[varies] = step_down(np.array([nulls[at].excess for at in varies]), drawn)
    return [float(p) for p in adjusted]
