"""Portraits from any folder of images with a CSV of labels."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from PIL.Image import Image

from evenedit.images import read_image
from evenedit.protocol import FACTORS, level_code
from evenedit.records import UserError


class Folder:
    """`path/labels.csv` names the images: columns file, race, gender, age, and optionally id."""

    def __init__(self, *, path: str, labels: str = "labels.csv") -> None:
        self.path = Path(path)
        self.labels = labels

    def portraits(self) -> Iterator[tuple[str, dict[str, str], str, Image]]:
        """Every portrait: id, labels, origin, picture. All problems are told at once, before the first one."""
        rows = self._rows()
        problems: list[str] = []
        for line, _, _, file in rows:
            try:
                read_image(self.path / file)
            except UserError as error:
                problems.append(f"{self.labels} line {line}: {error}")
        if problems:
            raise UserError(*problems)
        for _, ident, attributes, file in rows:
            yield ident, attributes, file, read_image(self.path / file)

    def _rows(self) -> list[tuple[int, str, dict[str, str], str]]:
        table = self.path / self.labels
        if not table.is_file():
            raise UserError(f"no label file at {table}; it needs the columns file, race, gender, age")
        names = [f.id for f in FACTORS]
        problems: list[str] = []
        rows: list[tuple[int, str, dict[str, str], str]] = []
        seen: Counter[str] = Counter()
        with table.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            absent = [c for c in ("file", *names) if c not in (reader.fieldnames or ())]
            if absent:
                raise UserError(f"{table} lacks the column {', '.join(absent)}; found {reader.fieldnames}")
            for line, row in enumerate(reader, 2):
                try:
                    attributes = {name: level_code(name, row[name] or "") for name in names}
                except UserError as error:
                    problems.append(f"{self.labels} line {line}: {error}")
                    continue
                cell = "_".join(attributes.values())
                seen[cell] += 1
                ident = row.get("id") or (cell if seen[cell] == 1 else f"{cell}_{seen[cell]}")
                rows.append((line, ident, attributes, row["file"]))
        repeated = [ident for ident, count in Counter(r[1] for r in rows).items() if count > 1]
        problems += [f"{self.labels}: id '{ident}' occurs more than once" for ident in repeated]
        if problems:
            raise UserError(*problems)
        if not rows:
            raise UserError(f"{table} lists no portraits")
        return rows
