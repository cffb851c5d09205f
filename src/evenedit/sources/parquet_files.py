"""Parquet files of datasets, read through DuckDB, which the extra `parquet` brings."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING

from evenedit.core.errors import EvenEditError

if TYPE_CHECKING:
    import duckdb


def connect(purpose: str = "reading parquet shards") -> duckdb.DuckDBPyConnection:
    """Open a database in memory that reads parquet files, in the order of their rows."""
    try:
        import duckdb
    except ImportError:
        raise EvenEditError(f"{purpose} needs the extra 'parquet'. Try: pip install 'evenedit[parquet]'") from None
    return duckdb.connect(config={"threads": 1})


def name_of(path: Path) -> str:
    """Return a file name for DuckDB, with * and [ escaped, which are patterns to it."""
    return glob.escape(str(path))


def open_parquet(database: duckdb.DuckDBPyConnection, path: Path) -> duckdb.DuckDBPyRelation:
    """Open a parquet file; only columns and types are read."""
    import duckdb

    try:
        return database.read_parquet(name_of(path))
    except duckdb.Error as error:
        raise EvenEditError(f"{path} is not a readable parquet file: {error}") from None
