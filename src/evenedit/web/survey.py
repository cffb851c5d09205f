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
    GET  /survey/about                POST /survey/about  what participants say about themselves (`web.questionnaire`)
    GET  /survey/withdraw             POST /survey/withdraw form: sure=yes -> 303 /survey/withdrawn
    GET  /survey/information          what the consent page says, to print or keep; open to anybody
    GET  /survey/removal              POST /survey/removal form: about, reply; a pictured person asks for removal
    GET  /survey/language/{language}  one that the survey offers; remembered

Interface of the evaluation page (JSON; errors are {"error": {"type", "message", …}} with a 4xx status):

    GET  /survey/items                -> {"visit": …, "survey": 1, "sequence": 17, "items": [{"number", "id",
                                         "instruction", "translation", "note", "instructed",
                                         "pictures": [{"slot": "source", "id": …}, …],
                                         "questions": [{"id", "title", "text", "labels": […], "slots": ["A", "B"],
                                                        "kind", "order": [3, 1, 2], "cannot_tell", "columns": [id],
                                                        "none"}],
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
from asyncio import wrap_future
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from evenedit.core.records import Question
from evenedit.protocol.questions import CANNOT_TELL, MOST_OPTIONS
from evenedit.protocol.rubric import Rubric, default_rubric
from evenedit.storage.survey_schema import PREVIEW
from evenedit.survey import removals
from evenedit.survey.languages import Languages, Texts
from evenedit.survey.prolific import Webhooks
from evenedit.survey.questionnaire import has_profile, is_asked
from evenedit.survey.questions import columns_of, display_order, same_scale, survey_questions
from evenedit.survey.visits import (
    NotAllowedError,
    ParticipantItem,
    ResumeCodeRequiredError,
    TaskCard,
    Visit,
    VisitEnding,
    VisitStage,
)
from evenedit.web import guide
from evenedit.web.consent import ConsentSheet, sheet
from evenedit.web.errors import ErrorBody, HttpProblem
from evenedit.web.throttle import address_of
from evenedit.web.translations import COOKIE as LANGUAGE
from evenedit.web.visitor import (
    ABOUT,
    COOKIE,
    PAGES,
    Present,
    known_visit,
    language_here,
    languages,
    on_to,
    present,
    refusals_shown,
    section_of,
    service,
    set_cookie,
    survey_page,
    texts_here,
    token_of,
)

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody} for status in (400, 401, 403, 404, 409, 413, 422)
}
BIGGEST = 2**53 - 1
"""The largest integer that JavaScript holds exactly."""


class Stored(BaseModel):
    """The acknowledgement of an answer."""

    stored: int
    """The highest sequence kept for this answer: more than the one sent, if a newer answer was there already."""


class PageQuestion(BaseModel):
    """One question about an item."""

    id: str
    title: str
    text: str
    labels: list[str]
    slots: list[str]
    kind: Literal["scale", "choice", "set"]
    order: list[int]
    """The positions of the labels as they are shown."""
    cannot_tell: bool
    """Whether the last answer says that it cannot be told."""
    columns: list[str]
    """What answers are saved under: the question's id; of a set one for each option, 1 ticked and 2 not."""
    none: str
    """Of a set: the words for none of the options."""


class PreviousAnswer(BaseModel):
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
    """As the editor was asked."""
    translation: str
    """The same in the participant's language; empty where there is none."""
    note: str
    instructed: bool
    pictures: list[PictureBody]
    questions: list[PageQuestion]
    answers: list[PreviousAnswer]


class TaskBody(BaseModel):
    """All that the evaluation page needs."""

    visit: str
    """Separates this visit's queue in the browser from another visit's."""
    survey: int
    sequence: int
    """The sequence number from which counting continues."""
    items: list[PageBody]


class AnswerBody(BaseModel):
    """One answer, as the evaluation page sends it."""

    model_config = ConfigDict(extra="forbid")

    item: str = Field(max_length=100)
    slot: str = Field(max_length=10)
    question: str = Field(max_length=100)
    value: int = Field(ge=1, le=MOST_OPTIONS + 1)
    sequence: int = Field(ge=1, le=BIGGEST)
    """Counts the participant's answers in the order they were given."""
    milliseconds: int = Field(default=0, ge=0, le=BIGGEST)
    """How long the item had been on the screen, all looks at it together, when this was answered."""


class Received(BaseModel):
    """The acknowledgement of an event."""

    new: bool
    """False for one that came before."""


class Next(BaseModel):
    """Where to go."""

    next: str


def routers() -> tuple[APIRouter, APIRouter]:
    """Return the routes of the evaluation page's script, and those of the pages.

    Routes are tried in order: saves are by far the most requests, then pictures.
    """
    interface = APIRouter(prefix="/survey", tags=["interface"], responses=ERRORS)
    _interface(interface)
    pages = APIRouter(prefix="/survey", tags=["pages"], default_response_class=HTMLResponse, responses=ERRORS)
    _pages(pages)
    _steps(pages)
    return interface, pages


def _pages(routes: APIRouter) -> None:
    """Add the pages. Opening one changes nothing, except that an arrival is recorded."""

    @routes.get("")
    def enter(request: Request) -> Response:
        query, known = dict(request.query_params), known_visit(request)
        if PREVIEW in query:
            return _enter_preview(request, query, known)
        if query:
            with refusals_shown(request, 403, "link"):
                arrival = service(request).arrivals.arrive(query)
                try:
                    visit = service(request).arrive(arrival, token_of(request))
                except ResumeCodeRequiredError:
                    return survey_page(request, "welcome", status=409, elsewhere=True)
            return _begin(request, visit)
        return on_to(known) if known else survey_page(request, "welcome")

    @routes.get("/language/{language}")
    def choose_language(request: Request, language: str) -> Response:
        if language not in section_of(request).languages:
            raise HttpProblem(404)
        answer = RedirectResponse("/survey", 303)
        set_cookie(request, answer, LANGUAGE, language)
        return answer

    @routes.get("/guide")
    def guide_page(request: Request) -> Response:
        visit = known_visit(request)
        if visit is None or visit.stage is VisitStage.DONE:
            return RedirectResponse("/survey", 303)
        rubric = service(request).file.rubric
        rows = [
            _meaning(request, question, rubric)
            for question in survey_questions(visit.survey, rubric)
            if not question.replaces
        ]
        return survey_page(request, "guide", visit, rows=rows)

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
                {"id": question.id, **languages(request).wording(question, language_here(request))}
                for question in service(request).check_questions(visit.survey)
            ]
            return {"rows": rows, "again": service(request).tries_left(visit.token) == 1}

        return _stage(request, VisitStage.CHECK, more)

    @routes.get("/consent")
    def consent_page(request: Request) -> Response:
        return _stage(request, VisitStage.CONSENT, lambda _: {"sheet": _sheet(request)})

    @routes.get("/information")
    def information_page(request: Request) -> Response:
        return survey_page(request, "information", known_visit(request), sheet=_sheet(request))

    @routes.get("/removal")
    def removal_page(request: Request) -> Response:
        return survey_page(request, "removal", known_visit(request))

    @routes.get("/choose")
    def choose_page(request: Request) -> Response:
        return _stage(request, VisitStage.CHOOSE, lambda visit: {"tasks": _tasks(request, visit)})

    @routes.get("/task")
    def task_page(request: Request) -> Response:
        return _stage(request, VisitStage.TASK, lambda visit: {"code": service(request).resume_code(visit.token)})

    @routes.get("/done")
    def done_page(request: Request) -> Response:
        def more(visit: Visit) -> dict[str, Any]:
            survey_service = service(request)
            return {
                "completion": survey_service.completion(visit.token),
                "about": is_asked(survey_service.database, survey_service.section, visit.token),
                "profile": has_profile(survey_service.database, visit.token),
            }

        return _stage(request, VisitStage.DONE, more)

    @routes.get("/withdraw")
    def withdraw_page(request: Request) -> Response:
        visit = known_visit(request)
        return survey_page(request, "withdraw", visit) if visit else RedirectResponse("/survey", 303)

    @routes.get("/withdrawn")
    def withdrawn_page(request: Request) -> Response:
        return survey_page(request, "done", completion=service(request).farewell(VisitEnding.WITHDRAWN))


