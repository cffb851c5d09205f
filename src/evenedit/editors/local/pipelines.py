"""Pipelines of diffusers that are known by id: an editor for each preset in `pipelines.toml`.

flux2_dev = "evenedit.editors.local.pipelines:flux2_dev"        an entry point finds the preset by its name
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from evenedit.core import settings
from evenedit.editors.local.diffusers_base import DiffusersEditor
from evenedit.editors.local.pipeline_call import facts_of, table

STEPS = "steps"
"""The setting that is `num_inference_steps` of a pipeline's call."""
LATER = frozenset({"memory", "load", "call", "lora", "scheduler", "size", "image_argument", "batch"})
"""Settings that came after the first presets: left at their defaults they enter no request's id."""
FIXED = ("pipeline", "image_tag", "max_images")
"""Settings of any pipeline that a preset has chosen."""


class KnownPipeline(DiffusersEditor):
    """A pipeline by id, with the settings of its model card; its own arguments are settings beside those of all."""

    preset: ClassVar[Mapping[str, Any]]

    def __init__(self, **arguments: Any) -> None:
        bound = inspect.signature(type(self)).bind(**arguments)
        bound.apply_defaults()
        values = dict(bound.arguments)
        chosen = {name: _checked(name, values.pop(name), usual) for name, usual in self.preset["arguments"].items()}
        super().__init__(pipeline=self.preset["pipeline"], **values)
        for name, value in chosen.items():
            setattr(self, name, value)

    def arguments(self) -> dict[str, Any]:
        """Return the preset's arguments as they were set, and those in `call`."""
        values = {name: getattr(self, name) for name in self.preset["arguments"]}
        steps = {"num_inference_steps": values.pop(STEPS)} if STEPS in values else {}
        return {**steps, **values, **self.call}


@cache
def known(ident: str) -> type[KnownPipeline]:
    """Return the editor of a preset."""
    preset = table()["presets"][ident]
    facts = facts_of(preset["pipeline"])
    attributes = {
        "__doc__": f"{preset['model']} through diffusers' {preset['pipeline']}; settings by {preset['source']} "
        f"({preset['date']}).",
        "__module__": __name__,
        "kind": ident,
        "preset": preset,
        "presets": preset["memory"],
        "max_images": 1 + facts.several,
        "encodes_first": bool(facts.reads),
        "added_settings": LATER if isinstance(preset["size"], str) else LATER - {"size"},
    }
    editor: type[KnownPipeline] = type("".join(map(str.capitalize, ident.split("-"))), (KnownPipeline,), attributes)
    editor.__signature__ = _signature(preset)
    return editor


def _signature(preset: Mapping[str, Any]) -> inspect.Signature:
    """Return the settings of any pipeline with the preset's defaults, and its arguments after the model's."""
    changed = {"model": preset["model"], "size": preset["size"]}
    shared = [
        p.replace(default=changed.get(name, p.default))
        for name, p in inspect.signature(DiffusersEditor).parameters.items()
        if name not in FIXED
    ]
    arguments = [
        inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=v) for n, v in preset["arguments"].items()
    ]
    return inspect.Signature([*shared[:2], *arguments, *shared[2:]])


def _checked(name: str, value: Any, usual: Any) -> Any:
    if isinstance(usual, bool):
        return settings.choice(name, value, False, True)
    if isinstance(usual, int):
        return settings.count(name, value)
    return settings.number(name, value) if isinstance(usual, float) else settings.text(name, value)


def __getattr__(name: str) -> type[KnownPipeline]:
    ident = name.replace("_", "-")
    if ident not in table()["presets"]:
        raise AttributeError(f"there is no pipeline with the id '{ident}'")
    return known(ident)
