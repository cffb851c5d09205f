"""What participants read, in their language."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import Request

from evenedit.core.records import Question

LANGUAGES = ("en", "ko")
COOKIE = "language"


@cache
def words(language: str) -> dict[str, Any]:
    """Everything a page says, by its part."""
    return tomllib.loads(files("evenedit.web").joinpath("words", f"{language}.toml").read_text("utf-8"))


def language_of(request: Request, offered: Sequence[str]) -> str:
    """The language somebody chose, else the first their browser asks for that we have."""
    asked = [request.cookies.get(COOKIE, "")]
    asked += [part.split(";")[0].strip()[:2].lower() for part in request.headers.get("accept-language", "").split(",")]
    return next((language for language in asked if language in offered), offered[0])


def wording(question: Question, language: str) -> Mapping[str, Any]:
    """How a question is shown: the rubric's words, or their translation."""
    own = {"title": question.title, "text": question.text, "labels": list(question.labels)}
    shown: Mapping[str, Any] = words(language)["questions"].get(question.id, own)
    return shown
