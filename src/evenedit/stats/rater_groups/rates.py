"""People's rates by who rated: each group of raters, everybody, and everybody weighted to a population of raters.

Weighted rates (post-stratification) answer what people would say had each group the share that the study names, or the
same share where it names none. Intervals take ratings of one person and of one face as dependent. A group of which
fewer than five people rated some portraits has no rate there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from evenedit.protocol import Rate
from evenedit.protocol.measures import Measure
from evenedit.ratings.profiles import RaterQuestion
from evenedit.ratings.table import RatingTable
from evenedit.results.rater_groups import RaterRate
from evenedit.stats.engine.measures import AXIS_QUESTIONS, met_rates
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.rater_groups.ratings import (
    Codes,
    Column,
    PersonRatings,
    RatedPortraits,
    deviation,
    fewest,
    interval,
    levels_of,
    rated_portraits,
)

ALL_RATERS, WEIGHTED = "", "*"
METHOD = "mean of ratings; two-way clustered (raters, faces)"


def rater_rates(table: RatingTable, rules: AnalysisRules) -> list[RaterRate]:
    """Return every rate of baseline outputs by group of raters and by group of portraits."""
    if table.profiles is None or not table.profiles.questions:
        return []
    rated = rated_portraits(table, AXIS_QUESTIONS)
    portraits: list[tuple[Mapping[str, str], NDArray[np.bool_]]] = [({}, np.ones(len(rated.faces), dtype=np.bool_))]
    for factor in table.factors:
        portraits += [({factor.name: level}, m) for level, m in levels_of(rated.labels[factor.name], factor.codes)]
    return [
        rate
        for question in table.profiles.questions
        for ratings in rated.axes
        for name, met in _met(ratings, rules.rates)
        for group, faces in portraits
        for rate in _rates(rated, question, ratings, met, Measure.rate(name), group, faces, rules)
    ]


def _met(ratings: PersonRatings, rates: Mapping[str, Rate]) -> Iterator[tuple[str, Column]]:
    """Yield each rate of the question, with the ratings that meet its threshold."""
    for name, met in met_rates(ratings.score.astype(np.int64), ratings.axis, rates):
        yield name, met.astype(np.float64)


def _rates(
    rated: RatedPortraits,
    question: RaterQuestion,
    ratings: PersonRatings,
    met: Column,
    measure: str,
    group: Mapping[str, str],
    faces: NDArray[np.bool_],
    rules: AnalysisRules,
) -> Iterator[RaterRate]:
    included = faces[ratings.face]
    part, y = ratings.only(included), met[included]
    member = rated.groups(question)[part.rater]
    masks = {name: member == at for name, at in rated.visible_groups(question, part.rater).items()}

    def rate_of(raters: str, influence: Column, value: float, among: NDArray[np.bool_], method: str) -> RaterRate:
        clusters = part.rater[among], part.face[among]
        ends = interval(value, deviation(influence[among], *clusters), fewest(*clusters), rules.confidence)
        low, high = (None if end is None else min(max(end, 0.0), 1.0) for end in ends)
        people = len(np.unique(clusters[0]))
        return RaterRate(question.id, raters, measure, group, value, low, high, people, int(among.sum()), method)

    if not len(y):
        return
    all_ratings = np.ones(len(y), dtype=np.bool_)
    yield rate_of(ALL_RATERS, (y - y.mean()) / len(y), float(y.mean()), all_ratings, METHOD)
    for name, mask in masks.items():
        share = float(y[mask].mean())
        yield rate_of(name, np.where(mask, (y - share) / mask.sum(), 0.0), share, mask, METHOD)
    weights = _weights(question)
    if weights and set(weights) <= set(masks):
        means = {name: float(y[masks[name]].mean()) for name in weights}
        influence = sum(
            (np.where(masks[n], w * (y - means[n]) / masks[n].sum(), 0.0) for n, w in weights.items()), np.zeros(len(y))
        )
        among = np.logical_or.reduce([masks[name] for name in weights])
        value = sum(w * means[name] for name, w in weights.items())
        shares = ", ".join(f"{name} {w:.0%}" for name, w in weights.items())
        yield rate_of(WEIGHTED, influence, value, among, f"{METHOD}; post-stratified ({shares})")


def _weights(question: RaterQuestion) -> dict[str, float]:
    """Return the positive weight of each group; the weights sum to 1."""
    shares = {name: question.population.get(name, 0.0) for name in question.groups} if question.population else {}
    if not sum(shares.values()) > 0:
        shares = dict.fromkeys(question.groups, 1.0)
    total = sum(shares.values())
    return {name: share / total for name, share in shares.items() if share > 0}


def difference(
    first: tuple[Column, Codes, Codes], second: tuple[Column, Codes, Codes], confidence: float
) -> tuple[float, float | None, float | None]:
    """Return the mean of the first values minus that of the second (none: 0), with an interval."""
    sides = [(1.0, first)] + ([(-1.0, second)] if len(second[0]) else [])
    value = sum(sign * float(y.mean()) for sign, (y, _, _) in sides)
    influence = np.concatenate([sign * (y - y.mean()) / len(y) for sign, (y, _, _) in sides])
    raters, faces = (np.concatenate([side[at] for _, side in sides]) for at in (1, 2))
    return value, *interval(value, deviation(influence, raters, faces), fewest(raters, faces), confidence)
