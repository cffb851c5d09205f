"""Who agrees with whom: judges with one another, people with one another, judges with people; and rank tests."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from evenedit.ratings.table import Scores
from evenedit.results.results import Agreement
from evenedit.stats.agreement import human_consensus as people
from evenedit.stats.agreement.judge_error import judge_error
from evenedit.stats.agreement.overlap import Overlap, Place, Rows
from evenedit.stats.agreement.preference import preference
from evenedit.stats.agreement.questions import (
    mean_match,
    nominal_agreement,
    nominal_match,
    ordinal_agreement,
    score_match,
)
from evenedit.stats.agreement.rank_tests import group_tests
from evenedit.stats.engine.rules import AnalysisRules

STEREOTYPE = "stereotype"


def agreement(scores: Scores, rules: AnalysisRules) -> Iterator[Agreement]:
    """Compute every agreement statistic and every test of ratings that the table allows."""
    evidence = Overlap.of(scores, rules)
    if evidence.people:
        yield from _people(evidence)
        yield from judge_error(evidence)
        yield from preference(evidence)
    yield from _judges(evidence)
    yield from group_tests(evidence)


def _question_arms(evidence: Overlap) -> Iterator[tuple[str, str, Rows]]:
    """Yield every question with every arm that asks it."""
    rubric = evidence.table.rubric
    specs = [(column, rubric.spec_by_column[column]) for column in rubric.columns]
    single = [column for column, spec in specs if spec.row.about == "pair"]
    paired = [c for c, spec in specs if spec.row.about == "people" and (spec.declared or c == STEREOTYPE)]
    for pairs, questions in ((False, single), (True, paired)):
        for condition in evidence.conditions(pairs=pairs):
            for question in questions:
                yield question, condition, evidence.rows(condition, pairs=pairs)


def _judges(evidence: Overlap) -> Iterator[Agreement]:
    """Yield the agreement of each pair of judges, question by question."""
    names = evidence.table.raters
    for a, b in combinations(evidence.judges, 2):
        for question, condition, every in _question_arms(evidence):
            for editor, rows in evidence.editors(every):
                first, second = evidence.judge(a, question, rows), evidence.judge(b, question, rows)
                both = (first > 0) & (second > 0)
                if both.any():
                    place = Place(question, condition, editor, f"{names[a]}|{names[b]}")
                    pair = first[both], second[both]
                    levels = evidence.levels(question)
                    is_choice = question in evidence.table.rubric.choices
                    scores = [] if is_choice else [*score_match(levels, *pair), *mean_match(*pair)]
                    wanted = nominal_match(levels, *pair) if is_choice else scores
                    yield from evidence.estimate(place, wanted, rows[both], 2 * int(both.sum()))


def _people(evidence: Overlap) -> Iterator[Agreement]:
    """Yield the agreement among people and of judges with them: all people per editor, equal numbers for all."""
    for question, condition, every in _question_arms(evidence):
        answers = evidence.ratings(question, every)
        for raters, cohort in (("all", answers), ("complete", people.balanced_ratings(answers))):
            rated = (cohort > 0).any(axis=1)
            for editor, rows in evidence.editors(every[rated]) if rated.any() else ():
                if editor is None or raters == "all":
                    ratings = cohort[np.isin(every, rows)]
                    place = Place(question, condition, editor, raters)
                    if question in evidence.table.rubric.choices:
                        judged = evidence.ensemble(question, rows)
                        yield from nominal_agreement(evidence, place, rows, ratings, judged)
                    else:
                        yield from ordinal_agreement(evidence, place, rows, ratings)
