"""The demographic grid: factors, their levels in order, and the spellings that mean them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from itertools import product

from evenedit.core.errors import EvenEditError


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a factor."""

    code: str
    title: str
    """How tables print it."""
    labels: tuple[str, ...]
    """Other spellings accepted on import."""
    years: int | None = None
    """Numeric age of an age level."""
    band: str | None = None
    """Coarse age band for strata."""


@dataclass(frozen=True, slots=True)
class Factor:
    """One demographic factor."""

    id: str
    levels: tuple[Level, ...]

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes, in the protocol's order."""
        return tuple(level.code for level in self.levels)

    def level(self, code: str) -> Level:
        """The level with this code."""
        return next(level for level in self.levels if level.code == code)


def _read() -> tuple[Factor, ...]:
    data = tomllib.loads(files(__package__).joinpath("factors.toml").read_text("utf-8"))
    return tuple(
        Factor(f["id"], tuple(Level(**(lv | {"labels": tuple(lv["labels"])})) for lv in f["levels"]))
        for f in data["factors"]
    )


FACTORS: tuple[Factor, ...] = _read()
"""race, gender, age."""


def factor(name: str) -> Factor:
    """The factor called `name`."""
    return next(f for f in FACTORS if f.id == name)


def cells() -> list[dict[str, str]]:
    """All 84 cells as {"race", "gender", "age"}, in the protocol's order."""
    return [dict(zip((f.id for f in FACTORS), codes, strict=True)) for codes in product(*(f.codes for f in FACTORS))]


def level_code(name: str, label: str) -> str:
    """The code that a label of some dataset means, or a message naming the known ones."""
    wanted = _fold(label)
    for level in factor(name).levels:
        if wanted in {_fold(level.code), _fold(level.title), *map(_fold, level.labels)}:
            return level.code
    known = ", ".join(factor(name).codes)
    raise EvenEditError(f"{name} '{label}' is not a known label; expected one of: {known}")


def _fold(text: str) -> str:
    return text.strip().lower().replace("_", " ").replace(" ", "")