def _steps(routes: APIRouter) -> None:
    """Add the forms. Each ends in a redirect, so that reloading a page repeats nothing."""

    @routes.post("/resume")
    def resume(request: Request, code: Annotated[str, Form(max_length=100)]) -> Response:
        limit, address = request.app.state.codes, address_of(request)
        taken = limit.take(address)
        visit = service(request).resume(code) if code.isascii() and code.isprintable() else None
        if visit is None:
            return survey_page(request, "welcome", status=404, wrong=True)
        limit.give_back(address, taken)
        return _begin(request, visit)

    @routes.post("/guide")
    def guide_read(request: Request, visit: Present) -> Response:
        return on_to(service(request).read_guide(visit.token))

    @routes.post("/check")
    async def check(request: Request, visit: Present) -> Response:
        form = {name: str(value) for name, value in (await request.form()).items()}
        answers = {name: int(value) for name, value in form.items() if value.isascii() and value.isdigit()}
        return on_to(await run_in_threadpool(service(request).check, visit.token, answers))

    @routes.post("/consent")
    def consent(
        request: Request,
        visit: Present,
        decision: Annotated[Literal["agree", "decline"], Form()],
        adult: Annotated[str, Form(max_length=10)] = "",
        agreed: Annotated[str, Form(max_length=10)] = "",
        version: Annotated[str, Form(max_length=40)] = "",
        profile: Annotated[str, Form(max_length=10)] = "",
        sensitive: Annotated[str, Form(max_length=10)] = "",
    ) -> Response:
        consent_sheet = _sheet(request)
        if decision == "agree" and not (adult == agreed == "yes"):
            return survey_page(request, "consent", visit, status=422, missing=True, sheet=consent_sheet)
        if decision == "agree" and version not in ("", consent_sheet.text.version):  # it has changed since it was shown
            return survey_page(request, "consent", visit, status=409, changed=True, sheet=consent_sheet)
        optional = {"profile": profile == "yes", "sensitive": sensitive == "yes"}
        return on_to(service(request).consent(visit.token, decision == "agree", consent_sheet.text, **optional))

    @routes.post("/removal")
    def removal(
        request: Request,
        about: Annotated[str, Form(min_length=1, max_length=removals.LONGEST)],
        reply: Annotated[str, Form(max_length=200)] = "",
    ) -> Response:
        request.app.state.removals.take(address_of(request))
        with refusals_shown(request, 429):
            removals.ask(service(request).database, about, reply, service(request).clock())
        return survey_page(request, "removal", known_visit(request), asked=True)

    @routes.post("/choose")
    def choose(request: Request, visit: Present, task: Annotated[int, Form(ge=1, le=10**6)]) -> Response:
        try:
            return on_to(service(request).claim(visit.token, task))
        except NotAllowedError:
            return survey_page(request, "choose", visit, status=409, tasks=_tasks(request, visit), gone=True)

    @routes.post("/withdraw")
    def withdraw(request: Request, visit: Present, sure: Annotated[Literal["yes"], Form()]) -> Response:
        service(request).withdraw(visit.token)
        answer = RedirectResponse("/survey/withdrawn", 303)
        answer.delete_cookie(COOKIE, path="/survey")
        return answer


