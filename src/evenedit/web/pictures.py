"""The study's pictures by content hash, for the pages of staff. The content of an address never changes.

GET /pictures/{sha256}          the stored PNG
GET /pictures/{sha256}/{width}  scaled down, WebP; widths as in `thumbnails.WIDTHS`
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from evenedit.cases.thumbnails import WIDTHS, Thumbnails
from evenedit.core.errors import EvenEditError
from evenedit.storage.store import Store
from evenedit.web.auth import staff
from evenedit.web.errors import HttpProblem

FOREVER = "private, max-age=31536000, immutable"


def router() -> APIRouter:
    """Return the routes, for staff only."""
    routes = APIRouter(prefix="/pictures", dependencies=[Depends(staff)], include_in_schema=False)
    routes.get("/{sha256}")(full)
    routes.get("/{sha256}/{width}")(small)
    return routes


def _checked(sha256: str) -> str:
    """Return the hash in a picture's address."""
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise HttpProblem(404, "A picture's address is its sha256 in hex.")
    return sha256


Sha = Annotated[str, Depends(_checked)]


def full(request: Request, sha256: Sha) -> Response:
    """Return the picture as it is stored."""
    store: Store = request.app.state.study.store
    try:
        return _cacheable(request, sha256, "image/png", partial(store.images.read, sha256))
    except FileNotFoundError:
        raise HttpProblem(404, "There is no picture with this hash.") from None


def small(request: Request, sha256: Sha, width: str) -> Response:
    """Return the picture scaled down."""
    store: Store = request.app.state.study.store
    if width not in map(str, WIDTHS):
        raise HttpProblem(404, f"Pictures are available in these widths: {', '.join(map(str, WIDTHS))}.")
    make = partial(Thumbnails(store.images, store.folder).get, sha256, int(width))
    try:
        return _cacheable(request, f"{sha256}-{width}", "image/webp", make)
    except EvenEditError:
        raise HttpProblem(404, "There is no intact picture with this hash. Try: evenedit doctor") from None


def _cacheable(request: Request, tag: str, kind: str, read: Callable[[], bytes]) -> Response:
    """Return a picture, unless the browser has it; the content of a hash never changes."""
    headers = {"ETag": f'"{tag}"', "Cache-Control": FOREVER}
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(read(), media_type=kind, headers=headers)
