"""The language that a visitor reads."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import Request

COOKIE = "language"


def language_of(request: Request, offered: Sequence[str]) -> str:
    """The language a visitor chose, else the first one their browser asks for that is offered."""
    asked = [request.cookies.get(COOKIE, "")]
    for part in request.headers.get("accept-language", "").split(","):
        tag = part.split(";")[0].strip()
        asked += [tag, tag.partition("-")[0].lower()]
    return next((language for language in asked if language in offered), offered[0])
