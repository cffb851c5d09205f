"""Two editors, or two languages, on the same portraits and prompts: paired differences, where both have a score."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from evenedit.core.errors import EvenEditError
from evenedit.core.records import ConditionKind, Experiment, language_of
from evenedit.protocol import Factor, Rubric
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.questions import harm_of
from evenedit.ratings.table import Scores
from evenedit.results.agreement import PredictionPowered
from evenedit.results.finding import ALPHA
from evenedit.results.sensitivities import LanguageDifference
from evenedit.stats.engine.anom import GroupTests, group_tests
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import estimates
from evenedit.stats.engine.families import holm
from evenedit.stats.engine.measures import Answers, MeasureTable, add_score_measures, answers
from evenedit.stats.engine.panel import Panel, RatioMeasure, by_face, of_diagnosis
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.variance import difference

KEY = ["source_id", "prompt_id", "seed_rank"]
Change = Literal["regression", "improvement", "unclear"]
Corrections = Mapping[tuple[object, ...], PredictionPowered]
"""One editor's estimates with people's ratings, by measure and group."""


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
    """Holm's adjustment within its family, times the number of families: everybody's measures and the gaps are one,
    the groups' measures another."""
    judge_value: float | None = None
    """The judges' own difference over the pairs, where the others are corrected by people's ratings; None elsewhere."""
    better: int = -1
    """1 where more is better, -1 where less is, 0 where neither is."""

    @property
    def change(self) -> Change:
        """The outcome of the adjusted test, where more or less is better."""
        if self.p_adjusted is None or self.p_adjusted >= ALPHA or not self.better:
            return "unclear"
        return "improvement" if self.value * self.better > 0 else "regression"


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
    chosen = of_diagnosis(edits, condition) & (edits["editor"] == editor).to_numpy()
    selected = edits[chosen].assign(row=np.flatnonzero(chosen))
    rank = selected.groupby(["source_id", "prompt_id"])["seed"].rank(method="first").astype(np.int64)
    return selected.assign(seed_rank=rank)[[*KEY, "row"]]


def differences(
    pairs: Pairs, rules: AnalysisRules, people: tuple[Corrections, Corrections] = ({}, {})
) -> list[Difference]:
    """Return the differences of all rates, means and gaps; regressions first, the largest first.

    `people` has each editor's estimates as corrected by people's ratings; where both have one, it stands first.
    """
    sides = [answers(scores, rules).rows(pairs.rows[:, at]) for at, scores in enumerate((pairs.first, pairs.second))]
    rubric = pairs.first.table.rubric
    judged = [
        replace(d, better=_better(d, rubric)) for d in (*_levels(pairs, sides, rules), *_gaps(pairs, sides, rules))
    ]
    tested = adjusted([_corrected(d, people) for d in judged], rules.confidence)
    order = ("regression", "improvement", "unclear")
    return sorted(tested, key=lambda d: (order.index(d.change), bool(d.group), -abs(d.value)))


def _better(d: Difference, rubric: Rubric) -> int:
    """Return 1 where more of a measure is better, -1 where less is, 0 where neither is."""
    kind, name = Measure(d.measure).kind, Measure(d.measure).name
    if kind == MeasureKind.GAP or (kind == MeasureKind.RATE and name not in rubric.rates):
        return -1
    if kind == MeasureKind.RATE:
        harm = harm_of(rubric.spec_by_column[rubric.rates[name].question].row)
        return 1 if name in rubric.wanted_rates else 0 if harm == "none" else -1
    if kind == MeasureKind.MEAN and name in rubric:
        return {"low": 1, "high": -1}.get(harm_of(rubric.spec_by_column[name].row), 0)
    return 0


def corrections(powered: Iterable[PredictionPowered], editor: str) -> Corrections:
    """Return what people's ratings make of an editor's diagnosis, where they rated enough."""
    place = editor, Experiment.DIAGNOSIS.value, ConditionKind.BASELINE.value
    return {
        (p.measure, *p.group.items()): p
        for p in powered
        if p.enough and None not in (p.value, p.low, p.high) and (p.editor, p.experiment, p.condition) == place
    }


def _corrected(d: Difference, people: tuple[Corrections, Corrections]) -> Difference:
    """Return the difference of both corrected estimates, which count as independent; the judges' where one has none."""
    first, second = (of.get((d.measure, *d.group.items())) for of in people)
    if first is None or second is None:
        return d
    (a, *ends), (b, *others) = ((float(x or 0.0) for x in (p.value, p.low, p.high)) for p in (first, second))
    low, high = difference(b, a, ((others[0], others[1]), (ends[0], ends[1])), 0.0)
    return replace(d, first=a, second=b, value=b - a, low=low, high=high, judge_value=d.value)


def adjusted(several: Sequence[Difference], confidence: float) -> list[Difference]:
    """Return each difference with p adjusted within its family; measures without a direction are not tested."""
    tested = [replace(d, p=_p(d, confidence)) for d in several]
    families = [[at for at, d in enumerate(tested) if d.p is not None and _of_group(d) == one] for one in (False, True)]
    families = [family for family in families if family]
    for family in families:
        for at, p in zip(family, holm([tested[at].p for at in family]), strict=True):
            tested[at] = replace(tested[at], p_adjusted=min(1.0, len(families) * (p or 0.0)))
    return tested


def _of_group(d: Difference) -> bool:
    return bool(d.group) and "*" not in d.group.values()


