"""The participant behind a request: their visit, their language, and the pages in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import RedirectResponse, Response

from evenedit.config.study_file import SurveySection
from evenedit.survey.languages import Languages, Texts
from evenedit.survey.questionnaire import platform_questions
from evenedit.survey.sessions import SurveyService
from evenedit.survey.visits import IncompleteTaskError, NotAllowedError, Visit, VisitStage
from evenedit.web.consent import contact_of
from evenedit.web.errors import HttpProblem
from evenedit.web.pages import page
from evenedit.web.translations import language_of

COOKIE = "visit"
COOKIE_DAYS = 30
ABOUT = "/survey/about"
"""The page of questions to participants about themselves."""
PAGES = {
    VisitStage.GUIDE: "/survey/guide",
    VisitStage.CHECK: "/survey/check",
    VisitStage.CONSENT: "/survey/consent",
    VisitStage.CHOOSE: "/survey/choose",
    VisitStage.TASK: "/survey/task",
    VisitStage.DONE: "/survey/done",
}


def service(request: Request) -> SurveyService:
    """Return the app's survey service."""
    survey: SurveyService = request.app.state.survey
    return survey


def present(request: Request) -> Visit:
    """Return the visit of the request's cookie."""
    visit = known_visit(request)
    if visit is None:
        raise HttpProblem(401, texts_here(request)["error"]["gone"], type="no_visit")
    return visit


Present = Annotated[Visit, Depends(present)]


@contextmanager
def refusals_shown(request: Request, status: int, sentence: str = "") -> Iterator[None]:
    """Show a participant why the service refused a call."""
    try:
        yield
    except IncompleteTaskError as missing:
        raise HttpProblem(status, str(missing), type="incomplete", items=list(missing.items)) from None
    except NotAllowedError as refused:
        raise HttpProblem(status, texts_here(request)["error"][sentence] if sentence else str(refused)) from None


def preview_links(request: Request) -> dict[int, str]:
    """Links to previews by survey, on a server for one laptop; elsewhere they are given out by staff."""
    if request.app.state.setup.production:
        return {}
    return {survey: service(request).arrivals.previews.link("", survey) for survey in section_of(request).surveys}


def survey_page(
    request: Request, name: str, visit: Visit | None = None, *, status: int = 200, **context: Any
) -> Response:
    """Render a page of the survey in the visitor's language."""
    section, known = section_of(request), languages(request)
    return page(
        request,
        f"survey/{name}.html",
        status,
        w=texts_here(request),
        language=language_here(request),
        direction=known.direction(language_here(request)),
        languages={code: known.texts(code)["name"] for code in section.languages},
        section=section,
        contact=contact_of(section.ethics),
        platform=bool(platform_questions(section)),
        platform_sensitive=any(question.sensitive for question in platform_questions(section)),
        visit=visit,
        previews=preview_links(request),
        **context,
    )


def on_to(visit: Visit) -> RedirectResponse:
    """Send a participant to the page of their stage."""
    return RedirectResponse(PAGES[visit.stage], 303)


def set_cookie(request: Request, answer: Response, name: str, value: str) -> None:
    """Give the browser a cookie of the survey."""
    answer.set_cookie(
        name,
        value,
        max_age=COOKIE_DAYS * 24 * 3600,
        path="/survey",
        httponly=True,
        samesite="lax",  # a participant arrives from the platform's site
        secure=request.app.state.setup.production,
    )


def token_of(request: Request) -> str:
    """Return the cookie's token; empty if it cannot be valid."""
    token = request.cookies.get(COOKIE, "")
    return token if re.fullmatch(r"[A-Za-z0-9_-]{1,100}", token) else ""


def known_visit(request: Request) -> Visit | None:
    """Return the visit of the request's cookie, if there is one."""
    token = token_of(request)
    return service(request).visit(token) if token else None


def section_of(request: Request) -> SurveySection:
    """Return the survey section of the study file."""
    return service(request).section


def language_here(request: Request) -> str:
    """Return the language of the visitor's pages."""
    return language_of(request, section_of(request).languages)


def languages(request: Request) -> Languages:
    """Return the survey's languages."""
    known: Languages = request.app.state.languages
    return known


def texts_here(request: Request) -> Texts:
    """Return the survey's texts in the visitor's language."""
    return languages(request).texts(language_here(request))
