"""The grid of a curation: one cell per combination of the factors' levels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from evenedit.core.errors import EvenEditError
from evenedit.protocol import FACTORS, Factor
from evenedit.protocol.factors import cells


@dataclass(frozen=True)
class Grid:
    """The factors that portraits are chosen by, and the cells they span."""

    factors: tuple[Factor, ...] = FACTORS
    """Race, gender and age, unless the study declares others."""

    def __post_init__(self) -> None:
        names = ["_".join(labels.values()) for labels in cells(self.factors)]
        unusable = sorted({name for name in names if "/" in name or "\\" in name or names.count(name) > 1})
        if unusable:
            raise EvenEditError(
                f"the cell '{unusable[0]}' cannot name a file: levels of [[factors]] must not contain slashes, "
                "and joined by '_' they must name each cell once; rename the levels"
            )

    @cached_property
    def labels(self) -> Mapping[str, Mapping[str, str]]:
        """The level codes of each cell by factor, by the cell's name; in the grid's order."""
        return {"_".join(labels.values()): labels for labels in cells(self.factors)}

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """The names of the cells, in the grid's order."""
        return tuple(self.labels)

    @property
    def title(self) -> str:
        """The factors in words: Race × Gender × Age."""
        return " × ".join(f.title for f in self.factors)

    @property
    def is_default(self) -> bool:
        """True if the cells are those of race, gender and age."""
        return self.factors == FACTORS

    def titles(self, cell: str) -> list[str]:
        """Return the titles of a cell's levels, in the factors' order."""
        return [f.level(self.labels[cell][f.name]).title for f in self.factors]

    def of_level(self, code: str) -> Iterator[str]:
        """Yield the cells of one level of the main factor."""
        main = self.factors[0].name
        return (cell for cell, labels in self.labels.items() if labels[main] == code)

    def as_data(self) -> dict[str, Sequence[str]]:
        """Return the factors' codes by name, as a manifest stores them."""
        return {f.name: list(f.codes) for f in self.factors}

    @classmethod
    def from_data(cls, data: Mapping[str, Sequence[str]] | None) -> Grid:
        """Return the grid of a manifest: race, gender and age if it names no factors."""
        return cls(tuple(Factor.of(name, codes) for name, codes in data.items())) if data else DEFAULT_GRID


DEFAULT_GRID = Grid()
"""The grid of the published study: 84 cells of race, gender and age."""
