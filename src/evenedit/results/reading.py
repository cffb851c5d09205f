"""Read `results.json`."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, TypeVar, get_args

from pydantic import TypeAdapter, ValidationError

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
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise EvenEditError(f"these results are damaged: {where}: {first['msg'].lower()}") from None
    return value, body


def member_type(hint: Any) -> Any:
    """Return the type of the members of a tuple type."""
    return get_args(hint)[0]


def decode(kind: Any, value: Any) -> Any:
    """Decode a value of this type from JSON."""
    return _adapter(kind).validate_python(value)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Build the reader of a type; cached."""
    return TypeAdapter(kind)
