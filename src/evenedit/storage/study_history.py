"""What was done to a study, line by line, each line with the hash of the one before.

A line that is changed, removed or put in between breaks the chain from there on. A chain alone proves nothing against
the one who writes it, since all of it can be written anew: a seal or root that was published elsewhere does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock

FILE = "history.jsonl"
START = "0" * 64


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that was done to a study."""

    at: str
    what: str
    detail: Mapping[str, Any] = field(default_factory=dict)
    before: str = START
    """The hash of the line before."""
    hash: str = ""

    def named(self) -> str:
        """The hash that belongs to its content."""
        body = [self.at, self.what, dict(self.detail), self.before]
        text = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


class StudyHistory:
    """The history of the study in a folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def add(self, what: str, **detail: Any) -> Happening:
        """Append a line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self.path.with_suffix(".lock")):
            text = self.text()
            known = parse_history(text)
            before = known[-1].hash if known else START
            line = Happening(datetime.now(UTC).isoformat(timespec="seconds"), what, detail, before)
            full = asdict(line) | {"hash": line.named()}
            with self.path.open("a", encoding="utf-8") as file:
                begun = "" if not text or text.endswith("\n") else "\n"  # a process was killed while it wrote
                file.write(begun + json.dumps(full, ensure_ascii=False) + "\n")
        return Happening(**full)

    def text(self) -> str:
        """Every line as it is written; empty where nothing was done yet."""
        return self.path.read_text("utf-8") if self.path.is_file() else ""

    def lines(self) -> list[Happening]:
        """Everything that was done, oldest first."""
        return parse_history(self.text())


def parse_history(text: str) -> list[Happening]:
    """The lines of a history; one that cannot be read has no hash that holds."""
    found = []
    for line in filter(None, text.splitlines()):
        try:
            found.append(Happening(**json.loads(line)))
        except (ValueError, TypeError):
            found.append(Happening("", line))
    return found


def breaks(lines: Sequence[Happening]) -> Iterator[str]:
    """Where the chain does not hold, one sentence each."""
    before = START
    for number, line in enumerate(lines, 1):
        if line.before != before or line.hash != line.named():
            yield f"line {number} of the study's history does not follow from the one before: it was changed there"
        before = line.hash
