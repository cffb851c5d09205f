"""Unordered answers: agreement of people with one another, and of judges with people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenedit.ratings.combine import majority
from evenedit.ratings.table import MISSING
from evenedit.results.results import Agreement
from evenedit.stats.agreement import inter_rater as reliability
from evenedit.stats.agreement import pairwise as against
from evenedit.stats.agreement.inter_rater import Ratings
from evenedit.stats.agreement.overlap import Overlap, Place, Rows, Wanted


def nominal_match(levels: int, a: NDArray[Any], b: NDArray[Any]) -> Wanted:
    """Accuracy and Cohen's kappa of two series of answers."""
    return [(against.accuracy, (a, b)), (against.cohen(levels), (a, b))]


def nominal_agreement(
    evidence: Overlap, place: Place, rows: Rows, ratings: Ratings, judged: NDArray[np.int8]
) -> Iterator[Agreement]:
    """Yield the agreement of people with one another, and of the judges with people's majority."""
    n, levels = int((ratings > 0).sum()), evidence.levels(place.axis)
    spec = evidence.table.rubric.spec_by_column[place.axis]
    labels = spec.columns[place.axis].labels
    undecided = [labels.index(code) + 1 for code in spec.open_codes]
    among = (reliability.fleiss(levels), reliability.alpha_nominal(levels))
    yield from evidence.estimate(place, [(s, (ratings,)) for s in among], rows, n)
    both = judged > 0
    if both.any():
        most = majority(ratings[both].T.astype(np.int8), levels, undecided, undecided[0] if undecided else MISSING)
        wanted = nominal_match(levels, judged[both], most)
        yield from evidence.estimate(place, wanted, rows[both], int((ratings[both] > 0).sum()), "people's majority")
