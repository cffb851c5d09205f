"""The review pages: reviewers settle the cases on which the judges disagree, one at a time. For staff only.

A review is the signed-in account's: one sign-in is one reviewer.

GET  /review            how many cases wait, your last reviews
GET  /review/next       the next case that waits for you; ?after=ID skips one
GET  /review/case/ID    source, output, instruction, the judges' scores and evidence; no editor, no labels
POST /review/case/ID    an answer per question, note, version
POST /review/undo       review: withdraw one of your own, unless others have reviewed the case since
GET  /review/agreement  how far two reviewers agree
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from evenedit.cases.casebook import CaseFile
from evenedit.cases.review_queue import LONGEST_NOTE, ReviewForm, ReviewQueue, StaleCaseError, rater_id
from evenedit.core.errors import EvenEditError
from evenedit.ratings.reviews import PREFIX
from evenedit.survey.languages import built_in_texts, wording
from evenedit.survey.participant_tasks import request_text
from evenedit.web.auth import Staff, staff
from evenedit.web.errors import HttpProblem, errors_as
from evenedit.web.pages import page

PAGE_SIZE = 60
"""The most waiting cases that the first page lists."""
LAST = 8
"""The most reviews of one's own that it lists."""


def router() -> APIRouter:
    """Return the routes of the review pages."""
    routes = APIRouter(
        prefix="/review",
        dependencies=[Depends(staff)],
        include_in_schema=False,
        default_response_class=HTMLResponse,
    )
    routes.get("")(queue)
    routes.get("/next")(following)
    routes.get("/case/{request_id}")(case)
    routes.post("/case/{request_id}")(settle)
    routes.post("/undo")(undo)
    routes.get("/agreement")(agreement)
    return routes


def open_queue(request: Request) -> ReviewQueue:
    """Return the study's review queue, opened at the first visit."""
    state = request.app.state
    if not hasattr(state, "review"):
        state.review = ReviewQueue(state.study)
    cases: ReviewQueue = state.review
    return cases


def _rater(staff_name: Staff) -> str:
    """Return the rater id of the signed-in account."""
    with errors_as(403):
        return rater_id(staff_name)


OpenQueue = Annotated[ReviewQueue, Depends(open_queue)]
Rater = Annotated[str, Depends(_rater)]


def _page(request: Request, cases: ReviewQueue, template: str, status: int = 200, **context: Any) -> Response:
    file = request.app.state.study.file
    return page(
        request,
        f"review/{template}.html",
        status,
        reviewer=_rater(request.state.staff).removeprefix(PREFIX),
        reviewers=cases.reviewers,
        settles=file.sections.ensemble.review == "settles",
        titles={q.id: q.title for q in file.questions.values()},
        **context,
    )


# -- pages ---------------------------------------------------------------------------------------------------


def queue(request: Request, cases: OpenQueue, rater: Rater) -> Response:
    """Show the waiting cases and the visitor's last reviews."""
    waiting = cases.waiting(rater)
    reviews = [r for r in cases.reviews.history() if r.rater == rater and r.undone is None]
    return _page(
        request,
        cases,
        "queue",
        standing=cases.standing(),
        left=len(waiting),
        waiting=waiting[:PAGE_SIZE],
        numbers={ident: number for number, ident in enumerate(cases.cases, 1)},
        last=reviews[: -LAST - 1 : -1],
    )


def following(cases: OpenQueue, rater: Rater, after: str = "", saved: int = 0) -> Response:
    """Redirect to the next case that waits for this reviewer."""
    waiting = cases.next(rater, after or None)
    if waiting is None:
        return RedirectResponse("/review", 303)
    return RedirectResponse(f"/review/case/{waiting.request_id}" + (f"?saved={saved}" if saved else ""), 303)


