"""Pages: templates in, HTML out, with the headers every page has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from fastapi.templating import Jinja2Templates

HERE = Path(__file__).parent
_templates = Jinja2Templates(directory=HERE / "templates")


def page(request: Request, template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """Render a template; nothing of it is kept by browsers or proxies."""
    headers = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}
    return _templates.TemplateResponse(request, template, context, status_code=status, headers=headers)
