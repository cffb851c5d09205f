"""The survey pages: everything a participant sees.

Pages (HTML; a visit is known by its cookie `visit`, and every page sends a visitor on to the stage they are at):

    GET  /survey?PROLIFIC_PID=…&STUDY_ID=…&SESSION_ID=…   arrive (Prolific, a panel, an invitation: the whole query is
                                                          given to the platform) -> 303 to the visit's stage, cookie set
    GET  /survey?preview=…            arrive for a preview, by a signed link -> 303, cookie set
    GET  /survey                      with a cookie: on to the stage; without: where to type a resume code
    POST /survey/resume               form: code            -> 303, cookie set
    GET  /survey/guide                POST /survey/guide    -> 303
    GET  /survey/check                POST /survey/check    form: one number per question id -> 303
    GET  /survey/consent              POST /survey/consent  form: decision=agree|decline, adult=yes, agreed=yes -> 303
    GET  /survey/choose               POST /survey/choose   form: task (a number; only where participants pick) -> 303
    GET  /survey/task                 the evaluation page
    GET  /survey/done                 code or redirect; can be reloaded
    GET  /survey/withdraw             POST /survey/withdraw form: sure=yes -> 303 /survey/withdrawn
    GET  /survey/information          what the consent page says, to print or keep; open to anybody
    GET  /survey/removal              POST /survey/removal form: about, reply; a pictured person asks for removal
    GET  /survey/language/{language}  en or ko; remembered

Interface of the evaluation page (JSON; errors are {"error": {"type", "message", …}} with a 4xx status):

    GET  /survey/items                -> {"visit": …, "survey": 1, "sequence": 17, "items": [{"number", "id",
                                         "instruction", "note", "instructed",
                                         "pictures": [{"slot": "source", "id": …}, …],
                                         "questions": [{"id", "title", "text", "labels": […], "slots": ["A", "B"]}],
                                         "answers": [{"slot", "question", "value"}]}]}
    GET  /survey/pictures/{id}        -> image/jpeg
    POST /survey/answers              {"item", "slot", "question", "value", "sequence", "milliseconds"}
                                      -> {"stored": highest sequence kept for this answer}
    POST /survey/submit               -> {"next": "/survey/done"}
                                      or 409 {"error": {"type": "incomplete", "items": […]}}
    POST /survey/webhook/prolific     Prolific's signed events -> {"new": whether it had not come before}
"""

from __future__ import annotations

import hashlib
import re
from asyncio import wrap_future
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Form, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel

from evenedit.config.study_file import SurveySection
from evenedit.protocol import AXES
from evenedit.storage.survey_schema import PREVIEW
from evenedit.survey import removals
from evenedit.survey.prolific import Webhooks
from evenedit.survey.questions import PAIRWISE, ROLE
from evenedit.survey.sessions import (
    Elsewhere,
    Incomplete,
    ParticipantItem,
    Refused,
    SurveyService,
    TaskCard,
    Visit,
    VisitEnding,
    VisitStage,
)
from evenedit.web import guide
from evenedit.web.consent import ConsentSheet, contact_of, sheet
from evenedit.web.errors import ErrorBody, HttpProblem
from evenedit.web.pages import page
from evenedit.web.saving import COOKIE, AnswerBody
from evenedit.web.throttle import address_of
from evenedit.web.translations import COOKIE as LANGUAGE
from evenedit.web.translations import language_of, texts, wording

COOKIE_DAYS = 30
PAGES = {
    VisitStage.GUIDE: "/survey/guide",
    VisitStage.CHECK: "/survey/check",
    VisitStage.CONSENT: "/survey/consent",
    VisitStage.CHOOSE: "/survey/choose",
    VisitStage.TASK: "/survey/task",
    VisitStage.DONE: "/survey/done",
}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody} for status in (400, 401, 403, 404, 409, 413, 422)
}


class Stored(BaseModel):
    """The acknowledgement of an answer."""

    stored: int
    """The highest sequence kept for this answer: more than the one sent, if a newer answer was there already."""


class QuestionRow(BaseModel):
    """One question about an item."""

    id: str
    title: str
    text: str
    labels: list[str]
    slots: list[str]


class Given(BaseModel):
    """An answer given before."""

    slot: str
    question: str
    value: int


class PictureBody(BaseModel):
    """A picture of an item."""

    slot: str
    id: str


class PageBody(BaseModel):
    """One item."""

    number: int
    id: str
    instruction: str
    note: str
    instructed: bool
    pictures: list[PictureBody]
    questions: list[QuestionRow]
    answers: list[Given]


class TaskBody(BaseModel):
    """All that the evaluation page needs."""

    visit: str
    """Separates this visit's queue in the browser from another visit's."""
    survey: int
    sequence: int
    """The sequence number from which counting continues."""
    items: list[PageBody]


