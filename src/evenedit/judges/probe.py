"""What an endpoint can do, found out by asking it: before a study is begun, or once before the first rating.

Whether an answer is held to a schema is found by a schema that contradicts the words: a model that is free says hello,
one that is held to the schema cannot. Endpoints that take the schema and do not heed it are found out in this way.
"""

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
from evenedit.judges.prompt import Ask, pixels
from evenedit.judges.servers import HELD, IN_WORDS, JSON_OBJECT, WAYS
from evenedit.protocol.rubric import questions_for
from evenedit.providers.calls import Declined

if TYPE_CHECKING:
    from openai import OpenAI

GREETING = "Say hello to me in plain English words, without any JSON."
COLOURS = ("red", "green", "blue")
TURNED_AWAY = (400, 415, 422, 501)
"""Statuses by which an endpoint says that it does not take a request of this form."""
HEEDED, IGNORED, REJECTED = "works", "taken and not heeded", "turned away"
FIELDS: Mapping[str, Any] = {"temperature": 0.0, "reasoning_effort": "low", "max_tokens": 4000, "seed": 1}
"""Fields that not every endpoint takes, with a value to try."""


@dataclass(frozen=True, slots=True)
class ProbeFinding:
    """One thing that was tried."""

    what: str
    good: bool | None
    """None where it is neither good nor bad."""
    note: str


def find_way(judge: OpenAIJudge, client: OpenAI) -> str:
    """The strictest way in which the endpoint holds an answer to a schema."""
    for way in (*HELD, JSON_OBJECT):
        if try_way(judge, client, way)[0] == HEEDED:
            return way
    return IN_WORDS


def try_way(judge: OpenAIJudge, client: OpenAI, way: str) -> tuple[str, str]:
    """What becomes of a request that is held to a schema in this way, and what was answered."""
    ask = Ask("", (GREETING,), _object("word", ["amber", "cobalt", "jade"]))
    try:
        said = _words(judge, client, judge.body(ask, way))
    except Exception as error:
        if getattr(error, "status_code", None) not in TURNED_AWAY:
            raise
        return REJECTED, _message(error)
    try:
        answered = json.loads(said.rpartition(THOUGHT)[2])
    except ValueError:
        return IGNORED, said
    if way == JSON_OBJECT:
        return (HEEDED if isinstance(answered, dict) else IGNORED), said
    held = isinstance(answered, dict) and answered.get("word") in ("amber", "cobalt", "jade")
    return (HEEDED if held else IGNORED), said


def probe(judge: RemoteJudge[Any]) -> Iterator[ProbeFinding]:
    """Try what the judge needs, then ask it one whole question; ends early where the endpoint cannot be reached."""
    try:
        if isinstance(judge, OpenAIJudge):
            yield from _models(judge)
            yield from _forms(judge)
            yield from _pictures(judge)
            yield from _fields(judge)
        yield _whole_question(judge)
    except (EvenEditError, Failed, Declined) as error:
        yield ProbeFinding("endpoint", False, str(error))


def _models(judge: OpenAIJudge) -> Iterator[ProbeFinding]:
    """Whether the endpoint is there and lists the model."""
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
        yield ProbeFinding("models", None, f"{at} answers, and lists no models")
    elif judge.model not in known:
        names = ", ".join(sorted(known)[:8])
        yield ProbeFinding("models", False, f"{at} does not list '{judge.model}'; it lists {names}")
    else:
        retired = known[judge.model].get("shutdown_date")
        told = f"; it will be shut down on {retired}" if retired else ""
        yield ProbeFinding("models", not retired or None, f"{at} lists '{judge.model}'{told}")


