"""Errors of pydantic models in terms of the TOML file that they describe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from evenedit.core import plugins


def explain(error: ValidationError, model: type[BaseModel]) -> Iterator[str]:
    """Yield one line for each problem of a file that a model describes."""
    for problem in error.errors():
        where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in problem["loc"]).lstrip(".")
        kind, value = problem["type"], problem["input"]
        if kind == "extra_forbidden":
            *parents, key = problem["loc"]
            yield f"unknown key '{where}'{plugins.suggest(str(key), _keys(model, parents))}"
        elif kind == "missing":
            yield f"'{where}' is missing and required"
        else:
            yield f"'{where}' is {value!r}; {problem['msg'][0].lower()}{problem['msg'][1:]}"


def _keys(model: Any, parents: Sequence[Any]) -> list[str]:
    """Return the keys allowed in a table of the file."""
    for part in parents:
        if isinstance(part, int) or part not in model.model_fields:  # a number in a list, or a key of a mapping
            continue
        annotation = model.model_fields[part].annotation
        nested = [a for a in (annotation, *_args(annotation)) if isinstance(a, type) and issubclass(a, BaseModel)]
        if not nested:
            return []
        model = nested[0]
    return [field.alias or name for name, field in model.model_fields.items()]


def _args(annotation: Any) -> list[Any]:
    return [inner for arg in get_args(annotation) for inner in (arg, *_args(arg))]
