"""The words of tables and figures in `words/`: every entry is used, and a table has a cell for every column."""

import pytest

from evenedit.report.contents import FIGURES, TABLES, all_tables
from evenedit.report.figures.photo_figure import PHOTO_FIGURES
from evenedit.report.render.index import Index
from evenedit.report.render.words import entries
from tests.support.random_studies import random_study

ELSEWHERE = {"moves", "groups", "calls", "leaderboard", "differences"}
"""Tables of a judge check and of comparisons."""


def test_tables_and_figures_have_words_and_all_words_are_used() -> None:
    assert set(entries("tables")) == {*TABLES, *ELSEWHERE, "shared"}
    assert set(entries("figures")) == {*FIGURES, *PHOTO_FIGURES, "figure_moves"}


@pytest.mark.parametrize("seed", (3, 46, 137))
def test_a_table_has_a_cell_for_every_column(seed: int) -> None:
    for table in all_tables(Index(random_study(seed).results())).values():
        assert {len(row) for row in (*table.rows, *table.foot)} == {len(table.columns)}, table.id
