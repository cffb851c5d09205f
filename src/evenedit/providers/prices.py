"""What providers charge: a dated file, ours with the user's on top."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenedit.core import plugins
from evenedit.providers.registry import KnownModel, ModelFile

MILLION = 1_000_000
VARIABLE = "EVENEDIT_MODELS"
"""The environment variable that names the user's file."""
USUAL = (None, "auto", "default", "standard")
"""Service tiers that are charged at the usual price."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars per edit and per million tokens, as of a date."""

    date: str
    edits: Mapping[str, float]
    judges: Mapping[str, Mapping[str, float]]
    assumed: tuple[int, int] | None = None
    """Tokens in and out of one call to a judge, before any is measured."""
    models: Mapping[str, KnownModel] = field(default_factory=dict)
    """All that is known about models, by id."""

    @classmethod
    def load(cls, path: Path | None = None) -> Prices:
        """Read the file of EvenEdit, and over it the user's file: this one, or that of EVENEDIT_MODELS."""
        named = os.environ.get(VARIABLE, "").strip()
        path = path or (Path(named) if named else None)
        file = ModelFile.read()
        if path is not None:
            file = file.beneath(ModelFile.read(path))
        return cls(file.date, file.edits, file.judges, file.tokens, file.models)

    def edit(self, kind: str, settings: Mapping[str, Any]) -> float | None:
        """Return dollars per edit: 0 unless the editor is a remote service; None if not known."""
        if not plugins.is_remote("editors", kind):
            return 0.0
        used = {**plugins.defaults("editors", kind), **settings}
        model = str(used.get("model"))
        price = self.edits.get(f"{model}@{used.get('quality')}", self.edits.get(model))
        return None if price is None else float(price)

    def tokens(self, kind: str, settings: Mapping[str, Any], *, batch: bool = False) -> Mapping[str, float] | None:
        """Return dollars per token in and out of a judge: 0 for a local one; None if not known."""
        if not plugins.is_remote("judges", kind):
            return {"input": 0.0, "output": 0.0}
        used = {**plugins.defaults("judges", kind), **settings}
        tier = used.get("service_tier")
        price = self.of_model(str(used.get("model")), batch=batch, tier=None if tier in USUAL else str(tier))
        return _free(price, settings.get("api_key_env", "" if used.get("server") else None))

    def describing(self, settings: Mapping[str, Any]) -> Mapping[str, float] | None:
        """Return dollars per token in and out of a model that describes portraits; None if not known."""
        return _free(self.of_model(str(settings.get("model"))), settings.get("api_key_env"))

    def of_model(self, model: str, *, batch: bool = False, tier: str | None = None) -> Mapping[str, float] | None:
        """Return dollars per token in and out of a model that reads pictures; None if not known."""
        price = self.judges.get(model, {})
        kind = "batch" if batch else tier
        ways = {way: f"{kind}_{way}" if kind else way for way in ("input", "output")}
        if any(name not in price for name in ways.values()):
            return None
        return {way: float(price[name]) / MILLION for way, name in ways.items()}

    def reserve(self, price: Mapping[str, float] | None, measured: tuple[float, float] | None) -> float:
        """Return the expected dollars of one call to a judge, by measured or assumed tokens; 0 if not known."""
        tokens = measured or self.assumed
        if price is None or tokens is None:
            return 0.0
        return tokens[0] * price["input"] + tokens[1] * price["output"]


def _free(price: Mapping[str, float] | None, key: str | None) -> Mapping[str, float] | None:
    """Return the price, or zero if none is known and no key is needed: such a server is the user's."""
    return {"input": 0.0, "output": 0.0} if price is None and key == "" else price
