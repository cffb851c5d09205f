"""The language that a visitor reads."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import Request

COOKIE = "language"


def language_of(request: Request, offered: Sequence[str]) -> str:
    """Return the language that a visitor chose, or the first offered one that their browser requests."""
    requested = [request.cookies.get(COOKIE, "")]
    for part in request.headers.get("accept-language", "").split(","):
        tag = part.split(";")[0].strip()
        requested += [tag, tag.partition("-")[0].lower()]
    return next((language for language in requested if language in offered), offered[0])
