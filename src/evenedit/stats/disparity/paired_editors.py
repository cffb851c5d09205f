"""Two editors on the same portraits and prompts: paired differences, where both have a valid score.

What is drawn anew are faces and prompts, the same for both editors. What only one of them answered is left out of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Condition, Experiment
from evenedit.protocol import Factor
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.ratings.table import Scores
from evenedit.results.finding import ALPHA
from evenedit.stats.engine.bootstrap import Bootstrap
from evenedit.stats.engine.estimates import estimates, ratio
from evenedit.stats.engine.intervals import as_interval, percentile
from evenedit.stats.engine.measures import AXIS_QUESTIONS, Answers, Ledger, answers, write_scores
from evenedit.stats.engine.multiplicity import holm
from evenedit.stats.engine.panel import Panel, RatioMeasure, by_face, lay_out
from evenedit.stats.engine.rules import AnalysisRules

KEY = ["source_id", "prompt_id", "seed_rank"]
HIGHER_IS_BETTER = frozenset({Measure.rate("edit_success"), Measure.mean("edit_success")})
NEITHER_IS_BETTER = frozenset(Measure.mean(question) for question in ("skin_tone", "age_drift", "aging_accuracy"))
"""Means of two-sided axes: further from 3 in either direction is a change."""
Change = Literal["regression", "improvement", "unclear"]


@dataclass(frozen=True, slots=True)
class Difference:
    """The second editor minus the first, over complete pairs."""

    measure: str
    """rate.<rate>, mean.<axis> or gap.<rate>."""
    group: Mapping[str, str]
    """{} for everybody; {"race": "*"} for a gap over the levels of a factor."""
    first: float
    second: float
    value: float
    low: float | None
    high: float | None
    pairs: int
    p: float | None = None
    """From the interval; None where there is none."""
    p_adjusted: float | None = None
    """Holm's over its family: everybody's measures and the gaps are one, the groups' measures another."""

    @property
    def change(self) -> Change:
        """What the adjusted test says, where more or less is better."""
        if self.p_adjusted is None or self.p_adjusted >= ALPHA or self.measure in NEITHER_IS_BETTER:
            return "unclear"
        better = (self.value > 0) == (self.measure in HIGHER_IS_BETTER)
        return "improvement" if better else "regression"


@dataclass(frozen=True, slots=True)
class Pairs:
    """Rows of the first and the second editor that show the same portrait and prompt."""

    first: Scores
    second: Scores
    rows: NDArray[np.intp]
    """[pair, 2]: positions in the two tables."""
    unpaired: int
    """Edits of either that have no counterpart."""


def pair(first: Scores, second: Scores, first_editor: str, second_editor: str) -> Pairs:
    """Match edits of the diagnosis by portrait, prompt and rank of the seed."""
    keyed = [_keyed(scores, name) for scores, name in ((first, first_editor), (second, second_editor))]
    both = keyed[0].merge(keyed[1], on=KEY, suffixes=("_first", "_second"))
    if both.empty:
        raise EvenEditError(
            f"'{first_editor}' and '{second_editor}' share no portrait and prompt, so they cannot be compared in pairs"
        )
    rows = both[["row_first", "row_second"]].to_numpy(dtype=np.intp)
    return Pairs(first, second, rows, len(keyed[0]) + len(keyed[1]) - 2 * len(rows))


def _keyed(scores: Scores, editor: str) -> pd.DataFrame:
    edits = scores.edits
    chosen = (edits["experiment"] == Experiment.DIAGNOSIS) & (edits["condition"] == Condition.BASELINE)
    chosen &= edits["editor"] == editor
    found = edits[chosen].assign(row=np.flatnonzero(chosen.to_numpy()))
    rank = found.groupby(["source_id", "prompt_id"])["seed"].rank(method="first").astype(np.int64)
    return found.assign(seed_rank=rank)[[*KEY, "row"]]


def differences(pairs: Pairs, rules: AnalysisRules) -> list[Difference]:
    """Every rate and mean over everybody and each group, and every gap; regressions first, the largest first."""
    sides = [answers(scores, rules).rows(pairs.rows[:, at]) for at, scores in enumerate((pairs.first, pairs.second))]
    found = _adjusted([*_levels(pairs, sides, rules), *_gaps(pairs, sides, rules)], rules.confidence)
    order = ("regression", "improvement", "unclear")
    return sorted(found, key=lambda d: (order.index(d.change), bool(d.group), -abs(d.value)))


def _adjusted(found: Sequence[Difference], confidence: float) -> list[Difference]:
    """Each difference with its p, adjusted within its family; measures of which neither is better are not tested."""
    tested = [replace(d, p=_p(d, confidence)) for d in found]
    by_family: dict[bool, list[float]] = {}
    for d in tested:
        if d.p is not None:
            by_family.setdefault(_of_group(d), []).append(d.p)
    adjusted = {family: iter(holm(p)) for family, p in by_family.items()}
    return [d if d.p is None else replace(d, p_adjusted=next(adjusted[_of_group(d)])) for d in tested]


