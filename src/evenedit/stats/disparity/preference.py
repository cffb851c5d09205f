"""Which output keeps the person better, the mitigated or the baseline? Derived from ratings of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenedit.core.records import Experiment
from evenedit.protocol.drift import drift
from evenedit.results.results import Agreement
from evenedit.stats.agreement import inter_rater as reliability
from evenedit.stats.agreement.nominal import CEILING, OTHERS, matched
from evenedit.stats.agreement.overlap import Overlap, Place, Rows
from evenedit.stats.disparity.mitigation import pairs
from evenedit.stats.engine.additive import mean_of

ANSWERS = ("mitigated", "baseline", "same")
"""Answers are positions here."""
DERIVED = "derived: less change of race, gender, skin tone and age"

RATES = ((1, mean_of("preference_rate", is_share=True)), (3, mean_of("preference_same", is_share=True)))
"""Shares of cases in which the mitigated output is preferred, and in which neither is."""


def change(answers: NDArray[np.int8]) -> NDArray[np.int64]:
    """[…]: how far the person changed, in points, from answers […, question]; -1 where a question has no answer."""
    found = drift(answers)
    return np.where(found.complete, np.nan_to_num(found.points).astype(np.int64), -1)


def preferred(difference: NDArray[np.int64]) -> NDArray[np.int8]:
    """Position in ANSWERS of a difference, mitigated minus baseline, in change."""
    return np.select([difference < 0, difference > 0], [1, 2], 3).astype(np.int8)


def preference(evidence: Overlap) -> Iterator[Agreement]:
    """For every mitigated arm: how often the mitigated output is preferred, and whether judges and people agree."""
    for condition, before, after in cases(evidence):
        for editor, rows in evidence.editors(after):
            of = np.isin(after, rows)
            yield from _preference(evidence, Place("preference", condition, editor), before[of], after[of])


def cases(evidence: Overlap) -> Iterator[tuple[str, Rows, Rows]]:
    """Every mitigated arm with the rows of its complete pairs: baseline and mitigated."""
    edits = evidence.table.edits
    experiment = edits["experiment"].to_numpy(dtype=object, copy=True)
    experiment[evidence.arms.get(("baseline", False), np.empty(0, dtype=np.intp))] = Experiment.DIAGNOSIS.value
    arms = edits.assign(experiment=experiment)
    for condition in evidence.conditions():
        if (experiment[evidence.rows(condition)] == Experiment.MITIGATION).any():
            before, after = pairs(arms, condition)
            yield condition, before[before >= 0], after[before >= 0]


def _preference(evidence: Overlap, place: Place, before: Rows, after: Rows) -> Iterator[Agreement]:
    answers = evidence.table.values[list(evidence.people)]
    earlier, later = change(answers[:, before]), change(answers[:, after])
    asked = (earlier >= 0) & (later >= 0)
    difference = np.where(asked, later - earlier, 0)
    rated = asked.any(axis=0)
    if not rated.any():
        return
    asked, difference, before, after = asked[:, rated], difference[:, rated], before[rated], after[rated]
    votes = np.where(asked, preferred(difference), 0).astype(np.int8).T
    theirs = preferred(difference.sum(axis=0))
    n = 2 * int(asked.sum())
    levels = len(ANSWERS)
    among = (reliability.fleiss(levels), reliability.alpha_nominal(levels), reliability.agreeing(levels))
    yield from evidence.estimate(place, [(s, (votes,)) for s in among], after, n, DERIVED)
    yield from evidence.estimate(place, [(s, (theirs == at,)) for at, s in RATES], after, n, DERIVED)
    person, item = np.nonzero(asked & (asked.sum(axis=0) > 1))
    own, total = difference[person, item], difference.sum(axis=0)[item]
    wanted = matched(levels, preferred(own), preferred(total - own))
    yield from evidence.estimate(place, wanted, after[item], 2 * len(own), OTHERS, CEILING)
    first, second = change(evidence.judged[before]), change(evidence.judged[after])
    both = (first >= 0) & (second >= 0)
    if both.any():
        judged = preferred(second[both] - first[both])
        wanted = matched(levels, judged, theirs[both])
        yield from evidence.estimate(place, wanted, after[both], 2 * int(asked[:, both].sum()), DERIVED)
        alone = replace(place, raters="ensemble")
        yield from evidence.estimate(
            alone, [(s, (judged == at,)) for at, s in RATES], after[both], 2 * int(both.sum()), DERIVED
        )
