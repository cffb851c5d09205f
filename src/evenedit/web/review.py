"""The review room: reviewers settle, one case at a time, what the judges leave open. For staff only.

GET  /review            how many cases wait, who you are, what you did last
POST /review/name       name: the pseudonym you review under, kept in a cookie until the browser closes
GET  /review/next       the next case that waits for you; ?after=ID skips one
GET  /review/case/ID    source, output, instruction, the judges' scores and evidence; no editor, no labels
POST /review/case/ID    an answer per question, note, version
POST /review/undo       review: take back one of your own that nobody has built on
GET  /review/agreement  how far two reviewers agree
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote, unquote

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Question
from evenedit.protocol import QUESTIONS
from evenedit.ratings.reviews import PREFIX
from evenedit.study.gallery.cases import CaseFile
from evenedit.study.review_queue import LONGEST_NOTE, Overtaken, ReviewForm, ReviewQueue, rater_id
from evenedit.web.auth import staff
from evenedit.web.errors import HttpProblem
from evenedit.web.pages import page
from evenedit.web.translations import wording

COOKIE = "reviewer"
SHOWN = 60
"""Waiting cases listed on the first page."""
LAST = 8
"""One's own reviews listed there."""

Staff = Annotated[str, Depends(staff)]


def room() -> APIRouter:
    """The routes of the review room."""
    routes = APIRouter(
        prefix="/review",
        dependencies=[Depends(staff)],
        include_in_schema=False,
        default_response_class=HTMLResponse,
    )
    routes.get("")(queue)
    routes.post("/name")(name)
    routes.get("/next")(following)
    routes.get("/case/{request_id}")(case)
    routes.post("/case/{request_id}")(settle)
    routes.post("/undo")(undo)
    routes.get("/agreement")(agreement)
    return routes


def _desk(request: Request) -> ReviewQueue:
    """The study's desk, opened at the first visit."""
    state = request.app.state
    if not hasattr(state, "review"):
        state.review = ReviewQueue(state.study)
    desk: ReviewQueue = state.review
    return desk


def _rater(request: Request) -> str | None:
    """The rater id of who is here, once named."""
    try:
        return rater_id(unquote(request.cookies.get(COOKIE, "")))
    except EvenEditError:
        return None


def _needed(request: Request) -> str:
    found = _rater(request)
    if found is None:
        raise HttpProblem(403, "Say first under which name you review: the page Review asks for it.")
    return found


OpenDesk = Annotated[ReviewQueue, Depends(_desk)]
Rater = Annotated[str, Depends(_needed)]


def _page(
    request: Request, desk: ReviewQueue, template: str, staff_name: str, status: int = 200, **context: Any
) -> Response:
    file = request.app.state.study.file
    return page(
        request,
        f"review/{template}.html",
        status,
        staff=staff_name,
        reviewer=(_rater(request) or "").removeprefix(PREFIX),
        reviewers=desk.reviewers,
        settles=file.sections.ensemble.review == "settles",
        titles={q.id: q.title for q in QUESTIONS.values()},
        **context,
    )


# -- pages ---------------------------------------------------------------------------------------------------


def queue(request: Request, desk: OpenDesk, staff_name: Staff, told: str = "") -> Response:
    """What waits."""
    rater = _rater(request)
    if rater is None:
        return _page(request, desk, "name", staff_name)
    waiting = desk.waiting(rater)
    own = [r for r in desk.reviews.history() if r.rater == rater and r.undone is None]
    return _page(
        request,
        desk,
        "queue",
        staff_name,
        standing=desk.standing(),
        left=len(waiting),
        waiting=waiting[:SHOWN],
        numbers={ident: number for number, ident in enumerate(desk.cases, 1)},
        last=own[: -LAST - 1 : -1],
        told=told[:300],
    )


def name(request: Request, desk: OpenDesk, staff_name: Staff, name: Annotated[str, Form(max_length=100)]) -> Response:
    """Take the name that somebody reviews under."""
    try:
        known = rater_id(name).removeprefix(PREFIX)
    except EvenEditError as error:
        return _page(request, desk, "name", staff_name, 422, problem=str(error), name=name)
    answer = RedirectResponse("/review", 303)
    secure = request.app.state.setup.production
    answer.set_cookie(COOKIE, quote(known), httponly=True, samesite="strict", secure=secure, path="/review")
    return answer


def following(desk: OpenDesk, rater: Rater, after: str = "", saved: int = 0) -> Response:
    """Go to the next case that waits for this reviewer."""
    found = desk.next(rater, after or None)
    if found is None:
        return RedirectResponse("/review", 303)
    return RedirectResponse(f"/review/case/{found.request_id}" + (f"?saved={saved}" if saved else ""), 303)


