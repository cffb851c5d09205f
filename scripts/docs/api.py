"""The public names of the package, for mkdocstrings to describe."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import evenedit


def names() -> str:
    """A section each for functions, classes and errors; what `evenedit.__all__` lists is shown, nothing else."""
    return "\n\n".join(part for title, found in sections() for part in [f"## {title}", *map(described, found)])


def sections() -> Iterator[tuple[str, list[str]]]:
    """Titles with their names, empty ones left out."""
    public = sorted(name for name in evenedit.__all__ if not name.startswith("__"))
    things = {name: getattr(evenedit, name) for name in public}
    errors = [n for n, thing in things.items() if inspect.isclass(thing) and issubclass(thing, BaseException)]
    classes = [n for n, thing in things.items() if inspect.isclass(thing) and n not in errors]
    functions = [n for n in things if n not in {*errors, *classes}]
    for title, found in (("Functions", functions), ("Classes", classes), ("Errors", errors)):
        if found:
            yield title, found


def described(name: str) -> str:
    """What mkdocstrings turns into a description."""
    return f"::: evenedit.{name}"
