"""Two editors on the same portraits and prompts: paired differences, where both have a valid score.

What is drawn anew are faces and prompts, the same for both editors. What only one of them answered is left out of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from evenedit.core.errors import EvenEditError
from evenedit.core.records import ConditionKind, Experiment
from evenedit.protocol import Factor
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.ratings.table import Scores
from evenedit.results.finding import ALPHA
from evenedit.stats.disparity.gaps import degenerate_gap_interval, gap_intervals_by_editor
from evenedit.stats.engine.bootstrap import Bootstrap
from evenedit.stats.engine.draws import Draws
from evenedit.stats.engine.estimates import estimates, ratio
from evenedit.stats.engine.measures import AXIS_QUESTIONS, Answers, MeasureTable, add_score_measures, answers
from evenedit.stats.engine.multiplicity import step_down
from evenedit.stats.engine.panel import Panel, RatioMeasure, build_panel, by_face
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.variance import difference

KEY = ["source_id", "prompt_id", "seed_rank"]
HIGHER_IS_BETTER = frozenset({Measure.rate("edit_success"), Measure.mean("edit_success")})
NEITHER_IS_BETTER = frozenset(Measure.mean(question) for question in ("skin_tone", "age_drift", "aging_accuracy"))
"""Means of two-sided axes: further from 3 in either direction is a change."""
TINY = 1e-300
"""A p of 0 counts as so much."""
Values = NDArray[np.float64]
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
    """Westfall and Young's step-down over its family, times the number of families: everybody's measures and the gaps
    are one, the groups' measures another, and each has its part of a chance of 5 % of any false alarm."""

    @property
    def change(self) -> Change:
        """The outcome of the adjusted test, where more or less is better."""
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


def pair(
    first: Scores, second: Scores, first_editor: str, second_editor: str, condition: str = ConditionKind.BASELINE
) -> Pairs:
    """Match edits of the diagnosis by portrait, prompt and rank of the seed; `condition` is the second's."""
    keyed = [_keyed(first, first_editor, ConditionKind.BASELINE), _keyed(second, second_editor, condition)]
    both = keyed[0].merge(keyed[1], on=KEY, suffixes=("_first", "_second"))
    if both.empty:
        raise EvenEditError(
            f"'{first_editor}' and '{second_editor}' share no portrait and prompt, so they cannot be compared in pairs"
        )
    rows = both[["row_first", "row_second"]].to_numpy(dtype=np.intp)
    return Pairs(first, second, rows, len(keyed[0]) + len(keyed[1]) - 2 * len(rows))


def _keyed(scores: Scores, editor: str, condition: str) -> pd.DataFrame:
    edits = scores.edits
    chosen = (edits["experiment"] == Experiment.DIAGNOSIS) & (edits["condition"] == condition)
    chosen &= edits["editor"] == editor
    selected = edits[chosen].assign(row=np.flatnonzero(chosen.to_numpy()))
    rank = selected.groupby(["source_id", "prompt_id"])["seed"].rank(method="first").astype(np.int64)
    return selected.assign(seed_rank=rank)[[*KEY, "row"]]


class DrawnDifference(NamedTuple):
    """A difference with what faces and prompts that were drawn anew made of it."""

    difference: Difference
    moved: Values
    """[draw]: by how much, the same draws for all measures of a group."""


def differences(pairs: Pairs, rules: AnalysisRules) -> list[Difference]:
    """Return the differences of all rates, means and gaps; regressions first, the largest first."""
    sides = [answers(scores, rules).rows(pairs.rows[:, at]) for at, scores in enumerate((pairs.first, pairs.second))]
    adjusted_differences = adjusted([*_levels(pairs, sides, rules), *_gaps(pairs, sides, rules)], rules.confidence)
    order = ("regression", "improvement", "unclear")
    return sorted(adjusted_differences, key=lambda d: (order.index(d.change), bool(d.group), -abs(d.value)))


