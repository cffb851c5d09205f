"""Check the rows of a table of pairs: files exist, pictures open, labels are known."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evenedit.core.errors import EvenEditError
from evenedit.core.images import read_image
from evenedit.core.records import Prompt
from evenedit.protocol import FACTORS, Factor, level_code
from evenedit.run.pair_table import LISTED, PairTable

Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class GivenPair:
    """One existing edit."""

    source: Path
    edited: Path | None
    """None where the editor refused."""
    prompt: Prompt
    labels: Row
    editor: str
    seed: int | None
    """None where the table states none."""
    refused: str
    """Why the editor refused; empty where it edited."""


@dataclass(slots=True)
class PairChecker:
    """Reads the rows of one table, remembering what it saw on earlier ones."""

    table: PairTable
    sources: Path
    """The folder that sources are relative to …"""
    outputs: Path
    """… and outputs."""
    editor: str
    """Whose edits they are where the table does not say."""
    factors: Sequence[str]
    known: Mapping[str, Factor]
    """Factors whose levels are given."""
    declared: bool
    """Whether factors were asked for by name."""
    _missing: dict[str, list[tuple[int, Path]]] = field(default_factory=lambda: {"source": [], "edited": []})
    _opened: dict[Path, str] = field(default_factory=dict)
    _portraits: dict[str, tuple[int, Path, Row]] = field(default_factory=dict)
    _seen: dict[tuple[str, str, str, int | None], int] = field(default_factory=dict)

    def pairs(self, prompts: Sequence[Prompt]) -> list[GivenPair]:
        """Return the rows as pairs; raise an error that lists all problems."""
        problems: list[str] = []
        pairs: list[GivenPair] = []
        for prompt, (line, row) in zip(prompts, self.table.numbered(), strict=True):
            try:
                pair = self._pair(line, row, prompt)
            except EvenEditError as error:
                problems.append(f"{self.table.name} {self.table.line} {line}: {error}")
            else:
                pairs += [pair] if pair else []
        problems = [*self._not_there(), *problems]
        if problems:
            more = [f"and {len(problems) - LISTED} more"] if len(problems) > LISTED else []
            raise EvenEditError(*problems[:LISTED], *more)
        if not pairs:
            raise EvenEditError(f"{self.table.name} lists no pairs")
        return pairs

    def _pair(self, line: int, row: Row, prompt: Prompt) -> GivenPair | None:
        """Return one row as a pair; None if a file is missing, which is reported once for all rows."""
        refused = row.get("refused", "").strip()
        empty = [column for column in ("source", "edited") if not row[column] and not (column == "edited" and refused)]
        if empty:
            raise EvenEditError(f"{', '.join(empty)} is empty")
        labels = {name: self._label(name, row[name]) for name in self.factors}
        source = self.sources / row["source"]
        edited = self.outputs / row["edited"] if row["edited"] else None
        if not self._is_there(line, source, edited):
            return None
        if edited is not None and not refused:
            self._read(edited)
        shows = self._read(source)
        first, source, known = self._portraits.setdefault(shows, (line, source, labels))
        for name, label in labels.items():
            if label != known[name]:
                raise EvenEditError(
                    f"{name} is '{label}' here and '{known[name]}' on {self.table.line} {first} for the same source"
                )
        editor, seed = row.get("editor", "").strip() or self.editor, _seed(row.get("seed", ""))
        before = self._seen.setdefault((editor, shows, prompt.id, seed), line)
        if before != line:
            raise EvenEditError(
                f"the same source and prompt as {self.table.line} {before}; add a column 'seed' for repeats, or "
                "'editor' for several editors"
            )
        return GivenPair(source, None if refused else edited, prompt, labels, editor, seed, refused)

    def _label(self, name: str, label: str) -> str:
        """Return a row's label; race, gender and age are required unless factors are declared."""
        if not self.declared:
            return level_code(name, label)
        known = self.known.get(name) or next((f for f in FACTORS if f.name == name), None)
        return known.code_of(label) if known else label.strip()

    def _is_there(self, line: int, source: Path, edited: Path | None) -> bool:
        """Return whether both files exist; record those that do not."""
        absent = [
            (column, path)
            for column, path in (("source", source), ("edited", edited))
            if path is not None and path not in self._opened and not path.exists()
        ]
        for column, path in absent:
            self._missing[column].append((line, path))
        return not absent

    def _read(self, path: Path) -> str:
        """Return a hash of a picture's pixels."""
        if path not in self._opened:
            image = read_image(path)
            self._opened[path] = hashlib.sha256(repr(image.size).encode() + image.tobytes()).hexdigest()
        return self._opened[path]

    def _not_there(self) -> list[str]:
        """Return one message for missing sources and one for missing outputs."""
        words = {"source": (self.sources, "--sources"), "edited": (self.outputs, "--edited")}
        return [
            f"{self.table.name}: {len(missing)} of the {len(self.table.rows)} files of the column '{column}' are not "
            f"in {words[column][0].resolve()}, first on {self.table.line} {missing[0][0]}: {missing[0][1].name}. "
            f"Name their folder by {words[column][1]}, or write paths from that folder"
            for column, missing in self._missing.items()
            if missing
        ]


def _seed(text: str) -> int | None:
    if not text.strip():
        return None
    try:
        return int(text)
    except ValueError:
        raise EvenEditError(f"seed is '{text}'; expected a whole number") from None
