"""Two editors on the same portraits and prompts: paired differences, where both have a valid score.

Both editors' edits stand in one panel, so every bootstrap draw takes the same faces and prompts for both, and the
difference of a draw is a paired one. What only one of them answered is left out of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.ratings import Scores
from evenedit.records import Experiment, UserError
from evenedit.stats.bootstrap import Bootstrap
from evenedit.stats.estimates import ratio
from evenedit.stats.intervals import as_interval, percentile
from evenedit.stats.measures import AXIS_QUESTIONS, Answers, Ledger, answers, write_scores
from evenedit.stats.panel import Panel, by_face, lay_out
from evenedit.stats.rules import AnalysisRules

KEY = ["source_id", "prompt_id", "seed_rank"]
HIGHER_IS_BETTER = frozenset({"rate.edit_success", "mean.edit_success"})
NEITHER_IS_BETTER = frozenset({"mean.skin_tone", "mean.age_drift", "mean.aging_accuracy"})
"""Means of two-sided axes: further from 3 in either direction is a change."""
Change = Literal["regression", "improvement", "unclear"]


@dataclass(frozen=True, slots=True)
class Difference:
    """The second editor minus the first, over complete pairs."""

    measure: str
    """rate.<rate>, mean.<axis> or gap.<rate>."""
    group: Mapping[str, str]
    """{} for everybody; {"race": "*"} for a gap over races."""
    first: float
    second: float
    value: float
    low: float | None
    high: float | None
    pairs: int

    @property
    def change(self) -> Change:
        """What the interval says, where more or less is better."""
        if self.low is None or self.high is None or self.measure in NEITHER_IS_BETTER or self.low <= 0 <= self.high:
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
        raise UserError(
            f"'{first_editor}' and '{second_editor}' share no portrait and prompt, so they cannot be compared in pairs"
        )
    rows = both[["row_first", "row_second"]].to_numpy(dtype=np.intp)
    return Pairs(first, second, rows, len(keyed[0]) + len(keyed[1]) - 2 * len(rows))


def _keyed(scores: Scores, editor: str) -> pd.DataFrame:
    edits = scores.edits
    chosen = (edits["experiment"] == Experiment.DIAGNOSIS) & (edits["condition"] == "baseline")
    chosen &= edits["editor"] == editor
    found = edits[chosen].assign(row=np.flatnonzero(chosen.to_numpy()))
    rank = found.groupby(["source_id", "prompt_id"])["seed"].rank(method="first").astype(np.int64)
    return found.assign(seed_rank=rank)[[*KEY, "row"]]


def differences(pairs: Pairs, rules: AnalysisRules) -> list[Difference]:
    """Every rate and mean over everybody and each group, and every gap; regressions first, the largest first."""
    panel = _panel(pairs, rules)
    bootstrap = Bootstrap(panel, rules.draws, rules.seed)
    found = [*_levels(bootstrap, rules), *_gaps(bootstrap, rules)]
    order = ("regression", "improvement", "unclear")
    return sorted(found, key=lambda d: (order.index(d.change), bool(d.group), -abs(d.value)))


def _panel(pairs: Pairs, rules: AnalysisRules) -> Panel:
    sides = [answers(scores, rules).rows(pairs.rows[:, at]) for at, scores in enumerate((pairs.first, pairs.second))]
    both = {q: ((sides[0].of(q)[0] > 0) & (sides[1].of(q)[0] > 0)).astype(np.int64) for q in AXIS_QUESTIONS}
    together = Answers(np.concatenate([side.values for side in sides]), np.concatenate([side.asked for side in sides]))
    ledger = Ledger()
    write_scores(ledger, together, {q: np.concatenate([valid, valid]) for q, valid in both.items()}, rules.rates)
    edits = pd.concat(
        [
            scores.edits.iloc[pairs.rows[:, at]].assign(editor=name)
            for at, (name, scores) in enumerate((("1", pairs.first), ("2", pairs.second)))
        ],
        ignore_index=True,
    )
    return lay_out(
        edits,
        by_face(edits),
        ledger.columns,
        ledger.measures,
        experiment=Experiment.DIAGNOSIS.value,
        condition="baseline",
    )


def _levels(bootstrap: Bootstrap, rules: AnalysisRules) -> Iterator[Difference]:
    panel = bootstrap.panel
    for group in panel.axes.groups():
        mask = panel.axes.mask(group)
        draws = bootstrap.group(mask).values
        bounds = percentile(draws[:, 1] - draws[:, 0], rules.confidence)
        for at, measure in enumerate(panel.measures):
            counts = [panel.tally(measure.count, [side], mask) for side in (0, 1)]
            values = [ratio(panel.tally(measure.total, [side], mask), counts[side]) for side in (0, 1)]
            if values[0] is None or values[1] is None:
                continue
            interval = as_interval(bounds[:, at])
            yield Difference(
                measure.name,
                group,
                values[0],
                values[1],
                values[1] - values[0],
                interval[0] if interval else None,
                interval[1] if interval else None,
                counts[0],
            )


def _gaps(bootstrap: Bootstrap, rules: AnalysisRules) -> Iterator[Difference]:
    panel = bootstrap.panel
    everybody = panel.axes.mask({})
    for factor, levels in panel.axes.levels.items():
        if len(levels) < 2:
            continue
        masks = [panel.axes.mask({factor: level}) for level in levels]
        drawn = np.stack([bootstrap.group(mask).values for mask in masks])
        spread = drawn.max(axis=0) - drawn.min(axis=0)
        for at, measure in enumerate(panel.measures):
            if not measure.is_rate:
                continue
            gap = []
            for side in (0, 1):
                rates = [
                    ratio(panel.tally(measure.total, [side], m), panel.tally(measure.count, [side], m)) for m in masks
                ]
                told = [r for r in rates if r is not None]
                gap.append(max(told) - min(told) if len(told) == len(levels) else None)
            if gap[0] is None or gap[1] is None:
                continue
            # a range is biased upwards, in both editors alike: the reflected interval takes the draws' own bias away
            value = gap[1] - gap[0]
            bounds = as_interval(percentile(spread[:, 1, at] - spread[:, 0, at], rules.confidence))
            yield Difference(
                "gap." + measure.name.removeprefix("rate."),
                {factor: "*"},
                gap[0],
                gap[1],
                value,
                2 * value - bounds[1] if bounds else None,
                2 * value - bounds[0] if bounds else None,
                panel.tally(measure.count, [0], everybody),
            )
