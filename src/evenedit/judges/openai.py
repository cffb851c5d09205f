"""Judges at OpenAI, and at every endpoint that speaks its language (vLLM, Ollama, OpenRouter …), by the official SDK.

What counts as a refusal: the provider says so in a field made for it, that is, a `refusal` in the message, an ending
by `content_filter`, or an error that names a policy. A polite no in plain words is unparseable: to tell it from other
prose would be to guess.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.core.interfaces import Reply
from evenedit.core.log import log
from evenedit.core.settings import choice, count, text
from evenedit.judges.base import STRANGE, RemoteJudge
from evenedit.judges.parsing import JobState, ModelReply, cut_off, model_name, read_lines, refused
from evenedit.judges.prompt import ModelPrompt
from evenedit.judges.servers import (
    AUTO,
    GUIDED_JSON,
    JSON_SCHEMA,
    SERVERS,
    STRUCTURED_OUTPUTS,
    chat_form,
    responses_form,
    structured_mode,
)
from evenedit.judges.structured_output import Send, strictest_mode
from evenedit.providers.calls import DECLINING, DeclinedError
from evenedit.providers.remote import OpenAIModel

if TYPE_CHECKING:
    from openai import OpenAI

TAG = "evenedit"
"""The key of a job's metadata under which its tag stands."""
SERVERS_FAULT = 500
"""The status from which on it is not known what became of a request."""
ENDED = frozenset({"failed", "completed", "expired", "cancelled"})
"""States that a batch job does not leave again."""


