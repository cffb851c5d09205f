"""The audit log of the web app: one line for every action of staff."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FILE = "staff-log.jsonl"


class AuditLog:
    """An append-only file in the study's folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def note(self, name: str, action: str, **detail: Any) -> None:
        """Add one line and put it on disk."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, "name": name[:80], "action": action, **detail}, ensure_ascii=False)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

    def entries(self, most: int = 50) -> list[dict[str, Any]]:
        """The last lines, newest first."""
        if not self.path.exists():
            return []
        lines = self.path.read_text("utf-8").splitlines()[-most:]
        return [json.loads(line) for line in reversed(lines)]
