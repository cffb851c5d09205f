"""Image services that are known by kind: an editor for each entry of `services.toml`."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar

from evenedit.core import settings
from evenedit.editors.api.http import HttpEditor

ENTRY_KEYS = ("url", "headers", "body", "upload", "picture", "text", "poll", "refusal", "max_images")
"""What an entry says, and a study file need not."""


@cache
def table() -> dict[str, Any]:
    """Return the services by kind."""
    return tomllib.loads(files(__package__).joinpath("services.toml").read_text("utf-8"))


class KnownService(HttpEditor):
    """A service whose requests and answers are known; a study file names the model and its options."""

    service: ClassVar[Mapping[str, Any]]

    def __init__(self, **arguments: Any) -> None:
        bound = inspect.signature(type(self)).bind(**arguments)
        bound.apply_defaults()
        values = dict(bound.arguments)
        self.options = settings.table("options", values.pop("options"))
        """Further fields of what is sent: aspect ratio, safety tolerance … None leaves a field of ours out."""
        self.base_url = settings.text("base_url", values.pop("base_url")).rstrip("/")
        every = values.pop("every")
        entry = {name: _based(self.service[name], self.base_url) for name in ENTRY_KEYS if name in self.service}
        entry["body"] = self._with_options(entry["body"])
        entry["poll"]["every"] = settings.number("every", every)
        super().__init__(**{**entry, **values})

    def _with_options(self, body: dict[str, Any]) -> dict[str, Any]:
        inside = self.service.get("options_in")
        target = body[inside] if inside else body
        merged = {**target, **self.options}
        merged = {name: value for name, value in merged.items() if value != ""}
        return {**body, inside: merged} if inside else merged


@cache
def known(kind: str) -> type[KnownService]:
    """Return the editor of a service."""
    service = table()[kind]
    attributes = {
        "__doc__": f"{service['title']}, by {service['source']} ({service['date']}).",
        "__module__": __name__,
        "service": service,
        "max_images": service["max_images"],
    }
    editor: type[KnownService] = type(kind.capitalize(), (KnownService,), attributes)
    editor.__signature__ = _signature(service)
    return editor


def _signature(service: Mapping[str, Any]) -> inspect.Signature:
    def setting(name: str, *default: Any) -> inspect.Parameter:
        usual = default[0] if default else inspect.Parameter.empty
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=usual)

    by_file = "workflow" in str(service["body"])
    return inspect.Signature(
        [
            setting("path") if by_file else setting("model"),
            setting("options", None),
            setting("base_url", service["base_url"]),
            setting("api_key_env", service.get("api_key_env")),
            setting("timeout", 300.0),
            setting("attempts", 5),
            setting("every", service["poll"]["every"]),
        ]
    )


def _based(entry: Any, base: str) -> Any:
    """Return an entry with the service's address in its texts."""
    if isinstance(entry, Mapping):
        return {name: _based(value, base) for name, value in entry.items()}
    return entry.replace("{base_url}", base) if isinstance(entry, str) else entry


def __getattr__(name: str) -> type[KnownService]:
    if name not in table():
        raise AttributeError(f"there is no service of kind '{name}'")
    return known(name)