class Received(BaseModel):
    """The acknowledgement of an event."""

    new: bool
    """False for one that came before."""


class Next(BaseModel):
    """Where to go."""

    next: str


def service(request: Request) -> SurveyService:
    """The app's survey service."""
    survey: SurveyService = request.app.state.survey
    return survey


def present(request: Request) -> Visit:
    """The visit of the request's cookie."""
    visit = _known(request)
    if visit is None:
        raise HttpProblem(401, _texts(request)["error"]["gone"], type="no_visit")
    return visit


Present = Annotated[Visit, Depends(present)]


def routers() -> tuple[APIRouter, APIRouter]:
    """The routes of the evaluation page's script, and those of the pages.

    Routes are tried in order: saves are by far the most requests, then pictures.
    """
    interface = APIRouter(prefix="/survey", tags=["interface"], responses=ERRORS)
    _interface(interface)
    pages = APIRouter(prefix="/survey", tags=["pages"], default_response_class=HTMLResponse, responses=ERRORS)
    _pages(pages)
    _steps(pages)
    return interface, pages


def _pages(routes: APIRouter) -> None:
    """The pages. Opening one changes nothing, except that an arrival is recorded."""

    @routes.get("")
    def enter(request: Request) -> Response:
        query, known = dict(request.query_params), _known(request)
        if PREVIEW in query:
            return _enter_preview(request, query, known)
        if query:
            with refusals_shown(request, 403, "link"):
                arrival = service(request).introduce(query)
                try:
                    visit = service(request).arrive(arrival, _token(request))
                except Elsewhere:
                    return _page(request, "welcome", status=409, elsewhere=True)
            return _begin(request, visit)
        return _on(known) if known else _page(request, "welcome")

    @routes.get("/language/{language}")
    def choose_language(request: Request, language: str) -> Response:
        if language not in _section(request).languages:
            raise HttpProblem(404)
        answer = RedirectResponse("/survey", 303)
        _set_cookie(request, answer, LANGUAGE, language)
        return answer

    @routes.get("/guide")
    def guide_page(request: Request) -> Response:
        visit = _known(request)
        if visit is None or visit.stage is VisitStage.DONE:
            return RedirectResponse("/survey", 303)
        questions = service(request).file.questions
        asked = [questions[axis] for axis in AXES]
        asked = asked if visit.survey == 1 else list(PAIRWISE) if visit.survey == 2 else [questions["stereotype"], ROLE]
        rows = [
            {
                "id": question.id,
                **wording(question, _language(request)),
                "examples": [e for e in guide.EXAMPLES if e.question == question.id],
            }
            for question in asked
        ]
        return _page(request, "guide", visit, rows=rows)

    @routes.get("/example/{name}.jpg", responses={200: {"content": {"image/jpeg": {}}}}, response_class=Response)
    def example(name: str) -> Response:
        picture = guide.example(name)
        if picture is None:
            raise HttpProblem(404)
        return Response(picture, media_type="image/jpeg")

    @routes.get("/check")
    def check_page(request: Request) -> Response:
        def more(visit: Visit) -> dict[str, Any]:
            rows = [
                {"id": question.id, **wording(question, _language(request))}
                for question in service(request).check_questions(visit.survey)
            ]
            return {"rows": rows, "again": service(request).tries_left(visit.token) == 1}

        return _stage(request, VisitStage.CHECK, more)

    @routes.get("/consent")
    def consent_page(request: Request) -> Response:
        return _stage(request, VisitStage.CONSENT, lambda _: {"sheet": _sheet(request)})

    @routes.get("/information")
    def information_page(request: Request) -> Response:
        return _page(request, "information", _known(request), sheet=_sheet(request))

    @routes.get("/removal")
    def removal_page(request: Request) -> Response:
        return _page(request, "removal", _known(request))

    @routes.get("/choose")
    def choose_page(request: Request) -> Response:
        return _stage(request, VisitStage.CHOOSE, lambda visit: {"tasks": _tasks(request, visit)})

    @routes.get("/task")
    def task_page(request: Request) -> Response:
        return _stage(request, VisitStage.TASK, lambda visit: {"code": service(request).resume_code(visit.token)})

    @routes.get("/done")
    def done_page(request: Request) -> Response:
        return _stage(request, VisitStage.DONE, lambda visit: {"completion": service(request).completion(visit.token)})

    @routes.get("/withdraw")
    def withdraw_page(request: Request) -> Response:
        visit = _known(request)
        return _page(request, "withdraw", visit) if visit else RedirectResponse("/survey", 303)

    @routes.get("/withdrawn")
    def withdrawn_page(request: Request) -> Response:
        return _page(request, "done", completion=service(request).farewell(VisitEnding.WITHDRAWN))


