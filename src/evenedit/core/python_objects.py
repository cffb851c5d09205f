"""Editors, judges and instruments given as Python objects: what is asked of them."""

from __future__ import annotations

import inspect
import marshal
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.records import NULL_PAIR_EDITOR, SIMULATED, is_simulated

KIND = "python"
"""The kind of an editor or judge that is a Python object."""


def resolve_method(noun: str, method: str, ident: str, value: Any) -> Any:
    """Return the method that does the work: the object's, or the function itself."""
    if inspect.isclass(value):
        raise EvenEditError(f"{noun} '{ident}' is the class {value.__name__}; give an instance: {value.__name__}(…)")
    bound = getattr(value, method, None)
    if callable(bound):
        return bound
    if callable(value):
        return value
    raise EvenEditError(
        f"{noun} '{ident}' is of type {type(value).__name__}, which is neither a function nor an object "
        f"with a method .{method}"
    )


def revision_of(noun: str, ident: str, value: Any) -> str:
    """Return the name of this version: the object's `revision` or `version`, or a digest of a plain function's code."""
    stated = getattr(value, "revision", None)
    if noun == "instrument" and stated is None:
        stated = getattr(value, "version", None)
    if stated is not None and str(stated):
        return str(stated)
    if isinstance(value, FunctionType):
        return f"{value.__name__}-{digest(_code(value))[:8]}"
    raise EvenEditError(
        f"{noun} '{ident}' has no attribute 'revision'. It is stored with everything the {noun} makes, so that another "
        f'version is not taken for this one. Set it, e.g. {noun}.revision = "v1" or the commit of its weights'
    )


def check_name(noun: str, ident: str, value: Any) -> None:
    """Refuse an id that hides, or falsely says, that the object is simulated."""
    if not isinstance(ident, str) or not ident.strip():
        raise EvenEditError(f"{noun} id {ident!r} is not a name; use e.g. {{'mine': {noun}}}")
    if ident == NULL_PAIR_EDITOR:
        raise EvenEditError(f"{noun} '{ident}': tables use this id for null pairs; choose another")
    simulated = bool(getattr(value, "simulated", False))
    if simulated and not is_simulated(ident):
        raise EvenEditError(f"{noun} '{ident}' is simulated, so its id must begin with '{SIMULATED}'")
    if not simulated and is_simulated(ident):
        raise EvenEditError(
            f"{noun} '{ident}' does not say that it is simulated; choose another id, or set {noun}.simulated = True"
        )


def validate_objects(noun: str, objects: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the objects by id; raise `EvenEditError` if they are not a mapping or it is empty."""
    if objects is None:
        return None
    if not isinstance(objects, Mapping) or not objects:
        kind = "empty" if isinstance(objects, Mapping) else type(objects).__name__
        raise EvenEditError(f"{noun}s is {kind}; give a dictionary of id and object: {{'mine': {noun}}}")
    for ident, one in objects.items():
        check_name(noun, ident, one)
    return dict(objects)


def _code(function: FunctionType) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return marshal.dumps(function.__code__).hex()