def _of_group(d: Difference) -> bool:
    return bool(d.group) and "*" not in d.group.values()


def _p(d: Difference, confidence: float) -> float | None:
    """The chance of so large a difference, from the half of the interval that lies towards 0."""
    if d.low is None or d.high is None or d.measure in NEITHER_IS_BETTER:
        return None
    reach = d.value - d.low if d.value > 0 else d.high - d.value
    if reach <= 0:
        return None
    return float(2 * ndtr(-abs(d.value) / reach * ndtri(0.5 + confidence / 2)))


def _ledgers(sides: Sequence[Answers], rules: AnalysisRules) -> list[Ledger]:
    """Each side's scores, counted where both have one."""
    both = {q: ((sides[0].of(q)[0] > 0) & (sides[1].of(q)[0] > 0)).astype(np.int64) for q in AXIS_QUESTIONS}
    asked = sides[0].asked | sides[1].asked
    ledgers = []
    for side in sides:
        ledger = Ledger()
        write_scores(ledger, Answers(side.values, asked), both, rules.rates)
        ledgers.append(ledger)
    return ledgers


def _laid_out(edits: pd.DataFrame, ledger: Ledger, factors: Sequence[Factor]) -> Panel:
    return lay_out(
        edits,
        by_face(edits, factors),
        ledger.columns,
        ledger.measures,
        experiment=Experiment.DIAGNOSIS.value,
        condition=Condition.BASELINE,
    )


def _levels(pairs: Pairs, sides: Sequence[Answers], rules: AnalysisRules) -> Iterator[Difference]:
    """The panel's scores are differences of pairs, so its intervals are those of paired differences."""
    before, after = _ledgers(sides, rules)
    edits = pairs.first.edits.iloc[pairs.rows[:, 0]].assign(editor="both")
    ledger = Ledger()
    for m in before.measures:
        total = after.columns[m.total] - before.columns[m.total]
        ledger.add(
            RatioMeasure(Measure.delta(f"{m.name}"), m.total, m.count, m.asked),
            total,
            before.columns[m.count],
            before.columns[m.asked],
        )
    panel = _laid_out(edits, ledger, pairs.first.table.factors)
    level = _laid_out(edits, before, pairs.first.table.factors)
    for e in estimates(Bootstrap(panel, rules.draws, rules.seed), panel.axes.groups(), rules):
        if e.editor is None or e.value is None:
            continue
        measure = next(m for m in level.measures if Measure.delta(m.name) == e.measure)
        mask = level.axes.mask(e.group)
        first = ratio(level.tally(measure.total, [0], mask), level.tally(measure.count, [0], mask)) or 0.0
        yield Difference(measure.name, e.group, first, first + e.value, e.value, e.low, e.high, e.n)


def _gaps(pairs: Pairs, sides: Sequence[Answers], rules: AnalysisRules) -> Iterator[Difference]:
    """Both sides in one panel, so that every draw takes the same faces and prompts for both."""
    ledgers = _ledgers(sides, rules)
    stacked = Ledger(
        {name: np.concatenate([ledger.columns[name] for ledger in ledgers]) for name in ledgers[0].columns},
        ledgers[0].measures,
    )
    edits = pd.concat(
        [
            scores.edits.iloc[pairs.rows[:, at]].assign(editor=str(at))
            for at, scores in enumerate((pairs.first, pairs.second))
        ],
        ignore_index=True,
    )
    panel = _laid_out(edits, stacked, pairs.first.table.factors)
    bootstrap = Bootstrap(panel, rules.draws, rules.seed)
    everybody = panel.axes.mask({})
    for factor, levels in panel.axes.levels.items():
        if len(levels) < 2:
            continue
        masks = [panel.axes.mask({factor: level}) for level in levels]
        drawn = np.stack([(d := bootstrap.group(mask)).faces + d.prompts for mask in masks])
        spread = drawn.max(axis=0) - drawn.min(axis=0)
        for at, measure in enumerate(panel.measures):
            gap = [_gap(panel, measure, side, masks) for side in (0, 1)] if measure.is_rate else [None, None]
            if gap[0] is None or gap[1] is None:
                continue
            # a range is biased upwards, in both editors alike: the reflected interval takes the draws' own bias away
            value = gap[1] - gap[0]
            bounds = as_interval(percentile(spread[:, 1, at] - spread[:, 0, at], rules.confidence))
            yield Difference(
                measure.name.to(MeasureKind.GAP),
                {factor: "*"},
                gap[0],
                gap[1],
                value,
                2 * value - bounds[1] if bounds else None,
                2 * value - bounds[0] if bounds else None,
                panel.tally(measure.count, [0], everybody),
            )


def _gap(panel: Panel, measure: RatioMeasure, side: int, masks: Sequence[NDArray[np.bool_]]) -> float | None:
    rates = [ratio(panel.tally(measure.total, [side], m), panel.tally(measure.count, [side], m)) for m in masks]
    valid = [r for r in rates if r is not None]
    return max(valid) - min(valid) if len(valid) == len(masks) else None
