"""Unordered answers: agreement of people with one another, and of judges with people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenedit.protocol import VERDICTS
from evenedit.ratings.combine import majority
from evenedit.results.results import Agreement
from evenedit.stats.agreement import inter_rater as reliability
from evenedit.stats.agreement import pairwise as against
from evenedit.stats.agreement.inter_rater import Ratings
from evenedit.stats.agreement.overlap import Overlap, Place, Rows, Wanted


def nominal_match(levels: int, a: NDArray[Any], b: NDArray[Any]) -> Wanted:
    """Accuracy and Cohen's kappa of two series of answers."""
    return [(against.accuracy, (a, b)), (against.cohen(levels), (a, b))]


def nominal_agreement(
    evidence: Overlap, place: Place, rows: Rows, ratings: Ratings, judged: NDArray[np.int8], levels: int
) -> Iterator[Agreement]:
    """Yield the agreement of people with one another, and of the judges with people's majority."""
    n = int((ratings > 0).sum())
    among = (reliability.fleiss(levels), reliability.alpha_nominal(levels))
    yield from evidence.estimate(place, [(s, (ratings,)) for s in among], rows, n)
    both = judged > 0
    if both.any():
        wanted = nominal_match(levels, judged[both], _majority(ratings[both]))
        yield from evidence.estimate(place, wanted, rows[both], int((ratings[both] > 0).sum()), "people's majority")


def _majority(ratings: Ratings) -> NDArray[np.int8]:
    unclear = len(VERDICTS)
    return majority(ratings.T.astype(np.int8), len(VERDICTS), (unclear,), unclear)