def case(request: Request, cases: OpenQueue, rater: Rater, request_id: str, saved: int = 0) -> Response:
    """Show one case with its questions."""
    try:
        form = _form(cases, request_id, rater)
    except StaleCaseError as error:
        return _page(request, cases, "overtaken", 409, message=str(error), request_id=request_id)
    cases.hold(request_id, rater)
    before = cases.last(rater) if saved else None
    saved_review = before if before is not None and before.id == saved else None
    return _case_page(request, cases, form, saved=saved_review)


def _form(cases: ReviewQueue, request_id: str, rater: str) -> ReviewForm:
    """Return the form of a case; 404 if there is none."""
    try:
        return cases.form(request_id, rater)
    except StaleCaseError:
        raise
    except EvenEditError as error:
        raise HttpProblem(404, str(error)) from None


def _case_page(request: Request, cases: ReviewQueue, form: ReviewForm, status: int = 200, **more: Any) -> Response:
    file = cases.open(form.case)
    return _page(
        request,
        cases,
        "case",
        status,
        case=file,
        form=form,
        words={question.id: wording(question, built_in_texts("en")) for question in form.questions},
        pictures=_pictures(file),
        instruction=request_text(file.prompt, file.request.condition),
        number=list(cases.cases).index(form.case.request_id) + 1,
        total=len(cases.cases),
        longest=LONGEST_NOTE,
        **{"answers": {}, "note": "", "problems": (), "saved": None} | more,
    )


def _pictures(file: CaseFile) -> list[tuple[str, str]]:
    """Captions and hashes of the pictures; labels are shown only for pairs, where the question is about gender."""
    if len(file.sources) == 1:
        sources = [("Source", file.sources[0].image)]
    else:
        sources = [
            (f"Source {at}: labelled {source.attributes.get('gender', 'unknown').lower()}", source.image)
            for at, source in enumerate(file.sources, 1)
        ]
    return [*sources, ("Output", file.edit.image or "")]


def agreement(request: Request, cases: OpenQueue) -> Response:
    """Show how far two reviewers agree."""
    return _page(request, cases, "agreement", rows=cases.agreement(), standing=cases.standing())


# -- actions -------------------------------------------------------------------------------------------------


async def _form_fields(request: Request) -> dict[str, str]:
    """Return the fields of a posted form."""
    return {key: str(value) for key, value in (await request.form()).items()}


def settle(
    request: Request,
    cases: OpenQueue,
    rater: Rater,
    request_id: str,
    fields: Annotated[dict[str, str], Depends(_form_fields)],
) -> Response:
    """Save a review, or show why it cannot be saved; nothing is overwritten."""
    note, version = fields.pop("note", ""), fields.pop("version", "")
    answers = {question: int(value) if value.isdecimal() else 0 for question, value in fields.items()}
    try:
        review = cases.settle(request_id, rater, answers, note, version)
    except StaleCaseError as error:
        known = request.app.state.study.file.questions
        unsaved = [(known[q].title, value) for q, value in answers.items() if q in known]
        more = {"message": str(error), "request_id": request_id, "note": note[:LONGEST_NOTE], "unsaved": unsaved}
        return _page(request, cases, "overtaken", 409, **more)
    except EvenEditError as error:
        form = _form(cases, request_id, rater)
        return _case_page(request, cases, form, 422, answers=answers, note=note, problems=error.problems)
    request.app.state.log.note(
        request.state.staff,
        "settled a case",
        case=request_id,
        reviewer=rater,
        review=review.id,
        answers=answers,
        note=review.note,
    )
    return RedirectResponse(f"/review/next?after={request_id}&saved={review.id}", 303)


def undo(request: Request, cases: OpenQueue, rater: Rater, review: Annotated[int, Form()]) -> Response:
    """Withdraw a review and open its case again."""
    try:
        undone = cases.undo(review, rater)
    except StaleCaseError as error:
        return _page(request, cases, "overtaken", 409, message=str(error), request_id="")
    except EvenEditError as error:
        raise HttpProblem(404, str(error)) from None
    request.app.state.log.note(
        request.state.staff, "undid a review", case=undone.request_id, reviewer=rater, review=undone.id
    )
    return RedirectResponse(f"/review/case/{undone.request_id}", 303)
