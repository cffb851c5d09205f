"""Every rate under every threshold and both missing-value conventions: does what was found hang on a choice?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenedit.core.records import Experiment
from evenedit.protocol import Rate, Rubric
from evenedit.protocol.ensemble import MISSING_POLICIES
from evenedit.protocol.measures import Measure
from evenedit.ratings.combine import combine
from evenedit.ratings.table import RatingTable
from evenedit.results.results import Sensitivity
from evenedit.stats.engine.measures import MeasureTable, answers
from evenedit.stats.engine.panel import Panel, RatioMeasure, by_face, of_diagnosis
from evenedit.stats.engine.rules import AnalysisRules


def thresholds(rate: Rate, rubric: Rubric) -> list[Rate]:
    """Return the rate under every threshold of its direction that does not hold for all answers; a choice has none."""
    if rate.is_:
        return [rate]
    top = len(rubric.questions[rate.question].labels)
    if rate.at_least is not None:
        return [replace(rate, at_least=cut) for cut in range(2, top + 1)]
    return [replace(rate, at_most=cut) for cut in range(1, top)]


def threshold_panel(
    table: RatingTable, rows: NDArray[np.intp], scores: NDArray[Any], cuts: Iterable[Rate], condition: str
) -> Panel:
    """Return the panel of rates under these thresholds, from scores [row, question] that are 0 where missing."""
    ledger, edits = MeasureTable(rubric=table.rubric), table.edits.iloc[rows]
    for cut in cuts:
        value, name = scores[:, table.at(cut.question)].astype(np.int64), threshold_name(cut)
        valid = cut.counted(value).astype(np.int64)
        measure = RatioMeasure(name, f"met.{name}", f"n.{cut.id}", "asked")
        ledger.add(measure, cut.met(value).astype(np.int64), valid, np.ones_like(valid))
    return ledger.panel(edits, by_face(edits, table.factors), Experiment.DIAGNOSIS.value, condition)


def threshold_name(cut: Rate) -> Measure:
    """Return the name of a rate under a threshold."""
    return Measure.rate(f"{cut.id} {cut.rule}")


def sensitivity(table: RatingTable, rules: AnalysisRules) -> Iterator[Sensitivity]:
    """Yield rates and gaps of the main factor in the diagnosis, per editor and pooled, under every choice."""
    edits, main = table.edits, table.factors[0].name
    conditions = sorted(edits["condition"][edits["experiment"] == Experiment.DIAGNOSIS].unique())
    cuts = [(rate, thresholds(rate, table.rubric)) for rate in rules.rates.values()]
    for missing, condition in product(MISSING_POLICIES, conditions):
        scores, rows = combine(table, rules.ensemble, missing), np.flatnonzero(of_diagnosis(edits, condition))
        values = answers(scores, replace(rules, missing=missing)).values[rows]
        panel = threshold_panel(table, rows, values, (cut for _, several in cuts for cut in several), condition)
        measures = {m.name: m for m in panel.measures}
        masks = [panel.axes.mask({}), *(panel.axes.mask({main: level}) for level in panel.axes.levels.get(main, ()))]
        for (rate, several), (editor, members) in product(cuts, panel.rows()):
            for cut in several:
                m = measures[threshold_name(cut)]
                sums = [[panel.column_sum(column, members, mask) for column in (m.total, m.count)] for mask in masks]
                shares = [total / n for total, n in sums[1:] if n]
                yield Sensitivity(
                    measure=Measure.rate(rate.id),
                    experiment=panel.experiment,
                    condition=condition,
                    editor=editor,
                    threshold=cut.rule,
                    missing=missing,
                    is_default=cut == rate and missing == rules.missing,
                    value=m.ratio(*sums[0]),
                    gap=max(shares) - min(shares) if len(shares) > 1 else None,
                    n=sums[0][1],
                )
