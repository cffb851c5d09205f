"""The run in the web app: how far it is, what failed and why, what it cost, and the rates so far. For staff only.

GET /run        the page
GET /run/state  its changing part, asked for again every few seconds
"""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, Response

from evenedit.operations.run_view import RunView
from evenedit.web.auth import staff
from evenedit.web.pages import page


def router() -> APIRouter:
    """Return the routes of the run, for staff only."""
    routes = APIRouter(prefix="/run", dependencies=[Depends(staff)], include_in_schema=False)
    routes.get("", response_class=HTMLResponse)(run_page)
    routes.get("/state", response_class=HTMLResponse)(state)
    return routes


def run_page(request: Request) -> Response:
    """Show the run."""
    return page(request, "run/run.html", now=_live(request).now())


def state(request: Request) -> Response:
    """Return the part of the page that changes."""
    return page(request, "run/state.html", now=_live(request).now())


def _live(request: Request) -> RunView:
    live: RunView = request.app.state.run
    return live
