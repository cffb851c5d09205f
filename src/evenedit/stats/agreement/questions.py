"""Agreement on one question, a scale or a choice: of people with one another, and of judges with people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenedit.protocol import ROLES
from evenedit.ratings.combine import majority
from evenedit.ratings.table import MISSING
from evenedit.results.results import Agreement
from evenedit.stats.agreement import human_consensus as people
from evenedit.stats.agreement import inter_rater as reliability
from evenedit.stats.agreement import pairwise as against
from evenedit.stats.agreement.inter_rater import Ratings
from evenedit.stats.agreement.overlap import Overlap, Place, Rows, Wanted
from evenedit.stats.engine.additive import mean_of
from evenedit.stats.engine.rules import AnalysisRules

HALF_UP = "people's mean, half up"
MEAN = "people's mean"
MEAN_OF_PEOPLE = mean_of("mean_people")
"""Over the items that both rated, or people alone where no judge did; with the mean difference it gives the judges'."""


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


@dataclass(frozen=True, slots=True)
class BinnedLabel:
    """How a score becomes one of a few words."""

    names: tuple[str, ...]
    code: tuple[int, ...]
    """By score from 1: the 1-based position of its name."""

    def of(self, scores: NDArray[np.integer]) -> NDArray[np.int8]:
        """[item]: the position of each score's name."""
        return np.asarray(np.array((0, *self.code), dtype=np.int8)[scores])

    @property
    def note(self) -> str:
        """The scores of each name, in words."""
        return ", ".join(
            f"{name}: {'/'.join(str(s) for s, c in enumerate(self.code, 1) if c == at)}"
            for at, name in enumerate(self.names, 1)
        )


def binned_labels(rules: AnalysisRules) -> dict[str, BinnedLabel]:
    """Return the binned label of each labelled question, by the thresholds of the rates."""
    labels_by_question = {}
    if {ROLES.applied, ROLES.erased} <= set(rules.rates):
        applied, erased = rules.rates[ROLES.applied].at_least or 4, rules.rates[ROLES.erased].at_most or 2
        code = tuple(1 if s >= applied else 3 if s <= erased else 2 for s in range(1, 6))
        labels_by_question[ROLES.success] = BinnedLabel(("yes", "partial", "no"), code)
    for rate in (ROLES.gender_change, ROLES.race_change):
        if rate in rules.rates:
            changed = rules.rates[rate].at_least or 3
            code = tuple(1 if s >= changed else 2 for s in range(1, 6))
            labels_by_question[rules.rates[rate].question] = BinnedLabel(("yes", "no"), code)
    return labels_by_question


def score_match(levels: int, a: NDArray[Any], b: NDArray[Any]) -> Wanted:
    """Return the statistics of two integer scores on a scale of so many levels."""
    return [(s, (a, b)) for s in (*against.weighted_kappas(levels), against.exact_agreement, against.within_one)]


def mean_match(a: NDArray[Any], b: NDArray[Any]) -> Wanted:
    """Return the statistics of a score and another score or mean; the difference is first minus second."""
    return [(s, (a, b)) for s in (against.spearman, against.mae, against.mean_difference)]


def ordinal_agreement(evidence: Overlap, place: Place, rows: Rows, ratings: Ratings) -> Iterator[Agreement]:
    """Yield all agreement statistics of one question; per judge and per group only for all editors."""
    published = (reliability.icc2_1,) if evidence.rules.preset == "published" else ()
    among: Wanted = [
        (statistic, (ratings,)) for statistic in (*reliability.ordered(evidence.levels(place.axis)), *published)
    ]
    yield from evidence.estimate(place, among, rows, int((ratings > 0).sum()))
    judged = evidence.ensemble(place.axis, rows)
    yield from _labelled(evidence, place, rows, judged, ratings)
    yield from _judge_vs_people(evidence, place, rows, judged, ratings)
    if place.editor is not None:
        return
    yield from _other_centres(evidence, place, rows, judged, ratings)
    if place.raters != "all":
        return
    for judge in evidence.judges if len(evidence.judges) > 1 else ():
        single_judge = replace(place, raters=f"{evidence.table.raters[judge]}|all")
        yield from _judge_vs_people(evidence, single_judge, rows, evidence.judge(judge, place.axis, rows), ratings)
    for factor in evidence.table.factors:
        label = evidence.labels(factor.name, rows)
        for level in factor.codes:
            of = label == level
            yield from _judge_vs_people(
                evidence, replace(place, group={factor.name: level}), rows[of], judged[of], ratings[of]
            )


def _judge_vs_people(
    evidence: Overlap, place: Place, rows: Rows, judged: NDArray[np.int8], ratings: Ratings
) -> Iterator[Agreement]:
    """Yield the agreement of judges' scores with people's means, and the mean of judge minus people."""
    both = judged > 0
    if not both.any():
        if len(rows):
            n = int((ratings > 0).sum())
            yield from evidence.estimate(place, [(MEAN_OF_PEOPLE, (people.means(ratings),))], rows, n, MEAN)
        return
    rows, a, ratings = rows[both], judged[both].astype(np.int64), ratings[both]
    mean = people.means(ratings)
    n = int((ratings > 0).sum())
    yield from evidence.estimate(
        place, score_match(evidence.levels(place.axis), a, people.rounded_mean(ratings)), rows, n, HALF_UP
    )
    wanted = [*mean_match(a, mean), (MEAN_OF_PEOPLE, (mean,))]
    for row in evidence.estimate(place, wanted, rows, n, MEAN):
        yield _with_p(evidence, row)


def _with_p(evidence: Overlap, row: Agreement) -> Agreement:
    """Return a row, that of a rank correlation with its p."""
    if row.statistic != against.spearman.name:
        return row
    p = against.spearman_p(row.value, row.n_items)
    return row if p is None else evidence.with_note(row, "p: t with n - 2 degrees of freedom", p=p)


def _other_centres(
    evidence: Overlap, place: Place, rows: Rows, judged: NDArray[np.int8], ratings: Ratings
) -> Iterator[Agreement]:
    """Yield the agreement of the judges with people's medians and majorities."""
    both = judged > 0
    if not both.any():
        return
    rows, a, ratings = rows[both], judged[both], ratings[both]
    levels = evidence.levels(place.axis)
    kappas = against.weighted_kappas(levels)
    medians, majorities = people.rounded_median(ratings), people.majority(ratings, levels)
    by_centre: dict[str, Wanted] = {
        "median": [*((s, (a, medians)) for s in kappas), (against.spearman, (a, people.doubled_median(ratings)))],
        "majority": [(s, (a, majorities)) for s in kappas],
    }
    for centre, wanted in by_centre.items():
        note = "people's median, half up for kappa" if centre == "median" else "people's majority, ties by the median"
        for row in evidence.estimate(place, wanted, rows, int((ratings > 0).sum()), note):
            yield replace(_with_p(evidence, row), statistic=f"{row.statistic}_{centre}")


def _labelled(
    evidence: Overlap, place: Place, rows: Rows, judged: NDArray[np.int8], ratings: Ratings
) -> Iterator[Agreement]:
    """Yield the agreement of judges with people, with scores turned into labels."""
    label = binned_labels(evidence.rules).get(place.axis)
    if label is None:
        return
    place = replace(place, axis=f"{place.axis}.label")
    both = judged > 0
    if both.any():
        wanted = nominal_match(len(label.names), label.of(judged[both]), label.of(people.rounded_mean(ratings[both])))
        yield from evidence.estimate(place, wanted, rows[both], int((ratings[both] > 0).sum()), label.note)