def _interface(routes: APIRouter) -> None:
    """Add the calls of the evaluation page's script."""

    @routes.post("/answers")
    async def answers(request: Request, answer: AnswerBody) -> Stored:
        """Store one answer; the reply is sent when it is on disk."""
        try:
            with refusals_shown(request, 409):
                saving = service(request).saving(token_of(request), **answer.model_dump())
                return Stored(stored=await wrap_future(saving))
        except HttpProblem:
            present(request)  # looked up only now: most answers are stored and need no second query
            raise

    @routes.get("/pictures/{picture}", responses={200: {"content": {"image/jpeg": {}}}}, response_class=Response)
    def picture(request: Request, picture: str) -> Response:
        """Return a picture of the participant's task."""
        visit = present(request)  # here and not as a dependency, which would take a second thread
        with refusals_shown(request, 409):
            content = service(request).picture(visit.token, picture)
        if content is None:
            raise HttpProblem(404)
        return Response(content, media_type="image/jpeg")

    @routes.get("/items")
    def items(request: Request, visit: Present) -> TaskBody:
        """Return the participant's task with the answers so far."""
        with refusals_shown(request, 409):
            task = service(request).items(visit.token)
        name = hashlib.sha256(visit.token.encode()).hexdigest()[:16]
        rubric = service(request).file.rubric
        pages = [_item(item, languages(request), language_here(request), rubric) for item in task]
        return TaskBody(visit=name, survey=visit.survey, sequence=service(request).sequence(visit.token), items=pages)

    @routes.post("/submit")
    def submit(request: Request, visit: Present) -> Next:
        """Submit the task."""
        with refusals_shown(request, 409):
            after = service(request).submit(visit.token)
        survey_service = service(request)
        return Next(
            next=ABOUT if is_asked(survey_service.database, survey_service.section, after.token) else PAGES[after.stage]
        )

    @routes.post("/webhook/prolific")
    async def webhook(request: Request) -> Received:
        """Prolific's signed webhook events, each acted on once."""
        body = await request.body()
        with refusals_shown(request, 403):
            new = await run_in_threadpool(Webhooks(service(request)).receive, body, request.headers)
        return Received(new=new)


