"""How far judges agree with one another, and their ensemble with people."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evenedit.ensemble import mean, preference, verdict
from evenedit.protocol import QUESTIONS
from evenedit.ratings import QUESTION_IDS, Scores
from evenedit.records import Experiment, Kind, is_simulated
from evenedit.results import Agreement

ENSEMBLE = "ensemble"


def agreement(scores: Scores) -> Iterator[Agreement]:
    """Each pair of judges, then the ensemble and the people's mean (half up), per experiment and question."""
    table = scores.table
    judges = table.of_kind(Kind.VLM)
    compared = [(table.raters[a], table.raters[b], table.values[a], table.values[b])
                for a, b in combinations(judges, 2)]  # fmt: skip
    people = table.of_kind(Kind.HUMAN)
    if people:
        answers = table.values[people]
        combined = mean(answers)
        for question, rule in (("stereotype", verdict), ("target_role", verdict), ("preference", preference)):
            choice = QUESTION_IDS.index(question)
            combined[:, choice] = rule(answers[:, :, choice])
        name = "people" if not all(is_simulated(table.raters[i]) for i in people) else "simulated-people"
        compared.append((ENSEMBLE, name, scores.values, combined))
    experiment = table.edits["experiment"].to_numpy(dtype=str)
    for first, second, a, b in compared:
        for name in Experiment:
            rows = experiment == name
            for at, question in enumerate(QUESTION_IDS):
                both = rows & (a[:, at] > 0) & (b[:, at] > 0)
                if both.any():
                    yield _agreement(first, second, name, question, a[both, at], b[both, at])


def _agreement(
    first: str, second: str, experiment: str, question: str, a: NDArray[np.int8], b: NDArray[np.int8]
) -> Agreement:
    n = len(a)
    difference = b.astype(np.int64) - a
    ordered = QUESTIONS[question].sided != "choice"  # verdicts have no distance
    return Agreement(
        first=first,
        second=second,
        experiment=str(experiment),
        question=question,
        n=n,
        exact=int((difference == 0).sum()) / n,
        within_one=int((np.abs(difference) <= 1).sum()) / n if ordered else None,
        mean_difference=int(difference.sum()) / n if ordered else None,
    )
