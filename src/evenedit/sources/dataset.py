"""Labelled images as datasets come: parquet shards, or a folder with CSVs. Streamed, never all in memory."""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from PIL import Image

from evenedit.core.decode import Header, UnreadablePicture, decode
from evenedit.core.errors import EvenEditError
from evenedit.protocol import FACTORS, level_code
from evenedit.sources.parquet_files import connect, name_of, open_parquet

LABELS = tuple(f.name for f in FACTORS)
CLASSES: Mapping[str, tuple[str, ...]] = {
    "race": ("East Asian", "Indian", "Black", "White", "Middle Eastern", "Latino_Hispanic", "Southeast Asian"),
    "gender": ("Male", "Female"),
    "age": ("0-2", "3-9", "10-19", "20-29", "30-39", "40-49", "50-59", "60-69", "more than 70"),
}
"""FairFace's labels in the order of its class indices, which is not the grid's."""
TOO_YOUNG = CLASSES["age"][:3]
"""FairFace ages outside the grid."""
PADDINGS: Mapping[str, tuple[str, ...]] = {"0.25": ("0.25", "margin025"), "1.25": ("1.25", "margin125")}
"""How much lies around the face, and how folders and files are named after it."""
BATCH = 64
"""Pictures held at a time while reading shards."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """One image of a dataset, not yet read."""

    at: int
    """Position in the dataset as read here."""
    cell: str
    """`{race}_{gender}_{age}`."""
    attributes: Mapping[str, str]
    """The dataset's labels in the grid's codes."""
    origin: str
    """File name, or shard and row."""
    index: int
    """Row in its CSV, or in its split over all shards: the dataset index."""


class Dataset(Protocol):
    """A set of labelled images."""

    outside: int
    """Images whose age the grid does not have, counted while reading."""

    def faces(self) -> Iterator[Labelled]:
        """Yield the images of the grid, reading labels only."""
        ...

    def read(self, wanted: Collection[Labelled]) -> Iterator[tuple[Labelled, bytes]]:
        """Yield the bytes of these images, in any order; empty if a file is missing."""
        ...


def open_dataset(path: Path, padding: str | None = None, labels: str | None = None) -> Dataset:
    """Open a folder or parquet file: FairFace in either form and padding, or any folder with a label CSV."""
    if not path.exists():
        raise EvenEditError(f"{path}: no such file or folder")
    if padding is not None and padding not in PADDINGS:
        raise EvenEditError(f"padding is '{padding}'; FairFace has {' and '.join(PADDINGS)}")
    place = _padded(path, padding)
    shards = [place] if place.suffix == ".parquet" else sorted(place.rglob("*.parquet"))
    if shards and labels is None:
        return Shards(shards, path if path.is_dir() else path.parent)
    tables = _tables(path, labels)
    if not tables:
        raise EvenEditError(
            f"{path} has neither parquet shards nor a label file. FairFace has fairface_label_train.csv and "
            "fairface_label_val.csv; your own folder needs labels.csv with the columns file, race, gender, age"
        )
    return Listed(tables, place)


def _padded(path: Path, padding: str | None) -> Path:
    """Return the folder or file of this padding."""
    if path.is_file():
        by_padding = {p: path for p, tags in PADDINGS.items() if any(tag in path.name for tag in tags)}
    else:
        inside = [*path.iterdir(), path]
        by_padding = {
            p: entry for p, tags in PADDINGS.items() for entry in inside[::-1] if any(tag in entry.name for tag in tags)
        }
    if not by_padding:
        return path
    if padding is None and len(by_padding) > 1:
        raise EvenEditError(f"{path} holds both paddings of FairFace; choose one: {' or '.join(by_padding)}")
    if padding is not None and padding not in by_padding:
        raise EvenEditError(f"{path} holds padding {', '.join(by_padding)}, not {padding}")
    return by_padding[padding or next(iter(by_padding))]


def _tables(path: Path, labels: str | None) -> list[Path]:
    if path.is_file():
        raise EvenEditError(f"{path} is not a parquet file; name the folder that holds the images and their label CSV")
    if labels is not None:
        if not (path / labels).is_file():
            raise EvenEditError(f"no label file at {path / labels}")
        return [path / labels]
    return sorted(path.glob("fairface_label_*.csv")) or [p for p in [path / "labels.csv"] if p.is_file()]


class Listed:
    """A folder of images with one or more CSVs: columns file, race, gender, age."""

    def __init__(self, tables: Sequence[Path], root: Path) -> None:
        self.tables = tables
        self.root = root
        self.outside = 0

    def faces(self) -> Iterator[Labelled]:
        """Yield the listed images of the grid, reading labels only."""
        self.outside, at = 0, 0
        for table in self.tables:
            with table.open(encoding="utf-8-sig", newline="") as file:
                reader = csv.DictReader(file)
                absent = [c for c in ("file", *LABELS) if c not in (reader.fieldnames or ())]
                if absent:
                    raise EvenEditError(f"{table} lacks the column {', '.join(absent)}; found {reader.fieldnames}")
                for index, row in enumerate(reader):
                    attributes = coded(row, CLASSES, f"{table.name} line {index + 2}")
                    if attributes is None:
                        self.outside += 1
                    else:
                        yield Labelled(at, "_".join(attributes.values()), attributes, row["file"], index)
                    at += 1

    def read(self, wanted: Collection[Labelled]) -> Iterator[tuple[Labelled, bytes]]:
        """Yield the bytes of these images; empty if a file is missing."""
        for face in wanted:
            try:
                yield face, (self.root / face.origin).read_bytes()
            except OSError:
                yield face, b""


class Shards:
    """Parquet files with an image column and labels as class indices or words."""

    def __init__(self, files: Sequence[Path], root: Path) -> None:
        self.files = files
        self.root = root
        self.outside = 0

    def faces(self) -> Iterator[Labelled]:
        """Yield the images of the grid, reading the label columns only."""
        self.outside, at = 0, 0
        rows_before: dict[str, int] = defaultdict(int)
        for path in self.files:
            split = re.sub(r"-\d+-of-\d+$", "", str(path.with_suffix("")))
            name = path.relative_to(self.root).as_posix()
            classes, row = _classes(path), 0
            for labels in _labels(path):
                attributes = coded(labels, classes, f"{name} row {row}")
                if attributes is None:
                    self.outside += 1
                else:
                    cell = "_".join(attributes.values())
                    yield Labelled(at, cell, attributes, f"{name}#{row}", rows_before[split] + row)
                at, row = at + 1, row + 1
            rows_before[split] += row

    def read(self, wanted: Collection[Labelled]) -> Iterator[tuple[Labelled, bytes]]:
        """Yield the bytes of these images, in batches; read only the row groups that hold them."""
        by_file: dict[str, dict[int, Labelled]] = defaultdict(dict)
        for face in wanted:
            name, _, row = face.origin.rpartition("#")
            by_file[name][int(row)] = face
        for name, rows in by_file.items():
            for at, picture in _pictures(self.root / name, list(rows)):
                yield rows[at], picture or b""


def _classes(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the names of the class indices: the file's if it has them, else FairFace's."""
    with connect() as database:
        open_parquet(database, path)
        notes = dict(database.execute("SELECT key, value FROM parquet_kv_metadata(?)", [name_of(path)]).fetchall())
    features = json.loads(notes.get(b"huggingface", b"{}")).get("info", {}).get("features", {})
    return {name: tuple(features.get(name, {}).get("names") or known) for name, known in CLASSES.items()}


