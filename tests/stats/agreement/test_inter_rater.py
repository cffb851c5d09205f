"""Agreement between people, against independent implementations and by hand."""

import krippendorff
import numpy as np
import pandas as pd
import pingouin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss

from evenedit.stats.agreement import inter_rater as reliability
from evenedit.stats.agreement.human_consensus import balanced_ratings, majority, rounded_mean, rounded_median
from evenedit.stats.agreement.inter_rater import LEVELS, counts, fleiss, icc2_1, icc2_k, ordered, pairwise_agreement
from evenedit.stats.engine.additive import Resampler

percent_agreement = pairwise_agreement(LEVELS)
# Krippendorff's (2011) example: four observers, twelve units. Gwet's books and irrCAC print it as cac.raw4raters.
EXAMPLE = np.array(
    [[1, 1, 0, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4],
     [4, 4, 4, 4], [1, 1, 2, 1], [2, 2, 2, 2], [0, 5, 5, 5], [0, 0, 1, 1], [0, 3, 0, 0]]
)  # fmt: skip


def some_ratings(seed: int, items: int = 30, raters: int = 4, missing: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, 6, size=(items, 1))
    ratings = np.clip(truth + rng.integers(-1, 2, size=(items, raters)) + rng.integers(0, 2, size=raters), 1, 5)
    return np.where(rng.random(ratings.shape) < missing, 0, ratings)


def test_the_published_example_with_missing_ratings():
    told = {s.name: s(EXAMPLE) for s in ordered()}
    assert told["krippendorff_alpha_nominal"] == pytest.approx(0.743, abs=5e-4)
    assert told["krippendorff_alpha_ordinal"] == pytest.approx(0.815, abs=5e-4)
    assert told["krippendorff_alpha_interval"] == pytest.approx(0.849, abs=5e-4)
    assert told["fleiss_kappa"] == pytest.approx(0.76117, abs=5e-6)
    assert percent_agreement(EXAMPLE) == pytest.approx(0.81818, abs=5e-6)
    assert icc2_1(EXAMPLE) is None  # unequal raters


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_alpha_is_that_of_the_krippendorff_package(missing: float):
    ratings = some_ratings(1, missing=missing)
    data = np.where(ratings > 0, ratings, np.nan).astype(float).T
    for level in ("nominal", "ordinal", "interval"):
        expected = krippendorff.alpha(data, level_of_measurement=level, value_domain=[1, 2, 3, 4, 5])
        assert {s.name: s for s in ordered()}[f"krippendorff_alpha_{level}"](ratings) == pytest.approx(
            expected, abs=1e-12
        )


def test_kappa_of_equal_raters_is_that_of_statsmodels():
    ratings = some_ratings(2)
    assert fleiss(LEVELS)(ratings) == pytest.approx(statsmodels_fleiss(counts(ratings)), abs=1e-12)


@pytest.mark.filterwarnings("ignore")  # pingouin's own, about pandas
def test_icc_of_one_set_of_raters_is_that_of_pingouin():
    ratings = some_ratings(3)
    long = pd.DataFrame(ratings).reset_index().melt("index", var_name="rater", value_name="score")
    found = pingouin.intraclass_corr(long, targets="index", raters="rater", ratings="score")
    expected = dict(zip(found["Type"].str.replace("ICC(A,", "ICC2(").str.strip(), found["ICC"], strict=True))
    one, mean = (
        next(v for k, v in expected.items() if k in names) for names in (("ICC2", "ICC2(1)"), ("ICC2k", "ICC2(k)"))
    )
    assert icc2_1(ratings) == pytest.approx(one, abs=1e-8)
    assert icc2_k(ratings) == pytest.approx(mean, abs=1e-8)


def test_icc_pools_sets_of_items_that_share_their_raters():
    # two sets of raters, the second a copy of the first: mean squares, and so the ICC, stay what they were
    one = some_ratings(4, items=10, raters=3)
    none = np.zeros_like(one)
    both = np.concatenate([np.concatenate([one, none], axis=1), np.concatenate([none, one], axis=1)])
    assert icc2_1(both) == pytest.approx(icc2_1(one), abs=1e-12)
    assert icc2_1(np.eye(6, dtype=int)[:, :6] * 3) is None  # one rating each


