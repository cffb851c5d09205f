"""Tables come back from parquet as they were, and other tools read them."""

import io
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenedit.core.errors import EvenEditError
from evenedit.core.parquet import read_parquet, to_parquet

TABLE = pd.DataFrame(
    {
        "text": pd.Series(["é", None, ""] * 700, dtype="str"),
        "late": pd.Series([None] * 2099 + ["only here"], dtype=object),
        "small": np.array([1, 2, 3] * 700, dtype=np.int8),
        "gaps": pd.Series([1, None, 3] * 700, dtype="Int64"),
        "nothing": pd.Series([None] * 2100, dtype="Int64"),
        "share": [0.1, np.nan, 1 / 3] * 700,
        "counted": [True, False, True] * 700,
    }
)


def test_a_table_comes_back_as_it_was(tmp_path):
    (tmp_path / "a.parquet").write_bytes(to_parquet(TABLE))
    pd.testing.assert_frame_equal(read_parquet(tmp_path / "a.parquet"), TABLE.astype({"late": "str"}))


def test_the_same_table_gives_the_same_bytes():
    assert to_parquet(TABLE) == to_parquet(TABLE)


def test_other_tools_read_what_is_written(tmp_path):
    wanted = TABLE.astype({"late": "str"})
    found = pd.read_parquet(io.BytesIO(to_parquet(TABLE)), dtype_backend="numpy_nullable")
    assert found.astype(object).where(found.notna(), None).equals(wanted.astype(object).where(wanted.notna(), None))
    (tmp_path / "a.parquet").write_bytes(to_parquet(TABLE))
    rows = duckdb.sql(f"select * from '{tmp_path}/a.parquet'").fetchall()
    assert rows[0] == ("é", None, 1, 1, None, 0.1, True)
    assert rows[1][:5] == (None, None, 2, None, None) and np.isnan(rows[1][5]) and rows[1][6] is False
    assert len(rows) == len(TABLE)


def test_a_file_of_another_tool_is_refused_in_words(tmp_path):
    TABLE.to_parquet(tmp_path / "a.parquet", index=False)
    with pytest.raises(EvenEditError, match="parquet file of EvenEdit: its columns are stored otherwise"):
        read_parquet(tmp_path / "a.parquet")


@given(
    st.lists(st.one_of(st.none(), st.text()), max_size=40),
    st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=40),
    st.lists(st.booleans(), max_size=40),
)
def test_any_text_and_any_number_come_back(texts, numbers, bits):
    size = min(map(len, (texts, numbers, bits)))
    frame = pd.DataFrame(
        {
            "text": pd.Series(texts[:size], dtype=object),
            "number": pd.Series(numbers[:size], dtype="Int64"),
            "bit": pd.Series(bits[:size], dtype=bool),
        }
    )
    content = to_parquet(frame)
    with TemporaryDirectory() as folder:
        (Path(folder) / "a.parquet").write_bytes(content)
        found = read_parquet(Path(folder) / "a.parquet")
    assert [None if pd.isna(t) else t for t in found["text"]] == texts[:size]
    assert [None if pd.isna(n) else n for n in found["number"]] == numbers[:size]
    assert found["bit"].tolist() == bits[:size]
    assert pd.read_parquet(io.BytesIO(content), dtype_backend="numpy_nullable")["number"].isna().tolist() == [
        n is None for n in numbers[:size]
    ]


def test_a_table_without_rows_keeps_its_columns(tmp_path):
    (tmp_path / "a.parquet").write_bytes(to_parquet(TABLE.iloc[:0]))
    assert list(read_parquet(tmp_path / "a.parquet").columns) == list(TABLE.columns)


@pytest.mark.parametrize("content", [b"", b"no parquet", b"PAR1 not really PAR1"])
def test_what_is_no_parquet_file_is_told(tmp_path, content):
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(EvenEditError, match=r"a\.parquet is not a readable parquet file"):
        read_parquet(tmp_path / "a.parquet")
