"""The admin room: sign in, and what staff see and decide.

Everybody is known by pseudonym here:

    GET  /admin/login       POST /admin/login (name, password, next)      POST /admin/logout
    GET  /admin             progress by task, how visits ended, what happened
    GET  /admin/people      every participant's care under the study's rules
    POST /admin/release     pseudonym: open a seat again
    GET  /admin/withdraw    POST /admin/withdraw (pseudonym, sure=yes): erase somebody who asked for it
    GET  /admin/rejections  POST /admin/rejections (pseudonym, decision=approve|return|reject, message)
    GET  /admin/export.zip  every table as CSV and Parquet
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from evenedit.core.errors import EvenEditError
from evenedit.survey import export, prolific
from evenedit.survey.admin import SurveyAdmin
from evenedit.web.auth import COOKIE, door, staff
from evenedit.web.errors import LONGEST_WISH, HttpProblem
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
        next: Annotated[str, Form(max_length=LONGEST_WISH)] = "/admin",
    ) -> Response:
        address = request.client.host if request.client else ""
        try:
            cookie = door(request).enter(name, password, address)
        except HttpProblem as problem:
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
        file = request.app.state.study.file
        return page(
            request,
            "admin/overview.html",
            staff=name,
            title=file.sections.study.title,
            planned=file.sections.survey is not None,
            tasks=office.progress() if office else None,
            endings=office.endings() if office else {},
            log=_log(request, office),
        )

    _people(routes)
    _decisions(routes)
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
            raise HttpProblem(404, "Nobody is called that here.")
        return page(request, "admin/withdraw.html", staff=name, pseudonym=pseudonym)

    @routes.post("/withdraw")
    def withdraw(
        request: Request, name: Staff, pseudonym: Pseudonym, sure: Annotated[Literal["yes"], Form()]
    ) -> Response:
        with _told():
            _needed(request).withdraw(pseudonym, name)
        return _back("A participant was erased, and the seat is open again")


def _decisions(routes: APIRouter) -> None:
    @routes.get("/export.zip", response_class=Response, responses={200: {"content": {"application/zip": {}}}})
    def export_tables(request: Request, name: Staff) -> Response:
        _needed(request).note(name, "exported the ratings")
        study = request.app.state.study
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for file, content in export.files(study.file, study.store, request.app.state.desk.database).items():
                archive.writestr(file, content)
        headers = {"Content-Disposition": 'attachment; filename="ratings.zip"'}
        return Response(buffer.getvalue(), media_type="application/zip", headers=headers)

    @routes.get("/rejections")
    def rejections(request: Request, name: Staff) -> Response:
        return _queue(request, name)

    @routes.post("/rejections")
    def decide(
        request: Request,
        name: Staff,
        pseudonym: Pseudonym,
        decision: Annotated[Literal["approve", "return", "reject"], Form()],
        message: Annotated[str, Form(max_length=2000)] = "",
    ) -> Response:
        try:
            _rejections(request).decide(pseudonym, decision, name, message.strip())
        except EvenEditError as error:
            return _queue(request, name, 409, problem=str(error), message=message, about=pseudonym)
        return RedirectResponse("/admin/rejections", 303)


def _queue(request: Request, name: str, status: int = 200, **more: str) -> Response:
    waiting = _rejections(request).waiting()
    shortest = prolific.SHORTEST
    return page(request, "admin/rejections.html", status, staff=name, waiting=waiting, shortest=shortest, **more)


def _rejections(request: Request) -> prolific.Rejections:
    """The queue; without a token of the platform it can be looked at, and decisions say what is missing."""
    _needed(request)
    desk = request.app.state.desk
    platform = desk.section.platform
    api = prolific.ProlificAPI(platform.api) if os.environ.get(prolific.TOKEN) else None
    return prolific.Rejections(desk, api, next(iter(platform.study_ids), ""))


def _office(request: Request) -> SurveyAdmin | None:
    desk = getattr(request.app.state, "desk", None)
    return SurveyAdmin(desk) if desk else None


def _needed(request: Request) -> SurveyAdmin:
    office = _office(request)
    if office is None:
        raise HttpProblem(404, "This study has no survey.")
    return office


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except EvenEditError as error:
        raise HttpProblem(404, str(error)) from None


def _back(told: str) -> Response:
    return RedirectResponse(f"/admin/people?told={quote(told)}", 303)


def _log(request: Request, office: SurveyAdmin | None, most: int = 40) -> list[dict[str, str]]:
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
