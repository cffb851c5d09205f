"""Editors and judges given as Python objects: what is asked of them."""

from __future__ import annotations

import inspect
import marshal
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.records import SIMULATED, is_simulated

KIND = "python"
"""The kind of an editor or judge that is a Python object."""


def method_of(noun: str, method: str, ident: str, given: Any) -> Any:
    """The method that does the work: the object's own, or the function itself."""
    if inspect.isclass(given):
        raise EvenEditError(f"{noun} '{ident}' is the class {given.__name__}; give an instance: {given.__name__}(…)")
    found = getattr(given, method, None)
    if callable(found):
        return found
    if callable(given):
        return given
    raise EvenEditError(
        f"{noun} '{ident}' is of type {type(given).__name__}, which is no function and has no method .{method}"
    )


def revision_of(noun: str, ident: str, given: Any) -> str:
    """What names this version: the object's `revision`; of a plain function without one, a digest of its code."""
    stated = getattr(given, "revision", None)
    if stated is not None and str(stated):
        return str(stated)
    if isinstance(given, FunctionType):
        return f"{given.__name__}-{digest(_code(given))[:8]}"
    raise EvenEditError(
        f"{noun} '{ident}' has no attribute 'revision'. It is stored with everything the {noun} makes, so that another "
        f'version is not taken for this one. Set it, e.g. {noun}.revision = "v1" or the commit of its weights'
    )


def check_name(noun: str, ident: str, given: Any) -> None:
    """Refuse an id that hides, or falsely says, that the object is simulated."""
    if not isinstance(ident, str) or not ident.strip():
        raise EvenEditError(f"{noun} id {ident!r} is no name; give e.g. {{'mine': {noun}}}")
    simulated = bool(getattr(given, "simulated", False))
    if simulated and not is_simulated(ident):
        raise EvenEditError(f"{noun} '{ident}' is simulated, so its id must begin with '{SIMULATED}'")
    if not simulated and is_simulated(ident):
        raise EvenEditError(
            f"{noun} '{ident}' does not say that it is simulated; choose another id, or set {noun}.simulated = True"
        )


def checked(noun: str, given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The objects given to a run by id; refused where they are no mapping, or none."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or not given:
        found = "empty" if isinstance(given, Mapping) else type(given).__name__
        raise EvenEditError(f"{noun}s is {found}; give a dictionary of id and object: {{'mine': {noun}}}")
    for ident, one in given.items():
        check_name(noun, ident, one)
    return dict(given)


def _code(function: FunctionType) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return marshal.dumps(function.__code__).hex()
