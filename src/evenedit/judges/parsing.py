"""A judge's answer, read strictly: what is taken from it stands in it, and nothing is guessed, clamped or rounded.

    a JSON object, bare, fenced or amid prose  ->  its "scores" (or the object itself)  ->  one value per question

| in the reply                                                         | becomes                       |
|----------------------------------------------------------------------|-------------------------------|
| a whole number within the scale; the exact word of a choice          | the value                     |
| a list of the words of a set, each once                              | yes or no for each option     |
| null, or the question is absent                                      | missing; the others count     |
| 7, 2.5, 4.0, "4", true, a list, another word; every question missing | the whole reply: unparseable  |
| two objects that answer differently, the same key twice, NaN, cut off| the whole reply: unparseable  |
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from evenedit.core.interfaces import Reply
from evenedit.core.records import Question, Status

LONGEST = 50_000
"""Characters: a longer reply is not read, and is kept up to here. Whatever was scored is thus kept whole."""
THOUGHT = "</think>"
"""Ends the thoughts that some open models write before their answer."""


class UnreadableError(Exception):
    """Why a reply cannot be read."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What one call brought."""

    words: str | Reply
    """The model's words; or, where it did not answer to the end, how that counts."""
    model: str = ""
    """What the model calls itself."""
    tokens: tuple[int, int] = (0, 0)
    """In and out, by the provider's own count."""

    def conclude(self, questions: Sequence[Question]) -> Reply:
        """Return the reply to the questions, with its origin."""
        reply = self.words if isinstance(self.words, Reply) else parse(self.words, questions)
        return replace(reply, origin={"model": self.model, "input": self.tokens[0], "output": self.tokens[1]})


def model_name(*parts: Any) -> str:
    """Join the model name and the system fingerprint that a provider reports."""
    return " ".join(storable_text(part)[:200] for part in parts if isinstance(part, str) and part)


@dataclass(frozen=True, slots=True)
class JobState:
    """How far a batch job is."""

    ended: bool
    note: str
    """The provider's word for it, and why it failed where it did."""


def read_lines(text: str | bytes) -> Iterable[dict[str, Any]]:
    """Yield the JSON objects of a batch job's results; skip other lines."""
    for line in text.splitlines():
        with suppress(ValueError):
            answered = json.loads(line)
            if isinstance(answered, dict):
                yield answered


def parse(text: str, questions: Sequence[Question]) -> Reply:
    """Return the values that a reply gives to the questions, or why it cannot be read; keep the raw text."""
    raw = storable_text(text)
    try:
        objects = find_objects(text, [question.id for question in questions])
        answers = [_values(_scores(each), questions) for each in objects]
        values = answers[0]
        if any(other != values for other in answers[1:]):
            raise UnreadableError(f"{len(answers)} answers that differ")
        left_open = all(q.cannot_tell and q.id in _scores(objects[0]) for q in questions)
        if all(value is None for value in values.values()) and not left_open:
            raise UnreadableError("no question is answered")
    except UnreadableError as problem:
        return Reply(Status.UNPARSEABLE, reason=str(problem), raw=raw)
    return Reply(Status.SCORED, values, _confidence(objects[0], questions), raw=raw)


def refused(reason: str, raw: str = "") -> Reply:
    """Return a reply for an explicit refusal, with the provider's words."""
    return Reply(Status.REFUSED, reason=storable_text(reason)[:1000], raw=storable_text(raw))


def cut_off(raw: str) -> Reply:
    """Return a reply for an answer that was cut off; it is not parsed even if it looks complete."""
    return Reply(Status.UNPARSEABLE, reason="the answer was cut off at the limit of tokens", raw=storable_text(raw))


def storable_text(text: str) -> str:
    """Return the reply in a storable form: invalid characters replaced, long texts cut with a note."""
    cut = text if len(text) <= LONGEST else f"{text[:LONGEST]}\n[cut here; {len(text):,} characters in all]"
    return cut.replace("\0", "�").encode("utf-8", "replace").decode("utf-8")


def find_objects(text: str, keys: Sequence[str]) -> list[dict[str, Any]]:
    """Return every outermost JSON object that has one of the keys, directly or under "scores"; at least one."""
    if len(text) > LONGEST:
        raise UnreadableError(f"the reply is too long ({len(text):,} characters)")
    text = text.rpartition(THOUGHT)[2]
    if not text.strip():
        raise UnreadableError("the reply is empty")
    objects = []
    for span in _spans(text):
        try:
            answered = _unwrapped(json.loads(span, object_pairs_hook=_unrepeated, parse_constant=_no_constant), keys)
        except (ValueError, RecursionError, UnreadableError) as error:
            if any(f'"{key}"' in span for key in ("scores", *keys)):  # an answer, if a broken one
                raise UnreadableError(f"broken JSON ({str(error)[:200]})") from None
            continue  # braces in prose
        if answered is not None:
            objects.append(answered)
    if not objects:
        raise UnreadableError("no JSON object with the answers")
    return objects


