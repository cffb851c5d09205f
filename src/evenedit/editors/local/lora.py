"""Weights that are added to a pipeline's: LoRA, also those that make do with few steps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from evenedit.core import settings
from evenedit.core.errors import EvenEditError

NAME = "study"
"""What the added weights are called inside the pipeline."""


@dataclass(frozen=True, slots=True)
class Lora:
    """The setting `lora`."""

    model: str
    """A hub id, a folder or a file."""
    weight_name: str | None = None
    """The file in it."""
    revision: str | None = None
    scale: float = 1.0

    @classmethod
    def read(cls, value: str | Mapping[str, Any]) -> Lora:
        """Read the setting from a study file: a model, or a table."""
        table = {"model": value} if isinstance(value, str) else dict(settings.table("lora", value))
        unknown = sorted(table.keys() - {"model", "weight_name", "revision", "scale"})
        if unknown or "model" not in table:
            raise EvenEditError(
                f"setting 'lora' is {value!r}; it must be a model, or a table with model and, if needed, weight_name, "
                "revision and scale"
            )
        return cls(
            settings.text("lora.model", table["model"]),
            table.get("weight_name"),
            table.get("revision"),
            settings.number("lora.scale", table.get("scale", 1.0)),
        )

    def check(self) -> None:
        """Raise an error if it is neither on this machine nor named as a hub names a model."""
        if not (Path(self.model).exists() or re.fullmatch(r"\w[\w.-]*/[\w.-]+", self.model)):
            raise EvenEditError(f"the LoRA '{self.model}' is no folder or file here, and no hub id (owner/name)")

    def add_to(self, pipeline: Any) -> None:
        """Load the weights into a pipeline."""
        options = {"weight_name": self.weight_name, "revision": self.revision}
        try:
            pipeline.load_lora_weights(
                self.model,
                adapter_name=NAME,
                local_files_only=Path(self.model).exists(),
                **{name: value for name, value in options.items() if value is not None},
            )
            pipeline.set_adapters([NAME], [self.scale])
        except (AttributeError, OSError, ValueError, httpx.HTTPError) as error:
            raise EvenEditError(
                f"the LoRA '{self.model}' could not be added to {type(pipeline).__name__}: {error}"
            ) from None
