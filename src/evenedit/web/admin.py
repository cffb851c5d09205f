"""The admin pages: signing in, progress, participants and decisions.

Everybody is known by pseudonym here:

    GET  /admin/login       POST /admin/login (name, password, next)      POST /admin/logout
    GET  /admin/home        on to where the role's work is; said where the study has none of it
    GET  /admin             progress by task, how visits ended, the latest activity
    GET  /admin/people      every participant's data quality under the study's rules
    GET  /admin/release     POST /admin/release (pseudonym, sure=yes): free a slot
    GET  /admin/withdraw    POST /admin/withdraw (pseudonym, sure=yes): erase somebody who asked for it
    POST /admin/previews/delete  pseudonym: delete a preview
    GET  /admin/rejections  POST /admin/rejections (pseudonym, decision=approve|return|reject, message)
    GET  /admin/consent     what participants agreed to, by version; translations that no speaker has checked; requests
                            of pictured people
    POST /admin/removals    ident, note: what was done about a request
    GET  /admin/export.zip  every table as CSV and Parquet
"""

from __future__ import annotations

import io
import os
import zipfile
from datetime import UTC, datetime
from typing import Annotated, Literal
from urllib.parse import quote, urlsplit

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from evenedit.core.errors import EvenEditError
from evenedit.survey import export, previews, prolific, removals
from evenedit.survey.admin import ParticipantStatus, SurveyAdmin
from evenedit.survey.consent import missing, versions
from evenedit.survey.sample import stale
from evenedit.survey.visits import VisitEnding
from evenedit.web.auth import COOKIE, Staff, authentication
from evenedit.web.errors import LONGEST_PATH, HttpProblem, errors_as
from evenedit.web.pages import page
from evenedit.web.roles import IDLE, home_of, may_open
from evenedit.web.throttle import address_of

Pseudonym = Annotated[str, Form(max_length=100)]


def router() -> APIRouter:
    """Return the routes of the admin pages."""
    routes = APIRouter(prefix="/admin", tags=["staff"], default_response_class=HTMLResponse)

    @routes.get("/login")
    def login_page(request: Request, next: str = "/admin") -> Response:
        return page(request, "login.html", next=_inside(next), has_accounts=authentication(request).has_accounts)

    @routes.post("/login")
    def login(
        request: Request,
        name: Annotated[str, Form(max_length=80)],
        password: Annotated[str, Form(max_length=200)],
        next: Annotated[str, Form(max_length=LONGEST_PATH)] = "/admin",
    ) -> Response:
        try:
            cookie, role = authentication(request).sign_in(name, password, address_of(request))
        except HttpProblem as problem:
            login_form = page(
                request,
                "login.html",
                problem.status_code,
                next=_inside(next),
                name=name,
                problem=str(problem),
                has_accounts=authentication(request).has_accounts,
            )
            login_form.headers.update(problem.headers or {})
            return login_form
        wanted = _inside(next)
        open_to_them = may_open(role, urlsplit(wanted).path)
        answer = RedirectResponse(wanted if open_to_them else home_of(role, request.app.state.navigation), 303)
        authentication(request).set_cookie(answer, cookie)
        return answer

    @routes.post("/logout")
    def logout(request: Request, name: Staff) -> Response:
        authentication(request).sign_out(request.cookies.get(COOKIE, ""))
        request.app.state.log.note(name, "signed out")
        answer = RedirectResponse("/admin/login", 303)
        answer.delete_cookie(COOKIE)
        return answer

    @routes.get("/home")
    def home(request: Request, name: Staff) -> Response:
        target = home_of(request.state.role, request.app.state.navigation)
        return page(request, "admin/home.html") if target == IDLE else RedirectResponse(target, 303)

    @routes.get("")
    def overview(request: Request, name: Staff) -> Response:
        admin = _admin(request)
        file = request.app.state.study.file
        return page(
            request,
            "admin/overview.html",
            title=file.sections.study.title,
            planned=file.sections.survey is not None,
            tasks=admin.progress() if admin else None,
            endings=_endings(admin) if admin else {},
            previews=_preview_links(request) if admin else {},
            stale=_stale(request) if admin else [],
            log=_log(request, admin),
        )

    _people(routes)
    _decisions(routes)
    _ethics(routes)
    return routes


def _people(routes: APIRouter) -> None:
    @routes.get("/people")
    def people(request: Request, name: Staff, message: str = "") -> Response:
        admin = _needed(request)
        rules = request.app.state.survey.section.exclude
        return page(
            request,
            "admin/people.html",
            people=admin.people(),
            previews=admin.previews(),
            places=previews.PLACES,
            rules=rules,
            message=message[:200],
        )

    @routes.get("/release")
    def ask_release(request: Request, name: Staff, pseudonym: str = "") -> Response:
        return page(request, "admin/release.html", person=_person(request, pseudonym))

    @routes.post("/release")
    def release(
        request: Request, name: Staff, pseudonym: Pseudonym, sure: Annotated[Literal["yes"], Form()]
    ) -> Response:
        with errors_as(404):
            had = _needed(request).release(pseudonym, name)
        return _back(f"{pseudonym}: " + ("the slot is free again" if had else "there was no slot to free"))

    @routes.get("/withdraw")
    def ask_withdrawal(request: Request, name: Staff, pseudonym: str = "") -> Response:
        person = _person(request, pseudonym)
        return page(request, "admin/withdraw.html", pseudonym=person.pseudonym)

    @routes.post("/withdraw")
    def withdraw(
        request: Request, name: Staff, pseudonym: Pseudonym, sure: Annotated[Literal["yes"], Form()]
    ) -> Response:
        with errors_as(404):
            _needed(request).withdraw(pseudonym, name)
        return _back("The participant was erased, and the slot is free again")

    @routes.post("/previews/delete")
    def delete_preview(request: Request, name: Staff, pseudonym: Pseudonym) -> Response:
        admin = _needed(request)
        if pseudonym not in {preview.pseudonym for preview in admin.previews()}:
            raise HttpProblem(404, "There is no preview with this name.")
        admin.withdraw(pseudonym, name)
        return _back("The preview was deleted")


