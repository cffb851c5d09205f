"""The page on which owners and researchers deal review cases to reviewers and see how much each has done.

GET  /admin/reviewers    every reviewer's workload
POST /admin/reviewers    reviewer (several): deal the waiting cases evenly to these; none: everybody takes the next
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from evenedit.cases.review_queue import rater_id
from evenedit.core.errors import EvenEditError
from evenedit.ratings.reviews import PREFIX
from evenedit.web.auth import Staff, authentication
from evenedit.web.pages import page
from evenedit.web.review import open_queue
from evenedit.web.roles import Role

PATH = "/admin/reviewers"
TITLE = "Reviewers"


def router() -> APIRouter:
    """Return the routes of the page."""
    routes = APIRouter(prefix=PATH, tags=["staff"], default_response_class=HTMLResponse)
    routes.get("")(reviewers)
    routes.post("")(deal)
    return routes


def reviewers(request: Request, name: Staff) -> Response:
    """Show every reviewer's workload."""
    return _page(request)


def deal(
    request: Request, name: Staff, reviewer: Annotated[list[Annotated[str, Form(max_length=80)]] | None, Form()] = None
) -> Response:
    """Deal the waiting cases to the chosen reviewers."""
    chosen = [known for known in _raters(request) if known.removeprefix(PREFIX) in (reviewer or [])]
    if len(chosen) < len(set(reviewer or [])):
        return _page(request, 422, problem="One of the chosen names is not a reviewer of this study.")
    try:
        dealt = open_queue(request).deal(chosen)
    except EvenEditError as error:
        return _page(request, 422, problem=str(error))
    request.app.state.log.note(
        name, "assigned the waiting cases to reviewers" if dealt else "let reviewers take the next case", dealt=dealt
    )
    return RedirectResponse(PATH, 303)


def _raters(request: Request) -> list[str]:
    """Return the accounts that may review, as raters."""
    return [
        rater_id(account.name)
        for account in authentication(request).accounts.all().values()
        if account.role != Role.CURATOR
    ]


def _page(request: Request, status: int = 200, problem: str = "") -> Response:
    queue, known = open_queue(request), _raters(request)
    return page(
        request,
        "admin/reviewers.html",
        status,
        rows=queue.workloads(known),
        known=set(known),
        standing=queue.standing(),
        dealt=queue.assignments.reviewers(),
        looks=queue.reviewers,
        prefix=PREFIX,
        problem=problem,
    )