def _p(d: Difference, confidence: float) -> float | None:
    """Return p of the difference, from the half of the interval towards 0."""
    if d.low is None or d.high is None or not d.better:
        return None
    reach = d.value - d.low if d.value > 0 else d.high - d.value
    if reach <= 0:
        return None
    return float(2 * ndtr(-abs(d.value) / reach * ndtri(0.5 + confidence / 2)))


def _ledgers(sides: Sequence[Answers], rules: AnalysisRules) -> list[MeasureTable]:
    """Return the scores of each side, counted where both have one."""
    columns = sides[0].rubric.columns
    both = {q: ((sides[0].of(q)[0] > 0) & (sides[1].of(q)[0] > 0)).astype(np.int64) for q in columns}
    applicable = sides[0].applicable | sides[1].applicable
    ledgers = []
    for side in sides:
        ledger = MeasureTable(rubric=side.rubric)
        add_score_measures(ledger, Answers(side.values, applicable, side.rubric), both, rules.rates)
        ledgers.append(ledger)
    return ledgers


def _laid_out(edits: pd.DataFrame, ledger: MeasureTable, factors: Sequence[Factor]) -> Panel:
    return ledger.panel(edits, by_face(edits, factors), Experiment.DIAGNOSIS.value, ConditionKind.BASELINE)


def _levels(pairs: Pairs, sides: Sequence[Answers], rules: AnalysisRules) -> Iterator[Difference]:
    """Yield paired differences; the scores of the panel are differences of pairs."""
    before, after = _ledgers(sides, rules)
    edits = pairs.first.edits.iloc[pairs.rows[:, 0]].assign(editor="both")
    ledger = MeasureTable(rubric=sides[0].rubric)
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
    by_name = {Measure.delta(m.name): m for m in level.measures}
    for e in estimates(CrossedPanel(panel), panel.axes.groups(), rules):
        if e.editor is None or e.value is None:
            continue
        measure, mask = by_name[Measure(e.measure)], level.axes.mask(e.group)
        first = (
            measure.ratio(level.column_sum(measure.total, [0], mask), level.column_sum(measure.count, [0], mask)) or 0.0
        )
        yield Difference(measure.name, e.group, first, first + e.value, e.value, e.low, e.high, e.n)


def _gaps(pairs: Pairs, sides: Sequence[Answers], rules: AnalysisRules) -> Iterator[Difference]:
    """Yield differences of gaps, from one panel, so that both sides have the same faces and prompts."""
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
    yield from gap_differences(CrossedPanel(panel), rules)


def gap_differences(crossed: CrossedPanel, rules: AnalysisRules) -> Iterator[Difference]:
    """Yield the second editor's gap minus the first's, over every factor, of a panel of both.

    The interval combines those of the two gaps (Zou and Donner 2008). Their correlation is that of the differences
    between the groups at the ends of each gap, over the same faces and prompts.
    """
    panel = crossed.panel
    all_clusters = panel.axes.mask({})
    for factor in panel.axes.levels:
        if len(panel.axes.levels[factor]) < 2:
            continue
        tests = group_tests(crossed, factor, rules.confidence)
        for at, measure in enumerate(panel.measures):
            both = [tests.get((side, at)) for side in (0, 1)] if measure.is_rate else [None, None]
            if both[0] is None or both[1] is None or both[0].levels != both[1].levels:
                continue
            first, second = both[0], both[1]
            interval = None
            if first.range_interval is not None and second.range_interval is not None:
                alike = _correlation(crossed, factor, at, (first, second))
                interval = difference(second.gap, first.gap, (second.range_interval, first.range_interval), alike)
            yield Difference(
                measure.name.to(MeasureKind.GAP),
                {factor: "*"},
                first.gap,
                second.gap,
                second.gap - first.gap,
                interval[0] if interval else None,
                interval[1] if interval else None,
                panel.column_sum(measure.count, [0], all_clusters),
            )


def _correlation(crossed: CrossedPanel, factor: str, at: int, both: tuple[GroupTests, GroupTests]) -> float:
    """Return the correlation of both editors' gaps over faces and prompts."""
    influence = []
    for side, tests in enumerate(both):
        ends = [tests.levels[tests.rates.index(extreme(tests.rates))] for extreme in (max, min)]
        masks = [crossed.panel.axes.mask({factor: level}) for level in ends]
        faces, prompts = crossed.influences([(masks[0], 1.0), (masks[1], -1.0)])
        influence.append(np.concatenate([faces[:, side, at], prompts[:, side, at]]))
    spread = float(np.sqrt(np.square(influence[0]).sum() * np.square(influence[1]).sum()))
    return float(np.clip(influence[0] @ influence[1] / spread, 0.0, 1.0)) if spread > 0 else 0.0


def language_differences(scores: Scores, rules: AnalysisRules) -> Iterator[LanguageDifference]:
    """Yield each editor's rates and gaps in another language minus those in the original language.

    Pairs share portrait, prompt and seed. p is Holm's within an editor and language, times the number of these.
    """
    edits = scores.edits[scores.edits["experiment"] == Experiment.DIAGNOSIS]
    arms = edits[["editor", "condition"]].drop_duplicates()
    translated = [(str(e), str(c)) for e, c in arms.itertuples(index=False) if language_of(str(c))]
    for editor, condition in translated:
        for d in differences(pair(scores, scores, editor, editor, condition), rules):
            over_everybody = not d.group or "*" in d.group.values()
            if over_everybody and Measure(d.measure).kind in (MeasureKind.RATE, MeasureKind.GAP):
                p = None if d.p_adjusted is None else min(1.0, d.p_adjusted * len(translated))
                place = language_of(condition), editor, d.measure, d.group
                yield LanguageDifference(*place, d.first, d.second, d.value, d.low, d.high, d.pairs, p)
