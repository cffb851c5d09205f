"""Security of every request and response: size limit, origin check, HTTPS and security headers."""

from __future__ import annotations

from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_LIMIT = 64 * 1024
"""Bytes: the largest form or answer is far smaller."""
SAFE = ("GET", "HEAD", "OPTIONS")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
PROBES = ("/health", "/ready")
"""Asked by machines beside this one, by plain HTTP and under any name."""
HSTS = "max-age=31536000"


class SecurityMiddleware:
    """Checks every request and adds the security headers to every response."""

    def __init__(self, app: ASGIApp, production: bool = False, hosts: frozenset[str] | None = None) -> None:
        self.app = app
        self.production = production
        self.hosts = hosts
        self.headers = HEADERS | ({"Strict-Transport-Security": HSTS} if production else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the request, pass it to the app, and add the headers to its response."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        cache = "no-cache" if scope["path"].startswith("/static/") else "no-store"

        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", cache)
            await send(message)

        async def refuse(status: int, kind: str, message: str) -> None:
            await JSONResponse({"error": {"type": kind, "message": message}}, status)(scope, receive, send_secured)

        headers = Headers(scope=scope)
        if self._is_elsewhere(headers) and scope["path"] not in PROBES:
            await refuse(400, "host", "This server does not serve the requested host name.")
        elif self.production and scope["scheme"] != "https" and scope["path"] not in PROBES:
            await refuse(400, "https", "This server is reached by HTTPS only.")
        elif scope["method"] not in SAFE and _is_foreign(headers):
            await refuse(403, "forbidden", "This request came from another site.")
        elif not _length(headers) <= BODY_LIMIT:
            await refuse(413, "too_large", f"At most {BODY_LIMIT} bytes are accepted.")
        else:
            await self.app(scope, _limited(receive), send_secured)

    def _is_elsewhere(self, headers: Headers) -> bool:
        """Return whether a request names another host. Outside production a plain address may be named."""
        if self.hosts is None:
            return False
        name = _host(headers.get("host", ""))
        return name not in self.hosts and (self.production or not _is_address(name))


def _host(header: str) -> str:
    """Return the host of a Host header without its port."""
    return (header[1:].partition("]")[0] if header.startswith("[") else header.partition(":")[0]).lower()


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _limited(receive: Receive) -> Receive:
    """Return a receive function that ends a body without a stated length where it is too large."""
    size = 0

    async def receive_limited() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > BODY_LIMIT:
            raise HTTPException(413)
        return message

    return receive_limited


def _length(headers: Headers) -> float:
    stated = headers.get("content-length", "0")
    return int(stated) if stated.isascii() and stated.isdigit() else float("inf")


def _is_foreign(headers: Headers) -> bool:
    """Return whether the browser's headers state that another site made the request; programs send none."""
    return ("origin" in headers or "sec-fetch-site" in headers) and not is_own(headers)


def is_own(headers: Headers) -> bool:
    """Return whether the browser's headers state that a page of this server made the request."""
    if "sec-fetch-site" in headers:
        return headers["sec-fetch-site"] in ("same-origin", "none")
    return headers.get("origin", "").partition("://")[2] == headers.get("host")