def case(
    request: Request, desk: OpenDesk, staff_name: Staff, rater: Rater, request_id: str, saved: int = 0
) -> Response:
    """One case to settle."""
    try:
        sheet = desk.sheet(request_id, rater)
    except Overtaken as error:
        return _page(request, desk, "overtaken", staff_name, 409, message=str(error), request_id=request_id)
    except EvenEditError as error:
        raise HttpProblem(404, str(error)) from None
    desk.hold(request_id, rater)
    before = desk.last(rater) if saved else None
    saved_review = before if before is not None and before.id == saved else None
    return _sheet(request, desk, staff_name, sheet, saved=saved_review)


def _sheet(
    request: Request, desk: ReviewQueue, staff_name: str, sheet: ReviewForm, status: int = 200, **more: Any
) -> Response:
    file = desk.open(sheet.case)
    return _page(
        request,
        desk,
        "case",
        staff_name,
        status,
        case=file,
        sheet=sheet,
        words={question.id: _words(question) for question in sheet.questions},
        pictures=_pictures(file),
        instruction=_instruction(file),
        number=list(desk.cases).index(sheet.case.request_id) + 1,
        total=len(desk.cases),
        longest=LONGEST_NOTE,
        **{"answers": {}, "note": "", "problems": (), "saved": None} | more,
    )


def _words(question: Question) -> Mapping[str, Any]:
    """The rubric's words; codes of a choice as people write them."""
    shown = wording(question, "en")
    labels = [label.replace("_", " ").capitalize() if label.isupper() else label for label in shown["labels"]]
    return {**shown, "labels": labels}


def _pictures(file: CaseFile) -> list[tuple[str, str]]:
    """Captions and hashes. Which person is which is told where the question is about it, and nowhere else."""
    if len(file.sources) == 1:
        found = [("Source", file.sources[0].image)]
    else:
        found = [
            (f"Source {at}: labelled {source.attributes.get('gender', 'unknown').lower()}", source.image)
            for at, source in enumerate(file.sources, 1)
        ]
    return [*found, ("Output", file.edit.image or "")]


def _instruction(file: CaseFile) -> str:
    """What was asked, without the feature prompt."""
    return (file.prompt.swapped_text if file.request.condition == "swapped" else None) or file.prompt.text


def agreement(request: Request, desk: OpenDesk, staff_name: Staff) -> Response:
    """How far two reviewers agree."""
    return _page(request, desk, "agreement", staff_name, rows=desk.agreement(), standing=desk.standing())


# -- deeds ---------------------------------------------------------------------------------------------------


async def _given(request: Request) -> dict[str, str]:
    """The fields of a form, whichever questions it asks."""
    return {key: str(value) for key, value in (await request.form()).items()}


def settle(
    request: Request,
    desk: OpenDesk,
    staff_name: Staff,
    rater: Rater,
    request_id: str,
    given: Annotated[dict[str, str], Depends(_given)],
) -> Response:
    """Keep what the reviewer says, or say why not; nothing is overwritten."""
    note, version = given.pop("note", ""), given.pop("version", "")
    answers = {question: int(value) if value.isdecimal() else 0 for question, value in given.items()}
    try:
        review = desk.settle(request_id, rater, answers, note, version)
    except Overtaken as error:
        unsaved = [(QUESTIONS[q].title, value) for q, value in answers.items() if q in QUESTIONS]
        more = {"message": str(error), "request_id": request_id, "note": note[:LONGEST_NOTE], "unsaved": unsaved}
        return _page(request, desk, "overtaken", staff_name, 409, **more)
    except EvenEditError as error:
        try:
            sheet = desk.sheet(request_id, rater)
        except EvenEditError:
            raise HttpProblem(404, str(error)) from None
        return _sheet(request, desk, staff_name, sheet, 422, answers=answers, note=note, problems=error.problems)
    request.app.state.log.note(
        staff_name,
        "settled a case",
        case=request_id,
        reviewer=rater,
        review=review.id,
        answers=answers,
        note=review.note,
    )
    return RedirectResponse(f"/review/next?after={request_id}&saved={review.id}", 303)


def undo(request: Request, desk: OpenDesk, staff_name: Staff, rater: Rater, review: Annotated[int, Form()]) -> Response:
    """Take a review back and open its case again."""
    try:
        undone = desk.undo(review, rater)
    except Overtaken as error:
        return _page(request, desk, "overtaken", staff_name, 409, message=str(error), request_id="")
    except EvenEditError as error:
        raise HttpProblem(404, str(error)) from None
    request.app.state.log.note(staff_name, "undid a review", case=undone.request_id, reviewer=rater, review=undone.id)
    return RedirectResponse(f"/review/case/{undone.request_id}", 303)
