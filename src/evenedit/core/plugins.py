"""Editors, judges, sources and extractors are found by entry point, the built-in ones like everybody's."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from evenedit.core.jsonable import plain
from evenedit.core.settings import count


@cache
def installed(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of `evenedit.<group>` by name."""
    return {point.name: point for point in entry_points(group=f"evenedit.{group}")}


def build(group: str, name: str, settings: Mapping[str, Any]) -> Any:
    """Make the plug-in `name`; settings were checked by `problems` before."""
    return _factory(group, name)(**settings)


INJECTED_PARAMETERS: Mapping[str, frozenset[str]] = {"sources": frozenset({"factors"})}
"""Parameters that the study itself passes, by group: no setting that a user writes."""


def accepts(group: str, name: str, parameter: str) -> bool:
    """Return whether a plug-in takes this parameter."""
    return parameter in inspect.signature(_factory(group, name)).parameters


def declares(group: str, name: str, attribute: str) -> bool:
    """Return whether a plug-in's class has this attribute."""
    return hasattr(_factory(group, name), attribute)


def problems(group: str, name: str, settings: Mapping[str, Any]) -> list[str]:
    """Return one message per invalid setting of a plug-in; empty if the settings are valid."""
    known = installed(group)
    noun = group.removesuffix("s")
    if name not in known:
        return [f"{noun} kind '{name}' is not installed{suggest(name, known)}"]
    try:
        signature = inspect.signature(_factory(group, name)).parameters
    except ImportError as error:
        return [f"{noun} kind '{name}' needs a package that is missing: {error.name or error}"]
    injected = INJECTED_PARAMETERS.get(group, frozenset())
    parameters = {key: p for key, p in signature.items() if key not in injected}
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return []
    messages = [f"unknown setting '{key}'{suggest(key, parameters)}" for key in settings if key not in parameters]
    messages += [
        f"setting '{key}' is needed" for key, p in parameters.items() if p.default is p.empty and key not in settings
    ]
    return messages


def is_simulated(group: str, name: str) -> bool:
    """Return whether the plug-in declares itself simulated."""
    return bool(getattr(_factory(group, name), "simulated", False))


def images_taken(name: str, settings: Mapping[str, Any]) -> int:
    """Return the largest number of input images that an editor accepts."""
    of_settings = getattr(_factory("editors", name), "images_for", None)
    if of_settings is not None and "max_images" not in settings:
        return int(of_settings(settings))
    return int(settings.get("max_images", getattr(_factory("editors", name), "max_images", 1)))


def needs_gpu(name: str) -> bool:
    """Return whether an editor uses a GPU if there is one; it then gets one process per GPU."""
    return bool(getattr(_factory("editors", name), "needs_gpu", False))


def encodes_first(name: str) -> bool:
    """Return whether an editor needs all instructions before it edits, to encode each of them once."""
    return bool(getattr(_factory("editors", name), "encodes_first", False))


def batch_of(name: str, settings: Mapping[str, Any]) -> int:
    """Return the number of edits that an editor makes in one call: one unless it has `edit_many`."""
    if not declares("editors", name, "edit_many"):
        return 1
    return count("batch", settings.get("batch", defaults("editors", name).get("batch", 1)))


def is_remote(group: str, name: str) -> bool:
    """Return whether an editor or judge is a remote service, which runs in threads and may cost money."""
    return bool(getattr(_factory(group, name), "remote", False))


def submits(name: str) -> bool:
    """Return whether an editor records what it sends to its service: its `edit` takes a `SubmittedJob`."""
    return bool(getattr(_factory("editors", name), "submits", False))


def is_built_in(group: str, name: str) -> bool:
    """Return whether a plug-in is part of EvenEdit."""
    return installed(group)[name].value.partition(".")[0] == __name__.partition(".")[0]


def takes_seed(name: str) -> bool:
    """Return whether the same seed gives the same picture."""
    return bool(getattr(_factory("editors", name), "seed_supported", True))


@cache
def defaults(group: str, name: str) -> Mapping[str, Any]:
    """Return the default settings of a plug-in."""
    parameters = inspect.signature(_factory(group, name)).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def identity(group: str, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that enter ids and revisions: the stated ones and the defaults of the others.

    What the plug-in lists in `added_settings` came after its first release. Left at its default it does not enter, so
    that ids from before it existed stay the same.
    """
    usual = defaults(group, name)
    added = frozenset(getattr(_factory(group, name), "added_settings", ()))
    unchanged = {key for key in added & usual.keys() if plain(settings.get(key, usual[key])) == plain(usual[key])}
    return {key: value for key, value in {**usual, **settings}.items() if key not in unchanged}


def suggest(name: str, known: Any) -> str:
    """Return the end of an error about an unknown name: the nearest known name, or the list of all."""
    names = sorted(known)
    near = get_close_matches(name, names, n=1)
    if near:
        return f"; did you mean '{near[0]}'?"
    return f"; known: {', '.join(names) or 'none'}"


@cache
def _factory(group: str, name: str) -> Callable[..., Any]:
    factory: Callable[..., Any] = installed(group)[name].load()
    return factory
