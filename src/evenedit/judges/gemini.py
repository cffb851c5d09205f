"""Judges at Google, through the official SDK's generate_content.

What counts as a refusal: the prompt was blocked (`promptFeedback.blockReason`), or generation was stopped by a policy
(`finishReason` in POLICY). An ending without a stated policy and without words is a failure, and is asked again.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenedit.core.errors import Failed, Failure
from evenedit.core.interfaces import Reply
from evenedit.core.settings import choice, count
from evenedit.judges.base import STRANGE, RemoteJudge
from evenedit.judges.parsing import JobState, ModelReply, cut_off, model_name, read_lines, refused
from evenedit.judges.prompt import ModelPrompt
from evenedit.providers.calls import POLICY
from evenedit.providers.messages import join_messages
from evenedit.providers.remote import GeminiModel

if TYPE_CHECKING:
    from google.genai import Client

ENDED = frozenset({"SUCCEEDED", "PARTIALLY_SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED"})
"""States that a batch job does not leave again."""


class GeminiJudge(RemoteJudge["Client"], GeminiModel):
    """Judges with a Gemini model, under the provider's own safety settings."""

    def __init__(
        self,
        *,
        temperature: float | None = 0.1,
        thinking_level: str | None = None,
        max_tokens: int | None = None,
        media_resolution: str | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(temperature=temperature, **shared)
        self.knobs: dict[str, Any] = {}
        """Settings that are sent only where they are set, as Gemini names them."""
        if thinking_level is not None:
            level = choice("thinking_level", thinking_level, "minimal", "low", "medium", "high")
            self.knobs["thinkingConfig"] = {"thinkingLevel": level.upper()}
        if max_tokens is not None:
            self.knobs["maxOutputTokens"] = count("max_tokens", max_tokens)
        if media_resolution is not None:
            detail = choice("media_resolution", media_resolution, "low", "medium", "high")
            self.knobs["mediaResolution"] = f"MEDIA_RESOLUTION_{detail.upper()}"

    @property
    def parameters(self) -> dict[str, Any]:
        """All that shapes an answer beside what is asked."""
        return {
            "provider": "gemini",
            "base_url": self.base_url,
            "model": self.model,
            "temperature": self.temperature,
            **self.knobs,
        }

    def send(self, client: Client, ask: ModelPrompt) -> Any:
        """Make one call and return the raw reply: the SDK's parser drops finishMessage."""
        from google.genai.types import Content, GenerateContentConfig, Part, ThinkingConfig

        parts = [
            Part.from_text(text=part) if isinstance(part, str) else Part.from_bytes(data=part, mime_type="image/png")
            for part in ask.parts
        ]
        response = client.models.generate_content(
            model=self.model,
            contents=Content(role="user", parts=parts),
            config=GenerateContentConfig(
                thinking_config=ThinkingConfig(**thinking) if (thinking := self.knobs.get("thinkingConfig")) else None,
                max_output_tokens=self.knobs.get("maxOutputTokens"),
                media_resolution=self.knobs.get("mediaResolution"),
                system_instruction=ask.system,
                temperature=self.temperature,
                response_mime_type="application/json",
                response_json_schema=ask.schema,
                should_return_http_response=True,
            ),
        ).sdk_http_response
        return json.loads((response and response.body) or "")

    def used(self, reply: Any) -> tuple[int, int]:
        """Tokens in and out that a reply was charged for; thoughts are output."""
        usage = reply.get("usageMetadata") or {}
        answered = (usage.get("candidatesTokenCount") or 0) + (usage.get("thoughtsTokenCount") or 0)
        return usage.get("promptTokenCount") or 0, answered

    def read(self, reply: Any) -> ModelReply:
        """Read a raw reply to a call or a batch line; raise Failed."""
        try:
            words = _concluded(reply)
            return ModelReply(words, model_name(reply.get("modelVersion")), self.used(reply))
        except (AttributeError, KeyError, TypeError):
            raise Failed(Failure.SERVER, STRANGE) from None

    # -- batch jobs: by file, since inlined replies come back in any order and without a key ----------------

    def line(self, ident: str, ask: ModelPrompt) -> dict[str, Any]:
        """Format a call as a line of a batch job."""
        parts = [
            {"text": part}
            if isinstance(part, str)
            else {"inlineData": {"mimeType": "image/png", "data": base64.urlsafe_b64encode(part).decode()}}
            for part in ask.parts
        ]
        config: dict[str, Any] = {"responseMimeType": "application/json", "responseJsonSchema": ask.schema}
        config |= self.knobs
        if self.temperature is not None:
            config["temperature"] = self.temperature
        request = {
            "contents": [{"role": "user", "parts": parts}],
            "systemInstruction": {"role": "user", "parts": [{"text": ask.system}]},
            "generationConfig": config,
        }
        return {"key": ident, "request": request}

    def submit(self, lines: Path, tag: str) -> str:
        """Begin a batch job, tried once; returns the provider's id of it."""
        from google.genai.errors import ClientError

        def begin(client: Client) -> str:
            try:
                file = client.files.upload(
                    file=str(lines), config={"mime_type": "application/jsonl", "display_name": tag}
                )
            except (KeyError, ValueError) as error:  # how the SDK says that the upload broke off
                raise Failed(Failure.SERVER, f"the upload broke off ({error})") from None
            try:
                job = client.batches.create(model=self.model, src=str(file.name), config={"display_name": tag})
            except ClientError:  # there is no job for certain, so nobody needs the file
                _delete(str(file.name), client)
                raise
            return str(job.name)

        return self.provider.call(begin, attempts=1)

    def find(self, tag: str, since: float) -> str | None:
        """Return the job submitted under this tag, not before `since` (seconds since 1970); None if there is none."""

        def look(client: Client) -> str | None:
            for job in client.batches.list(config={"page_size": 100}):  # newest first
                if job.display_name == tag:
                    return str(job.name)
                if job.create_time and job.create_time.timestamp() < since:
                    return None
            return None

        return self.provider.call(look)

    def look(self, job: str) -> JobState:
        """Return the state of a job."""
        batch = self.provider.call(lambda client: client.batches.get(name=job))
        state = batch.state.name.removeprefix("JOB_STATE_") if batch.state else "unknown"
        return JobState(state in ENDED, state.lower() + (f": {batch.error.message}" if batch.error else ""))

    def results(self, job: str) -> Iterator[tuple[str, ModelReply | Failed]]:
        """Yield the replies of a finished job by the ids of its lines."""
        batch = self.provider.call(lambda client: client.batches.get(name=job))
        name = batch.dest.file_name if batch.dest else None
        if name:
            content = self.provider.call(lambda client: client.files.download(file=name))
            for line in read_lines(content):
                yield str(line.get("key")), self._from_line(line)

    def clean(self, job: str, tag: str) -> None:
        """Delete the files of an ended job: what was asked, pictures among it, and the answers."""
        batch = self.provider.call(lambda client: client.batches.get(name=job))
        answers = [batch.dest.file_name] if batch.dest and batch.dest.file_name else []
        inputs = self.provider.call(lambda client: [f.name for f in client.files.list() if f.display_name == tag])
        for file in (*inputs, *answers):
            self.provider.call(partial(_delete, str(file)))

    def _from_line(self, line: Mapping[str, Any]) -> ModelReply | Failed:
        if line.get("error"):
            return Failed(Failure.SERVER, f"the provider failed ({str(line['error'])[:400]})")
        try:
            return self.read(line.get("response"))
        except Failed as failed:
            return failed


def _delete(file: str, client: Client) -> None:
    """Delete a file; one that is gone, or not ours to delete, is left to the provider's own term."""
    from google.genai.errors import ClientError

    try:
        client.files.delete(name=file)
    except ClientError as error:
        if error.code not in (403, 404):
            raise


def _concluded(reply: Mapping[str, Any]) -> str | Reply:
    feedback = reply.get("promptFeedback") or {}
    if feedback.get("blockReason"):
        return refused(join_messages(f"prompt blocked, {feedback['blockReason']}", feedback.get("blockReasonMessage")))
    candidate: Mapping[str, Any] = next(iter(reply.get("candidates") or []), {})
    parts = (candidate.get("content") or {}).get("parts") or []
    text = "".join(part["text"] for part in parts if part.get("text") and not part.get("thought"))
    ending = candidate.get("finishReason") or "no finish reason"
    if ending in POLICY:
        return refused(join_messages(ending, candidate.get("finishMessage")), text)
    if ending == "MAX_TOKENS":
        return cut_off(text)
    if not text and ending != "STOP":
        raise Failed(Failure.SERVER, join_messages("no answer in the reply", ending, candidate.get("finishMessage")))
    return text
