"""Tables of text and numbers as parquet files, in the plainest form of the format.

A column is one page of plain values, compressed with gzip: every reader of parquet takes it. What is read back is what
was written here; a file of another tool needs a library of its own, of 65 to 170 MB.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.core import thrift
from evenedit.core.errors import EvenEditError
from evenedit.core.thrift import I32, I64, Binary, Field, Items, Struct

MAGIC = b"PAR1"
PLAIN, RLE, GZIP, DATA_PAGE = 0, 3, 2, 0
REQUIRED, OPTIONAL = 0, 1
BOOLEAN, INT32, INT64, FLOAT, DOUBLE, BYTE_ARRAY = 0, 1, 2, 4, 5, 6
UTF8, INT_8, INT_16 = 0, 15, 16
"""What a physical type stands for."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """How a column is stored."""

    physical: int
    """The type of the values on disk …"""
    stored: str
    """… as numpy has it; empty for text."""
    dtype: str
    """The column's type in a data frame."""
    converted: int | None = None


COLUMN_TYPES = (
    ColumnType(BYTE_ARRAY, "", "str", UTF8),
    ColumnType(INT32, "<i4", "int8", INT_8),
    ColumnType(INT32, "<i4", "int16", INT_16),
    ColumnType(INT32, "<i4", "int32"),
    ColumnType(INT64, "<i8", "int64"),
    ColumnType(FLOAT, "<f4", "float32"),
    ColumnType(DOUBLE, "<f8", "float64"),
    ColumnType(BOOLEAN, "?", "bool"),
)
BY_DTYPE = {kind.dtype: kind for kind in COLUMN_TYPES}


def to_parquet(frame: pd.DataFrame) -> bytes:
    """A table, which must have columns, as the content of a parquet file; its index is left out."""
    content, chunks, schema, total = MAGIC, [], [_root(len(frame.columns))], 0
    for name in frame.columns:
        kind, values, given = _column(frame[name])
        page = (b"" if given is None else _levels(given)) + values
        packed = gzip.compress(page, 6, mtime=0)
        header = _page_header(len(page), len(packed), len(frame))
        schema.append(_element(str(name), kind, optional=given is not None))
        chunks.append(_chunk(str(name), kind, len(content), header, len(page), len(packed), len(frame)))
        content += header + packed
        total += len(header) + len(page)
    group = Struct({1: Items(chunks), 2: I64(total), 3: I64(len(frame))})
    about = Struct({1: I32(1), 2: Items(schema), 3: I64(len(frame)), 4: Items([group]), 6: Binary(b"evenedit")})
    footer = thrift.encode(about)
    return content + footer + len(footer).to_bytes(4, "little") + MAGIC


def read_parquet(path: Path) -> pd.DataFrame:
    """The table of a parquet file that `to_parquet` wrote: text as `str`, whole numbers with gaps as `Int64`."""
    try:
        content = path.read_bytes()
        if len(content) < 12 or content[:4] != MAGIC or content[-4:] != MAGIC:
            raise ValueError("it does not begin and end as one")
        length = int.from_bytes(content[-8:-4], "little")
        about = thrift.decode(content[-8 - length : -8])
        (group,) = about[4]
        elements = about[2][1:]
        columns = {
            element[4].decode(): _read(content, chunk[3], element, about[3])
            for element, chunk in zip(elements, group[1], strict=True)
        }
    except (OSError, ValueError, KeyError, IndexError, TypeError, zlib.error, EOFError) as error:
        raise EvenEditError(
            f"{path} is not a readable parquet file of EvenEdit: {error}; write it again, or read it with pandas and "
            "pyarrow if another tool wrote it"
        ) from None
    return pd.DataFrame(columns)


def _column(column: pd.Series[Any]) -> tuple[ColumnType, bytes, NDArray[np.bool_] | None]:
    """How a column is stored, its values, and which are given where some may be missing."""
    dtype = str(column.dtype)
    if dtype in BY_DTYPE and dtype != "str":
        kind = BY_DTYPE[dtype]
        return kind, _plain(column.to_numpy(), kind), None
    given = column.notna().to_numpy(dtype=np.bool_)
    if pd.api.types.is_integer_dtype(column.dtype):
        kind = BY_DTYPE["int64"]
        return kind, _plain(column[given].to_numpy(dtype=np.int64), kind), given
    code, values = pd.factorize(column[given])  # few differ
    texts = [str(value).encode() for value in values]
    stored = [len(text).to_bytes(4, "little") + text for text in texts]
    return BY_DTYPE["str"], b"".join(stored[at] for at in code), given


