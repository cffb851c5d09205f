"""What providers charge: a dated file, ours or the user's."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from evenedit.core import plugins
from evenedit.core.errors import EvenEditError

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars per edit and per million tokens, as of a date."""

    date: str
    edits: Mapping[str, float]
    judges: Mapping[str, Mapping[str, float]]
    assumed: tuple[int, int] | None = None
    """Tokens in and out of one call to a judge, before any is measured."""

    @classmethod
    def load(cls, path: Path | None = None) -> Prices:
        """Read the user's price file, or the one that comes with EvenEdit."""
        try:
            text = path.read_text("utf-8") if path else files(__package__).joinpath("prices.toml").read_text("utf-8")
            data = tomllib.loads(text)
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise EvenEditError(f"the price file {path} cannot be read: {error}") from None
        if "date" not in data or not isinstance(data.get("edits", {}), dict):
            raise EvenEditError(f"the price file {path} needs a date, and tables [edits] and [judges]")
        assumed = data.get("tokens")
        return cls(
            str(data["date"]),
            data.get("edits", {}),
            data.get("judges", {}),
            (int(assumed["input"]), int(assumed["output"])) if assumed else None,
        )

    def edit(self, kind: str, settings: Mapping[str, Any]) -> float | None:
        """Dollars per edit: nothing unless the editor is somebody else's service; None where it is not known."""
        if not plugins.is_remote("editors", kind):
            return 0.0
        used = {**plugins.defaults("editors", kind), **settings}
        model = str(used.get("model"))
        price = self.edits.get(f"{model}@{used.get('quality')}", self.edits.get(model))
        return None if price is None else float(price)

    def tokens(self, kind: str, settings: Mapping[str, Any], *, batch: bool = False) -> Mapping[str, float] | None:
        """Dollars per token in and out of a judge: nothing for one of our own; None where it is not known."""
        if not plugins.is_remote("judges", kind):
            return {"input": 0.0, "output": 0.0}
        used = {**plugins.defaults("judges", kind), **settings}
        return self.of_model(str(used.get("model")), batch=batch)

    def of_model(self, model: str, *, batch: bool = False) -> Mapping[str, float] | None:
        """Dollars per token in and out of a model that reads pictures; None where it is not known."""
        price = self.judges.get(model, {})
        ways = {way: f"batch_{way}" if batch else way for way in ("input", "output")}
        if any(name not in price for name in ways.values()):
            return None
        return {way: float(price[name]) / MILLION for way, name in ways.items()}

    def reserve(self, price: Mapping[str, float] | None, measured: tuple[float, float] | None) -> float:
        """Dollars that one call to a judge is expected to cost, by the tokens measured or assumed; 0 if not known."""
        tokens = measured or self.assumed
        if price is None or tokens is None:
            return 0.0
        return tokens[0] * price["input"] + tokens[1] * price["output"]
