"""Facts about the models of services: prices, limits, retirement; each with its source and date.

The file `models.toml` comes with EvenEdit. A file of the user overrides it: `--prices FILE`, or EVENEDIT_MODELS.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

from evenedit.core.errors import EvenEditError

SOON = 60
"""Days: a model that is retired within them is reported."""
ABOUT = ("source", "seen", "as_of")
"""The keys of a fact that name its source."""
FACTS = {
    "price": ("edit", "input", "output", "until", "note"),
    "context": ("input", "output"),
    "picture": ("longest",),
    "retires": ("on", "earliest", "replaced_by"),
}
"""What can be known about a model, with the keys of each fact."""
TIERS = ("batch", "flex", "priority", "fast")
"""Ways of asking that have a price of their own: `batch_input`, `flex_output` …"""


@dataclass(frozen=True, slots=True)
class ModelFact:
    """One fact about a model, with its source."""

    values: Mapping[str, Any]
    source: str
    seen: str
    """The day on which the source was looked up."""
    as_of: str = ""
    """The date that the source gives for itself; empty where it gives none."""

    @property
    def origin(self) -> str:
        """Source and date in words."""
        dated = f"of {self.as_of}, " if self.as_of else ""
        return f"{self.source}, {dated}seen {self.seen}"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model of a service, as far as it is known."""

    id: str
    provider: str
    use: tuple[str, ...]
    """`editor`, `judge`, or both."""
    facts: Mapping[str, ModelFact]

    def get(self, fact: str, key: str) -> Any:
        """Return a value of a fact; None if not known."""
        return self.facts[fact].values.get(key) if fact in self.facts else None

    @property
    def retires(self) -> date | None:
        """The day from which it is not served."""
        day = self.get("retires", "on")
        return None if day is None else date.fromisoformat(day)

    def notices(self, today: date) -> Iterator[str]:
        """Yield notices: the model is retired or will be soon, or its price ends."""
        soon = today + timedelta(days=SOON)
        if self.retires is not None and self.retires <= soon:
            yield self._retirement(self.retires, today)
        until = self.get("price", "until")
        if until is not None and date.fromisoformat(until) <= soon:
            note = self.get("price", "note")
            comment = f", {note}" if note else ""
            yield f"the price of model '{self.id}' is valid until {until}{comment} ({self.facts['price'].origin})"

    def _retirement(self, day: date, today: date) -> str:
        fact = self.facts["retires"]
        if day <= today:
            verb = "may be retired since" if fact.values.get("earliest") else "is retired since"
            when = f"{verb} {day}"
        else:
            verb = "may be retired from" if fact.values.get("earliest") else "will be retired on"
            when = f"{verb} {day}, in {(day - today).days} days"
        instead = fact.values.get("replaced_by")
        return f"model '{self.id}' {when}" + (f"; replaced by {instead}" if instead else "") + f" ({fact.origin})"


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file of models and prices, as it was read."""

    date: str
    models: Mapping[str, KnownModel]
    edits: Mapping[str, float]
    """Dollars per edit, by model, with @quality where it depends on it."""
    judges: Mapping[str, Mapping[str, float]]
    """Dollars per million tokens, by model."""
    tokens: tuple[int, int] | None

    @classmethod
    def read(cls, path: Path | None = None) -> ModelFile:
        """Read a file of the user, or the one that comes with EvenEdit."""
        label = path or "models.toml"
        try:
            place = path or files(__package__).joinpath("models.toml")
            data = tomllib.loads(place.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise EvenEditError(f"the price file {label} cannot be read: {error}") from None
        tables = ("models", "edits", "judges", "tokens")
        if "date" not in data or not all(isinstance(data.get(name, {}), dict) for name in tables):
            raise EvenEditError(f"the price file {label} needs a date, and tables [models], or [edits] and [judges]")
        unknown = [name for name in data if name not in (*tables, "date")]
        if unknown:
            keys, known = ", ".join(unknown), ", ".join(f"[{name}]" for name in tables)
            raise EvenEditError(f"the price file {label} has unknown keys: {keys}; it may have date, {known}")
        try:
            return cls._of(data, str(label))
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise EvenEditError(f"the price file {label} is invalid: {error}") from None

    @classmethod
    def _of(cls, data: Mapping[str, Any], label: str) -> ModelFile:
        usual = {"source": label, "seen": str(data["date"])}
        models = {ident: _model(ident, table, usual) for ident, table in data.get("models", {}).items()}
        assumed = data.get("tokens")
        return cls(
            str(data["date"]),
            models,
            {**_edits(models), **data.get("edits", {})},
            {**_tokens(models), **data.get("judges", {})},
            (int(assumed["input"]), int(assumed["output"])) if assumed else None,
        )

    def beneath(self, upper: ModelFile) -> ModelFile:
        """Merge two files: facts of the upper one replace those of this one."""
        priced = {key.partition("@")[0] for key in upper.edits}
        known = {
            ident: model if ident not in self.models else _merged(self.models[ident], model)
            for ident, model in upper.models.items()
        }
        return ModelFile(
            f"{upper.date}, for other models of {self.date}",
            {**self.models, **known},
            {**{k: v for k, v in self.edits.items() if k.partition("@")[0] not in priced}, **upper.edits},
            {**self.judges, **upper.judges},
            upper.tokens,
        )


def _merged(below: KnownModel, above: KnownModel) -> KnownModel:
    return KnownModel(
        above.id, above.provider or below.provider, above.use or below.use, {**below.facts, **above.facts}
    )


def _model(ident: str, table: Mapping[str, Any], usual: Mapping[str, str]) -> KnownModel:
    if unknown := table.keys() - {"provider", "use", *FACTS}:
        raise ValueError(f"model '{ident}' has unknown keys: {', '.join(sorted(unknown))}")
    facts = {name: _fact(f"{ident}, {name}", name, table[name], usual) for name in FACTS if name in table}
    return KnownModel(ident, str(table.get("provider", "")), tuple(table.get("use", ())), facts)


def _fact(where: str, name: str, table: Mapping[str, Any], usual: Mapping[str, str]) -> ModelFact:
    tiers = [f"{tier}_{way}" for tier in TIERS for way in ("input", "output")] if name == "price" else []
    if unknown := table.keys() - {*FACTS[name], *tiers, *ABOUT}:
        raise ValueError(f"{where}: unknown keys: {', '.join(sorted(unknown))}")
    about = {key: str(table.get(key, usual.get(key, ""))) for key in ABOUT}
    values = {key: value for key, value in table.items() if key not in ABOUT}
    for day in (about["seen"], about["as_of"], values.get("on"), values.get("until")):
        if day:
            date.fromisoformat(day)
    return ModelFact(values, **about)


def _edits(models: Mapping[str, KnownModel]) -> dict[str, float]:
    prices = {}
    for ident, model in models.items():
        price = model.get("price", "edit")
        if isinstance(price, Mapping):
            prices.update({f"{ident}@{quality}": float(usd) for quality, usd in price.items()})
        elif price is not None:
            prices[ident] = float(price)
    return prices


def _tokens(models: Mapping[str, KnownModel]) -> dict[str, dict[str, float]]:
    prices = {}
    for ident, model in models.items():
        values = model.facts["price"].values if "price" in model.facts else {}
        ways = {key: float(usd) for key, usd in values.items() if key.endswith(("input", "output"))}
        if ways:
            prices[ident] = ways
    return prices
