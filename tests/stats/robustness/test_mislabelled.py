"""A gap with labels that may be wrong, and one that few faces carry."""

import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
from test_bootstrap import panel_of

from evenedit.results.results import GapTest
from evenedit.stats.engine.permutation import gap_tests, p_values
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.robustness.mislabelled import carried_by, faces_to_relabel

RULES = replace(AnalysisRules.default(), permutations=499)


def gap_of(met: np.ndarray) -> tuple:
    panel = panel_of(met, 2)
    (test,) = [t for t in gap_tests(panel, RULES) if t.editor]
    return panel, test


def p_of(met: np.ndarray, codes: np.ndarray) -> float:
    total, count = met.sum(axis=1)[:, None], np.full((len(met), 1), met.shape[1])
    return float(p_values(codes, np.zeros(len(met), dtype=np.int64), total, count, 499, np.random.default_rng(1))[0])


def test_so_many_labels_suffice_and_with_few_faces_one_fewer_does_not():
    met = np.zeros((12, 4), dtype=int)
    met[6:, 0] = 1
    met[6:9, 1] = 1  # all of the second group, none of the first
    panel, test = gap_of(met)
    needed = faces_to_relabel(panel, test, RULES)
    assert needed is not None and test.p < 0.02
    codes = np.repeat([0, 1], 6).astype(np.int8)

    def undone(faces: tuple[int, ...]) -> bool:
        moved = codes.copy()
        moved[list(faces)] = 1 - moved[list(faces)]
        return p_of(met, moved) >= 0.05

    singles = [undone((face,)) for face in range(12)]
    pairs = [undone(pair) for pair in product(range(12), repeat=2) if pair[0] < pair[1]]
    exact = 1 if any(singles) else 2 if any(pairs) else 3
    assert needed == exact


def test_a_handful_of_faces_is_named_and_many_are_not():
    few = np.zeros((24, 10), dtype=int)
    few[12:14] = 1
    few[14:20, 0] = 1
    panel, test = gap_of(few)
    assert isinstance(test, GapTest) and carried_by(panel, test, test.highest) == (2, 12)
    many = np.zeros((24, 10), dtype=int)
    many[12:, :3] = 1
    assert carried_by(*gap_of(many), gap_of(many)[1].highest) is None
