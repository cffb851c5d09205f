"""Reads `results.json` back, of this release and of former ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.resources import files
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from evenedit.core.errors import EvenEditError

T = TypeVar("T")


def parse(text: str, kind: type[T], schema: str) -> T:
    """The record written in `text`, whatever release wrote it; refused in words where it is something else."""
    try:
        body = json.loads(text)
    except ValueError as error:
        raise EvenEditError(f"these results are not JSON: {error}") from None
    found = body.pop("schema", None) if isinstance(body, dict) else None
    renamed = renamed_keys()
    if found != schema and found not in renamed:
        known = ", ".join([schema, *renamed])
        raise EvenEditError(f"these are not results of EvenEdit: schema is {found!r}, expected one of: {known}")
    try:
        value: T = decode(kind, rename(body, renamed[found]["renamed"]) if found in renamed else body)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise EvenEditError(f"these results are damaged: {type(error).__name__}: {error}") from None
    return value


@cache
def renamed_keys() -> dict[str, Any]:
    """By former schema, which keys have another name now: `list[].key` to the new key."""
    table: dict[str, Any] = json.loads(files(__package__).joinpath("renamed_keys.json").read_text("utf-8"))
    return table


def rename(body: dict[str, Any], renamed: Mapping[str, str]) -> dict[str, Any]:
    """The body under today's keys."""
    for path, new in renamed.items():
        name, key = path.split("[].")
        body[name] = [{(new if k == key else k): v for k, v in row.items()} for row in body.get(name, [])]
    return body


def decode(kind: Any, value: Any) -> Any:
    """A value of this type from JSON."""
    return _decoder(kind)(value)


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    """What reads values of a type; made once, since there are many values."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        kinds = [a for a in arguments if a is not type(None)]
        if len(kinds) > 1:  # JSON itself tells them apart
            return _same
        inner = _decoder(kinds[0])
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        return _tuple_decoder(arguments)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        member = _decoder(arguments[1])
        return lambda value: {key: member(item) for key, item in value.items()}
    if is_dataclass(kind) and isinstance(kind, type):
        return _record_decoder(kind)
    return float if kind is float else _same


def _tuple_decoder(arguments: tuple[Any, ...]) -> Callable[[Any], Any]:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        member = _decoder(arguments[0])
        return lambda value: tuple([member(item) for item in value])
    several = [_decoder(a) for a in arguments]
    return lambda value: tuple(read(item) for read, item in zip(several, value, strict=True))


def _record_decoder(kind: type) -> Callable[[Any], Any]:
    hints = get_type_hints(kind)
    parts = [(part.name, _decoder(hints[part.name])) for part in fields(kind)]

    def read(value: Any) -> Any:
        return kind(**{name: part(value[name]) for name, part in parts if name in value})

    return read


def _same(value: Any) -> Any:
    return value
