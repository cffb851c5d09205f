"""Pages: templates in, HTML out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from fastapi.templating import Jinja2Templates

HERE = Path(__file__).parent
ROOMS = {"/admin": "Overview", "/curation": "Curation", "/gallery": "Gallery", "/review": "Review"}
"""Where staff can go, where the app has such a room."""
_templates = Jinja2Templates(directory=HERE / "templates")


def page(request: Request, template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """Render a template; nothing of it is kept by browsers or proxies."""
    context["rooms"] = lambda: _open_rooms(request)
    headers = {"Cache-Control": "no-store"}
    return _templates.TemplateResponse(request, template, context, status_code=status, headers=headers)


def _open_rooms(request: Request) -> list[tuple[str, str]]:
    paths = {getattr(route, "path", "") for route in request.app.routes}
    return [(path, title) for path, title in ROOMS.items() if any(p == path or p.startswith(path + "/") for p in paths)]