class OpenAIJudge(RemoteJudge["OpenAI"], OpenAIModel):
    """Judges with a model that sees, through chat completions or responses.

    `server` names a server of one's own (vLLM, Ollama, LM Studio, SGLang), which needs no key; any other endpoint is
    named by `base_url`, with `api_key_env = ""` where it takes none. `structured` says how the answer is held to its
    schema: by default as OpenAI does it, at a server of one's own as a probe finds it; false leaves it to the prompt.
    """

    def __init__(
        self,
        *,
        model: str,
        api: Literal["chat", "responses"] = "chat",
        server: str | None = None,
        structured: bool | str | None = None,
        reasoning_effort: str | None = None,
        max_tokens: int | None = None,
        detail: str | None = None,
        service_tier: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        **shared: Any,
    ) -> None:
        if api not in ("chat", "responses"):
            raise EvenEditError(f"setting 'api' is '{api}'; it must be 'chat' or 'responses'")
        if server is not None:
            shared["base_url"] = shared.get("base_url") or SERVERS[choice("server", server, *SERVERS)]
            shared.setdefault("api_key_env", "")
        super().__init__(model=model, **shared)
        self.api = api
        self.structured: bool | str = (True if server is None else AUTO) if structured is None else structured
        way = structured_mode(self.structured)
        if api == "responses" and way in (STRUCTURED_OUTPUTS, GUIDED_JSON):
            raise EvenEditError(f"setting 'structured' is '{way}', which api = 'responses' does not have; use 'chat'")
        self.knobs = _knobs(reasoning_effort, max_tokens, detail, service_tier, extra_body)
        """Settings that are sent only where they are set."""
        self._way = None if way == AUTO else way
        self._finding = Lock()

    @property
    def parameters(self) -> dict[str, Any]:
        """All that shapes an answer beside what is asked; what is not set is not named."""
        return {
            "provider": "openai",
            "base_url": self.base_url,
            "model": self.model,
            "api": self.api,
            "structured": self.structured,
            "temperature": self.temperature,
            **self.knobs,
        }

    def send(self, client: OpenAI, ask: ModelPrompt) -> Any:
        """Make one call and return the raw reply: the SDK's parser requires fields that compatible servers omit."""
        if self._way is None:
            with self._finding:  # once, whoever comes first
                self._way = self._way or self._strictest_mode(client)
        return self.post(client, self.body(ask, self._way))

    def post(self, client: OpenAI, body: Mapping[str, Any]) -> Any:
        """Send a request as it is; fields that OpenAI does not know, but others do, would be refused by the SDK."""
        resource: Any = client.chat.completions if self.api == "chat" else client.responses
        needed = {name: body[name] for name in ("model", "messages" if self.api == "chat" else "input")}
        further = {name: value for name, value in body.items() if name not in needed}
        try:
            return json.loads(resource.with_raw_response.create(**needed, extra_body=further).text)
        except Exception as error:
            _raise_policy(getattr(error, "body", None))
            raise

    def sender(self, client: OpenAI) -> Send:
        """Return a function that sends a question in a mode of structured output and returns the words answered."""

        def send(ask: ModelPrompt, mode: str) -> str:
            words = self.read(self.post(client, self.body(ask, mode))).words
            return words if isinstance(words, str) else words.raw

        return send

    def _strictest_mode(self, client: OpenAI) -> str:
        """Return the strictest way in which this endpoint holds an answer to a schema."""
        way = strictest_mode(self.sender(client))
        log.info(f'{self.model}: a probe found structured = "{way}"; write it into study.toml to keep it')
        return way

    def used(self, reply: Any) -> tuple[int, int]:
        """Tokens in and out that a reply was charged for."""
        usage = reply.get("usage") or {}
        return (
            usage.get("prompt_tokens") or usage.get("input_tokens") or 0,
            usage.get("completion_tokens") or usage.get("output_tokens") or 0,
        )

    def read(self, reply: Any) -> ModelReply:
        """Read a raw reply to a call or a batch line; raise Failed or DeclinedError."""
        try:
            _raise_error(reply.get("error"))
            words = _from_chat(reply) if self.api == "chat" else _from_responses(reply)
            return ModelReply(words, model_name(reply.get("model"), reply.get("system_fingerprint")), self.used(reply))
        except (AttributeError, KeyError, TypeError):
            raise Failed(Failure.SERVER, STRANGE) from None

    # -- batch jobs ----------------------------------------------------------------------------------------

    def line(self, ident: str, ask: ModelPrompt) -> dict[str, Any]:
        """Format a call as a line of a batch job."""
        return {"custom_id": ident, "method": "POST", "url": self._endpoint, "body": self.body(ask)}

    def submit(self, lines: Path, tag: str) -> str:
        """Begin a batch job, tried once; returns the provider's id of it."""
        from openai import APIStatusError

        def begin(client: OpenAI) -> str:
            file = client.files.create(file=("batch.jsonl", lines.read_bytes()), purpose="batch")
            endpoint: Any = self._endpoint
            try:
                job = client.batches.create(
                    input_file_id=file.id, endpoint=endpoint, completion_window="24h", metadata={TAG: tag}
                )
            except APIStatusError as error:
                if error.status_code < SERVERS_FAULT:  # there is no job for certain, so nobody needs the file
                    _delete(file.id, client)
                raise
            return job.id

        return self.provider.call(begin, attempts=1)

    def find(self, tag: str, since: float) -> str | None:
        """Return the job submitted under this tag, not before `since` (seconds since 1970); None if there is none."""

        def look(client: OpenAI) -> str | None:
            for job in client.batches.list(limit=100):  # newest first
                if (job.metadata or {}).get(TAG) == tag:
                    return job.id
                if job.created_at < since:
                    return None
            return None

        return self.provider.call(look)

    def look(self, job: str) -> JobState:
        """Return the state of a job."""
        batch = self.provider.call(lambda client: client.batches.retrieve(job))
        note = [batch.status, *(str(e.message) for e in (batch.errors and batch.errors.data) or [])]
        return JobState(batch.status in ENDED, ": ".join(note))

    def results(self, job: str) -> Iterator[tuple[str, ModelReply | Failed]]:
        """Yield the replies of a finished job by the ids of its lines."""
        batch = self.provider.call(lambda client: client.batches.retrieve(job))
        for file in (batch.output_file_id, batch.error_file_id):
            if file:  # empty where there is none
                text = self.provider.call(lambda client, file=file: client.files.content(file).text)  # type: ignore[misc]
                for line in read_lines(text):
                    yield str(line.get("custom_id")), self._from_line(line)

    def clean(self, job: str, tag: str) -> None:
        """Delete the files of an ended job: what was asked, pictures among it, and the answers."""
        batch = self.provider.call(lambda client: client.batches.retrieve(job))
        for file in (batch.input_file_id, batch.output_file_id, batch.error_file_id):
            if file:
                self.provider.call(partial(_delete, file))

    def _from_line(self, line: Mapping[str, Any]) -> ModelReply | Failed:
        try:
            _raise_error(line.get("error"))
            response = line["response"]
            if response["status_code"] != 200:
                _raise_error(response["body"]["error"])
            return self.read(response["body"])
        except DeclinedError as declined:
            return ModelReply(refused(str(declined)))
        except Failed as failed:
            return failed
        except (AttributeError, KeyError, TypeError):
            return Failed(Failure.SERVER, f"the job's line has an unexpected format: {str(line)[:400]}")

    @property
    def _endpoint(self) -> str:
        return "/v1/chat/completions" if self.api == "chat" else "/v1/responses"

    def body(self, ask: ModelPrompt, way: str | None = None) -> dict[str, Any]:
        """Build the request for the chosen API."""
        way = way or self._way or JSON_SCHEMA
        detail, effort, limit, tier = (
            self.knobs.get(name) for name in ("detail", "reasoning_effort", "max_tokens", "service_tier")
        )
        shared: dict[str, Any] = {} if self.temperature is None else {"temperature": self.temperature}
        extra = {**({} if tier is None else {"service_tier": tier}), **self.knobs.get("extra_body", {})}
        if self.api == "chat":
            content = [_chat_part(part, detail) for part in ask.parts]
            system = [{"role": "system", "content": ask.system}] if ask.system else []
            # Portraits and answers about them are not to be kept by the provider; look-alikes may not know the word.
            storage = {} if self.base_url else {"store": False}
            if effort is not None:
                shared["reasoning_effort"] = effort
            if limit is not None:  # OpenAI's newer word for it is not known to every look-alike
                shared["max_tokens" if self.base_url else "max_completion_tokens"] = limit
            messages = [*system, {"role": "user", "content": content}]
            return {
                "model": self.model,
                "messages": messages,
                **storage,
                **shared,
                **chat_form(way, ask.schema),
                **extra,
            }
        message = {"role": "user", "content": [_responses_part(part, detail) for part in ask.parts]}
        if effort is not None:
            shared["reasoning"] = {"effort": effort}
        if limit is not None:
            shared["max_output_tokens"] = limit
        instructions = {"instructions": ask.system} if ask.system else {}
        return {
            "model": self.model,
            **instructions,
            "input": [message],
            "store": False,
            **shared,
            **responses_form(way, ask.schema),
            **extra,
        }


