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

KEPT = ("url", "headers", "body", "upload", "picture", "poll", "refusal", "max_images")
"""What an entry says, and a study file need not."""


@cache
def table() -> dict[str, Any]:
    """Every service, by kind."""
    return tomllib.loads(files(__package__).joinpath("services.toml").read_text("utf-8"))


class KnownService(HttpEditor):
    """A service whose requests and answers are known; a study file names the model and its options."""

    service: ClassVar[Mapping[str, Any]]

    def __init__(self, **given: Any) -> None:
        bound = inspect.signature(type(self)).bind(**given)
        bound.apply_defaults()
        values = dict(bound.arguments)
        self.options = settings.table("options", values.pop("options"))
        """Further fields of what is sent: aspect ratio, safety tolerance … None leaves a field of ours out."""
        self.base_url = settings.text("base_url", values.pop("base_url")).rstrip("/")
        every = values.pop("every")
        told = {name: _based(self.service[name], self.base_url) for name in KEPT if name in self.service}
        told["body"] = self._with_options(told["body"])
        told["poll"]["every"] = settings.number("every", every)
        super().__init__(**{**told, **values})

    def _with_options(self, body: dict[str, Any]) -> dict[str, Any]:
        inside = self.service.get("options_in")
        target = body[inside] if inside else body
        merged = {**target, **self.options}
        merged = {name: value for name, value in merged.items() if value != ""}
        return {**body, inside: merged} if inside else merged


@cache
def known(kind: str) -> type[KnownService]:
    """The editor of a service."""
    service = table()[kind]
    attributes = {
        "__doc__": f"{service['title']}, by {service['source']} ({service['date']}).",
        "__module__": __name__,
        "service": service,
        "max_images": service["max_images"],
    }
    made: type[KnownService] = type(kind.capitalize(), (KnownService,), attributes)
    made.__signature__ = _signature(service)
    return made


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


def _based(told: Any, base: str) -> Any:
    """An entry's texts with the service's address in them."""
    if isinstance(told, Mapping):
        return {name: _based(value, base) for name, value in told.items()}
    return told.replace("{base_url}", base) if isinstance(told, str) else told


def __getattr__(name: str) -> type[KnownService]:
    if name not in table():
        raise AttributeError(f"no service is known by the kind '{name}'")
    return known(name)
