"""The study's pictures by content hash, for the pages of staff. The content of an address never changes.

GET /pictures/{sha256}          the stored PNG
GET /pictures/{sha256}/{width}  scaled down, WebP; widths as in `thumbnails.WIDTHS`
"""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response

from evenedit.cases.thumbnails import WIDTHS, Thumbnails
from evenedit.core.errors import EvenEditError
from evenedit.storage.store import Store
from evenedit.web.auth import staff
from evenedit.web.errors import HttpProblem

FOREVER = "private, max-age=31536000, immutable"

Sha = Annotated[str, Path(description="sha256 of a stored picture, in hex")]


def router() -> APIRouter:
    """Return the routes, for staff only."""
    routes = APIRouter(prefix="/pictures", dependencies=[Depends(staff)], include_in_schema=False)
    routes.get("/{sha256}")(full)
    routes.get("/{sha256}/{width}")(small)
    return routes


def full(request: Request, sha256: Sha) -> Response:
    """Return the picture as it is stored."""
    store = _checked(request, sha256)
    if _is_known(request, sha256):
        return _unchanged(sha256)
    try:
        return _cacheable(store.images.read(sha256), "image/png", sha256)
    except FileNotFoundError:
        raise HttpProblem(404, "There is no picture with this hash.") from None


def small(request: Request, sha256: Sha, width: str) -> Response:
    """Return the picture scaled down."""
    store = _checked(request, sha256)
    if width not in map(str, WIDTHS):
        raise HttpProblem(404, f"Pictures are available in these widths: {', '.join(map(str, WIDTHS))}.")
    tag = f"{sha256}-{width}"
    if _is_known(request, tag):
        return _unchanged(tag)
    try:
        return _cacheable(Thumbnails(store.images, store.folder).get(sha256, int(width)), "image/webp", tag)
    except EvenEditError:
        raise HttpProblem(404, "There is no intact picture with this hash. Try: evenedit doctor") from None


def _checked(request: Request, sha256: str) -> Store:
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise HttpProblem(404, "A picture's address is its sha256 in hex.")
    store: Store = request.app.state.study.store
    return store


def _is_known(request: Request, tag: str) -> bool:
    """Return whether the browser has the picture; the content of a hash never changes."""
    return f'"{tag}"' in request.headers.get("if-none-match", "")


def _unchanged(tag: str) -> Response:
    return Response(status_code=304, headers={"ETag": f'"{tag}"', "Cache-Control": FOREVER})


def _cacheable(content: bytes, kind: str, tag: str) -> Response:
    return Response(content, media_type=kind, headers={"ETag": f'"{tag}"', "Cache-Control": FOREVER})
