"""Scores on one question: people among themselves, the human ceiling, and judges beside people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenedit.results.results import Agreement
from evenedit.stats.agreement import human_consensus as people
from evenedit.stats.agreement import inter_rater as reliability
from evenedit.stats.agreement import pairwise as against
from evenedit.stats.agreement.binned_labels import labels
from evenedit.stats.agreement.inter_rater import Ratings
from evenedit.stats.agreement.nominal import CEILING, OTHERS, matched
from evenedit.stats.agreement.overlap import Overlap, Place, Rows, Wanted
from evenedit.stats.engine.additive import mean_of
from evenedit.stats.engine.equivalence import MARGIN, tost

HALF_UP = "people's mean, half up"
MEAN = "people's mean"
MEAN_OF_PEOPLE, MEAN_OF_JUDGES = mean_of("mean_people"), mean_of("mean_judges")
"""Over the items that both rated, or people alone where no judge did."""
KAPPAS = (against.weighted_kappa_linear, against.weighted_kappa_quadratic)


def on_scores(a: NDArray[Any], b: NDArray[Any]) -> Wanted:
    """The statistics of two whole scores."""
    return [(s, (a, b)) for s in (*KAPPAS, against.exact_agreement, against.within_one)]


def on_means(a: NDArray[Any], b: NDArray[Any]) -> Wanted:
    """The statistics of a score and another one or a mean."""
    return [(s, (a, b)) for s in (against.spearman, against.mae)]


def differences(a: NDArray[Any], b: NDArray[Any]) -> Wanted:
    """The statistics of the difference, first minus second."""
    return [(s, (a, b)) for s in (against.mean_difference, against.bland_altman_low, against.bland_altman_high)]


def opinions(evidence: Overlap, place: Place, rows: Rows, ratings: Ratings) -> Iterator[Agreement]:
    """Everything about people's scores of one question; judges one by one and group by group for all editors."""
    among: Wanted = [(statistic, (ratings,)) for statistic in reliability.ORDERED]
    yield from evidence.estimate(place, among, rows, int((ratings > 0).sum()))
    yield from _ceiling(evidence, place, rows, ratings)
    judged = evidence.ensemble(place.axis, rows)
    yield from _labelled(evidence, place, rows, judged, ratings)
    yield from _beside(evidence, place, rows, judged, ratings)
    if place.editor is not None:
        return
    yield from _other_centres(evidence, place, rows, judged, ratings)
    if place.raters != "all":
        return
    for judge in evidence.judges if len(evidence.judges) > 1 else ():
        alone = replace(place, raters=f"{evidence.table.raters[judge]}|all")
        yield from _beside(evidence, alone, rows, evidence.judge(judge, place.axis, rows), ratings)
    for factor in evidence.table.factors:
        label = evidence.labels(factor.name, rows)
        for level in factor.codes:
            of = label == level
            yield from _beside(evidence, replace(place, group={factor.name: level}), rows[of], judged[of], ratings[of])


def _beside(
    evidence: Overlap, place: Place, rows: Rows, judged: NDArray[np.int8], ratings: Ratings
) -> Iterator[Agreement]:
    """Judges' scores against people's means, judge minus people, and whether the difference is smaller than matters."""
    both = judged > 0
    if not both.any():
        if len(rows):
            n = int((ratings > 0).sum())
            yield from evidence.estimate(place, [(MEAN_OF_PEOPLE, (people.means(ratings),))], rows, n, MEAN)
        return
    rows, a, ratings = rows[both], judged[both].astype(np.int64), ratings[both]
    mean = people.means(ratings)
    n = int((ratings > 0).sum())
    yield from evidence.estimate(place, on_scores(a, people.rounded_mean(ratings)), rows, n, HALF_UP)
    levels: Wanted = [(MEAN_OF_PEOPLE, (mean,)), (MEAN_OF_JUDGES, (a,))]
    for row in evidence.estimate(place, [*on_means(a, mean), *differences(a, mean), *levels], rows, n, MEAN):
        yield row
        if row.statistic == against.spearman.name:
            yield _p(evidence, place, row)
    unit, name = evidence.units(rows)
    each = np.bincount(unit, weights=a - mean) / np.bincount(unit)
    same = tost(each)
    how = f"two one-sided t-tests, margin ±{MARGIN}, over {len(each)} {name}s" if same else f"undefined: one {name}"
    p = same.p if same else None
    yield evidence.row(place, "mean_difference_tost_p", p, None, None, len(rows), n, how)


def _p(evidence: Overlap, place: Place, rho: Agreement) -> Agreement:
    """The p of a rank correlation."""
    p = against.spearman_p(rho.value, rho.n_items)
    how = "t with n - 2 degrees of freedom" if p is not None else "undefined: one side does not vary, or n < 3"
    return evidence.row(place, f"{rho.statistic}_p", p, None, None, rho.n_items, rho.n_ratings, how)


def _other_centres(
    evidence: Overlap, place: Place, rows: Rows, judged: NDArray[np.int8], ratings: Ratings
) -> Iterator[Agreement]:
    """The judges against people's medians and majorities."""
    both = judged > 0
    if not both.any():
        return
    rows, a, ratings = rows[both], judged[both], ratings[both]
    medians, majorities = people.rounded_median(ratings), people.majority(ratings)
    by_centre: dict[str, Wanted] = {
        "median": [*((s, (a, medians)) for s in KAPPAS), (against.spearman, (a, people.doubled_median(ratings)))],
        "majority": [(s, (a, majorities)) for s in KAPPAS],
    }
    for centre, wanted in by_centre.items():
        note = "people's median, half up for kappa" if centre == "median" else "people's majority, ties by the median"
        for row in evidence.estimate(place, wanted, rows, int((ratings > 0).sum()), note):
            renamed = replace(row, statistic=f"{row.statistic}_{centre}")
            yield renamed
            if row.statistic == against.spearman.name:
                yield _p(evidence, place, renamed)


def _ceiling(evidence: Overlap, place: Place, rows: Rows, ratings: Ratings) -> Iterator[Agreement]:
    """Each person against the mean of the others: what a judge could hope to reach."""
    own, rounded, item = people.others(ratings, people.rounded_mean)
    _, mean, _ = people.others(ratings, people.means)
    wanted = [*on_scores(own, rounded), *on_means(own, mean)]
    yield from evidence.estimate(place, wanted, rows[item], len(own), OTHERS, CEILING)


def _labelled(
    evidence: Overlap, place: Place, rows: Rows, judged: NDArray[np.int8], ratings: Ratings
) -> Iterator[Agreement]:
    """The same as labels: judges against people, and the human ceiling."""
    label = labels(evidence.rules).get(place.axis)
    if label is None:
        return
    place = replace(place, axis=f"{place.axis}.label")
    both = judged > 0
    if both.any():
        wanted = matched(len(label.names), label.of(judged[both]), label.of(people.rounded_mean(ratings[both])))
        yield from evidence.estimate(place, wanted, rows[both], int((ratings[both] > 0).sum()), label.note)
    own, theirs, item = people.others(ratings, people.rounded_mean)
    wanted = matched(len(label.names), label.of(own), label.of(theirs))
    yield from evidence.estimate(place, wanted, rows[item], len(own), OTHERS, CEILING)
