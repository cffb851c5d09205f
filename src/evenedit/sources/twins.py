"""Twins: versions of base portraits that differ in one attribute only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from evenedit.core.errors import EvenEditError
from evenedit.core.log import log
from evenedit.core.records import BASE
from evenedit.protocol import FACTORS, Factor
from evenedit.sources.folder import Folder, LabelRow

RECOLOURED = "recoloured: "
"""The origin of a version that `evenedit sources recolour` made begins with this: it never leaves the study."""

CERTIFICATES = "twins.json"
"""The file of a set of recoloured versions: what was confirmed about licence and consent, and each reading."""


class Twins(Folder):
    """A folder of versions whose `labels.csv` has a column `base`; bases without every version are left out."""

    drawn_with = BASE

    def __init__(self, *, path: str, labels: str = "labels.csv", factors: Sequence[Factor] = FACTORS) -> None:
        super().__init__(path=path, labels=labels, factors=factors)

    def _rows(self) -> list[LabelRow]:
        """Return the versions of complete bases; raise if versions of a base differ in more than one factor."""
        rows = super()._rows()
        if any(row.origin.startswith(RECOLOURED) for row in rows) and not (self.path / CERTIFICATES).is_file():
            raise EvenEditError(
                f"{self.path} has recoloured photographs and no {CERTIFICATES}, which says that licence and consent "
                "allow them; restore it, or make the versions again: evenedit sources recolour"
            )
        versions: dict[str, list[LabelRow]] = defaultdict(list)
        for row in rows:
            versions[row.drawn_with.get(BASE, "")].append(row)
        if "" in versions:
            lines = ", ".join(str(row.line) for row in versions[""][:10])
            raise EvenEditError(f"{self.labels}: 'base' is absent or empty, line {lines}; it names the twins")
        differ = {
            base: [f.name for f in self.factors if len({row.attributes[f.name] for row in of}) > 1]
            for base, of in versions.items()
        }
        varied = {name for names in differ.values() for name in names}
        if len(varied) != 1:
            what = f"differ in {', '.join(sorted(varied))}" if varied else "have the same labels"
            raise EvenEditError(f"{self.labels}: versions of a base {what}; twins differ in one factor")
        (factor,) = varied
        levels = {row.attributes[factor] for row in rows}
        labels = {base: sorted(row.attributes[factor] for row in of) for base, of in versions.items()}
        if twice := next((base for base, of in labels.items() if len(set(of)) < len(of)), None):
            raise EvenEditError(f"{self.labels}: base '{twice}' has two versions with the same {factor}")
        incomplete = [base for base, of in labels.items() if len(of) < len(levels)]
        if len(incomplete) == len(versions):
            raise EvenEditError(f"{self.labels}: no base has a version for each {factor}: {', '.join(sorted(levels))}")
        if incomplete:
            log.info(
                f"{self.labels}: {len(incomplete)} of {len(versions)} bases lack a version for some {factor} and are "
                f"left out: {', '.join(incomplete[:10])}"
            )
        return [row for row in rows if row.drawn_with[BASE] not in incomplete]
