"""A gap with labels that may be wrong, and one that few faces carry."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from evenedit.results.results import GapTest
from evenedit.stats.engine.permutation import gap_tests, p_values
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.robustness.mislabelled import influential_faces, labels_to_overturn
from tests.support.panels import panel_of

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
    needed = labels_to_overturn(panel, test, RULES)
    assert needed is not None and test.p < 0.02
    codes = np.repeat([0, 1], 6).astype(np.int8)

    def undone(faces: tuple[int, ...]) -> bool:
        moved = codes.copy()
        moved[list(faces)] = 1 - moved[list(faces)]
        return p_of(met, moved) >= 0.05

    singles = [undone((face,)) for face in range(12)]
    pairs = [undone(pair) for pair in product(range(12), repeat=2) if pair[0] < pair[1]]
    exact = 1 if any(singles) else 2 if any(pairs) else 3
    assert needed == (exact, True)


def highest_p(panel, test, faces: int) -> float:
    """Brute force: the highest p of all labels that differ in so many faces."""
    total, count = (panel.sums[k][0][:, None] for k in (panel.measures[0].total, panel.measures[0].count))
    levels = panel.axes.levels[test.factor]
    codes = np.array([levels.index(level) for level in panel.axes.labels[test.factor]], dtype=np.int8)
    within, found = np.zeros(len(codes), dtype=np.int64), 0.0
    for chosen in combinations(range(len(codes)), faces):
        for others in product(range(len(levels)), repeat=faces):
            moved = codes.copy()
            moved[list(chosen)] = others
            if (moved != codes).sum() == faces and len(set(moved)) == len(levels):
                found = max(found, p_values(moved, within, total, count, 499, np.random.default_rng(3))[0])
    return found


@pytest.mark.parametrize("seed", range(6))
def test_the_number_is_that_of_brute_force_where_it_is_exact(seed: int):
    rng = np.random.default_rng(seed)
    groups, faces = (2, 6) if seed % 2 else (3, 4)
    rate = np.repeat([0.1, 0.8, 0.3][:groups], faces)
    panel = panel_of((rng.random((groups * faces, 8)) < rate[:, None]).astype(int), groups)
    (test,) = [t for t in gap_tests(panel, RULES) if t.editor]
    assert test.p < 0.05
    needed = labels_to_overturn(panel, test, RULES)
    assert needed is not None and needed.exact
    chance = 0.04  # other draws of 499 permutations, the highest of many
    if needed.faces > 1:
        assert highest_p(panel, test, needed.faces - 1) < 0.05 + chance
    if needed.faces <= 2:
        assert highest_p(panel, test, needed.faces) > 0.05 - chance


def test_a_handful_of_faces_is_named_and_many_are_not():
    few = np.zeros((24, 10), dtype=int)
    few[12:14] = 1
    few[14:20, 0] = 1
    panel, test = gap_of(few)
    assert isinstance(test, GapTest) and influential_faces(panel, test, test.highest) == (2, 12)
    many = np.zeros((24, 10), dtype=int)
    many[12:, :3] = 1
    assert influential_faces(*gap_of(many), gap_of(many)[1].highest) is None