def adjusted(drawn_differences: Sequence[DrawnDifference], confidence: float) -> list[Difference]:
    """Return each difference with p adjusted within its family; measures without a direction are not tested.

    The largest is held against the largest of each draw (Westfall and Young): what the measures of a group share is
    taken into account. Every p and every draw is told on the scale of the normal distribution, a draw by its rank
    among the others, so that rare rates with long tails do not hide the rest.
    """
    tested = [replace(d, p=_p(d, confidence)) for d, _ in drawn_differences]
    families = [[at for at, d in enumerate(tested) if d.p is not None and _of_group(d) == one] for one in (False, True)]
    families = [family for family in families if family]
    for family in families:
        seen = np.array([-ndtri((tested[at].p or TINY) / 2) for at in family])
        drawn = np.stack([drawn_differences[at].moved for at in family], axis=1)
        ranks = (pd.DataFrame(drawn).rank().to_numpy() - 0.5) / len(drawn)
        for at, p in zip(family, step_down(seen, np.abs(ndtri(ranks))), strict=True):
            p_adjusted = max(tested[at].p or 0.0, min(1.0, len(families) * float(p)))
            tested[at] = replace(tested[at], p_adjusted=p_adjusted)
    return tested


def _of_group(d: Difference) -> bool:
    return bool(d.group) and "*" not in d.group.values()


def _p(d: Difference, confidence: float) -> float | None:
    """Return p of the difference, from the half of the interval towards 0."""
    if d.low is None or d.high is None or d.measure in NEITHER_IS_BETTER:
        return None
    reach = d.value - d.low if d.value > 0 else d.high - d.value
    if reach <= 0:
        return None
    return float(2 * ndtr(-abs(d.value) / reach * ndtri(0.5 + confidence / 2)))


def _ledgers(sides: Sequence[Answers], rules: AnalysisRules) -> list[MeasureTable]:
    """Return the scores of each side, counted where both have one."""
    both = {q: ((sides[0].of(q)[0] > 0) & (sides[1].of(q)[0] > 0)).astype(np.int64) for q in AXIS_QUESTIONS}
    applicable = sides[0].applicable | sides[1].applicable
    ledgers = []
    for side in sides:
        ledger = MeasureTable()
        add_score_measures(ledger, Answers(side.values, applicable), both, rules.rates)
        ledgers.append(ledger)
    return ledgers


def _laid_out(edits: pd.DataFrame, ledger: MeasureTable, factors: Sequence[Factor]) -> Panel:
    return build_panel(
        edits,
        by_face(edits, factors),
        ledger.columns,
        ledger.measures,
        experiment=Experiment.DIAGNOSIS.value,
        condition=ConditionKind.BASELINE,
    )


def _levels(pairs: Pairs, sides: Sequence[Answers], rules: AnalysisRules) -> Iterator[DrawnDifference]:
    """Yield paired differences; the scores of the panel are differences of pairs."""
    before, after = _ledgers(sides, rules)
    edits = pairs.first.edits.iloc[pairs.rows[:, 0]].assign(editor="both")
    ledger = MeasureTable()
    for m in before.measures:
        total = after.columns[m.total] - before.columns[m.total]
        ledger.add(
            RatioMeasure(Measure.delta(f"{m.name}"), m.total, m.count, m.applicable),
            total,
            before.columns[m.count],
            before.columns[m.applicable],
        )
    panel = _laid_out(edits, ledger, pairs.first.table.factors)
    level = _laid_out(edits, before, pairs.first.table.factors)
    bootstrap = Bootstrap(panel, rules.draws, rules.seed)
    places = {Measure.delta(m.name): at for at, m in enumerate(level.measures)}
    for e in estimates(bootstrap, panel.axes.groups(), rules):
        if e.editor is None or e.value is None:
            continue
        at = places[Measure(e.measure)]
        measure, mask = level.measures[at], level.axes.mask(e.group)
        moved = _moved(bootstrap.group(panel.axes.mask(e.group)), 0, at)
        first = ratio(level.column_sum(measure.total, [0], mask), level.column_sum(measure.count, [0], mask)) or 0.0
        yield DrawnDifference(
            Difference(measure.name, e.group, first, first + e.value, e.value, e.low, e.high, e.n), moved
        )