def _forms(judge: OpenAIJudge) -> Iterator[ProbeFinding]:
    """How an answer can be held to its schema."""
    best = IN_WORDS
    ways = [way for way in WAYS[:-1] if judge.api == "chat" or way in ("json_schema", "json_object")]
    for way in ways:
        state, said = judge.provider.call(lambda client, way=way: try_way(judge, client, way))  # type: ignore[misc]
        if state == HEEDED and best == IN_WORDS:
            best = way
        yield ProbeFinding(way, state == HEEDED or None, f"{state}: {_short(said)}")
    yield ProbeFinding("advice", None, f'settings = {{ …, structured = "{best}" }}')


def _pictures(judge: OpenAIJudge) -> Iterator[ProbeFinding]:
    """Whether it sees two pictures and keeps them apart."""
    first, second = (pixels(Image.new("RGB", (64, 64), colour), 64) for colour in ("red", "blue"))
    question = (
        'Name the colour of each picture: one JSON object with "first" and "second", each one of red, green, blue.'
    )
    schema = _object("first", list(COLOURS), "second")
    try:
        said = judge.ask(Ask("", ("Picture 1", first, "Picture 2", second, question), schema))
    except EvenEditError as error:
        yield ProbeFinding("pictures", False, str(error))
        return
    words = said.raw or said.reason if isinstance(said, Reply) else said
    plain = "".join(words.rpartition(THOUGHT)[2].split())
    right = '"first":"red"' in plain and '"second":"blue"' in plain
    note = "two pictures are told apart, in their order" if right else f"red and blue were called {_short(words)}"
    yield ProbeFinding("pictures", right, note)


def _fields(judge: OpenAIJudge) -> Iterator[ProbeFinding]:
    """Which further fields are taken; whether they have an effect cannot be seen from here."""
    ask = Ask("", (GREETING,), {})
    taken: list[str] = []
    refused: list[str] = []

    def tried(client: OpenAI, field: Mapping[str, Any]) -> str:
        try:
            judge.post(client, {**judge.body(ask, IN_WORDS), **field})
            return ""
        except Exception as error:
            if getattr(error, "status_code", None) not in TURNED_AWAY:
                raise
            return _message(error)

    for name, value in FIELDS.items():
        problem = judge.provider.call(lambda client, f={name: value}: tried(client, f))  # type: ignore[misc]
        (refused if problem else taken).append(f"{name} ({_short(problem)})" if problem else name)
    told = f"taken: {', '.join(taken) or 'none'}; turned away: {', '.join(refused) or 'none'}"
    yield ProbeFinding("fields", None, told)


def _whole_question(judge: RemoteJudge[Any]) -> ProbeFinding:
    """One question of a study, about two pictures that show nothing."""
    prompt = Prompt("", "Dress this person in a red coat", "")
    before, after = (Image.new("RGB", (256, 256), colour) for colour in ("grey", "darkred"))
    began, tokens = time.monotonic(), judge.tokens
    reply = judge.judge(Case([before], after, prompt, prompt.text), questions_for(Experiment.DIAGNOSIS, prompt))
    used = {way: judge.tokens[way] - tokens[way] for way in tokens}
    counted = f"{used['input']:,} tokens in, {used['output']:,} out" if any(used.values()) else "no tokens reported"
    note = f"{reply.status.value}{f' ({reply.reason})' if reply.reason else ''}, {counted}"
    return ProbeFinding("question", reply.status is Status.SCORED, f"{note}, {time.monotonic() - began:.1f} s")


def _words(judge: OpenAIJudge, client: OpenAI, body: Mapping[str, Any]) -> str:
    said = judge.read(judge.post(client, body)).words
    return said if isinstance(said, str) else said.raw


def _message(error: Exception) -> str:
    body = getattr(error, "body", None)
    return str(body.get("message") if isinstance(body, Mapping) else error)


def _object(name: str, words: list[str], *others: str) -> dict[str, Any]:
    fields = {each: {"type": "string", "enum": words} for each in (name, *others)}
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _short(said: str) -> str:
    line = " ".join(said.split())
    return line if len(line) <= 80 else f"{line[:80]}…"
