"""Find out how an endpoint restricts an answer to a JSON schema.

The schema contradicts the words of the prompt: a model that is free says hello, a restricted model cannot. This
detects endpoints that accept a schema and ignore it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from evenedit.judges.parsing import THOUGHT
from evenedit.judges.prompt import ModelPrompt
from evenedit.judges.servers import HELD, IN_WORDS, JSON_OBJECT

GREETING = "Say hello to me in plain English words, without any JSON."
WORDS = ("amber", "cobalt", "jade")
TURNED_AWAY = (400, 415, 422, 501)
"""Statuses by which an endpoint says that it does not take a request of this form."""
HEEDED, IGNORED, REJECTED = "works", "accepted but ignored", "rejected"

Send = Callable[[ModelPrompt, str], str]
"""Send a question with its schema in a mode of structured output; return the words of the answer."""


def strictest_mode(send: Send) -> str:
    """Return the strictest mode in which the endpoint restricts an answer to a schema."""
    for mode in (*HELD, JSON_OBJECT):
        if try_mode(send, mode)[0] == HEEDED:
            return mode
    return IN_WORDS


def try_mode(send: Send, mode: str) -> tuple[str, str]:
    """Return what becomes of a request in this mode (HEEDED, IGNORED or REJECTED), and the answer."""
    try:
        reply = send(ModelPrompt("", (GREETING,), enum_schema(WORDS, "word")), mode)
    except Exception as error:
        if getattr(error, "status_code", None) not in TURNED_AWAY:
            raise
        return REJECTED, error_message(error)
    try:
        answer = json.loads(reply.rpartition(THOUGHT)[2])
    except ValueError:
        return IGNORED, reply
    heeded = isinstance(answer, dict) and (mode == JSON_OBJECT or answer.get("word") in WORDS)
    return (HEEDED if heeded else IGNORED), reply


def enum_schema(words: tuple[str, ...], *names: str) -> dict[str, Any]:
    """Return the schema of an object whose fields each take one of these words."""
    fields = {name: {"type": "string", "enum": list(words)} for name in names}
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def error_message(error: Exception) -> str:
    """Return the message in an error's body, or the error as text."""
    body = getattr(error, "body", None)
    return str(body.get("message") if isinstance(body, Mapping) else error)
