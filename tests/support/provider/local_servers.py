"""Servers for open models, SIMULATED: the wire formats of vLLM, Ollama and LM Studio, on loopback, without a key.

They differ in the form of their replies and errors, in how an answer is held to a schema, and in what they turn away:

| dialect     | a schema is heeded in                        | errors                                     |
|-------------|----------------------------------------------|--------------------------------------------|
| `vllm`      | `response_format`, `structured_outputs.json` | `{"error": {…, "type": "BadRequestError"}}`|
| `vllm-0.9`  | `response_format`, `guided_json`             | `{"object": "error", …}`, flat             |
| `ollama`    | `response_format`                            | `{"error": {…, "type": "api_error"}}`      |
| `lmstudio`  | `response_format`, never `json_object`       | `{"error": "…"}`, a text                   |
| `free`      | nowhere: taken and not heeded                | as vLLM's                                  |
| `guided`    | `structured_outputs.json` alone              | as vLLM's                                  |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.support.provider.server import SUCCESS, FakeProvider, ProviderAnswer, Seen, as_json, says

DIALECTS: Mapping[str, tuple[str, ...]] = {
    "vllm": ("response_format", "structured_outputs"),
    "vllm-0.9": ("response_format", "guided_json"),
    "ollama": ("response_format",),
    "lmstudio": ("response_format",),
    "free": (),
    "guided": ("structured_outputs",),
}
"""The fields in which each heeds a schema."""
MODEL = "simulated-vlm"


class LocalServer(FakeProvider):
    """A server that speaks one of the dialects."""

    def __init__(self, dialect: str, **options: Any) -> None:
        super().__init__(**options)
        self.dialect = dialect
        self.heeded = DIALECTS[dialect]

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> ProviderAnswer:
        """The models it has, or the answer of the provider in this dialect."""
        if (method, target) == ("GET", "/v1/models"):
            return as_json(
                200, {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": self.dialect}]}
            )
        given = super().answer(method, target, headers, body)
        if given.status == 0 or "application/json" not in given.headers.get("Content-Type", ""):
            return given
        try:
            content = json.loads(given.body)
        except ValueError:
            return given
        if not isinstance(content, dict):
            return given
        shaped = self._reply(content) if given.status == 200 else self._error(given.status, content)
        return replace(given, body=json.dumps(shaped).encode())

    def read(self, path: str, headers: Mapping[str, str], body: bytes) -> Seen | None:
        """A request as this server understands it: what it does not heed is not there."""
        seen = super().read(path, headers, body)
        if seen is None or not seen.path.endswith("/chat/completions"):
            return seen
        form, guided = seen.fields.get("response_format") or {}, seen.fields.get("structured_outputs") or {}
        schemas = {
            "response_format": (form.get("json_schema") or {}).get("schema"),
            "structured_outputs": guided.get("json"),
            "guided_json": seen.fields.get("guided_json"),
        }
        return replace(seen, schema=next((schemas[field] for field in self.heeded if schemas[field]), None))

    def refusal(self, seen: Seen) -> ProviderAnswer | None:
        """What this server turns away."""
        form = (seen.fields.get("response_format") or {}).get("type")
        if self.dialect == "lmstudio" and form == "json_object":
            return as_json(400, {"error": {"message": "'response_format.type' must be 'json_schema' or 'text'"}})
        if self.dialect == "ollama" and "max_completion_tokens" in seen.fields:
            return as_json(400, {"error": {"message": "unknown field max_completion_tokens"}})
        if "response_format" in seen.fields and self.dialect == "guided" and form == "json_schema":
            return as_json(400, {"error": {"message": "response_format is not supported"}})
        return None

    def _reply(self, content: dict[str, Any]) -> dict[str, Any]:
        """A reply with the fields that this server adds."""
        if "choices" not in content:
            return content
        if self.dialect == "ollama":
            return {**content, "id": "chatcmpl-123", "system_fingerprint": "fp_ollama"}
        added: dict[str, Any] = {
            "reasoning_content": None,
            "tool_calls": [],
            "function_call": None,
            "audio": None,
            "annotations": None,
        }
        choices = [
            {**c, "message": {**c["message"], **added}, "logprobs": None, "stop_reason": None}
            if isinstance(c, dict) and isinstance(c.get("message"), dict)
            else c
            for c in content["choices"] or []
        ]
        return {**content, "choices": choices, "prompt_logprobs": None, "kv_transfer_params": None}

    def _error(self, status: int, content: dict[str, Any]) -> dict[str, Any]:
        """An error in the words of this server."""
        message = (content.get("error") or {}).get("message", "")
        if self.dialect == "vllm-0.9":
            return {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": status}
        if self.dialect == "ollama":
            return {"error": {"message": message, "type": "api_error", "param": None, "code": None}}
        if self.dialect == "lmstudio":
            return {"error": message}
        return {"error": {"message": message, "type": "BadRequestError", "param": None, "code": status}}


def sees(seen: Seen) -> ProviderAnswer:
    """A model that looks at pictures, greets when it is asked to, and heeds a schema that it is held to."""
    if "Name the colour" in seen.instruction:
        return says(json.dumps({"first": "red", "second": "blue"}))(seen)
    if seen.schema:
        return SUCCESS(seen)
    if "Say hello" in seen.instruction:
        in_json = (seen.fields.get("response_format") or {}).get("type") == "json_object"
        return says(json.dumps({"greeting": "hello"}) if in_json else "Hello!")(seen)
    scores = {"edit_success": 3, "skin_tone": 3, "race_drift": 3, "gender_drift": 3, "age_drift": 3}
    return says(f"```json\n{json.dumps({'scores': scores, 'evidence_summary': 'as seen'})}\n```")(seen)
