"""The admin room: sign in, and what staff see and decide.

GET  /admin/login   POST /admin/login (name, password, next)   POST /admin/logout
GET  /admin         what there is to do
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import RedirectResponse, Response

from evenedit.web.errors import Problem
from evenedit.web.guard import COOKIE, door, staff
from evenedit.web.pages import page

Staff = Annotated[str, Depends(staff)]


def room() -> APIRouter:
    """The routes of the admin room."""
    routes = APIRouter(prefix="/admin", tags=["admin"])

    @routes.get("/login", include_in_schema=False)
    def login_page(request: Request, next: str = "/admin") -> Response:
        return page(request, "login.html", next=_inside(next), is_open=door(request).is_open)

    @routes.post("/login", include_in_schema=False)
    def login(
        request: Request,
        name: Annotated[str, Form(max_length=80)],
        password: Annotated[str, Form(max_length=200)],
        next: Annotated[str, Form(max_length=500)] = "/admin",
    ) -> Response:
        address = request.client.host if request.client else ""
        try:
            cookie = door(request).enter(name, password, address)
        except Problem as problem:
            shown = page(
                request,
                "login.html",
                problem.status,
                next=_inside(next),
                name=name,
                problem=str(problem),
                is_open=door(request).is_open,
            )
            shown.headers.update(problem.headers)
            return shown
        answer = RedirectResponse(_inside(next), 303)
        door(request).open_to(answer, cookie)
        return answer

    @routes.post("/logout", include_in_schema=False)
    def logout(request: Request, name: Staff) -> Response:
        request.app.state.log.note(name, "signed out")
        answer = RedirectResponse("/admin/login", 303)
        answer.delete_cookie(COOKIE)
        return answer

    @routes.get("", include_in_schema=False)
    def overview(request: Request, name: Staff) -> Response:
        return page(request, "admin.html", staff=name, log=request.app.state.log.entries())

    return routes


def _inside(path: str) -> str:
    """The path, if it is one of ours; a link must not send staff to another site after signing in."""
    safe = path.startswith("/") and not path.startswith("//") and path.isprintable() and "\\" not in path
    return path if safe else "/admin"
