"""Who agrees with whom: judges with one another, people with one another, judges with people; and rank tests."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from evenedit.protocol import VERDICTS
from evenedit.ratings.table import Scores
from evenedit.results.results import Agreement
from evenedit.stats.agreement import human_consensus as people
from evenedit.stats.agreement.judge_error import judge_error
from evenedit.stats.agreement.nominal import matched, verdicts
from evenedit.stats.agreement.ordinal import differences, on_means, on_scores, opinions
from evenedit.stats.agreement.overlap import LIKERT, Overlap, Place, Rows
from evenedit.stats.agreement.rank_tests import group_tests
from evenedit.stats.disparity.preference import preference
from evenedit.stats.engine.rules import AnalysisRules

STEREOTYPE = "stereotype"


def agreement(scores: Scores, rules: AnalysisRules) -> Iterator[Agreement]:
    """Every statistic of agreement and every test of ratings that the table allows."""
    evidence = Overlap.of(scores, rules)
    if evidence.people:
        yield from _people(evidence)
        yield from judge_error(evidence)
        yield from preference(evidence)
    yield from _judges(evidence)
    yield from group_tests(evidence)


def _asked(evidence: Overlap) -> Iterator[tuple[str, str, Rows]]:
    """Every question with every arm it is asked in."""
    for pairs, questions in ((False, LIKERT), (True, (STEREOTYPE,))):
        for condition in evidence.conditions(pairs=pairs):
            for question in questions:
                yield question, condition, evidence.rows(condition, pairs=pairs)


def _judges(evidence: Overlap) -> Iterator[Agreement]:
    """Each pair of judges, question by question."""
    names = evidence.table.raters
    for a, b in combinations(evidence.judges, 2):
        for question, condition, every in _asked(evidence):
            for editor, rows in evidence.editors(every):
                first, second = evidence.judge(a, question, rows), evidence.judge(b, question, rows)
                both = (first > 0) & (second > 0)
                if both.any():
                    place = Place(question, condition, editor, f"{names[a]}|{names[b]}")
                    pair = first[both], second[both]
                    if question == STEREOTYPE:
                        wanted = matched(len(VERDICTS), *pair)
                    else:
                        wanted = [*on_scores(*pair), *on_means(*pair), *differences(*pair)]
                    yield from evidence.estimate(place, wanted, rows[both], 2 * int(both.sum()))


def _people(evidence: Overlap) -> Iterator[Agreement]:
    """People and the judges beside them: all people for every editor, equally many per item for all editors."""
    for question, condition, every in _asked(evidence):
        answers = evidence.ratings(question, every)
        for raters, cohort in (("all", answers), ("complete", people.complete(answers))):
            rated = (cohort > 0).any(axis=1)
            for editor, rows in evidence.editors(every[rated]) if rated.any() else ():
                if editor is None or raters == "all":
                    ratings = cohort[np.isin(every, rows)]
                    place = Place(question, condition, editor, raters)
                    if question == STEREOTYPE:
                        judged = evidence.ensemble(question, rows)
                        yield from verdicts(evidence, place, rows, ratings, judged, len(VERDICTS))
                    else:
                        yield from opinions(evidence, place, rows, ratings)
