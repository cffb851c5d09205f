"""The audit log of the web app: one line for every action of staff, only ever added to."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

FILE = "staff-log.jsonl"
MODE = 0o600
"""It holds names and network addresses."""
TAIL = 256 * 1024
"""Bytes at the end of the file that a page reads."""


class AuditLog:
    """An append-only file in the study's folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._lock = Lock()

    def note(self, name: str, action: str, **detail: Any) -> None:
        """Add one line and put it on disk. A line that a crash has cut off is left as it is, and ended."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, "name": name[:80], "action": action, **detail})
        with self._lock, os.fdopen(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_APPEND, MODE), "r+b") as file:
            os.fchmod(file.fileno(), MODE)
            file.write(b"\n" * _is_torn(file.fileno()) + line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def entries(self, most: int = 50) -> list[dict[str, Any]]:
        """Return the last lines, newest first. An unreadable line is replaced by a note."""
        try:
            with self.path.open("rb") as file:
                start = max(0, self.path.stat().st_size - TAIL)
                file.seek(start)
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return []
        if start:
            lines = lines[1:]  # the first one may be cut off by where reading began
        return [_entry(line) for line in reversed([line for line in lines if line.strip()][-most:])]


def _is_torn(descriptor: int) -> bool:
    """Return whether the last line of a file has no end."""
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


def _entry(line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        entry = None
    if isinstance(entry, dict) and all(isinstance(entry.get(key), str) for key in ("time", "name", "action")):
        return entry
    return {"time": "", "name": "", "action": "(a line of the log cannot be read; it is kept in the file)"}
