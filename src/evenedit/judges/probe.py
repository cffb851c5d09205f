"""Find out what an endpoint can do by asking it, before a study starts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from PIL import Image

from evenedit.core.errors import EvenEditError, Failed
from evenedit.core.interfaces import Case, Reply
from evenedit.core.records import Experiment, Prompt, Status
from evenedit.judges.base import RemoteJudge
from evenedit.judges.openai import OpenAIJudge
from evenedit.judges.parsing import THOUGHT
from evenedit.judges.prompt import ModelPrompt, pixels
from evenedit.judges.servers import IN_WORDS, WAYS
from evenedit.judges.structured_output import GREETING, HEEDED, TURNED_AWAY, enum_schema, error_message, try_mode
from evenedit.protocol.rubric import questions_for
from evenedit.providers.calls import DeclinedError
from evenedit.providers.messages import one_line

if TYPE_CHECKING:
    from openai import OpenAI

COLOURS = ("red", "green", "blue")
FIELDS: Mapping[str, Any] = {"temperature": 0.0, "reasoning_effort": "low", "max_tokens": 4000, "seed": 1}
"""Fields that not every endpoint takes, with a value to try."""


@dataclass(frozen=True, slots=True)
class ProbeFinding:
    """One thing that was tried."""

    what: str
    good: bool | None
    """None where it is neither good nor bad."""
    note: str


def probe(judge: RemoteJudge[Any]) -> Iterator[ProbeFinding]:
    """Try what the judge needs, then ask it one whole question; ends early where the endpoint cannot be reached."""
    try:
        if isinstance(judge, OpenAIJudge):
            yield from _models(judge)
            yield from _forms(judge)
            yield from _pictures(judge)
            yield from _fields(judge)
        yield _whole_question(judge)
    except (EvenEditError, Failed, DeclinedError) as error:
        yield ProbeFinding("endpoint", False, str(error))


def _models(judge: OpenAIJudge) -> Iterator[ProbeFinding]:
    """Check that the endpoint responds and lists the model."""
    at = judge.base_url or "OpenAI"

    def listed(client: OpenAI) -> list[Any]:
        try:
            return list(json.loads(client.models.with_raw_response.list().text).get("data") or [])
        except Exception as error:
            if getattr(error, "status_code", None) in (404, 405, *TURNED_AWAY):
                return []
            raise

    known = {str(m.get("id")): m for m in judge.provider.call(listed, attempts=1) if isinstance(m, Mapping)}
    if not known:
        yield ProbeFinding("models", None, f"{at} answers but lists no models")
    elif judge.model not in known:
        names = ", ".join(sorted(known)[:8])
        yield ProbeFinding("models", False, f"{at} does not list '{judge.model}'; it lists {names}")
    else:
        retired = known[judge.model].get("shutdown_date")
        shutdown = f"; it will be shut down on {retired}" if retired else ""
        yield ProbeFinding("models", not retired or None, f"{at} lists '{judge.model}'{shutdown}")


def _forms(judge: OpenAIJudge) -> Iterator[ProbeFinding]:
    """Check how an answer can be held to its schema."""
    best = IN_WORDS
    modes = [mode for mode in WAYS[:-1] if judge.api == "chat" or mode in ("json_schema", "json_object")]
    for mode in modes:
        state, reply = judge.provider.call(lambda client, mode=mode: try_mode(judge.sender(client), mode))  # type: ignore[misc]
        if state == HEEDED and best == IN_WORDS:
            best = mode
        yield ProbeFinding(mode, state == HEEDED or None, f"{state}: {one_line(reply, 80)}")
    yield ProbeFinding("advice", None, f'settings = {{ …, structured = "{best}" }}')


def _pictures(judge: OpenAIJudge) -> Iterator[ProbeFinding]:
    """Check that the model sees two pictures and distinguishes them."""
    first, second = (pixels(Image.new("RGB", (64, 64), colour), 64) for colour in ("red", "blue"))
    question = (
        'Name the colour of each picture: one JSON object with "first" and "second", each one of red, green, blue.'
    )
    schema = enum_schema(COLOURS, "first", "second")
    try:
        answer = judge.ask(ModelPrompt("", ("Picture 1", first, "Picture 2", second, question), schema))
    except EvenEditError as error:
        yield ProbeFinding("pictures", False, str(error))
        return
    words = answer.raw or answer.reason if isinstance(answer, Reply) else answer
    plain = "".join(words.rpartition(THOUGHT)[2].split())
    right = '"first":"red"' in plain and '"second":"blue"' in plain
    note = (
        "two pictures are distinguished, in the right order"
        if right
        else f"red and blue were called {one_line(words, 80)}"
    )
    yield ProbeFinding("pictures", right, note)


def _fields(judge: OpenAIJudge) -> Iterator[ProbeFinding]:
    """Check which further fields are accepted; their effect cannot be observed."""
    ask = ModelPrompt("", (GREETING,), {})
    taken: list[str] = []
    refused: list[str] = []

    def tried(client: OpenAI, field: Mapping[str, Any]) -> str:
        try:
            judge.post(client, {**judge.body(ask, IN_WORDS), **field})
            return ""
        except Exception as error:
            if getattr(error, "status_code", None) not in TURNED_AWAY:
                raise
            return error_message(error)

    for name, value in FIELDS.items():
        problem = judge.provider.call(lambda client, f={name: value}: tried(client, f))  # type: ignore[misc]
        (refused if problem else taken).append(f"{name} ({one_line(problem, 80)})" if problem else name)
    summary = f"accepted: {', '.join(taken) or 'none'}; rejected: {', '.join(refused) or 'none'}"
    yield ProbeFinding("fields", None, summary)


def _whole_question(judge: RemoteJudge[Any]) -> ProbeFinding:
    """Ask one question of a study about two blank pictures."""
    prompt = Prompt("", "Dress this person in a red coat", "")
    before, after = (Image.new("RGB", (256, 256), colour) for colour in ("grey", "darkred"))
    began, tokens = time.monotonic(), judge.tokens
    reply = judge.judge(Case([before], after, prompt, prompt.text), questions_for(Experiment.DIAGNOSIS, prompt))
    used = {way: judge.tokens[way] - tokens[way] for way in tokens}
    counted = f"{used['input']:,} tokens in, {used['output']:,} out" if any(used.values()) else "no tokens reported"
    note = f"{reply.status.value}{f' ({reply.reason})' if reply.reason else ''}, {counted}"
    return ProbeFinding("question", reply.status is Status.SCORED, f"{note}, {time.monotonic() - began:.1f} s")
