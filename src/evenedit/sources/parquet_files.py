"""Parquet files of datasets, read through DuckDB, which the extra `parquet` brings."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING

from evenedit.core.errors import EvenEditError

if TYPE_CHECKING:
    import duckdb


def connect() -> duckdb.DuckDBPyConnection:
    """A database in memory that reads parquet files, in the order of their rows."""
    try:
        import duckdb
    except ImportError:
        raise EvenEditError(
            "reading parquet shards needs the 'parquet' extra. Try: pip install 'evenedit[parquet]', or use the "
            "dataset as a folder of images with its label CSVs"
        ) from None
    return duckdb.connect(config={"threads": 1})


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
