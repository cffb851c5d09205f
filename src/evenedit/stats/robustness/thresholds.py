"""Every rate under every threshold and both missing-value conventions: does what was found hang on a choice?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenedit.core.records import Experiment
from evenedit.protocol import Rate, Rubric
from evenedit.protocol.ensemble import MISSING_POLICIES
from evenedit.protocol.measures import Measure
from evenedit.ratings.combine import combine
from evenedit.ratings.table import RatingTable, Scores
from evenedit.results.results import Sensitivity
from evenedit.stats.engine.measures import answers
from evenedit.stats.engine.rules import AnalysisRules


def thresholds(rate: Rate, rubric: Rubric) -> list[Rate]:
    """Return the rate under every threshold of its direction that does not hold for all answers; a choice has none."""
    if rate.is_:
        return [rate]
    top = len(rubric.questions[rate.question].labels)
    if rate.at_least is not None:
        return [replace(rate, at_least=cut) for cut in range(2, top + 1)]
    return [replace(rate, at_most=cut) for cut in range(1, top)]


def sensitivity(table: RatingTable, rules: AnalysisRules) -> Iterator[Sensitivity]:
    """Yield rates and gaps of the main factor in the diagnosis, per editor and pooled, under every choice."""
    chosen = (table.edits["experiment"] == Experiment.DIAGNOSIS).to_numpy()
    if not chosen.any():
        return
    for missing in MISSING_POLICIES:
        scores = combine(table, rules.ensemble, missing)
        for condition in sorted(table.edits["condition"][chosen].unique()):
            rows = chosen & (table.edits["condition"] == condition).to_numpy()
            yield from _rows(scores, rows, condition, replace(rules, missing=missing), rules)


def _rows(
    scores: Scores, rows: NDArray[np.bool_], condition: str, varied: AnalysisRules, rules: AnalysisRules
) -> Iterator[Sensitivity]:
    edits = scores.edits[rows]
    main = scores.table.factors[0]
    codes = main.codes
    level = edits[main.name].map({code: at for at, code in enumerate(codes)}).fillna(len(codes)).to_numpy(np.int64)
    editors = sorted(edits["editor"].unique())
    editor = edits["editor"].map({name: at for at, name in enumerate(editors)}).to_numpy(np.int64)
    scored = answers(scores, varied).rows(np.flatnonzero(rows))
    for rate in rules.rates.values():
        top = len(scores.table.rubric.questions[rate.question].labels)
        shape = (len(editors), len(codes) + 1, top + 1)
        at = np.ravel_multi_index((editor, level, scored.of(rate.question)[0]), shape)
        tally = np.bincount(at, minlength=int(np.prod(shape))).reshape(shape)
        for name, counts in [*zip(editors, tally, strict=True), (None, tally.sum(axis=0))]:
            for cut in thresholds(rate, scores.table.rubric):
                answers_there = np.arange(top + 1)
                total = counts[:, cut.met(answers_there)].sum(axis=1)
                count = counts[:, cut.counted(answers_there)].sum(axis=1)
                shares = [int(t) / int(n) for t, n in zip(total[:-1], count[:-1], strict=True) if n]
                yield Sensitivity(
                    measure=Measure.rate(rate.id),
                    experiment=Experiment.DIAGNOSIS.value,
                    condition=condition,
                    editor=name,
                    threshold=cut.rule,
                    missing=varied.missing,
                    is_default=cut == rate and varied.missing == rules.missing,
                    value=int(total.sum()) / int(count.sum()) if count.sum() else None,
                    gap=max(shares) - min(shares) if len(shares) > 1 else None,
                    n=int(count.sum()),
                )
