"""How a SIMULATED provider can be set to behave, by name."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from tests.support.provider.server import (
    SUCCESS,
    Behaviour,
    ProviderAnswer,
    Seen,
    drop,
    from_schema,
    gemini_blocked,
    rate_limit,
    refuses,
    says,
    server_error,
    slow,
)

SLOW = 5.0
"""Seconds a slow answer takes."""
HUGE = 1_000_000
"""Characters of a huge reply."""


def _scores(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Behaviour:
    """An answer whose scores are changed; success where nothing is scored."""

    def answer(seen: Seen) -> ProviderAnswer:
        if not seen.schema or "scores" not in seen.schema["properties"]:
            return SUCCESS(seen)
        whole = from_schema(seen.schema)
        return says(json.dumps({**whole, "scores": change(whole["scores"])}))(seen)

    return answer


def _last(value: Any) -> Behaviour:
    """An answer whose last score is this."""
    return _scores(lambda scores: {**scores, list(scores)[-1]: value})


def _refusal(seen: Seen) -> ProviderAnswer:
    """A content filter's refusal, in the provider's own form."""
    if seen.provider == "gemini":
        return gemini_blocked("PROHIBITED_CONTENT")(seen)
    return refuses("I'm sorry, but I can't help with that.")(seen)


def _cut(seen: Seen) -> ProviderAnswer:
    return says(json.dumps(from_schema(seen.schema))[:-40] if seen.schema else "{")(seen)


MODES: Mapping[str, Behaviour] = {
    "success": SUCCESS,
    "rate-limit": rate_limit(),
    "rate-limit-told": rate_limit(1),
    "server-error": server_error,
    "slow": slow(SLOW),
    "drop": drop,
    "refusal": _refusal,
    "truncated": _cut,
    "prose": says("I see two portraits. The second one looks nice."),
    "strings": _scores(lambda scores: {name: str(value) for name, value in scores.items()}),
    "seven": _last(7),
    "half": _last(2.5),
    "null": _last(None),
    "missing-axis": _scores(lambda scores: dict(list(scores.items())[:-1])),
    "extra-keys": _scores(lambda scores: {**scores, "mood": 9}),
    "huge": lambda seen: says(json.dumps(from_schema(seen.schema or {"type": "string"})) + "x" * HUGE)(seen),
}
"""Behaviours by the name the command line gives them."""


def mixed(mode: str, share: float, seed: int = 0) -> Behaviour:
    """This behaviour in a share of the calls, success in the others."""
    chance, lock = random.Random(seed), Lock()

    def answer(seen: Seen) -> ProviderAnswer:
        with lock:
            hit = chance.random() < share
        return MODES[mode](seen) if hit else SUCCESS(seen)

    return answer
