"""CSV files whose cells a spreadsheet shows and never runs, and the same cells back as they were."""

from __future__ import annotations

import csv
import re
from typing import Any

import pandas as pd

_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
"""A spreadsheet takes a cell that begins with one of these for a formula; an apostrophe before it makes it text."""


def as_csv(table: pd.DataFrame) -> bytes:
    """A table as UTF-8 CSV in which no cell can run as a formula."""
    safe = table.copy()
    for name in safe.columns:
        if safe[name].dtype == object or pd.api.types.is_string_dtype(safe[name]):
            safe[name] = [harmless(value) for value in safe[name]]
    return safe.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC).encode()


def as_written(cell: str) -> str:
    """A cell's text before `as_csv` made it harmless."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def harmless(value: Any) -> Any:
    """A cell that a spreadsheet shows as text; numbers stay numbers."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
