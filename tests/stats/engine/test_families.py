"""Adjustment of many p-values against statsmodels and numbers worked by hand."""

import numpy as np
import pytest
from scipy.stats import false_discovery_control
from statsmodels.stats.multitest import multipletests

from evenedit.stats.engine.families import benjamini_hochberg, holm


def test_holm_of_a_hand_worked_example():
    # sorted 0.01 0.02 0.03 0.04 times 4 3 2 1 = 0.04 0.06 0.06 0.04, made monotone
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]


def test_benjamini_and_hochberg_of_a_hand_worked_example():
    # sorted 0.01 0.02 0.03 0.2 times 4/1 4/2 4/3 4/4 = 0.04 0.04 0.04 0.2
    assert benjamini_hochberg([0.2, 0.01, 0.03, 0.02]) == pytest.approx([0.2, 0.04, 0.04, 0.04])


@pytest.mark.parametrize("size", [1, 2, 7, 60])
def test_both_agree_with_other_packages(size):
    p = np.random.default_rng(size).beta(0.5, 2, size)
    p[-1] = p[0]  # ties
    assert holm(list(p)) == pytest.approx(multipletests(p, method="holm")[1])
    assert benjamini_hochberg(list(p)) == pytest.approx(false_discovery_control(p))


def test_a_test_without_p_is_no_part_of_its_family():
    for adjust in (holm, benjamini_hochberg):
        with_none = adjust([0.01, None, 0.04])
        assert [with_none[0], with_none[2]] == adjust([0.01, 0.04]) and with_none[1] is None
        assert adjust([None]) == [None] and adjust([]) == []