def _gaps(pairs: Pairs, sides: Sequence[Answers], rules: AnalysisRules) -> Iterator[DrawnDifference]:
    """Yield differences of gaps, from one panel, so that both sides draw the same faces and prompts."""
    ledgers = _ledgers(sides, rules)
    stacked = MeasureTable(
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
    yield from gap_differences(Bootstrap(panel, rules.draws, rules.seed), rules)


def gap_differences(bootstrap: Bootstrap, rules: AnalysisRules) -> Iterator[DrawnDifference]:
    """Yield the second editor's gap minus the first's, over every factor, of a panel of both.

    A gap is above the true one by chance, the more so the smaller it is, so what is drawn cannot be reflected (that
    covered 0.75 where both editors are even). The interval is made from the two gaps' own, whose ends know this (Zou
    2007); how alike the two are is known from the groups at their ends under the same draws of faces and prompts.
    """
    panel = bootstrap.panel
    all_clusters = panel.axes.mask({})
    for factor, levels in panel.axes.levels.items():
        if len(levels) < 2:
            continue
        masks = [panel.axes.mask({factor: level}) for level in levels]
        drawn = [bootstrap.group(mask) for mask in masks]
        ends = gap_intervals_by_editor(bootstrap, drawn, rules)
        for at, measure in enumerate(panel.measures):
            rates = [_rates(panel, measure, side, masks) for side in (0, 1)] if measure.is_rate else [None, None]
            if rates[0] is None or rates[1] is None:
                continue
            first, second = (float(np.ptp(r)) for r in rates if r is not None)
            intervals = [
                ends.get((side, at)) or degenerate_gap_interval(bootstrap, factor, side, at, rules)[0]
                for side in (0, 1)
            ]
            interval = None
            moved = [
                _moved(drawn[int(r.argmax())], side, at) - _moved(drawn[int(r.argmin())], side, at)
                for side, r in enumerate((rates[0], rates[1]))
            ]
            if intervals[0] is not None and intervals[1] is not None:
                interval = difference(second, first, (intervals[1], intervals[0]), _alike(moved[0], moved[1]))
            estimate = Difference(
                measure.name.to(MeasureKind.GAP),
                {factor: "*"},
                first,
                second,
                second - first,
                interval[0] if interval else None,
                interval[1] if interval else None,
                panel.column_sum(measure.count, [0], all_clusters),
            )
            yield DrawnDifference(estimate, moved[1] - moved[0])


def _moved(draws: Draws, side: int, at: int) -> Values:
    """Return the change [draw] of a measure when faces and prompts are drawn; 0 where a draw has no score."""
    moved = draws.faces[:, side, at] - draws.value[side, at] + draws.prompts[:, side, at]
    return np.asarray(np.nan_to_num(moved))


def _alike(first: Values, second: Values) -> float:
    """Return the correlation of both editors' gaps over draws of faces and prompts."""
    covariance = np.cov(first, second)
    spread = float(np.sqrt(covariance[0, 0] * covariance[1, 1]))
    return float(np.clip(covariance[0, 1] / spread, 0.0, 1.0)) if spread > 0 else 0.0


def _rates(
    panel: Panel, measure: RatioMeasure, side: int, masks: Sequence[NDArray[np.bool_]]
) -> NDArray[np.float64] | None:
    """Return every group's rate; None where one has none."""
    rates = [
        ratio(panel.column_sum(measure.total, [side], m), panel.column_sum(measure.count, [side], m)) for m in masks
    ]
    return None if any(r is None for r in rates) else np.array(rates, dtype=np.float64)