def _decisions(routes: APIRouter) -> None:
    @routes.get("/export.zip", response_class=Response, responses={200: {"content": {"application/zip": {}}}})
    def export_tables(request: Request, name: Staff) -> Response:
        _needed(request).note(name, "exported the ratings")
        study = request.app.state.study
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for file, content in export.files(study.file, study.store, request.app.state.survey.database).items():
                archive.writestr(file, content)
        headers = {"Content-Disposition": 'attachment; filename="ratings.zip"'}
        return Response(buffer.getvalue(), media_type="application/zip", headers=headers)

    @routes.get("/rejections")
    def rejections(request: Request, name: Staff) -> Response:
        return _queue(request)

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
            return _queue(request, 409, problem=str(error), message=message, about=pseudonym)
        return RedirectResponse("/admin/rejections", 303)


def _ethics(routes: APIRouter) -> None:
    """Return the versions of the consent page, and requests of pictured people."""

    @routes.get("/consent")
    def consent(request: Request, name: Staff) -> Response:
        database = _needed(request).database
        return page(
            request,
            "admin/consent.html",
            lacking=missing(request.app.state.survey.section),
            versions=versions(database),
            removals=removals.requests(database),
            unchecked=request.app.state.languages.unchecked(),
        )

    @routes.post("/removals")
    def settle(
        request: Request,
        name: Staff,
        ident: Annotated[int, Form(ge=1, le=2**31)],
        note: Annotated[str, Form(min_length=1, max_length=removals.LONGEST)],
    ) -> Response:
        admin = _needed(request)
        with errors_as(404):
            removals.settle(admin.database, ident, name, note, request.app.state.survey.clock())
        admin.note(name, "settled a request for removal", {"request": ident})
        return RedirectResponse("/admin/consent", 303)


def _queue(request: Request, status: int = 200, **more: str) -> Response:
    waiting = _rejections(request).waiting()
    shortest = prolific.SHORTEST
    return page(request, "admin/rejections.html", status, waiting=waiting, shortest=shortest, **more)


def _rejections(request: Request) -> prolific.Rejections:
    """Show the queue; without an API token it is read-only, and a decision says what is missing."""
    _needed(request)
    service = request.app.state.survey
    platform = service.section.platform
    api = prolific.ProlificAPI(platform.api) if os.environ.get(prolific.TOKEN) else None
    return prolific.Rejections(service, api, next(iter(platform.study_ids), ""))


def _admin(request: Request) -> SurveyAdmin | None:
    service = getattr(request.app.state, "survey", None)
    return SurveyAdmin(service) if service else None


def _needed(request: Request) -> SurveyAdmin:
    admin = _admin(request)
    if admin is None:
        raise HttpProblem(404, "This study has no survey.")
    return admin


def _person(request: Request, pseudonym: str) -> ParticipantStatus:
    """Return the participant with this pseudonym."""
    for person in _needed(request).people():
        if person.pseudonym == pseudonym:
            return person
    raise HttpProblem(404, "There is no participant with this pseudonym.")


def _endings(admin: SurveyAdmin) -> dict[str, int]:
    """Return the number of visits by ending, with the ending's title."""
    counts = admin.endings().items()
    return {VisitEnding(ending).in_words if ending else "in progress": count for ending, count in counts}


def _stale(request: Request) -> list[str]:
    """Return a message for each survey whose sample differs from that of study.toml."""
    study, surveys = request.app.state.study, request.app.state.survey.section.surveys
    return [message for survey in surveys if (message := stale(study.file, study.store, survey))]


def _preview_links(request: Request) -> dict[int, str]:
    """Links to previews by survey, for staff to use and to pass on."""
    service, base = request.app.state.survey, request.app.state.setup.address
    return {survey: service.arrivals.previews.link(base, survey) for survey in service.section.surveys}


def _back(message: str) -> Response:
    return RedirectResponse(f"/admin/people?message={quote(message)}", 303)


def _log(request: Request, admin: SurveyAdmin | None, most: int = 40) -> list[dict[str, str]]:
    """Return the latest actions of staff, from the app's log and the survey's, newest first."""
    rows = [(entry["time"][:19], entry["name"], entry["action"]) for entry in request.app.state.log.entries(most)]
    for entry in admin.log(most) if admin else []:
        at = datetime.fromtimestamp(entry["at"], UTC).isoformat()[:19]
        about = entry["detail"].get("participant", "")
        rows.append((at, entry["actor"], f"{entry['action']} {about}".strip()))
    return [
        {"time": time.replace("T", " "), "name": who, "action": what}
        for time, who, what in sorted(rows, reverse=True)[:most]
    ]


def _inside(path: str) -> str:
    """Return the path if it is on this site, so that a link cannot redirect staff to another site."""
    safe = path.startswith("/") and not path.startswith("//") and path.isprintable() and "\\" not in path
    return path if safe else "/admin"
