"""The admin room: sign in, and what staff see and decide.

GET  /admin/login   POST /admin/login (name, password, next)   POST /admin/logout
GET  /admin         what there is to do
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from evenedit.records import UserError
from evenedit.survey.office import Office
from evenedit.web.errors import Problem
from evenedit.web.guard import COOKIE, door, staff
from evenedit.web.pages import page

Staff = Annotated[str, Depends(staff)]
Pseudonym = Annotated[str, Form(max_length=100)]


def room() -> APIRouter:
    """The routes of the admin room."""
    routes = APIRouter(prefix="/admin", tags=["staff"], default_response_class=HTMLResponse)

    @routes.get("/login")
    def login_page(request: Request, next: str = "/admin") -> Response:
        return page(request, "login.html", next=_inside(next), is_open=door(request).is_open)

    @routes.post("/login")
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

    @routes.post("/logout")
    def logout(request: Request, name: Staff) -> Response:
        request.app.state.log.note(name, "signed out")
        answer = RedirectResponse("/admin/login", 303)
        answer.delete_cookie(COOKIE)
        return answer

    @routes.get("")
    def overview(request: Request, name: Staff) -> Response:
        office = _office(request)
        return page(
            request,
            "admin/overview.html",
            staff=name,
            title=request.app.state.pipeline.study.file.study.title,
            tasks=office.progress() if office else None,
            endings=office.endings() if office else {},
            log=_log(request, office),
        )

    _people(routes)
    return routes


def _people(routes: APIRouter) -> None:
    @routes.get("/people")
    def people(request: Request, name: Staff, told: str = "") -> Response:
        office = _needed(request)
        rules = request.app.state.desk.section.exclude
        return page(request, "admin/people.html", staff=name, people=office.people(), rules=rules, told=told[:200])

    @routes.post("/release")
    def release(request: Request, name: Staff, pseudonym: Pseudonym) -> Response:
        with _told():
            had = _needed(request).release(pseudonym, name)
        return _back(f"{pseudonym}: " + ("the seat is open again" if had else "there was no seat to release"))

    @routes.get("/withdraw")
    def ask_withdrawal(request: Request, name: Staff, pseudonym: str = "") -> Response:
        known = {person.pseudonym for person in _needed(request).people()}
        if pseudonym not in known:
            raise Problem(404, "Nobody is called that here.")
        return page(request, "admin/withdraw.html", staff=name, pseudonym=pseudonym)

    @routes.post("/withdraw")
    def withdraw(
        request: Request, name: Staff, pseudonym: Pseudonym, sure: Annotated[Literal["yes"], Form()]
    ) -> Response:
        with _told():
            _needed(request).withdraw(pseudonym, name)
        return _back("A participant was erased, and the seat is open again")


def _office(request: Request) -> Office | None:
    desk = getattr(request.app.state, "desk", None)
    return Office(desk) if desk else None


def _needed(request: Request) -> Office:
    office = _office(request)
    if office is None:
        raise Problem(404, "This study has no survey.")
    return office


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except UserError as error:
        raise Problem(404, str(error)) from None


def _back(told: str) -> Response:
    return RedirectResponse(f"/admin/people?told={quote(told)}", 303)


def _log(request: Request, office: Office | None, most: int = 40) -> list[dict[str, str]]:
    """What staff did, from the app's log and the survey's, newest first."""
    rows = [(entry["time"][:19], entry["name"], entry["action"]) for entry in request.app.state.log.entries(most)]
    for entry in office.log(most) if office else []:
        at = datetime.fromtimestamp(entry["at"], UTC).isoformat()[:19]
        about = entry["detail"].get("participant", "")
        rows.append((at, entry["actor"], f"{entry['action']} {about}".strip()))
    return [
        {"time": time.replace("T", " "), "name": who, "action": what}
        for time, who, what in sorted(rows, reverse=True)[:most]
    ]


def _inside(path: str) -> str:
    """The path, if it is one of ours; a link must not send staff to another site after signing in."""
    safe = path.startswith("/") and not path.startswith("//") and path.isprintable() and "\\" not in path
    return path if safe else "/admin"
