"""Tables as parquet files, through DuckDB."""

from __future__ import annotations

import glob
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from evenedit.core.errors import EvenEditError

if TYPE_CHECKING:
    import duckdb


def connect() -> duckdb.DuckDBPyConnection:
    """A database in memory that reads and writes parquet files, in the order of their rows."""
    import duckdb  # takes a fifth of a second, which most commands can do without

    return duckdb.connect(config={"threads": 1})


def to_parquet(frame: pd.DataFrame) -> bytes:
    """A table, which must have columns, as the content of a parquet file; its index is left out."""
    with tempfile.TemporaryDirectory() as folder, connect() as database:
        path = Path(folder) / "table.parquet"
        database.from_df(frame).write_parquet(str(path), compression="snappy")
        return path.read_bytes()


def name_of(path: Path) -> str:
    """A file as DuckDB takes it, which would read a name with * or [ as a pattern."""
    return glob.escape(str(path))


def open_parquet(database: duckdb.DuckDBPyConnection, path: Path) -> duckdb.DuckDBPyRelation:
    """A parquet file, of which only columns and types are read yet."""
    import duckdb

    try:
        return database.read_parquet(name_of(path))
    except duckdb.Error as error:
        raise EvenEditError(f"{path} is not a readable parquet file: {error}") from None


def read_parquet(path: Path) -> pd.DataFrame:
    """The table of a parquet file: text as `str`, whole numbers with gaps as `Int64`."""
    with connect() as database:
        frame: pd.DataFrame = open_parquet(database, path).df()
    return frame
