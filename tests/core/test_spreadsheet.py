"""No text in a CSV runs when a spreadsheet opens it, and every text is read back as it was."""

import io

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenedit.core.spreadsheet import as_csv, as_written, harmless

SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b"
"""The four plain signs, and their wide and small forms."""


@pytest.mark.parametrize("before", ["", "'", "''", " ", "\u00a0", "\u3000", "\ufeff", "\u200b", "\t", "\r", "\n", "\0"])
@pytest.mark.parametrize("sign", SIGNS)
def test_a_sign_that_begins_a_formula_is_text_whatever_stands_before_it(before: str, sign: str) -> None:
    assert str(harmless(f"{before}{sign}cmd|' /C calc'!A0")).startswith("'")


@given(st.text(alphabet=st.one_of(st.sampled_from(SIGNS + "'\t\r\n "), st.characters(exclude_categories=["Cs"]))))
def test_every_text_is_read_back_as_it_was(text: str) -> None:
    assert as_written(str(harmless(text))) == text


def test_words_numbers_and_empty_cells_stay_as_they_are() -> None:
    plain = ["a=b", "O'Neill", "", "e-mail", 3, -2.5, None, True]
    assert [harmless(value) for value in plain] == plain


def test_columns_of_categories_are_written_like_texts() -> None:
    table = pd.DataFrame({"group": pd.Categorical(["=1+1", "plain"]), "n": [-1, 2]})
    back = pd.read_csv(io.BytesIO(as_csv(table)))
    assert back["group"].tolist() == ["'=1+1", "plain"] and back["n"].tolist() == [-1, 2]
