"""Every key of `study.toml`, from the models that read it."""

from __future__ import annotations

import inspect
import json
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from evenedit.config.sections import Plugged, Sections
from evenedit.config.templates import TEMPLATES
from evenedit.core import plugins
from markdown_tables import attribute_docstrings, first_paragraph, table

WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "any"}
BOUNDS = {"ge": "≥ {}", "gt": "> {}", "le": "≤ {}", "lt": "< {}", "min_length": "{} or more", "pattern": "like `{}`"}
GROUPS = {
    "sources": "Sources",
    "editors": "Editors",
    "judges": "Judges",
    "instruments": "Instruments",
    "extractors": "Extractors",
}


def reference() -> str:
    """One section per table of the file."""
    parts = []
    for name, model in sections(Sections):
        said = first_paragraph(model).partition(": ")[2]
        if model is Plugged:
            said = said_of(Sections, name.strip("[]"))
        known = common_keys().get(name.strip("[]"), set())
        rows = [
            row(model, key, advanced=key not in known)
            for key, field in model.model_fields.items()
            if not members(field.annotation)
        ]
        body = table(["key", "value", "default", "meaning"], rows) if rows else ""
        parts.append(f"## `{name}`\n\n{said[:1].upper()}{said[1:]}\n\n{body}")
    return "\n\n".join(parts)


@cache
def common_keys() -> dict[str, set[str]]:
    """Return the keys that a template of `evenedit new` writes, by table; all others are advanced."""
    keys: dict[str, set[str]] = defaultdict(set)

    def collect(table: dict[str, Any], name: str) -> None:
        for key, value in table.items():
            keys[name].add(key)
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, dict) and key != "settings":
                    collect(inner, f"{name}.{key}".lstrip("."))

    for template in TEMPLATES:
        text = files("evenedit.config.templates").joinpath(f"{template}.toml").read_text("utf-8")
        collect(tomllib.loads(text.replace("@SEED@", "1")), "")
    return keys


def template() -> str:
    """The file that `evenedit new` writes."""
    text = files("evenedit.config.templates").joinpath("small.toml").read_text("utf-8")
    return f"```toml\n{text}```"


def settings() -> str:
    """The settings that each built-in part takes, with their defaults."""
    parts = []
    for group, title in GROUPS.items():
        rows = []
        for kind, point in sorted(plugins.installed(group).items()):
            if point.value.startswith("evenedit."):
                made = point.load()
                rows.append([f"`{kind}`", first_paragraph(made), ", ".join(keywords(group, made)) or "–"])
        parts.append(f"### {title}\n\n" + table(["kind", "what", "settings"], rows))
    return "\n\n".join(parts)


def keywords(group: str, made: Any) -> Iterator[str]:
    """The settings of a plug-in."""
    for name, parameter in inspect.signature(made).parameters.items():
        if name in plugins.INJECTED_PARAMETERS.get(group, ()) or parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.default is parameter.empty:
            yield f"`{name}` (needed)"
        elif parameter.default is None:
            yield f"`{name}`"
        else:
            yield f"`{name} = {toml(parameter.default)}`"


def sections(model: type[BaseModel], above: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Every table of the file with its model, in the file's order."""
    for key, field in model.model_fields.items():
        found = [(None, Plugged)] if field.annotation is Plugged and not above else members(field.annotation)
        for shape, inner in found:
            name = f"{above}.{key}".lstrip(".") + (".NAME" if shape is dict else "")
            yield (f"[[{name}]]" if shape is list else f"[{name}]"), inner
            yield from sections(inner, name)


def members(annotation: Any) -> list[tuple[Any, type[BaseModel]]]:
    """The table that a key holds, if it holds one: alone, in a list or by name. Plug-ins stand inline."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (list, dict):
        return [(origin, kind) for _, kind in members(inner[-1])]
    if inner and origin is not Literal:
        return [found for kind in inner for found in members(kind)]
    is_table = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return [(None, annotation)] if is_table and annotation is not Plugged else []


def row(model: type[BaseModel], key: str, *, advanced: bool) -> list[str]:
    """Return a key with its type, its default and its meaning."""
    field = model.model_fields[key]
    meaning = f"*Advanced.* {said_of(model, key)}" if advanced else said_of(model, key)
    return [f"`{key}`", ", ".join([words(field.annotation), *bounds(field)]), default(field), meaning]


def said_of(model: type[BaseModel], key: str) -> str:
    """What the model says of a key, wherever it is declared."""
    return attribute_docstrings(model)[key]


def words(annotation: Any) -> str:
    """A type in words."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return words(inner[0])
    if origin is Literal:
        return " or ".join(f"`{toml(value)}`" for value in inner)
    if origin is list:
        return f"list of {words(inner[0])}"
    if origin is Annotated:
        return words(inner[0])
    if origin is dict:
        return f"table of {words(inner[1])}, by {words(inner[0])}" if get_origin(inner[0]) is Literal else "table"
    if inner:
        return " or ".join(words(kind) for kind in inner if kind is not NoneType)
    return "table: `kind`, `settings`" if annotation is Plugged else WORDS[annotation]


def bounds(field: FieldInfo) -> Iterator[str]:
    """What a value must keep to."""
    for rule in field.metadata:
        for name, text in BOUNDS.items():
            if (limit := getattr(rule, name, None)) is not None:
                yield text.format(limit)


def default(field: FieldInfo) -> str:
    """What holds when a key is left out."""
    if field.is_required():
        return "**needed**"
    if field.default is None or isinstance(field.default, BaseModel):
        return "–"
    value = round(field.default, 3) if isinstance(field.default, float) else field.default
    return f"`{toml(value)}`"


def toml(value: Any) -> str:
    """A value as the file spells it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False, default=str)
