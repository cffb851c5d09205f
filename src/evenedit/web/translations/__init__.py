"""The texts that participants read, in their language."""

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
def texts(language: str) -> dict[str, Any]:
    """All texts in a language, by page."""
    return tomllib.loads(files(__package__).joinpath(f"{language}.toml").read_text("utf-8"))


def language_of(request: Request, offered: Sequence[str]) -> str:
    """The language a visitor chose, else the first one their browser asks for that is offered."""
    asked = [request.cookies.get(COOKIE, "")]
    asked += [part.split(";")[0].strip()[:2].lower() for part in request.headers.get("accept-language", "").split(",")]
    return next((language for language in asked if language in offered), offered[0])


def wording(question: Question, language: str) -> Mapping[str, Any]:
    """The wording of a question: the rubric's own, or its translation."""
    own = {"title": question.title, "text": question.text, "labels": list(question.labels)}
    shown: Mapping[str, Any] = texts(language)["questions"].get(question.id, own)
    return shown
