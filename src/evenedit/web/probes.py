"""What machines ask: whether the server is alive, and whether it can do its work.

GET /health   200 while the process answers
GET /ready    200 if the databases can be written and the disk has room; 503 with what cannot
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from evenedit.core.log import log

LEAST_FREE = 100_000_000
"""Bytes of disk below which no participant should begin."""
CACHE_SECONDS = 1.0
"""Seconds for which an answer is kept, so that asking often costs nothing."""


class Readiness:
    """Whether the server can do its work, found out by doing it."""

    def __init__(self, request: Request) -> None:
        self._state = request.app.state
        self._lock = Lock()
        self._problems: dict[str, str] = {}
        self._at = -CACHE_SECONDS

    def problems(self) -> dict[str, str]:
        """Return the problems by part; empty if all parts work."""
        with self._lock:
            if time.monotonic() - self._at > CACHE_SECONDS:
                self._problems = self._look()
                self._at = time.monotonic()
            return self._problems

    def _look(self) -> dict[str, str]:
        problems = {}
        store = self._state.study.store
        tries: dict[str, Callable[[], None]] = {
            "folder": lambda: _write_and_delete(store.folder),
            "study": store.try_writing,
        }
        if service := getattr(self._state, "survey", None):
            tries["survey"] = service.database.try_writing
        for name, attempt in tries.items():
            try:
                attempt()
            except Exception as error:  # whatever it is, the server cannot work
                log.warning(f"/ready: {name} cannot be written: {error}")
                problems[name] = "cannot be written"
        if shutil.disk_usage(store.folder).free < LEAST_FREE:
            problems["disk"] = "less than 100 MB are free"
        return problems


def _write_and_delete(folder: Path) -> None:
    """Put a few bytes on the disk."""
    with TemporaryFile(dir=folder) as file:
        file.write(b"ready")
        file.flush()
        os.fsync(file.fileno())


def router() -> APIRouter:
    """Return the routes, open to anybody; they contain no personal data."""
    routes = APIRouter(include_in_schema=False)
    routes.get("/health")(health)
    routes.get("/ready")(ready)
    return routes


def health() -> dict[str, str]:
    """Say that the process answers."""
    return {"status": "alive"}


def ready(request: Request) -> Response:
    """Say whether the server can do its work."""
    state = request.app.state
    if not hasattr(state, "readiness"):
        state.readiness = Readiness(request)
    problems = state.readiness.problems()
    if problems:
        return JSONResponse({"status": "not ready", "problems": problems}, 503)
    return JSONResponse({"status": "ready"})