def evidence_of(raw: str) -> tuple[str, dict[str, str]]:
    """Return the evidence summary and the observations of a reply; empty if there are none."""
    try:
        answer = find_objects(raw, ("evidence_summary", "observations"))[0]
    except UnreadableError:
        return "", {}
    summary, seen = answer.get("evidence_summary"), answer.get("observations")
    texts = {str(k): str(v) for k, v in seen.items() if v not in (None, "")} if isinstance(seen, Mapping) else {}
    return str(summary) if isinstance(summary, str) else "", texts


def _spans(text: str) -> Iterable[str]:
    """Yield the texts between outermost braces, ignoring quoted braces."""
    depth, start, quoted, escaped = 0, 0, False, False
    for at, sign in enumerate(text):
        if escaped:
            escaped = False
        elif quoted:
            escaped = sign == "\\"
            quoted = sign != '"'
        elif sign == "{":
            start = start if depth else at
            depth += 1
        elif depth and sign == '"':
            quoted = True
        elif depth and sign == "}":
            depth -= 1
            if not depth:
                yield text[start : at + 1]
    if depth:
        raise UnreadableError("the JSON is cut off: a brace is not closed")


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) < len(pairs):
        raise UnreadableError("the same key twice")
    return names


def _no_constant(name: str) -> None:
    raise UnreadableError(f"{name} is not JSON")


def _unwrapped(answered: Any, keys: Sequence[str]) -> dict[str, Any] | None:
    """Return the object that holds the answers, which may be nested in another."""
    while isinstance(answered, dict):
        if "scores" in answered or any(key in answered for key in keys):
            return answered
        answered = next(iter(answered.values())) if len(answered) == 1 else None
    return None


def _scores(answered: Mapping[str, Any]) -> Mapping[str, Any]:
    scores = answered.get("scores", answered)
    if not isinstance(scores, Mapping):
        raise UnreadableError(f"scores is {_abbreviate(scores)}, not an object")
    return scores


def _values(scores: Mapping[str, Any], questions: Sequence[Question]) -> dict[str, int | None]:
    stored: dict[str, int | None] = {}
    for question in questions:
        stored |= stored_answer(question, scores.get(question.id))
    return stored


def stored_answer(question: Question, answered: Any) -> dict[str, int | None]:
    """Return an answer of a model as it is stored: a position, of a set one for each option.

    Raise UnreadableError for what is no answer to the question.
    """
    labels, name = question.labels, f"{question.id} is {_abbreviate(answered)}"
    if answered is None:
        return dict.fromkeys(question.columns)
    if question.sided == "set":
        codes = answered if isinstance(answered, list) else [None]
        if any(code not in labels for code in codes) or len(set(codes)) < len(codes):
            raise UnreadableError(f"{name}, not a list of some of {', '.join(labels)}, each at most once")
        return {column: 1 if code in codes else 2 for column, code in zip(question.columns, labels, strict=True)}
    if question.coded:
        if isinstance(answered, str) and answered in labels:
            return {question.id: labels.index(answered) + 1}
        raise UnreadableError(f"{name}, not one of {', '.join(labels)}")
    if type(answered) is not int or not 1 <= answered <= len(labels):  # bool is an int to isinstance
        raise UnreadableError(f"{name}, not a whole number from 1 to {len(labels)}")
    return {question.id: answered}


def _confidence(answered: Mapping[str, Any], questions: Sequence[Question]) -> dict[str, float]:
    """Return the stated confidence per stored answer where it is between 0 and 1."""
    sure = answered.get("confidence")
    if not isinstance(sure, Mapping):
        return {}
    return {column: sure[q.id] for q in questions if _is_share(sure.get(q.id)) for column in q.columns}


def _is_share(answered: Any) -> bool:
    return isinstance(answered, int | float) and not isinstance(answered, bool) and 0 <= answered <= 1


def _abbreviate(answered: Any) -> str:
    """Return a value of the reply, shortened, in plain ASCII."""
    text = "a nested value" if isinstance(answered, dict | list) else json.dumps(answered, default=repr)
    return text if len(text) <= 60 else f"{text[:60]}…"
