"""Reads `results.json` back, of this release and of former ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
    origin, arguments = get_origin(kind), get_args(kind)
    if value is None:
        return None
    if origin in (Union, UnionType):
        return decode(next(a for a in arguments if a is not type(None)), value)
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(decode(arguments[0], item) for item in value)
        return tuple(decode(a, item) for a, item in zip(arguments, value, strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: decode(arguments[1], item) for key, item in value.items()}
    if is_dataclass(kind) and isinstance(kind, type):
        hints = _hints(kind)
        return kind(**{f.name: decode(hints[f.name], value[f.name]) for f in fields(kind) if f.name in value})
    return float(value) if kind is float else value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
