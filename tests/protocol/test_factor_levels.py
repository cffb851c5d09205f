"""Factors are data: declared, or found in the labels."""

import pytest

from evenedit.core.errors import EvenEditError
from evenedit.protocol import FACTORS, Factor, cells, found_factor
from evenedit.protocol.factors import crossings

MONK = Factor.of("monk", [str(n) for n in range(1, 11)], title="Monk skin tone", ordered=True)
HEADWEAR = Factor.of("headwear", ["none", "cap", "headscarf"])


def test_numbers_are_levels_in_numeric_order():
    assert found_factor("monk", ["10", "2", "1", "", "2"]).codes == ("1", "2", "10")


def test_words_are_levels_as_first_seen():
    assert found_factor("headwear", ["cap", "none", " cap ", "headscarf"]).codes == ("cap", "none", "headscarf")


def test_a_known_factor_keeps_its_order_and_its_spellings():
    found = found_factor("race", ["Latino_Hispanic", "White", "Black"])
    assert found.codes == ("White", "Black", "Latino")


def test_a_column_without_a_label_is_no_factor():
    with pytest.raises(EvenEditError, match="'monk' was named as a factor, but no row has a label"):
        found_factor("monk", ["", " "])


def test_an_empty_label_is_missing_and_an_undeclared_one_is_named():
    assert MONK.code_of("  ") == ""
    with pytest.raises(EvenEditError, match="monk '11' is not a known label; expected one of: 1, 2"):
        MONK.code_of("11")


def test_any_two_declared_factors_are_crossed_and_of_the_published_grid_the_first_two():
    skin = Factor.of("skin", ["a", "b"])
    assert crossings((MONK, HEADWEAR, skin)) == [("monk", "headwear"), ("monk", "skin"), ("headwear", "skin")]
    assert crossings(FACTORS) == [("race", "gender")]
    assert crossings((MONK,)) == []


def test_cells_are_all_combinations_in_order():
    assert len(cells()) == 84
    assert cells((HEADWEAR,)) == [{"headwear": "none"}, {"headwear": "cap"}, {"headwear": "headscarf"}]


def test_a_level_without_a_band_is_its_own():
    age = next(f for f in FACTORS if f.name == "age")
    assert [age.band_of(code) for code in ("20s", "50s", "70plus")] == ["Young", "Middle", "Old"]
    assert MONK.band_of("7") == "7" and MONK.band_of("") == ""
