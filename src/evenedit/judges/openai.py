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
from typing import TYPE_CHECKING, Any, Literal

from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.core.interfaces import Reply
from evenedit.judges.base import STRANGE, RemoteJudge
from evenedit.judges.parsing import JobState, ModelReply, cut_off, named, read_lines, refused
from evenedit.judges.prompt import Ask
from evenedit.providers.calls import DECLINING, Declined
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

    An endpoint of one's own is named by `base_url`; where it takes no JSON schema, `structured = false` leaves the form
    of the answer to the prompt. It needs a key in `api_key_env` even where the endpoint does not look at it.
    """

    def __init__(
        self,
        *,
        model: str,
        api: Literal["chat", "responses"] = "chat",
        structured: bool = True,
        **shared: Any,
    ) -> None:
        if api not in ("chat", "responses"):
            raise EvenEditError(f"setting 'api' is '{api}'; it must be 'chat' or 'responses'")
        super().__init__(model=model, **shared)
        self.api = api
        self.structured = structured

    @property
    def parameters(self) -> dict[str, Any]:
        """All that shapes an answer beside what is asked."""
        return {
            "provider": "openai",
            "base_url": self.base_url,
            "model": self.model,
            "api": self.api,
            "structured": self.structured,
            "temperature": self.temperature,
        }

    def send(self, client: OpenAI, ask: Ask) -> Any:
        """One call; the reply as it came: the SDK's own reading trusts look-alike endpoints to be complete."""
        resource: Any = client.chat.completions if self.api == "chat" else client.responses
        try:
            return json.loads(resource.with_raw_response.create(**self.body(ask)).text)
        except Exception as error:
            _raise_policy(getattr(error, "body", None))
            raise

    def used(self, reply: Any) -> tuple[int, int]:
        """Tokens in and out that a reply was charged for."""
        usage = reply.get("usage") or {}
        return (
            usage.get("prompt_tokens") or usage.get("input_tokens") or 0,
            usage.get("completion_tokens") or usage.get("output_tokens") or 0,
        )

    def read(self, reply: Any) -> ModelReply:
        """A reply as it came, whether to a call or to a line of a batch job; raises Failed or Declined."""
        try:
            _raise_error(reply.get("error"))
            words = _from_chat(reply) if self.api == "chat" else _from_responses(reply)
            return ModelReply(words, named(reply.get("model"), reply.get("system_fingerprint")), self.used(reply))
        except (AttributeError, KeyError, TypeError):
            raise Failed(Failure.SERVER, STRANGE) from None

    # -- batch jobs ----------------------------------------------------------------------------------------

    def line(self, ident: str, ask: Ask) -> dict[str, Any]:
        """A call as a line of a batch job."""
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
        """The job that was begun under this tag, not before `since` (seconds since 1970); None if there is none."""

        def look(client: OpenAI) -> str | None:
            for job in client.batches.list(limit=100):  # newest first
                if (job.metadata or {}).get(TAG) == tag:
                    return job.id
                if job.created_at < since:
                    return None
            return None

        return self.provider.call(look)

    def look(self, job: str) -> JobState:
        """How far a job is."""
        found = self.provider.call(lambda client: client.batches.retrieve(job))
        note = [found.status, *(str(e.message) for e in (found.errors and found.errors.data) or [])]
        return JobState(found.status in ENDED, ": ".join(note))

    def results(self, job: str) -> Iterator[tuple[str, ModelReply | Failed]]:
        """What an ended job brought, by the ids of its lines."""
        found = self.provider.call(lambda client: client.batches.retrieve(job))
        for file in (found.output_file_id, found.error_file_id):
            if file:  # empty where there is none
                text = self.provider.call(lambda client, file=file: client.files.content(file).text)  # type: ignore[misc]
                for line in read_lines(text):
                    yield str(line.get("custom_id")), self._from_line(line)

    def clean(self, job: str, tag: str) -> None:
        """Delete the files of an ended job: what was asked, pictures among it, and the answers."""
        found = self.provider.call(lambda client: client.batches.retrieve(job))
        for file in (found.input_file_id, found.output_file_id, found.error_file_id):
            if file:
                self.provider.call(partial(_delete, file))

    def _from_line(self, line: Mapping[str, Any]) -> ModelReply | Failed:
        try:
            _raise_error(line.get("error"))
            response = line["response"]
            if response["status_code"] != 200:
                _raise_error(response["body"]["error"])
            return self.read(response["body"])
        except Declined as declined:
            return ModelReply(refused(str(declined)))
        except Failed as failed:
            return failed
        except (AttributeError, KeyError, TypeError):
            return Failed(Failure.SERVER, f"the job's line has another form: {str(line)[:400]}")

    @property
    def _endpoint(self) -> str:
        return "/v1/chat/completions" if self.api == "chat" else "/v1/responses"

    def body(self, ask: Ask) -> dict[str, Any]:
        """The request, as the chosen API takes it."""
        sampling = {} if self.temperature is None else {"temperature": self.temperature}
        form = {"name": "answer", "strict": True, "schema": ask.schema}
        if self.api == "chat":
            content = [_chat_part(part) for part in ask.parts]
            messages = [{"role": "system", "content": ask.system}, {"role": "user", "content": content}]
            schema = {"response_format": {"type": "json_schema", "json_schema": form}} if self.structured else {}
            # Portraits and answers about them are not to be kept by the provider; look-alikes may not know the word.
            kept = {} if self.base_url else {"store": False}
            return {"model": self.model, "messages": messages, **kept, **sampling, **schema}
        message = {"role": "user", "content": [_responses_part(part) for part in ask.parts]}
        schema = {"text": {"format": {"type": "json_schema", **form}}} if self.structured else {}
        return {
            "model": self.model,
            "instructions": ask.system,
            "input": [message],
            "store": False,
            **sampling,
            **schema,
        }


def _delete(file: str, client: OpenAI) -> None:
    """Delete a file; one that is gone is deleted."""
    from openai import NotFoundError

    with suppress(NotFoundError):
        client.files.delete(file)


def _url(image: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"


def _chat_part(part: str | bytes) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image_url", "image_url": {"url": _url(part)}}


def _responses_part(part: str | bytes) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    return {"type": "input_image", "image_url": _url(part)}


def _raise_policy(error: Any) -> None:
    """A refusal that arrives as an error."""
    if isinstance(error, Mapping) and error.get("code") in DECLINING:
        raise Declined(f"{error['code']}: {error.get('message')}")


def _raise_error(error: Any) -> None:
    """An error under status 200: of a failed response, or of a router whose own provider failed."""
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
