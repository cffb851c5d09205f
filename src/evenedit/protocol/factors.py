"""Factors: what portraits are labelled and grouped by. A study may declare its own; else they are race, gender, age.

Labels are the dataset's labels, not truths about people.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import combinations, product

from evenedit.core.errors import EvenEditError


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a factor."""

    code: str
    title: str
    """How tables print it."""
    labels: tuple[str, ...] = ()
    """Other spellings accepted on import."""
    years: int | None = None
    """Numeric age of an age level."""
    band: str | None = None
    """Coarse band for strata."""


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor with its levels in order."""

    name: str
    """The column of labels.csv and of the CSVs given to analyze and audit."""
    title: str
    """How tables and pages print it."""
    levels: tuple[Level, ...]
    ordered: bool = False
    """Whether the levels have an order that means something: adds a trend estimate."""

    @classmethod
    def of(cls, name: str, codes: Iterable[str], *, title: str = "", ordered: bool = False) -> Factor:
        """Return a factor whose levels are named by their codes."""
        return cls(name, title or _title(name), tuple(Level(code, code) for code in codes), ordered)

    @property
    def codes(self) -> tuple[str, ...]:
        """The levels' codes, in order."""
        return tuple(level.code for level in self.levels)

    @property
    def titles(self) -> dict[str, str]:
        """The printed title of each level, by code."""
        return {level.code: level.title for level in self.levels}

    @property
    def noun(self) -> str:
        """The noun for one of its levels, in a sentence."""
        return self.name if self in FACTORS else f"level of {self.title}"

    @property
    def plural(self) -> str:
        """The noun for several of its levels, in a sentence."""
        return f"{self.name}s" if self in FACTORS else f"levels of {self.title}"

    def level(self, code: str) -> Level:
        """Return the level with this code."""
        return next(level for level in self.levels if level.code == code)

    def code_of(self, label: str) -> str:
        """Return the code of a label; an empty label is missing and stays empty."""
        wanted = _fold(label)
        if not wanted:
            return ""
        for level in self.levels:
            if wanted in {_fold(level.code), _fold(level.title), *map(_fold, level.labels)}:
                return level.code
        raise EvenEditError(f"{self.name} '{label}' is not a known label; expected one of: {', '.join(self.codes)}")

    def band_of(self, code: str) -> str:
        """Return the coarse band of a level for strata, or the level itself if there are no bands."""
        return next((level.band or level.code for level in self.levels if level.code == code), code)


def _read() -> tuple[Factor, ...]:
    data = tomllib.loads(files(__package__).joinpath("factors.toml").read_text("utf-8"))
    return tuple(
        Factor(f["name"], f["title"], tuple(Level(**(lv | {"labels": tuple(lv["labels"])})) for lv in f["levels"]))
        for f in data["factors"]
    )


FACTORS: tuple[Factor, ...] = _read()
"""race, gender, age: what a study gets that declares no factors."""


def factor(name: str, factors: Sequence[Factor] = FACTORS) -> Factor:
    """Return the factor called `name`."""
    return next(f for f in factors if f.name == name)


def cells(factors: Sequence[Factor] = FACTORS) -> list[dict[str, str]]:
    """Return all combinations of levels, in the factors' order: 84 for race, gender, age."""
    names = [f.name for f in factors]
    return [dict(zip(names, codes, strict=True)) for codes in product(*(f.codes for f in factors))]


def crossings(factors: Sequence[Factor]) -> list[tuple[str, str]]:
    """Return the pairs of factors to cross: any two, but of race, gender and age only the first two."""
    if tuple(factors) == FACTORS:
        return [("race", "gender")]
    return list(combinations((f.name for f in factors), 2))


def level_code(name: str, label: str, factors: Sequence[Factor] = FACTORS) -> str:
    """Return the code of a label; raise `EvenEditError` if the label is missing."""
    wanted = factor(name, factors)
    if not label.strip():
        raise EvenEditError(f"{name} '{label}' is not a known label; expected one of: {', '.join(wanted.codes)}")
    return wanted.code_of(label)


def found_factor(name: str, values: Iterable[str]) -> Factor:
    """Return a factor whose levels are these values: in numeric order if all are numbers, else as first seen."""
    codes = list(dict.fromkeys(value.strip() for value in values if value.strip()))
    if not codes:
        raise EvenEditError(f"column '{name}' was named as a factor, but no row has a label in it")
    if known := next((f for f in FACTORS if f.name == name), None):
        codes = [code for code in known.codes if code in {known.code_of(value) for value in codes}]
        return Factor(name, known.title, tuple(known.level(code) for code in codes))
    numbers = [parse_number(code) for code in codes]
    if all(number is not None for number in numbers):
        codes = [code for _, code in sorted(zip(numbers, codes, strict=True), key=lambda pair: pair[0] or 0.0)]
    return Factor.of(name, codes)


def parse_number(text: str) -> float | None:
    """Return the number that a text is; None if it is none."""
    try:
        return float(text)
    except ValueError:
        return None


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _fold(text: str) -> str:
    return text.strip().lower().replace("_", " ").replace(" ", "")
