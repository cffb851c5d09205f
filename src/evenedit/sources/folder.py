"""Portraits from any folder of images with a CSV of labels."""

from __future__ import annotations

import csv
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL.Image import Image

from evenedit.core.errors import EvenEditError
from evenedit.core.images import read_image
from evenedit.core.log import log
from evenedit.core.records import PERSON
from evenedit.protocol import FACTORS, Factor, cells

LISTED = 20
"""Cells that a message names before it counts the rest."""
UNLABELLED = "unlabelled"
"""What stands for a missing label in a portrait's id."""


@dataclass(frozen=True, slots=True)
class LabelRow:
    """One line of the label file."""

    line: int
    """Its number, counted as a text editor does."""
    id: str
    """The portrait's id."""
    attributes: Mapping[str, str]
    """A code for each factor; empty where the label is missing."""
    file: str
    """The picture, relative to the folder."""
    origin: str
    """Where the picture came from; its file name when the table does not say."""
    drawn_with: Mapping[str, str]
    """The person in the picture, or its base portrait, where the table says it."""


class Folder:
    """`path/labels.csv` names the images: columns file and one per factor, optionally id, origin and person."""

    drawn_with = PERSON
    """The column that names what several pictures have in common."""

    def __init__(
        self,
        *,
        path: str,
        labels: str = "labels.csv",
        faces_per_cell: int | None = None,
        factors: Sequence[Factor] = FACTORS,
    ) -> None:
        if faces_per_cell is not None and faces_per_cell < 1:
            raise EvenEditError(f"faces_per_cell is {faces_per_cell}; it must be at least 1")
        self.path = Path(path)
        self.labels = labels
        self.faces_per_cell = faces_per_cell
        self.factors = tuple(factors)
        """What the portraits are labelled by: given by the study, not a setting."""

    @property
    def listing(self) -> str:
        """The digest of the label file: portraits were added to it if it changed."""
        table = self.path / self.labels
        return hashlib.sha256(table.read_bytes()).hexdigest() if table.is_file() else ""

    def portraits(self) -> Iterator[tuple[str, dict[str, str], str, Image]]:
        """Yield the portraits: id, labels, origin, picture. Report all problems before the first one."""
        rows = self._rows()
        problems: list[str] = []
        for row in rows:
            try:
                read_image(self.path / row.file)
            except EvenEditError as error:
                problems.append(f"{self.labels} line {row.line}: {error}")
        if problems:
            raise EvenEditError(*problems)
        self._report_missing(rows)
        for row in rows:
            yield row.id, {**row.attributes, **row.drawn_with}, row.origin, read_image(self.path / row.file)

    def _rows(self) -> list[LabelRow]:
        """Return the rows to use, checked in full."""
        problems: list[str] = []
        rows: list[LabelRow] = []
        cells_seen: Counter[tuple[str, ...]] = Counter()
        names_seen: Counter[str] = Counter()
        for line, row in self._table():
            try:
                attributes = {f.name: f.code_of(row[f.name] or "") for f in self.factors}
            except EvenEditError as error:
                problems.append(f"{self.labels} line {line}: {error}")
                continue
            cell = tuple(attributes.values())
            cells_seen[cell] += 1
            if self.faces_per_cell is not None and cells_seen[cell] > self.faces_per_cell:
                continue
            name = _name(cell)
            names_seen[name] += 1
            ident = row.get("id") or (name if names_seen[name] == 1 else f"{name}_{names_seen[name]}")
            drawn_with = {self.drawn_with: row[self.drawn_with]} if row.get(self.drawn_with) else {}
            rows.append(LabelRow(line, ident, attributes, row["file"], row.get("origin") or row["file"], drawn_with))
        repeated = [ident for ident, count in Counter(row.id for row in rows).items() if count > 1]
        problems += [f"{self.labels}: id '{ident}' occurs more than once" for ident in repeated]
        if problems:
            raise EvenEditError(*problems)
        if not rows:
            raise EvenEditError(f"{self.path / self.labels} lists no portraits")
        self._check_cells(cells_seen)
        return rows

    def _table(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield the label file's rows with their line numbers; check the required columns first."""
        table, needed = self.path / self.labels, ("file", *(f.name for f in self.factors))
        if not table.is_file():
            raise EvenEditError(f"no label file at {table}; it needs the columns {', '.join(needed)}")
        with table.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns = reader.fieldnames or ()
            absent = [c for c in needed if c not in columns]
            if absent:
                raise EvenEditError(
                    f"{table} lacks the column {', '.join(absent)}; found: {', '.join(columns) or 'nothing'}. "
                    "The study's factors name the columns"
                )
            try:
                yield from enumerate(reader, 2)
            except UnicodeDecodeError:
                raise EvenEditError(f"{table} is not UTF-8 text; save it as a UTF-8 CSV") from None

    def _check_cells(self, seen: Mapping[tuple[str, ...], int]) -> None:
        """Log the cells without a face; raise `EvenEditError` if a cell has fewer than `faces_per_cell`."""
        counts = {tuple(cell.values()): 0 for cell in cells(self.factors)} | dict(seen)
        labelled = [cell for cell in counts if all(cell)]
        if self.faces_per_cell is None:
            empty = [_name(cell) for cell in labelled if not counts[cell]]
            if empty:
                log.info(f"{self.labels}: {len(empty)} of {len(labelled)} cells have no face: {_listed(empty)}")
            return
        short = [f"{_name(cell)} ({counts[cell]})" for cell in labelled if counts[cell] < self.faces_per_cell]
        if short:
            raise EvenEditError(
                f"faces_per_cell is {self.faces_per_cell}; {self.labels} has fewer in {len(short)} of "
                f"{len(labelled)} cells: {_listed(short)}. Add faces, or remove faces_per_cell to use all"
            )

    def _report_missing(self, rows: Sequence[LabelRow]) -> None:
        """Log how many labels are missing, by factor."""
        missing = {f.name: sum(not row.attributes[f.name] for row in rows) for f in self.factors}
        counts = ", ".join(f"{name} {count}" for name, count in missing.items() if count)
        if counts:
            log.info(f"{self.labels}: missing labels among {len(rows)} portraits: {counts}")


def _name(cell: Sequence[str]) -> str:
    """Return a cell's codes joined, as ids and messages print them."""
    return "_".join(re.sub(r"[^\w.+-]", "-", code) or UNLABELLED for code in cell)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
