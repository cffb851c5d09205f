"""Servers for open models that speak OpenAI's language: where each listens, and how an answer is held to a schema.

| server     | listens at                  | its page                                                            |
|------------|-----------------------------|---------------------------------------------------------------------|
| `vllm`     | http://localhost:8000/v1    | https://docs.vllm.ai/en/latest/features/structured_outputs/         |
| `ollama`   | http://localhost:11434/v1   | https://docs.ollama.com/api/openai-compatibility                    |
| `lmstudio` | http://localhost:1234/v1    | https://lmstudio.ai/docs/developer/openai-compat/structured-output  |
| `sglang`   | http://localhost:30000/v1   | https://docs.sglang.io/docs/basic_usage/openai_api_vision           |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenedit.core.settings import choice

SERVERS = {
    "vllm": "http://localhost:8000/v1",
    "ollama": "http://localhost:11434/v1",
    "lmstudio": "http://localhost:1234/v1",
    "sglang": "http://localhost:30000/v1",
}
"""Where each server listens unless it is told otherwise."""

JSON_SCHEMA, STRUCTURED_OUTPUTS, GUIDED_JSON = "json_schema", "structured_outputs", "guided_json"
JSON_OBJECT, IN_WORDS, AUTO = "json_object", "none", "auto"
HELD = (JSON_SCHEMA, STRUCTURED_OUTPUTS, GUIDED_JSON)
"""Ways to hold an answer to a schema: OpenAI's, vLLM's, and vLLM's before 0.12; the first that works is used."""
WAYS = (*HELD, JSON_OBJECT, IN_WORDS)
"""All ways, the strictest first: `json_object` asks for JSON of any form, `none` only in the prompt's words."""


def structured_mode(structured: bool | str) -> str:
    """Return the mode that the setting `structured` names."""
    if isinstance(structured, bool):
        return JSON_SCHEMA if structured else IN_WORDS
    return str(choice("structured", structured, *WAYS, AUTO))


def chat_form(way: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a chat request that set the answer's format."""
    if way == JSON_SCHEMA:
        form = {"name": "answer", "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": form}}
    if way == JSON_OBJECT:
        return {"response_format": {"type": "json_object"}}
    if way == STRUCTURED_OUTPUTS:
        return {"structured_outputs": {"json": schema}}
    return {"guided_json": schema} if way == GUIDED_JSON else {}


def responses_form(way: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a responses request that set the answer's format."""
    if way == JSON_SCHEMA:
        form = {"name": "answer", "strict": True, "schema": schema}
        return {"text": {"format": {"type": "json_schema", **form}}}
    return {"text": {"format": {"type": "json_object"}}} if way == JSON_OBJECT else {}