def test_equally_many_ratings_are_the_first_raters_of_each_item():
    ratings = np.array([[1, 2, 3, 0], [4, 0, 5, 1], [2, 2, 2, 2], [1, 0, 0, 0]])
    assert balanced_ratings(ratings).tolist() == [[1, 2, 3, 0], [4, 0, 5, 1], [2, 2, 2, 0], [0, 0, 0, 0]]


def test_one_number_per_item():
    ratings = np.array([[2, 3, 0], [1, 1, 5], [1, 2, 4], [2, 2, 4]])
    assert rounded_mean(ratings).tolist() == [3, 2, 2, 3]  # 2.5, 7/3, 7/3, 8/3
    assert rounded_median(ratings).tolist() == [3, 1, 2, 2]
    assert majority(ratings).tolist() == [3, 1, 2, 2]  # ties by the median, half up


@settings(deadline=None, max_examples=60)
@given(arrays(np.int8, st.tuples(st.integers(0, 6), st.integers(1, 4)), elements=st.integers(0, 5)), st.randoms())
def test_never_a_crash_nor_a_number_that_is_none(ratings: np.ndarray, random):
    order = list(range(len(ratings)))
    random.shuffle(order)
    swapped = list(range(ratings.shape[1]))
    random.shuffle(swapped)
    for statistic in (*ordered(), icc2_1):
        value = statistic(ratings)
        assert value is None or np.isfinite(value)
        if len(ratings):
            again = statistic(ratings[order][:, swapped])  # the order of items and of raters says nothing
            assert (value is None) == (again is None)
            assert value is None or value == pytest.approx(again, abs=1e-9)
        told = Resampler(50, 1, 0.95).estimate([(statistic, (ratings,))], np.arange(len(ratings)), "item")[0]
        assert told.value == value
        assert value is not None or "undefined" in told.method
        assert told.low is not None or "interval" in told.method or "undefined" in told.method


@settings(deadline=None, max_examples=30)
@given(arrays(np.int8, (8, 3), elements=st.integers(0, 5)), st.permutations([1, 2, 3, 4, 5]))
def test_renamed_levels_leave_nominal_agreement_as_it_was(ratings: np.ndarray, names: list[int]):
    renamed = np.array([0, *names])[ratings]
    for statistic in (fleiss(LEVELS), reliability.alpha_nominal(LEVELS), percent_agreement):
        assert statistic(renamed) == pytest.approx(statistic(ratings), abs=1e-12, nan_ok=True)


def test_a_degenerate_case_says_why():
    same = np.full((5, 3), 4)
    drawing = Resampler(50, 1, 0.95)
    told = drawing.estimate([(fleiss(LEVELS), (same,))], np.arange(5), "item")[0]
    assert (told.value, told.low) == (None, None) and "all ratings are alike" in told.method
    assert percent_agreement(same) == 1.0
    alone = drawing.estimate([(fleiss(LEVELS), (same[:, :1],))], np.arange(5), "item")[0]
    assert alone.value is None and "no item has two ratings" in alone.method


def test_intervals_draw_whole_faces():
    """Ten copies of each item under one face each say no more than the items themselves."""
    ratings = some_ratings(7, items=20)
    drawing = Resampler(400, 1, 0.95)
    once = drawing.estimate([(fleiss(LEVELS), (ratings,))], np.arange(20), "item")[0]
    tenfold = drawing.estimate([(fleiss(LEVELS), (np.repeat(ratings, 10, 0),))], np.repeat(np.arange(20), 10), "face")
    assert (once.low, once.high) == pytest.approx((tenfold[0].low, tenfold[0].high), abs=1e-9)
    assert tenfold[0].method.endswith("bootstrap(faces, 400)")
