"""Gap tests: labels move over faces."""

import numpy as np
import pytest

from evenedit.stats.engine.permutation import between_group_variance, p_values, permuted, strata


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


def test_p_values_agree_with_a_loop_over_the_same_permutations():
    rng = np.random.default_rng(2)
    labels = np.repeat(np.arange(3), 8).astype(np.int8)
    within = np.tile(np.arange(2), 12)
    count = np.full((24, 2), 10)
    total = rng.binomial(count, 0.4)
    found = p_values(labels, within, total, count, 300, np.random.default_rng(3))
    moved = np.concatenate(list(permuted(labels, within, 300, np.random.default_rng(3))))
    for j in range(2):
        observed = naive_variance(labels, 3, total[:, j], count[:, j])
        reached = sum(naive_variance(row, 3, total[:, j], count[:, j]) >= observed - 1e-12 for row in moved)
        assert found[j] == (1 + reached) / 301


def test_labels_stay_within_their_strata():
    labels = np.array([0, 1, 2, 0, 1, 2, 0, 0, 1], dtype=np.int8)
    within = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
    moved = np.concatenate(list(permuted(labels, within, 500, np.random.default_rng(0))))
    for stratum in range(3):
        place = within == stratum
        assert (np.sort(moved[:, place], axis=1) == np.sort(labels[place])).all()
    assert len(np.unique(moved, axis=0)) > 50


def test_a_complete_grid_permutes_within_the_other_factors_and_a_poor_one_freely():
    grid = {
        "race": np.array(["a", "b", "c"] * 8),
        "gender": np.array(["m", "f"]).repeat(3)[np.arange(24) % 6],
        "age": np.array(["1", "2", "3", "4"]).repeat(6),
    }
    within, how = strata(grid, "race", 4999)
    assert how == "faces within gender x age"
    assert len(np.unique(within)) == 8
    # two faces per cell of the others leave 2^12 arrangements: too few for 4999 permutations, so a coarser one
    assert strata(grid, "gender", 4999)[1] == "faces within race"
    poor = {"race": np.array(["a", "b"] * 4), "gender": np.array(["m", "f"] * 4)}
    assert strata(poor, "race", 99)[1] == "faces"


def simulated_p(rng: np.random.Generator, gap: float) -> float:
    """84 faces × 20 prompts with face and prompt effects; one of seven groups apart by `gap` in the latent."""
    labels = np.repeat(np.arange(7), 12).astype(np.int8)
    latent = (
        rng.normal(0, 0.6, (84, 1)) + rng.normal(0, 0.6, 20) + rng.normal(size=(84, 20)) + gap * (labels == 0)[:, None]
    )
    total = (latent > 0.7).sum(axis=1)[:, None]
    return float(p_values(labels, np.zeros(84, dtype=np.int64), total, np.full((84, 1), 20), 199, rng)[0])


def test_p_is_uniform_without_a_gap():
    rng = np.random.default_rng(5)
    p = np.array([simulated_p(rng, 0.0) for _ in range(300)])
    for level in (0.05, 0.25, 0.5, 0.75):
        spread = 3.5 * np.sqrt(level * (1 - level) / len(p))
        assert abs((p <= level).mean() - level) < spread


def test_p_is_small_where_a_gap_was_planted():
    rng = np.random.default_rng(6)
    assert np.median([simulated_p(rng, 1.5) for _ in range(30)]) == pytest.approx(1 / 200)


def test_a_constant_rate_has_p_one():
    labels = np.repeat(np.arange(3), 4).astype(np.int8)
    zero = np.zeros((12, 1), dtype=np.int64)
    assert p_values(labels, np.zeros(12, dtype=np.int64), zero, zero + 5, 99, np.random.default_rng(0)) == [1.0]
