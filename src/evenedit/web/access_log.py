"""The access log: a line of JSON for each request, without anything that tells who made it.

Addresses, queries, cookies and the ids in paths are left out: a link from a platform carries a person's id.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenedit.web.roles import PAGES

MODE = 0o640
OWN_PATHS = frozenset({*PAGES, "/survey", "/static"})
"""The parts of the app by which a path without a route is told."""


def open_log(where: str) -> IO[str]:
    """Open the stream to write to: a file to append to, or the standard output for "-"."""
    if where == "-":
        return sys.stdout
    path = Path(where)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(MODE)
    return path.open("a", encoding="utf-8", buffering=1)


class AccessLogMiddleware:
    """Writes a line when a response is complete."""

    def __init__(self, app: ASGIApp, stream: IO[str]) -> None:
        self.app = app
        self.stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and note how it was answered."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, size = time.perf_counter(), 500, 0

        async def counted(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] == "http.response.body":
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, counted)
        finally:
            line = {
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "method": scope["method"],
                "route": _route(scope),
                "status": status,
                "ms": round((time.perf_counter() - began) * 1000, 1),
                "bytes": size,
            }
            self.stream.write(json.dumps(line) + "\n")


def _route(scope: Scope) -> str:
    """Return the route's path with the names of its variables; for other paths only the part of the app.

    A path that is none of ours is not told: it may hold anything.
    """
    if known := getattr(scope.get("route"), "path", None):
        return str(known)
    first = "/" + scope["path"].split("/")[1]
    return first if first in OWN_PATHS else "other"