def _steps(routes: APIRouter) -> None:
    """The forms. Each ends in a redirect, so that reloading a page repeats nothing."""

    @routes.post("/resume")
    def resume(request: Request, code: Annotated[str, Form(max_length=100)]) -> Response:
        limit, address = request.app.state.codes, address_of(request)
        taken = limit.take(address)
        visit = service(request).resume(code) if code.isascii() and code.isprintable() else None
        if visit is None:
            return _page(request, "welcome", status=404, wrong=True)
        limit.give_back(address, taken)
        return _begin(request, visit)

    @routes.post("/guide")
    def guide_read(request: Request, visit: Present) -> Response:
        return _on(service(request).read_guide(visit.token))

    @routes.post("/check")
    async def check(request: Request, visit: Present) -> Response:
        given = {name: str(value) for name, value in (await request.form()).items()}
        answers = {name: int(value) for name, value in given.items() if value.isascii() and value.isdigit()}
        return _on(await run_in_threadpool(service(request).check, visit.token, answers))

    @routes.post("/consent")
    def consent(
        request: Request,
        visit: Present,
        decision: Annotated[Literal["agree", "decline"], Form()],
        adult: Annotated[str, Form(max_length=10)] = "",
        agreed: Annotated[str, Form(max_length=10)] = "",
        version: Annotated[str, Form(max_length=40)] = "",
    ) -> Response:
        shown = _sheet(request)
        if decision == "agree" and not (adult == agreed == "yes"):
            return _page(request, "consent", visit, status=422, missing=True, sheet=shown)
        if decision == "agree" and version not in ("", shown.text.version):  # it has changed since it was shown
            return _page(request, "consent", visit, status=409, changed=True, sheet=shown)
        return _on(service(request).consent(visit.token, decision == "agree", shown.text))

    @routes.post("/removal")
    def removal(
        request: Request,
        about: Annotated[str, Form(min_length=1, max_length=removals.LONGEST)],
        reply: Annotated[str, Form(max_length=200)] = "",
    ) -> Response:
        request.app.state.removals.take(address_of(request))
        with refusals_shown(request, 429):
            removals.ask(service(request).database, about, reply, service(request).clock())
        return _page(request, "removal", _known(request), asked=True)

    @routes.post("/choose")
    def choose(request: Request, visit: Present, task: Annotated[int, Form(ge=1, le=10**6)]) -> Response:
        try:
            return _on(service(request).claim(visit.token, task))
        except Refused:
            return _page(request, "choose", visit, status=409, tasks=_tasks(request, visit), gone=True)

    @routes.post("/withdraw")
    def withdraw(request: Request, visit: Present, sure: Annotated[Literal["yes"], Form()]) -> Response:
        service(request).withdraw(visit.token)
        answer = RedirectResponse("/survey/withdrawn", 303)
        answer.delete_cookie(COOKIE, path="/survey")
        return answer


def _interface(routes: APIRouter) -> None:
    """The calls of the evaluation page's script."""

    @routes.post("/answers")
    async def answers(request: Request, answer: AnswerBody) -> Stored:
        """Store one answer; the reply is sent when it is on disk."""
        try:
            with refusals_shown(request, 409):
                kept = service(request).saving(_token(request), **answer.model_dump())
                return Stored(stored=await wrap_future(kept))
        except HttpProblem:
            present(request)  # looked up only now: most answers are stored and need no second query
            raise

    @routes.get("/pictures/{picture}", responses={200: {"content": {"image/jpeg": {}}}}, response_class=Response)
    def picture(request: Request, picture: str) -> Response:
        """A picture of the participant's own task."""
        visit = present(request)  # here and not as a dependency, which would take a second thread
        with refusals_shown(request, 409):
            found = service(request).picture(visit.token, picture)
        if found is None:
            raise HttpProblem(404)
        return Response(found, media_type="image/jpeg")

    @routes.get("/items")
    def items(request: Request, visit: Present) -> TaskBody:
        """The participant's whole task, with the answers so far."""
        with refusals_shown(request, 409):
            found = service(request).items(visit.token)
        name = hashlib.sha256(visit.token.encode()).hexdigest()[:16]
        pages = [_item(item, _language(request)) for item in found]
        return TaskBody(visit=name, survey=visit.survey, sequence=service(request).sequence(visit.token), items=pages)

    @routes.post("/submit")
    def submit(request: Request, visit: Present) -> Next:
        """Submit the task."""
        with refusals_shown(request, 409):
            return Next(next=PAGES[service(request).submit(visit.token).stage])

    @routes.post("/webhook/prolific")
    async def webhook(request: Request) -> Received:
        """Prolific's signed webhook events, each acted on once."""
        body = await request.body()
        with refusals_shown(request, 403):
            new = await run_in_threadpool(Webhooks(service(request)).receive, body, request.headers)
        return Received(new=new)


