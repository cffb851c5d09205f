"""The table of ratings beside a report: it comes back as it was written."""

import gzip
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Kind
from evenedit.interchange.export import write_parquet
from evenedit.ratings.ratings_file import NUMBERS, ratings_frame, read_frame, read_ratings, write_ratings
from evenedit.ratings.table import RatingTable
from tests.support.tables import FACES, edit, scores, table_of

ODD = ["plain", "a, b", 'the "third"', "=SUM(A1)", "-1", "'=z", "''=z", "目\nzwei", "\r", "NA", "null", "1e3", "True"]


def odd_table() -> RatingTable:
    """Two judges, a person and a reviewer; odd names; answers, silence, confidences and edits that nobody rated."""
    rows = [edit(face, prompt) for face, prompt in product(FACES, ("O-01", "O-02"))]
    answers = [scores(skin=1 + at % 5) if at % 3 else ({} if at % 2 else None) for at in range(len(rows))]
    unrated = [None, *answers[1:-1], None]
    raters = dict.fromkeys(("=judge", "Zoë, 目", "NA", "review:é"), unrated)
    table = table_of(rows, raters, [Kind.VLM, Kind.VLM, Kind.HUMAN, Kind.REVIEW])
    edits = table.edits.assign(
        prompt_id=[ODD[at % len(ODD)] for at in range(len(rows))],
        seed=[(-1) ** at * (2**62 + at) for at in range(len(rows))],
    )
    confidence = np.where(table.values > 0, np.float32(1 / 3), np.float32(np.nan)).astype(np.float32)
    return replace(table, edits=edits, confidence=confidence, asks={"a, b": ("skin_tone", "age_drift")})


def test_the_table_comes_back_with_the_same_types(tmp_path):
    table = odd_table()
    back = read_ratings(write_ratings(table, tmp_path / "ratings.csv.gz"), table.factors)
    pd.testing.assert_frame_equal(back.edits, table.edits, check_exact=True)
    assert (back.raters, back.kinds, back.asks) == (table.raters, table.kinds, table.asks)
    for name in ("values", "status", "confidence"):
        stored, read = getattr(table, name), getattr(back, name)
        assert read.dtype == stored.dtype and np.array_equal(read, stored, equal_nan=name == "confidence")


def test_the_rows_come_back_column_by_column(tmp_path):
    frame = ratings_frame(odd_table())
    back = read_frame(write_ratings(odd_table(), tmp_path / "ratings.csv.gz"))
    pd.testing.assert_frame_equal(back, frame, check_exact=True)
    assert {name: str(frame[name].dtype) for name in NUMBERS} == NUMBERS
    assert frame["confidence"].isna().any() and (frame["question"] == "").any() and (frame["rater_number"] == -1).any()


@settings(deadline=None)
@given(st.lists(st.text(), min_size=2, max_size=6, unique=True))
def test_any_text_comes_back(texts):
    table = table_of([edit(FACES[0], text) for text in texts], {"judge": [scores()] * len(texts)})
    with TemporaryDirectory() as folder:
        back = read_ratings(write_ratings(table, Path(folder) / "ratings.csv.gz"), table.factors)
    assert back.edits["prompt_id"].tolist() == texts


def test_equal_tables_give_equal_bytes(tmp_path):
    first, second = (write_ratings(odd_table(), tmp_path / name) for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()


def test_a_table_without_ratings_keeps_its_edits(tmp_path):
    table = table_of([edit(FACES[0], "O-01")], {})
    back = read_ratings(write_ratings(table, tmp_path / "ratings.csv.gz"), table.factors)
    pd.testing.assert_frame_equal(back.edits, table.edits)
    assert back.raters == ()


def test_no_cell_can_run_in_a_spreadsheet(tmp_path):
    text = gzip.decompress(write_ratings(odd_table(), tmp_path / "ratings.csv.gz").read_bytes()).decode()
    assert '"\'=judge"' in text and '"=judge"' not in text


@pytest.mark.parametrize(
    "content",
    [b"", b"no gzip", gzip.compress(b"")[:-3], gzip.compress(b"")],
    ids=["empty", "no-gzip", "cut", "no-header"],
)
def test_a_damaged_file_is_an_error(tmp_path, content):
    (tmp_path / "ratings.csv.gz").write_bytes(content)
    with pytest.raises(EvenEditError, match=r"ratings\.csv\.gz is not a readable table of ratings"):
        read_frame(tmp_path / "ratings.csv.gz")


def test_a_missing_file_or_column_is_an_error(tmp_path):
    with pytest.raises(EvenEditError, match="no such file"):
        read_ratings(tmp_path / "ratings.csv.gz", ())
    (tmp_path / "ratings.csv.gz").write_bytes(gzip.compress(b"request_id,value\na,1\n"))
    with pytest.raises(EvenEditError, match="has no column experiment"):
        read_ratings(tmp_path / "ratings.csv.gz", ())


def test_parquet_holds_the_same_rows(tmp_path):
    frame = ratings_frame(odd_table())
    path = write_parquet(odd_table(), tmp_path / "a[1]'b.parquet")
    with duckdb.connect() as database:
        rows = database.execute("select * from read_parquet(?)", [str(tmp_path / "a?1?'b.parquet")]).df()
    assert path.is_file() and list(rows.columns) == list(frame.columns)
    assert {name: str(rows[name].dtype) for name in NUMBERS} == NUMBERS
    pd.testing.assert_frame_equal(rows.astype(frame.dtypes.to_dict()), frame, check_exact=True)
