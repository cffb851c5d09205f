"""Tables come back from parquet as they were, and other tools read them."""

import io

import numpy as np
import pandas as pd
import pytest

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


def test_pyarrow_reads_what_is_written_and_its_own_files_are_read(tmp_path):
    wanted = TABLE.astype({"late": "str"})
    found = pd.read_parquet(io.BytesIO(to_parquet(TABLE)), dtype_backend="numpy_nullable")
    assert found.astype(object).where(found.notna(), None).equals(wanted.astype(object).where(wanted.notna(), None))
    TABLE.to_parquet(tmp_path / "a.parquet", index=False)
    pd.testing.assert_frame_equal(read_parquet(tmp_path / "a.parquet"), wanted)


def test_a_table_without_rows_keeps_its_columns(tmp_path):
    (tmp_path / "a.parquet").write_bytes(to_parquet(TABLE.iloc[:0]))
    assert list(read_parquet(tmp_path / "a.parquet").columns) == list(TABLE.columns)


@pytest.mark.parametrize("content", [b"", b"no parquet", b"PAR1 not really PAR1"])
def test_what_is_no_parquet_file_is_told(tmp_path, content):
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(EvenEditError, match=r"a\.parquet is not a readable parquet file"):
        read_parquet(tmp_path / "a.parquet")


def test_a_name_with_the_signs_of_a_pattern_is_one_file(tmp_path):
    for name, rows in (("a[1]*.parquet", 3), ("a1x.parquet", 5)):
        (tmp_path / name).write_bytes(to_parquet(TABLE.iloc[:rows]))
    assert len(read_parquet(tmp_path / "a[1]*.parquet")) == 3
