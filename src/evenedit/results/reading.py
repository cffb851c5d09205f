"""Read `results.json`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from evenedit.core.errors import EvenEditError

T = TypeVar("T")


def parse(text: str, kind: type[T], schema: str) -> T:
    """Return the record written in `text`; raise if the text is something else."""
    return parse_with_body(text, kind, schema)[0]


def parse_with_body(text: str, kind: type[T], schema: str) -> tuple[T, dict[str, Any]]:
    """Return the record written in `text`, and the JSON that it was read from; raise if the text is something else."""
    try:
        body = json.loads(text)
    except ValueError as error:
        raise EvenEditError(f"these results are not JSON: {error}") from None
    stated = body.pop("schema", None) if isinstance(body, dict) else None
    if stated != schema:
        raise EvenEditError(f"these are not results of EvenEdit: schema is {stated!r}, expected {schema!r}")
    try:
        value: T = decode(kind, body)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise EvenEditError(f"these results are damaged: {type(error).__name__}: {error}") from None
    return value, body


def member_type(hint: Any) -> Any:
    """Return the type of the members of a tuple type."""
    return get_args(hint)[0]


def decode(kind: Any, value: Any) -> Any:
    """Decode a value of this type from JSON."""
    return _decoder(kind)(value)


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    """Build the function that decodes values of a type; cached."""
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