def _labels(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the labels of each row."""
    with connect() as database:
        shard = open_parquet(database, path)
        absent = [c for c in LABELS if c not in shard.columns]
        if absent:
            raise EvenEditError(f"{path} lacks the column {', '.join(absent)}; found {shard.columns}")
        cursor = database.execute(f"SELECT {', '.join(LABELS)} FROM read_parquet(?)", [name_of(path)])
        while batch := cursor.fetchmany(1000):
            yield from (dict(zip(LABELS, labels, strict=True)) for labels in batch)


def _pictures(path: Path, rows: Sequence[int]) -> Iterator[tuple[int, bytes | None]]:
    """Yield row and content of these pictures."""
    with connect() as database:
        column = _image_column(open_parquet(database, path), path.name)
        cursor = database.execute(
            f"SELECT file_row_number, {column} FROM read_parquet(?, file_row_number = true) "
            "WHERE file_row_number IN (SELECT unnest(?))",
            [name_of(path), rows],
        )
        while batch := cursor.fetchmany(BATCH):
            yield from batch


def _image_column(shard: Any, name: str) -> str:
    kinds = dict(zip(shard.columns, shard.types, strict=True))
    for column in ("image", "file"):
        kind = kinds.get(column)
        if kind == "BLOB":
            return f'"{column}"'
        if kind is not None and kind.id == "struct" and "bytes" in dict(kind.children):
            return f'"{column}".bytes'
    raise EvenEditError(f"{name} has no column 'image' of bytes; found {shard.columns}")


def coded(row: Mapping[str, Any], classes: Mapping[str, Sequence[str]], where: str) -> dict[str, str] | None:
    """Return a row's labels in the grid's codes, from words or class indices; None for an age outside the grid."""
    codes: dict[str, str] = {}
    outside = False
    for name in LABELS:
        label = row[name]
        if isinstance(label, int) or (isinstance(label, str) and label.isdecimal()):
            if not 0 <= int(label) < len(classes[name]):
                raise EvenEditError(
                    f"{where}: {name} {label} is not a class index; there are {len(classes[name])} classes"
                )
            label = classes[name][int(label)]
        if name == "age" and label in TOO_YOUNG:
            outside = True
            continue
        try:
            codes[name] = _code(name, label or "")
        except EvenEditError as error:
            raise EvenEditError(f"{where}: {error}") from None
    return None if outside else codes


_code = cache(level_code)
"""Datasets have few labels and many rows."""


def picture(content: bytes) -> Image.Image | None:
    """Decode a picture; return None if the bytes are not a complete picture."""
    try:
        return decode(content)
    except UnreadablePicture:
        return None


def ending(content: bytes) -> str:
    """Return the file extension for these bytes, such as .jpg or .png."""
    kind = Header.of(content).format
    return ".jpg" if kind == "JPEG" else f".{(kind or 'img').lower()}"