@contextmanager
def refusals_shown(request: Request, status: int, sentence: str = "") -> Iterator[None]:
    """Show a participant why the service refused a call."""
    try:
        yield
    except Incomplete as missing:
        raise HttpProblem(status, str(missing), type="incomplete", items=list(missing.items)) from None
    except Refused as refused:
        raise HttpProblem(status, _texts(request)["error"][sentence] if sentence else str(refused)) from None


def _item(item: ParticipantItem, language: str) -> PageBody:
    slots: dict[str, list[str]] = {}
    for asked in item.asked:
        slots.setdefault(asked.question.id, []).append(asked.slot)
    questions = {asked.question.id: asked.question for asked in item.asked}
    return PageBody(
        number=item.number,
        id=item.id,
        instruction=_instruction(item, language),
        note=_role(item, language),
        instructed=item.instructed is not None,
        pictures=[PictureBody(slot=slot, id=ident) for slot, ident in item.pictures.items()],
        questions=[QuestionRow(id=q.id, slots=slots[q.id], **wording(q, language)) for q in questions.values()],
        answers=[Given(slot=slot, question=question, value=value) for (slot, question), value in item.answers.items()],
    )


def _instruction(item: ParticipantItem, language: str) -> str:
    if item.instructed is None:
        return item.instruction
    return str(texts(language)["task"]["instructed"]).format(value=item.instructed)


def _role(item: ParticipantItem, language: str) -> str:
    """The sentence of survey 3 that names the occupation and the gender it is stereotypically coded with."""
    own = texts(language)["task"]
    return str(own["role"]).format(role=item.role, coded=own[item.coded.lower()]) if item.role else ""


def _stage(request: Request, stage: VisitStage, more: Callable[[Visit], dict[str, Any]] | None = None) -> Response:
    """The page of a stage; a participant at another stage is redirected there."""
    visit = _known(request)
    if visit is None:
        return RedirectResponse("/survey", 303)
    if visit.stage is not stage:
        return _on(visit)
    return _page(request, stage.value, visit, **(more(visit) if more else {}))


def _enter_preview(request: Request, query: dict[str, str], known: Visit | None) -> Response:
    """Begin a preview, or go on with the one this browser has."""
    with refusals_shown(request, 403, "link"):
        arrival = service(request).introduce(query)
    if known and known.preview and known.stage is not VisitStage.DONE and arrival.survey in (0, known.survey):
        return _on(known)
    request.app.state.previews.take(address_of(request))
    with refusals_shown(request, 409, "previews"):
        return _begin(request, service(request).arrive(arrival))


def _preview_links(request: Request) -> dict[int, str]:
    """Links to previews by survey, on a server for one laptop; elsewhere they are given out by staff."""
    if request.app.state.setup.production:
        return {}
    return {survey: service(request).arrivals.previews.link("", survey) for survey in _section(request).surveys}


def _sheet(request: Request) -> ConsentSheet:
    """The consent page in the visitor's language."""
    folder = request.app.state.study.file.folder
    return sheet(_section(request), folder, _texts(request), _language(request))


def _tasks(request: Request, visit: Visit) -> list[TaskCard]:
    return service(request).tasks(visit.survey, preview=visit.preview)


def _page(request: Request, name: str, visit: Visit | None = None, *, status: int = 200, **context: Any) -> Response:
    section = _section(request)
    return page(
        request,
        f"survey/{name}.html",
        status,
        w=_texts(request),
        language=_language(request),
        languages={code: texts(code)["name"] for code in section.languages},
        section=section,
        contact=contact_of(section.ethics),
        visit=visit,
        previews=_preview_links(request),
        **context,
    )


def _on(visit: Visit) -> RedirectResponse:
    return RedirectResponse(PAGES[visit.stage], 303)


def _begin(request: Request, visit: Visit) -> Response:
    answer = _on(visit)
    _set_cookie(request, answer, COOKIE, visit.token)
    return answer


def _set_cookie(request: Request, answer: Response, name: str, value: str) -> None:
    answer.set_cookie(
        name,
        value,
        max_age=COOKIE_DAYS * 24 * 3600,
        path="/survey",
        httponly=True,
        samesite="lax",  # a participant arrives from the platform's site
        secure=request.app.state.setup.production,
    )


def _token(request: Request) -> str:
    """The cookie, if it can be one of ours."""
    token = request.cookies.get(COOKIE, "")
    return token if re.fullmatch(r"[A-Za-z0-9_-]{1,100}", token) else ""


def _known(request: Request) -> Visit | None:
    token = _token(request)
    return service(request).visit(token) if token else None


def _section(request: Request) -> SurveySection:
    return service(request).section


def _language(request: Request) -> str:
    return language_of(request, _section(request).languages)


def _texts(request: Request) -> dict[str, Any]:
    return texts(_language(request))
