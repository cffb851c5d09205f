"""The table of pairs of an audit: a CSV file or a data frame, one row for each edit."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenedit.core.errors import EvenEditError

if TYPE_CHECKING:
    import pandas as pd

LISTED = 20
"""Problems listed before the rest are counted."""
EXAMPLE = """\
source,edited,prompt,prompt_id,asks,asks_for,editor,seed,race,gender,age
portraits/White_Female_20s.png,edited/O-01_White_Female_20s.png,O-01,,,,my-editor,1,White,Female,20s
portraits/Black_Female_20s.png,edited/O-01_Black_Female_20s.png,O-01,,,,my-editor,1,Black,Female,20s
portraits/White_Male_70plus.png,edited/O-01_White_Male_70plus.png,O-01,,,,my-editor,1,White,Male,70plus
portraits/White_Female_20s.png,edited/V-02_White_Female_20s.png,Add a wheelchair.,chair,,object,my-editor,1,White,Female,20s
portraits/Black_Female_20s.png,edited/V-02_Black_Female_20s.png,Add a wheelchair.,chair,,object,my-editor,1,Black,Female,20s
"""  # noqa: E501
"""A table of the pictures that `scripts/draw_pictures.py` draws."""


@dataclass(frozen=True, slots=True)
class PairTable:
    """A table of pairs, every cell as text."""

    rows: list[dict[str, str]]
    columns: list[str]
    name: str
    """What to call it in messages and titles."""
    line: str
    """What to call one row: line or row …"""
    first: int
    """… and the number of the first."""
    folder: Path
    """What its paths are relative to."""
    is_new: bool = False
    """Whether it was made from file names, so that it is written beside the study."""

    @classmethod
    def read(cls, pairs: Path | pd.DataFrame | PairTable) -> PairTable:
        """Read a CSV file, or take a data frame, whose paths are relative to the working directory."""
        if isinstance(pairs, PairTable):
            return pairs
        if isinstance(pairs, str | os.PathLike):
            rows, columns = read_csv(Path(pairs))
            return cls(rows, columns, Path(pairs).name, "line", 2, Path(pairs).parent)._renamed()
        if not hasattr(pairs, "to_dict") or not hasattr(pairs, "columns"):
            raise EvenEditError(f"pairs is of type {type(pairs).__name__}; pass a CSV file or a pandas DataFrame")
        columns = [str(column) for column in pairs.columns]
        rows = [{str(key): _cell(value) for key, value in row.items()} for row in pairs.to_dict("records")]
        return cls(rows, columns, "the data frame", "row", 0, Path())._renamed()

    def _renamed(self) -> PairTable:
        """Return the table with the column `file` renamed to `edited`, if it has no such column."""
        if "edited" in self.columns or "file" not in self.columns:
            return self
        names = {column: "edited" if column == "file" else column for column in self.columns}
        rows = [{names[key]: value for key, value in row.items() if key in names} for row in self.rows]
        return PairTable(rows, list(names.values()), self.name, self.line, self.first, self.folder, self.is_new)

    def numbered(self) -> Iterable[tuple[int, dict[str, str]]]:
        """Return the rows with their numbers, as messages use them."""
        return enumerate(self.rows, self.first)

    def uses(self, column: str) -> bool:
        """Return whether any row has a value in this column."""
        return any(row.get(column) for row in self.rows)

    def check_columns(self, labels: Sequence[str]) -> None:
        """Raise an error if a required column is missing."""
        prompt = "prompt_id" if "prompt" not in self.columns and "prompt_id" in self.columns else "prompt"
        if "source" in self.columns and not set(labels) & set(self.columns):
            raise EvenEditError(
                f"{self.name} has none of the columns {', '.join(labels)}; found: {', '.join(self.columns)}. Name the "
                "columns to group by: --factors NAME,NAME (in Python factors=[…])"
            )
        need_columns(self.name, ("source", "edited", prompt, *labels), self.columns)

    def to_csv(self, folder: Path) -> str:
        """Return the table as a CSV file in this folder."""
        paths = ("source", "edited")
        moved = [{name: os.path.relpath(self.folder / row[name], folder) for name in paths} for row in self.rows]
        return write_csv([row | relative for row, relative in zip(self.rows, moved, strict=True)])


def _cell(value: Any) -> str:
    """Return a data frame's cell as text: empty if missing, integers without a point."""
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def need_columns(table: Path | str, needed: Sequence[str], columns: Sequence[str]) -> None:
    """Raise an error if a table lacks a column."""
    absent = [column for column in needed if column not in columns]
    if absent:
        raise EvenEditError(f"{table} lacks the column {', '.join(absent)}; found: {', '.join(columns) or 'nothing'}")


def read_csv(table: Path) -> tuple[list[dict[str, str]], list[str]]:
    """Read a table's rows and columns; missing cells of short rows are empty."""
    try:
        reader = csv.DictReader(io.StringIO(table.read_text("utf-8-sig"), newline=""))
        rows = [{str(key): value or "" for key, value in row.items() if key is not None} for row in reader]
        return rows, list(reader.fieldnames or ())
    except FileNotFoundError:
        raise EvenEditError(f"{table}: no such file") from None
    except UnicodeDecodeError:
        raise EvenEditError(f"{table} is not UTF-8 text; save it as a UTF-8 CSV") from None
    except (OSError, csv.Error) as error:
        raise EvenEditError(f"{table} cannot be read as a CSV: {error}") from None


def write_csv(rows: Sequence[dict[str, str]]) -> str:
    """Return the rows as a CSV file with the columns of the first one."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()
