"""The report in the web app: the same pages as on disk, whose numbers lead to the gallery. For staff only.

GET /report                    the findings
GET /report/appendix.html      tables, figures, methods
GET /report/findings/{n}.html  one finding
GET /report/files/{path}       results.json, and a table, figure or text as a file
GET /report/state              which ratings the report is made from, and whether a newer one is being made
"""

from __future__ import annotations

import re
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response

from evenedit.reporting.cache import LiveReport
from evenedit.web.auth import staff
from evenedit.web.errors import HttpProblem
from evenedit.web.pages import page, rendered

HEADER = "<!-- app header -->"
"""Where a page of the report leaves room for the app's navigation."""
FILES = re.compile(r"(tables/\w+\.(csv|tex)|figures/\w+\.(svg|pdf|png)|[\w-]+\.(md|tex|bib)|[\w-]+\.json)")
"""Files of a report that the app serves."""


def router() -> APIRouter:
    """Return the routes of the report, for staff only."""
    routes = APIRouter(prefix="/report", dependencies=[Depends(staff)], include_in_schema=False)
    routes.get("", response_class=HTMLResponse)(front)
    routes.get("/appendix.html", response_class=HTMLResponse)(appendix)
    routes.get("/findings/{number}.html", response_class=HTMLResponse)(finding)
    routes.get("/files/{path:path}")(file)
    routes.get("/state")(state)
    return routes


def front(request: Request) -> Response:
    """Show the findings, or that the first report is being made."""
    return _show(request, "report.html")


def appendix(request: Request) -> Response:
    """Show the appendix."""
    return _show(request, "appendix.html")


def finding(request: Request, number: int) -> Response:
    """Show one finding."""
    return _show(request, f"findings/{number}.html")


def file(request: Request, path: str) -> Response:
    """Return a file of the report."""
    target = _live(request).file(path)
    if not FILES.fullmatch(path) or not target.is_file():
        raise HttpProblem(404, "The report has no such file.")
    return FileResponse(target, filename=target.name, headers={"Cache-Control": "no-store"})


def state(request: Request) -> Response:
    """Return how the report stands."""
    return JSONResponse(_state(request), headers={"Cache-Control": "no-store"})


def _show(request: Request, path: str) -> Response:
    live = _live(request)
    now = _state(request)
    text = live.page(path)
    if text is None:
        if path != "report.html" and live.page("report.html") is not None:
            raise HttpProblem(404, "The report has no such page.")
        return page(request, "report/making.html", now=now)
    header = rendered(request, "report/header.html", now=now)
    return HTMLResponse(text.replace(HEADER, header, 1), headers={"Cache-Control": "no-store"})


def _live(request: Request) -> LiveReport:
    live: LiveReport = request.app.state.report
    return live


def _state(request: Request) -> dict[str, Any]:
    now = _live(request).state()
    return {"digest": now.digest, "making": now.making, "problem": now.problem}
