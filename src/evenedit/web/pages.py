"""Render the templates of the web app."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from fastapi.templating import Jinja2Templates

from evenedit.web.roles import home_of, may_open

FOLDER = Path(__file__).parent
_templates = Jinja2Templates(directory=FOLDER / "templates")
_templates.env.filters["share"] = lambda value: "–" if value is None else f"{value:.0%}"
_templates.env.filters["number"] = lambda value: "–" if value is None else f"{value:.2f}"
_templates.env.filters["day"] = lambda value: datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M")


def page(request: Request, template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """Render a template as a response that browsers and proxies do not store."""
    context |= _always(request)
    headers = {"Cache-Control": "no-store"}
    return _templates.TemplateResponse(request, template, context, status_code=status, headers=headers)


def rendered(request: Request, template: str, **context: Any) -> str:
    """Render a template that is a part of a page."""
    return _templates.get_template(template).render(request=request, **context | _always(request))


def _always(request: Request) -> dict[str, Any]:
    """Return the variables of all templates."""
    role = getattr(request.state, "role", None)
    visible = {path: title for path, title in request.app.state.navigation.items() if role and may_open(role, path)}
    simulated = request.app.state.simulated
    who = {"staff": getattr(request.state, "staff", ""), "role": role}
    return {"navigation": visible, "home": home_of(role, visible), "simulated": simulated, **who}