def _plain(values: NDArray[Any], kind: ColumnType) -> bytes:
    if kind.physical == BOOLEAN:
        return np.packbits(values, bitorder="little").tobytes()
    return values.astype(kind.stored).tobytes()


def _levels(given: NDArray[np.bool_]) -> bytes:
    """Which values are given: one run of single bits, with its length before it."""
    groups = -(-len(given) // 8)
    run = thrift.varint(groups << 1 | 1) + np.packbits(given, bitorder="little").tobytes().ljust(groups, b"\0")
    return len(run).to_bytes(4, "little") + run


def _root(columns: int) -> Struct:
    return Struct({4: Binary(b"schema"), 5: I32(columns)})


def _element(name: str, kind: ColumnType, *, optional: bool) -> Struct:
    fields: dict[int, Field] = {1: I32(kind.physical), 3: I32(OPTIONAL if optional else REQUIRED)}
    fields[4] = Binary(name.encode())
    if kind.converted is not None:
        fields[6] = I32(kind.converted)
    return Struct(fields)


def _page_header(size: int, packed: int, values: int) -> bytes:
    of_data = Struct({1: I32(values), 2: I32(PLAIN), 3: I32(RLE), 4: I32(RLE)})
    return thrift.encode(Struct({1: I32(DATA_PAGE), 2: I32(size), 3: I32(packed), 5: of_data}))


def _chunk(name: str, kind: ColumnType, at: int, header: bytes, size: int, packed: int, values: int) -> Struct:
    about: Mapping[int, Field] = {
        1: I32(kind.physical),
        2: Items([I32(PLAIN), I32(RLE)]),
        3: Items([Binary(name.encode())]),
        4: I32(GZIP),
        5: I64(values),
        6: I64(len(header) + size),
        7: I64(len(header) + packed),
        9: I64(at),
    }
    return Struct({2: I64(at), 3: Struct(about)})


def _read(content: bytes, about: Mapping[int, Any], element: Mapping[int, Any], rows: int) -> Any:
    """One column of a file that was written here."""
    kind = _column_type(element)
    if about[4] != GZIP or sorted(about[2]) != [PLAIN, RLE]:
        raise ValueError("its columns are stored otherwise")
    header, at = thrift.decode_at(content, about[9])
    if header[1] != DATA_PAGE or header[5][1] != rows:
        raise ValueError("its columns have several pages")
    page = gzip.decompress(content[at : at + header[3]])
    given = np.ones(rows, dtype=np.bool_)
    if element[3] == OPTIONAL:
        length = int.from_bytes(page[:4], "little")
        _, skip = thrift.read_varint(page, 4)
        bits = np.frombuffer(page[skip : 4 + length], dtype=np.uint8)
        given = np.unpackbits(bits, count=rows, bitorder="little").astype(np.bool_)
        page = page[4 + length :]
    return _values(page, kind, given, gaps=element[3] == OPTIONAL)


def _column_type(element: Mapping[int, Any]) -> ColumnType:
    wanted = element[1], element.get(6)
    return next(kind for kind in COLUMN_TYPES if (kind.physical, kind.converted) == wanted)


def _values(page: bytes, kind: ColumnType, given: NDArray[np.bool_], *, gaps: bool) -> Any:
    if kind.physical == BYTE_ARRAY:
        texts = np.full(len(given), None, dtype=object)
        texts[given] = _texts(page, int(given.sum()))
        return pd.Series(texts, dtype="str")
    if kind.physical == BOOLEAN:
        bits = np.frombuffer(page, dtype=np.uint8)
        return np.unpackbits(bits, count=len(given), bitorder="little").astype(np.bool_)
    numbers = np.frombuffer(page, dtype=kind.stored)
    if not gaps:
        return numbers.astype(kind.dtype)
    filled = np.zeros(len(given), dtype=np.int64)
    filled[given] = numbers
    return pd.arrays.IntegerArray(filled, ~given)


def _texts(page: bytes, count: int) -> Sequence[str]:
    texts, at = [], 0
    for _ in range(count):
        end = at + 4 + int.from_bytes(page[at : at + 4], "little")
        texts.append(page[at + 4 : end].decode())
        at = end
    return texts
