"""The history of a study: one line per event, each with the hash of the previous line.

A line that is changed, removed or put in between breaks the chain from there on. A chain alone proves nothing against
the one who writes it, since all of it can be written anew. A seal or root that was published in another place does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock

FILE = "history.jsonl"
START = "0" * 64
RUN_STARTED, RUN_FINISHED = "run began", "run ended"


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """One event in the history of a study."""

    at: str
    event: str
    """Stored under the key `what`."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    before: str = START
    """The hash of the line before."""
    hash: str = ""

    def named(self) -> str:
        """Return the hash of the content."""
        body = [self.at, self.event, dict(self.detail), self.before]
        text = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the line as it is stored."""
        return {"at": self.at, "what": self.event, "detail": self.detail, "before": self.before, "hash": self.hash}

    @classmethod
    def from_dict(cls, line: dict[str, Any]) -> HistoryEvent:
        """Read a stored line."""
        return cls(event=line.pop("what"), **line)


class StudyHistory:
    """The history of the study in a folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def add(self, event: str, **detail: Any) -> HistoryEvent:
        """Append a line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self.path.with_suffix(".lock")):
            text = self.text()
            known = parse_history(text)
            before = known[-1].hash if known else START
            line = HistoryEvent(datetime.now(UTC).isoformat(timespec="seconds"), event, detail, before)
            line = replace(line, hash=line.named())
            with self.path.open("a", encoding="utf-8") as file:
                separator = "" if not text or text.endswith("\n") else "\n"  # a process was killed while it wrote
                file.write(separator + json.dumps(line.to_dict(), ensure_ascii=False) + "\n")
        return line

    def text(self) -> str:
        """Return the lines as they are stored; empty if there are none."""
        return self.path.read_text("utf-8") if self.path.is_file() else ""

    def lines(self) -> list[HistoryEvent]:
        """Return the events, oldest first."""
        return parse_history(self.text())


def parse_history(text: str) -> list[HistoryEvent]:
    """Parse the lines of a history; a line that cannot be read has no valid hash."""
    events = []
    for line in filter(None, text.splitlines()):
        try:
            events.append(HistoryEvent.from_dict(json.loads(line)))
        except (ValueError, TypeError, KeyError, AttributeError):
            events.append(HistoryEvent("", line))
    return events


def chain_breaks(lines: Sequence[HistoryEvent]) -> Iterator[str]:
    """Yield one sentence for each place where the chain is broken."""
    before = START
    for number, line in enumerate(lines, 1):
        if line.before != before or line.hash != line.named():
            yield f"line {number} of the study's history does not follow from the one before: it was changed there"
        before = line.hash
