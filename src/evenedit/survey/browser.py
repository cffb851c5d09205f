"""The browser of a simulated participant: one connection, cookies and redirects, and nothing to draw."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode, urlsplit

from evenedit.core.errors import EvenEditError

SECONDS = 60
"""How long an answer of the server is waited for."""


@dataclass(frozen=True, slots=True)
class Page:
    """What the server answered, after its redirects."""

    status: int
    path: str
    content: bytes


class Browser:
    """A visitor of one server. Pages are named by path, with or without the server's address before it."""

    def __init__(self, base: str) -> None:
        address = urlsplit(base)
        self._connection = HTTPConnection(address.hostname or "", address.port, timeout=SECONDS)
        self._cookies: dict[str, str] = {}

    def close(self) -> None:
        """Close the connection; the next request opens another, as the same visitor."""
        self._connection.close()

    def open(self, path: str) -> Page:
        """Open a page."""
        return self._checked(self._ask("GET", path))

    def send_form(self, path: str, fields: Mapping[str, str] | None = None, *, conflict: bool = False) -> Page:
        """Send a form; with `conflict`, being told of one is no error."""
        kind = "application/x-www-form-urlencoded"
        page = self._ask("POST", path, urlencode(fields or {}).encode(), kind)
        return page if conflict and page.status == 409 else self._checked(page)

    def send_json(self, path: str, body: Mapping[str, Any]) -> Page:
        """Send what a page's script would send."""
        return self._checked(self._ask("POST", path, json.dumps(body).encode(), "application/json"))

    def _ask(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> Page:
        url = urlsplit(path)
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self._cookies.items())}
        if kind:
            headers["Content-Type"] = kind
        self._connection.request(method, f"{url.path}?{url.query}".rstrip("?"), body, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        for cookie in answer.headers.get_all("Set-Cookie", ()):
            self._cookies |= {name: morsel.value for name, morsel in SimpleCookie(cookie).items()}
        if answer.status == 303:
            return self._ask("GET", str(answer.headers["Location"]))
        return Page(answer.status, url.path, content)

    def _checked(self, page: Page) -> Page:
        if page.status >= 400:
            raise EvenEditError(f"{page.path}: {page.status} {page.content[:200].decode(errors='replace')}")
        return page