def _knobs(
    reasoning_effort: str | None,
    max_tokens: int | None,
    detail: str | None,
    service_tier: str | None,
    extra_body: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the settings that are set, checked as far as every provider agrees on them."""
    settings: dict[str, Any] = {}
    for name, value in (("reasoning_effort", reasoning_effort), ("service_tier", service_tier)):
        if value is not None:
            settings[name] = text(name, value)
    if max_tokens is not None:
        settings["max_tokens"] = count("max_tokens", max_tokens)
    if detail is not None:
        settings["detail"] = choice("detail", detail, "auto", "low", "high", "original")
    if extra_body is not None:
        if not isinstance(extra_body, Mapping):
            raise EvenEditError(f"setting 'extra_body' is {extra_body!r}; it must be a table of further fields")
        settings["extra_body"] = dict(extra_body)
    return settings


def _delete(file: str, client: OpenAI) -> None:
    """Delete a file; one that is gone is deleted."""
    from openai import NotFoundError

    with suppress(NotFoundError):
        client.files.delete(file)


def _url(image: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"


def _chat_part(part: str | bytes, detail: str | None) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image_url", "image_url": {"url": _url(part), **({"detail": detail} if detail else {})}}


def _responses_part(part: str | bytes, detail: str | None) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    return {"type": "input_image", "image_url": _url(part), **({"detail": detail} if detail else {})}


def _raise_policy(error: Any) -> None:
    """Raise DeclinedError if an error is a refusal."""
    if isinstance(error, Mapping) and error.get("code") in DECLINING:
        raise DeclinedError(f"{error['code']}: {error.get('message')}")


def _raise_error(error: Any) -> None:
    """Raise an error that arrived under status 200, from a failed response or a router."""
    if error:
        _raise_policy(error)
        limited = error.get("code") in ("rate_limit_exceeded", 429)
        note = f"the provider failed ({error.get('code')}: {str(error.get('message'))[:400]})"
        raise Failed(Failure.RATE_LIMIT if limited else Failure.SERVER, note)


def _from_chat(reply: Mapping[str, Any]) -> str | Reply:
    choice: Mapping[str, Any] = next(iter(reply.get("choices") or []), {})
    message = choice.get("message") or {}
    if message.get("refusal"):
        return refused(message["refusal"], message["refusal"])
    text = message.get("content") or ""
    if not isinstance(text, str):
        raise TypeError
    return _concluded(text, choice.get("finish_reason"), "length")


def _from_responses(reply: Mapping[str, Any]) -> str | Reply:
    answered = [item for item in reply.get("output") or [] if item.get("type") == "message"]
    parts = [part for item in answered for part in item.get("content") or []]
    if no := " ".join(part["refusal"] for part in parts if part.get("refusal")):
        return refused(no, no)
    text = "".join(part["text"] for part in parts if part.get("text"))
    ending = (reply.get("incomplete_details") or {}).get("reason") or reply.get("status")
    return _concluded(text, ending, "max_output_tokens")


def _concluded(text: str, ending: str | None, too_long: str) -> str | Reply:
    if ending == "content_filter":
        return refused("content_filter", text)
    if ending == too_long:
        return cut_off(text)
    if not text and ending not in ("stop", "completed"):
        raise Failed(Failure.SERVER, f"no answer in the reply ({ending or 'no reason given'})")
    return text
