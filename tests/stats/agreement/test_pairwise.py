"""One rater against another, and the rank tests, equivalence and adjustments beside them."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.multitest import multipletests

from evenedit.stats.agreement import pairwise as against
from evenedit.stats.agreement.human_consensus import integer_means
from evenedit.stats.engine.families import holm
from evenedit.stats.engine.ranks import kruskal_wallis, mann_whitney, wilcoxon

RNG = np.random.default_rng(5)
A, B = RNG.integers(1, 5, 40), RNG.integers(2, 6, 40)
LIKERT = arrays(np.int64, st.integers(1, 12), elements=st.integers(1, 5))


@pytest.mark.parametrize("kind", ["linear", "quadratic"])
def test_weighted_kappa_is_that_of_sklearn_over_fixed_levels(kind: str):
    expected = cohen_kappa_score(A, B, weights=kind, labels=[1, 2, 3, 4, 5])
    assert {s.name: s for s in against.weighted_kappas()}[f"weighted_kappa_{kind}"](A, B) == pytest.approx(
        expected, abs=1e-12
    )


def test_plain_kappa_is_that_of_sklearn():
    assert against.cohen(5)(A, B) == pytest.approx(cohen_kappa_score(A, B), abs=1e-12)


def test_a_judge_who_always_says_the_same_has_kappa_exactly_zero_and_no_rank_correlation():
    constant = np.full(40, 4)
    linear, quadratic = against.weighted_kappas()
    assert linear(constant, B) == 0.0
    assert against.spearman(constant, B) is None
    assert quadratic(constant, constant) is None  # 0/0 is no number


def test_rank_correlation_and_its_p_are_those_of_scipy():
    expected = stats.spearmanr(A, B)
    rho = against.spearman(A, B)
    assert rho == pytest.approx(expected.statistic, abs=1e-12)
    assert against.spearman_p(rho, 40) == pytest.approx(expected.pvalue, abs=1e-12)
    assert against.spearman_p(None, 40) is None


def test_differences_are_those_of_numpy():
    d = A - B
    assert against.mean_difference(A, B) == pytest.approx(d.mean())
    assert against.mae(A, B) == pytest.approx(np.abs(d).mean())
    assert against.exact_agreement(A, B) == (d == 0).mean()
    assert against.within_one(A, B) == (np.abs(d) <= 1).mean()


def test_equal_means_are_equal_numbers():
    values, one = integer_means(np.array([10, 15, 7]), np.array([4, 6, 3]))  # 2.5, 2.5, 7/3
    assert (values.tolist(), one) == ([30, 30, 28], 12)


def test_kruskal_wallis_is_that_of_scipy():
    groups = np.repeat(["a", "b", "c", "d"], 10)
    found, expected = kruskal_wallis(A, groups), stats.kruskal(*(A[groups == g] for g in "abcd"))
    assert found and (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue), abs=1e-12)
    assert found.epsilon_squared == pytest.approx(expected.statistic / 39)


@pytest.mark.parametrize("continuity", [True, False])
def test_mann_whitney_is_that_of_scipy(continuity: bool):
    found = mann_whitney(A, B, exact=False, continuity=continuity)
    expected = stats.mannwhitneyu(A, B, method="asymptotic", use_continuity=continuity)
    assert found and (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue), abs=1e-12)
    higher, lower = ((np.sign(A[:, None] - B) == sign).mean() for sign in (1, -1))
    assert found.cliffs_delta == pytest.approx(higher - lower)


def test_exact_mann_whitney_counts_every_choice_with_its_ties():
    first, second = np.array([1, 2, 2, 5]), np.array([2, 3, 4, 4, 5])
    ranks = stats.rankdata(np.concatenate([first, second]))
    sums = np.array([sum(chosen) for chosen in combinations(ranks, 4)])
    expected = (np.abs(sums - sums.mean()) >= abs(ranks[:4].sum() - sums.mean()) - 1e-9).mean()
    found = mann_whitney(first, second)
    assert found and found.method.startswith("exact") and found.p == pytest.approx(expected, abs=1e-12)
    swapped = mann_whitney(second, first)
    assert swapped and swapped.p == pytest.approx(expected) and swapped.cliffs_delta == -found.cliffs_delta


@pytest.mark.parametrize(("zeros", "scipys"), [("drop", "wilcox"), ("pratt", "pratt"), ("split", "zsplit")])
def test_wilcoxon_is_that_of_scipy(zeros, scipys: str):
    d = A - B
    found, expected = wilcoxon(d, zeros=zeros, exact=False), stats.wilcoxon(d, zero_method=scipys, method="asymptotic")
    assert found and (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue), abs=1e-12)


def test_exact_wilcoxon_counts_every_sign():
    d = np.array([1, 1, -1, 2, 3, -4, 0, 5])
    ranks = stats.rankdata(np.abs(d[d != 0]))
    sums = np.array([np.dot(signs, ranks) for signs in product((0, 1), repeat=7)])
    observed = ranks[d[d != 0] > 0].sum()
    expected = (np.abs(sums - sums.mean()) >= abs(observed - sums.mean()) - 1e-9).mean()
    found = wilcoxon(d)
    assert found and found.p == pytest.approx(expected, abs=1e-12)
    assert found.rank_biserial == pytest.approx((2 * observed - ranks.sum()) / ranks.sum())


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_adjusted_p_values_are_those_of_statsmodels(p: list[float]):
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])


@settings(deadline=None, max_examples=60)
@given(LIKERT, st.data())
def test_never_a_crash_whatever_the_scores(a: np.ndarray, data):
    b = data.draw(arrays(np.int64, len(a), elements=st.integers(1, 5)))
    groups = data.draw(arrays(np.int64, len(a), elements=st.integers(0, 2)))
    order = np.array(data.draw(st.permutations(range(len(a)))))
    for statistic in (*against.weighted_kappas(), against.spearman,
                      against.mae, against.mean_difference, against.cohen(5)):  # fmt: skip
        value, again = statistic(a, b), statistic(a[order], b[order])
        assert (value is None) == (again is None)
        assert value is None or (np.isfinite(value) and value == pytest.approx(again, abs=1e-9))
    tests = (
        kruskal_wallis(a, groups), kruskal_wallis(a[order], 2 - groups[order]),
        mann_whitney(a, b), mann_whitney(a[order], b[order]), wilcoxon(a - b), wilcoxon((a - b)[order]),
    )  # fmt: skip
    for one, other in zip(tests[::2], tests[1::2], strict=True):
        assert (one is None) == (other is None)
        assert one is None or (0 <= one.p <= 1 and one.p == pytest.approx(other.p, abs=1e-9))
