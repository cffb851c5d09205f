"""Portraits from any folder of images with a CSV of labels."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from PIL.Image import Image

from evenedit.core.errors import EvenEditError
from evenedit.core.images import read_image
from evenedit.core.progress import say
from evenedit.protocol import FACTORS, level_code
from evenedit.protocol import factors as grid


class Folder:
    """`path/labels.csv` names the images: columns file, race, gender, age, and optionally id and origin."""

    def __init__(self, *, path: str, labels: str = "labels.csv", faces_per_cell: int | None = None) -> None:
        if faces_per_cell is not None and faces_per_cell < 1:
            raise EvenEditError(f"faces_per_cell is {faces_per_cell}; it must be at least 1")
        self.path = Path(path)
        self.labels = labels
        self.faces_per_cell = faces_per_cell

    def portraits(self) -> Iterator[tuple[str, dict[str, str], str, Image]]:
        """Every portrait: id, labels, origin, picture. All problems are told at once, before the first one."""
        rows = self._rows()
        problems: list[str] = []
        for line, _, _, file, _ in rows:
            try:
                read_image(self.path / file)
            except EvenEditError as error:
                problems.append(f"{self.labels} line {line}: {error}")
        if problems:
            raise EvenEditError(*problems)
        for _, ident, attributes, file, origin in rows:
            yield ident, attributes, origin, read_image(self.path / file)

    def _balanced(self, seen: Counter[str]) -> None:
        """Name the cells that have no face; refuse the set where a number per cell was asked for and is not there."""
        cells = ["_".join(cell.values()) for cell in grid.cells()]
        if self.faces_per_cell is None:
            missing = [cell for cell in cells if not seen[cell]]
            if missing:
                say(f"{self.labels}: {len(missing)} of {len(cells)} cells have no face: {', '.join(missing)}")
            return
        short = [f"{cell} ({seen[cell]})" for cell in cells if seen[cell] < self.faces_per_cell]
        if short:
            raise EvenEditError(
                f"faces_per_cell asks for {self.faces_per_cell}; {self.labels} has fewer in {len(short)} of "
                f"{len(cells)} cells: {', '.join(short)}. Add faces, or leave faces_per_cell out to take what is there"
            )

    def _rows(self) -> list[tuple[int, str, dict[str, str], str, str]]:
        table = self.path / self.labels
        if not table.is_file():
            raise EvenEditError(f"no label file at {table}; it needs the columns file, race, gender, age")
        names = [f.name for f in FACTORS]
        problems: list[str] = []
        rows: list[tuple[int, str, dict[str, str], str, str]] = []
        seen: Counter[str] = Counter()
        with table.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            absent = [c for c in ("file", *names) if c not in (reader.fieldnames or ())]
            if absent:
                raise EvenEditError(f"{table} lacks the column {', '.join(absent)}; found {reader.fieldnames}")
            for line, row in enumerate(reader, 2):
                try:
                    attributes = {name: level_code(name, row[name] or "") for name in names}
                except EvenEditError as error:
                    problems.append(f"{self.labels} line {line}: {error}")
                    continue
                cell = "_".join(attributes.values())
                seen[cell] += 1
                if self.faces_per_cell is not None and seen[cell] > self.faces_per_cell:
                    continue
                ident = row.get("id") or (cell if seen[cell] == 1 else f"{cell}_{seen[cell]}")
                rows.append((line, ident, attributes, row["file"], row.get("origin") or row["file"]))
        repeated = [ident for ident, count in Counter(r[1] for r in rows).items() if count > 1]
        problems += [f"{self.labels}: id '{ident}' occurs more than once" for ident in repeated]
        if problems:
            raise EvenEditError(*problems)
        if not rows:
            raise EvenEditError(f"{table} lists no portraits")
        self._balanced(seen)
        return rows