def _meaning(request: Request, question: Question, rubric: Rubric) -> dict[str, Any]:
    """Return a question as the guide explains it, with notes and examples where it is one of the shipped default."""
    words = languages(request).wording(question, language_here(request))
    usual = question.id not in rubric or (question.id in default_rubric() and same_scale(question.id, rubric))
    return {
        "id": question.id,
        **words,
        "note": texts_here(request)["guide"].get(question.id, "") if usual else "",
        "answers": [words["labels"][at - 1] for at in display_order(question)],
        "numbered": _kind(question) == "scale",
        "examples": [e for e in guide.EXAMPLES if usual and e.question == question.id],
    }


def _kind(question: Question) -> Literal["scale", "choice", "set"]:
    return "set" if question.sided == "set" else "choice" if question.sided == "choice" else "scale"


def _question(
    question: Question, slots: list[str], order: Sequence[int], known: Languages, language: str, rubric: Rubric
) -> PageQuestion:
    kind = _kind(question)
    return PageQuestion(
        id=question.id,
        slots=slots,
        **known.wording(question, language),
        kind=kind,
        order=list(order) or list(range(1, len(question.labels) + 1)),
        cannot_tell=question.labels[-1] == CANNOT_TELL,
        columns=list(columns_of(question, rubric)),
        none=known.answer("none", language) if kind == "set" else "",
    )


def _item(item: ParticipantItem, known: Languages, language: str, rubric: Rubric) -> PageBody:
    slots: dict[str, list[str]] = {}
    for row in item.questions:
        slots.setdefault(row.question.id, []).append(row.slot)
    questions = {row.question.id: row for row in item.questions}
    return PageBody(
        number=item.number,
        id=item.id,
        instruction=_instruction(item, known.texts(language)),
        translation=item.translations.get(language, ""),
        note=_role(item, known, language),
        instructed=item.instructed is not None,
        pictures=[PictureBody(slot=slot, id=ident) for slot, ident in item.pictures.items()],
        questions=[
            _question(row.question, slots[ident], row.order, known, language, rubric)
            for ident, row in questions.items()
        ],
        answers=[
            PreviousAnswer(slot=slot, question=question, value=value)
            for (slot, question), value in item.answers.items()
        ],
    )


def _instruction(item: ParticipantItem, texts: Texts) -> str:
    if item.instructed is None:
        return item.instruction
    return str(texts["task"]["instructed"]).format(value=item.instructed)


def _role(item: ParticipantItem, known: Languages, language: str) -> str:
    """Return the sentence of survey 3 that names the occupation and its stereotypical gender."""
    text = known.texts(language)["task"]
    role = known.role(item.role, language)
    return str(text["role"]).format(role=role, coded=text[item.coded.lower()]) if item.role else ""


def _stage(request: Request, stage: VisitStage, more: Callable[[Visit], dict[str, Any]] | None = None) -> Response:
    """Return the page of a stage; a participant at another stage is redirected there."""
    visit = known_visit(request)
    if visit is None:
        return RedirectResponse("/survey", 303)
    if visit.stage is not stage:
        return on_to(visit)
    return survey_page(request, stage.value, visit, **(more(visit) if more else {}))


def _enter_preview(request: Request, query: dict[str, str], known: Visit | None) -> Response:
    """Begin a preview, or go on with the one this browser has."""
    with refusals_shown(request, 403, "link"):
        arrival = service(request).arrivals.arrive(query)
    if known and known.preview and known.stage is not VisitStage.DONE and arrival.survey in (0, known.survey):
        return on_to(known)
    request.app.state.previews.take(address_of(request))
    with refusals_shown(request, 409, "previews"):
        return _begin(request, service(request).arrive(arrival))


def _sheet(request: Request) -> ConsentSheet:
    """Return the consent page in the visitor's language."""
    folder = request.app.state.study.file.folder
    return sheet(section_of(request), folder, texts_here(request), language_here(request))


def _tasks(request: Request, visit: Visit) -> list[TaskCard]:
    return service(request).tasks(visit.survey, preview=visit.preview)


def _begin(request: Request, visit: Visit) -> Response:
    answer = on_to(visit)
    set_cookie(request, answer, COOKIE, visit.token)
    return answer
