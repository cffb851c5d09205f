"""Which output keeps the person better, the mitigated or the baseline? Derived from ratings of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenedit.core.records import Experiment
from evenedit.protocol import ROLES, Rubric
from evenedit.protocol.drift import drift
from evenedit.results.results import Agreement
from evenedit.stats.agreement import inter_rater as reliability
from evenedit.stats.agreement.overlap import Overlap, Place, Rows
from evenedit.stats.agreement.questions import nominal_match
from evenedit.stats.disparity.mitigation import pairs
from evenedit.stats.engine.additive import mean_of

ANSWERS = ("mitigated", "baseline", "same")
"""Answers are positions here."""
DERIVED = "derived: less change of race, gender, skin tone and age"

RATES = ((1, mean_of("preference_rate", is_share=True)), (3, mean_of("preference_same", is_share=True)))
"""Shares of cases in which the mitigated output is preferred, and in which neither is."""


def change(answers: NDArray[np.int8], rubric: Rubric) -> NDArray[np.int64]:
    """Return the change of the person in points, from answers […, question]; -1 where a question has no answer."""
    change_in_points = drift(answers, rubric=rubric)
    return np.where(change_in_points.complete, np.nan_to_num(change_in_points.points).astype(np.int64), -1)


def preferred(difference: NDArray[np.int64]) -> NDArray[np.int8]:
    """Return the position in ANSWERS of a difference in change, mitigated minus baseline."""
    return np.select([difference < 0, difference > 0], [1, 2], 3).astype(np.int8)


def preference(evidence: Overlap) -> Iterator[Agreement]:
    """Yield, per mitigated arm, how often the mitigated output is preferred and whether judges and people agree."""
    for condition, before, after in cases(evidence):
        for editor, rows in evidence.editors(after):
            of = np.isin(after, rows)
            yield from _preference(evidence, Place(ROLES.preference, condition, editor), before[of], after[of])


def cases(evidence: Overlap) -> Iterator[tuple[str, Rows, Rows]]:
    """Yield every mitigated arm with the rows of its complete pairs: baseline and mitigated."""
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
    rubric = evidence.table.rubric
    earlier, later = change(answers[:, before], rubric), change(answers[:, after], rubric)
    answered = (earlier >= 0) & (later >= 0)
    difference = np.where(answered, later - earlier, 0)
    rated = answered.any(axis=0)
    if not rated.any():
        return
    answered, difference, before, after = answered[:, rated], difference[:, rated], before[rated], after[rated]
    votes = np.where(answered, preferred(difference), 0).astype(np.int8).T
    people_preferred = preferred(difference.sum(axis=0))
    n = 2 * int(answered.sum())
    levels = len(ANSWERS)
    among = (reliability.fleiss(levels), reliability.alpha_nominal(levels))
    yield from evidence.estimate(place, [(s, (votes,)) for s in among], after, n, DERIVED)
    yield from evidence.estimate(place, [(s, (people_preferred == at,)) for at, s in RATES], after, n, DERIVED)
    first, second = change(evidence.judged[before], rubric), change(evidence.judged[after], rubric)
    both = (first >= 0) & (second >= 0)
    if both.any():
        judged = preferred(second[both] - first[both])
        wanted = nominal_match(levels, judged, people_preferred[both])
        yield from evidence.estimate(place, wanted, after[both], 2 * int(answered[:, both].sum()), DERIVED)
        ensemble = replace(place, raters="ensemble")
        yield from evidence.estimate(
            ensemble, [(s, (judged == at,)) for at, s in RATES], after[both], 2 * int(both.sum()), DERIVED
        )
