"""Thrift's compact protocol, as far as parquet's descriptions of itself need it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_BOOLS, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 12
_LONG = 15
"""From this size on a list's length has bytes of its own; from this step on a field's number has."""


@dataclass(frozen=True, slots=True)
class I32:
    """A whole number of 32 bits."""

    value: int


@dataclass(frozen=True, slots=True)
class I64:
    """A whole number of 64 bits."""

    value: int


@dataclass(frozen=True, slots=True)
class Binary:
    """Bytes, or text as bytes."""

    value: bytes


@dataclass(frozen=True, slots=True)
class Struct:
    """Values by the number of their field."""

    fields: Mapping[int, Field]


@dataclass(frozen=True, slots=True)
class Items:
    """Values of one type."""

    members: Sequence[Field]


Field = I32 | I64 | Binary | Struct | Items

_TYPES: dict[type, int] = {I32: 5, I64: 6, Binary: 8, Items: 9, Struct: 12}


def encode(value: Field) -> bytes:
    """A value as bytes."""
    if isinstance(value, I32 | I64):
        return varint(value.value << 1 if value.value >= 0 else (-value.value << 1) - 1)
    if isinstance(value, Binary):
        return varint(len(value.value)) + value.value
    if isinstance(value, Items):
        kind = _TYPES[type(value.members[0])] if value.members else _STRUCT
        size = len(value.members)
        head = bytes([size << 4 | kind]) if size < _LONG else bytes([_LONG << 4 | kind]) + varint(size)
        return head + b"".join(encode(member) for member in value.members)
    before, parts = 0, []
    for number, field in value.fields.items():
        if not 0 < number - before < _LONG:
            raise ValueError("fields are written in order")
        parts.append(bytes([(number - before) << 4 | _TYPES[type(field)]]) + encode(field))
        before = number
    return b"".join([*parts, b"\0"])


def decode(content: bytes) -> dict[int, Any]:
    """A struct as a dictionary by field number."""
    return decode_at(content, 0)[0]


def decode_at(content: bytes, at: int) -> tuple[dict[int, Any], int]:
    """A struct that begins at this byte, and where it ends."""
    found: dict[int, Any] = {}
    number = 0
    while content[at] != 0:
        step, kind = content[at] >> 4, content[at] & 15
        at += 1
        if step:
            number += step
        else:
            code, at = read_varint(content, at)
            number = _unzigzag(code)
        found[number], at = _value(content, at, kind)
    return found, at + 1


def varint(value: int) -> bytes:
    """A whole number from 0 on, seven bits to the byte."""
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def read_varint(content: bytes, at: int) -> tuple[int, int]:
    """The whole number that begins at this byte, and where it ends."""
    value = shift = 0
    while content[at] & 128:
        value |= (content[at] & 127) << shift
        shift, at = shift + 7, at + 1
    return value | content[at] << shift, at + 1


def _unzigzag(code: int) -> int:
    return code >> 1 if code & 1 == 0 else -(code + 1 >> 1)


def _value(content: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in _BOOLS:
        return kind == _BOOLS[0], at
    if kind in _INTEGERS:
        code, at = read_varint(content, at)
        return _unzigzag(code), at
    if kind == _BINARY:
        size, at = read_varint(content, at)
        return content[at : at + size], at + size
    if kind == _STRUCT:
        return decode_at(content, at)
    if kind in _LISTS:
        return _list(content, at)
    size = {_BYTE: 1, _DOUBLE: 8}[kind]
    return content[at : at + size], at + size


def _list(content: bytes, at: int) -> tuple[list[Any], int]:
    size, kind = content[at] >> 4, content[at] & 15
    at += 1
    if size == _LONG:
        size, at = read_varint(content, at)
    members = []
    for _ in range(size):
        member, at = _value(content, at, kind)
        members.append(member)
    return members, at
