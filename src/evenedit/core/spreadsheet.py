"""CSV files whose cells a spreadsheet shows and never runs, and the same cells back as they were."""

from __future__ import annotations

import csv
import re
from typing import Any

import pandas as pd

_FORMULA = re.compile("'*(?:[\t\r\n]|[\\s\0\u200b\ufeff]*[=+\\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b])")
"""A spreadsheet takes a cell that begins with one of these for a formula; an apostrophe before it makes it text.

The wide and small forms of the signs are among them, which some take for the plain ones, and blanks before a sign.
"""


def as_csv(table: pd.DataFrame) -> bytes:
    """Return a table as UTF-8 CSV in which no cell can run as a formula."""
    safe = table.copy()
    for name in safe.columns:
        if not (pd.api.types.is_numeric_dtype(safe[name]) or pd.api.types.is_bool_dtype(safe[name])):
            safe[name] = safe[name].map({value: harmless(value) for value in safe[name].unique()})  # few differ
    return safe.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC).encode()


def as_written(cell: str) -> str:
    """Return a cell's text before `as_csv` made it harmless."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def harmless(value: Any) -> Any:
    """Return a cell that a spreadsheet shows as text; numbers stay numbers."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
