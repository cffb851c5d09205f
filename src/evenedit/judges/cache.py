"""What models answered, by the content they were asked: the same question to the same model is not paid for twice.

One small file per answer, in a folder that a study has for itself or shares with others. What is kept is what the model
answered, not what was made of it. The content is everything that shapes an answer: the pictures as sent, words, schema,
model and parameters; and the judge's id, since two judges of one model are two askings. Failures are never kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evenedit.core.images import write_whole
from evenedit.core.interfaces import Reply
from evenedit.core.records import Status
from evenedit.judges.parsing import ModelReply
from evenedit.judges.prompt import ModelPrompt


class ReplyCache:
    """A folder of answers; several studies and processes may use one at the same time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, key: str) -> tuple[ModelReply, str] | None:
        """Return the stored reply to this content and its time; None if there is none or the file is damaged."""
        try:
            stored = json.loads(self._path(key).read_bytes())
            ended = stored["ended"]
            words = stored["words"] if ended is None else Reply(Status(ended[0]), reason=ended[1], raw=ended[2])
            return ModelReply(words, stored["model"], (stored["input"], stored["output"])), stored["obtained"]
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            return None

    def keep(self, key: str, answered: ModelReply) -> None:
        """Keep an answer; a refusal and an answer cut off are answers, too."""
        words = answered.words
        record = {
            "words": None if isinstance(words, Reply) else words,
            "ended": [words.status.value, words.reason, words.raw] if isinstance(words, Reply) else None,
            "model": answered.model,
            "input": answered.tokens[0],
            "output": answered.tokens[1],
            "obtained": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(record).encode())

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"


def content_key(rater: str, parameters: Mapping[str, Any], ask: ModelPrompt) -> str:
    """Return the SHA-256 of the prompt, the judge and its parameters."""
    parts = [part if isinstance(part, str) else ["image", hashlib.sha256(part).hexdigest()] for part in ask.parts]
    content = [rater, dict(parameters), ask.system, parts, ask.schema]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
