"""Rank tests over items that share faces keep their level."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

from evenedit.stats.agreement.rank_permutation import between_group_variance, flipped_p, relabelled_p
from evenedit.stats.engine.ranks import kruskal_wallis, wilcoxon
from evenedit.stats.engine.rules import AnalysisRules

QUICK = replace(AnalysisRules.default(), permutations=399)


def test_with_one_item_of_each_face_it_is_the_permutation_test_of_the_ranks():
    rng = np.random.default_rng(1)
    values, level = rng.integers(1, 6, 30), np.repeat(["a", "b"], 15)
    ours = relabelled_p(values, level, np.arange(30), replace(QUICK, permutations=1999))
    theirs = stats.permutation_test(
        (values[:15], values[15:]), lambda a, b: abs(stats.rankdata(np.r_[a, b])[:15].mean() - 15.5), n_resamples=4999,
        alternative="greater", random_state=1,
    ).pvalue  # fmt: skip
    assert ours == pytest.approx(theirs, abs=0.04)


def test_flips_of_few_faces_agree_with_counting_them_all():
    differences, face = np.array([2, 1, 3, -1, 2, 4, 1, 2]), np.array([0, 0, 1, 1, 2, 2, 3, 3])
    signed = np.sign(differences) * stats.rankdata(np.abs(differences))
    sums = np.array([signed[face == f].sum() for f in range(4)])
    exact = np.mean([abs(np.dot(s, sums)) >= abs(sums.sum()) - 1e-9 for s in product((1, -1), repeat=4)])
    assert flipped_p(differences, face, replace(QUICK, permutations=1999)) == pytest.approx(exact, abs=0.03)


def study(rng: np.random.Generator, icc: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """28 faces of seven groups without a difference, five items each: scores, groups, faces."""
    face = np.repeat(np.arange(28), 5)
    hidden = np.sqrt(icc) * rng.normal(size=28)[face] + np.sqrt(1 - icc) * rng.normal(size=140)
    return np.clip(np.rint(3 + 1.2 * hidden), 1, 5).astype(np.int64), (face % 7).astype(str), face


@pytest.mark.parametrize("icc", [0.1, 0.3])
def test_false_alarms_stay_at_5_percent_where_faces_are_alike(icc):
    rng = np.random.default_rng(int(100 * icc))
    faces, items = [], []
    for _ in range(300):
        values, level, face = study(rng, icc)
        faces.append(relabelled_p(values, level, face, QUICK) < 0.05)
        found = kruskal_wallis(values, level)
        items.append(found is not None and found.p < 0.05)
    assert np.mean(faces) <= 0.085, "of 300 at 5 %, more has a chance below 1 in 100"
    assert np.mean(items) > np.mean(faces) + 0.03, "taken as independent, items alarm more often"


def test_pairs_of_one_face_are_flipped_together():
    rng = np.random.default_rng(5)
    alarms, naive = 0, 0
    for _ in range(300):
        face = np.repeat(np.arange(20), 4)
        moves = np.rint(rng.normal(size=20)[face] * 0.7 + rng.normal(size=80)).astype(np.int64)
        alarms += flipped_p(moves, face, QUICK) < 0.05
        found = wilcoxon(moves)
        naive += found is not None and found.p < 0.05
    assert alarms / 300 <= 0.085 < naive / 300


def naive_variance(labels, levels, total, count):
    whole, size = int(total.sum()), int(count.sum())
    squares = 0.0
    for level in range(levels):
        n = sum(int(c) for label, c in zip(labels, count, strict=True) if label == level)
        t = sum(int(t) for label, t in zip(labels, total, strict=True) if label == level)
        if n:
            squares += n * (t / n - whole / size) ** 2
    return squares / size


def test_variances_between_groups_agree_with_a_loop():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 4, size=(30, 24)).astype(np.int8)
    count = rng.integers(0, 20, size=(24, 5))
    total = rng.binomial(count, 0.3)
    found = between_group_variance(labels, 4, total.astype(np.float32), count.astype(np.float32))
    for i in range(30):
        for j in range(5):
            assert found[i, j] == pytest.approx(naive_variance(labels[i], 4, total[:, j], count[:, j]), abs=1e-12)


def test_of_two_groups_of_one_size_the_variance_orders_as_the_gap_does():
    rng = np.random.default_rng(8)
    labels = np.stack([rng.permutation(np.repeat([0, 1], 6)) for _ in range(50)]).astype(np.int8)
    total = rng.binomial(10, 0.3, size=(12, 1))
    found = between_group_variance(labels, 2, total.astype(np.float64), np.full((12, 1), 10.0))[:, 0]
    gaps = np.abs((np.where(labels == 0, 1, -1) @ total)[:, 0])
    assert (np.argsort(found, kind="stable") == np.argsort(gaps, kind="stable")).all()
