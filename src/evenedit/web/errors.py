"""Error responses: a type and a sentence, without internal details."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from pydantic import BaseModel
from sqlalchemy.exc import DataError
from starlette.exceptions import HTTPException

from evenedit.core.errors import EvenEditError
from evenedit.web.pages import page
from evenedit.web.security_headers import BODY_LIMIT, HEADERS
from evenedit.web.translations import language_of

LONGEST_PATH = 500
"""Characters of the path to which a visitor returns after signing in."""
_TYPES = {
    400: "bad_request",
    401: "sign_in",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "too_large",
    422: "invalid",
    429: "too_many",
    500: "failure",
    503: "not_ready",
}
_SENTENCES = {
    400: "The request could not be understood.",
    404: "Page not found.",
    405: "This address does not accept this method.",
    500: "Internal server error. Everything shown as saved is stored.",
    413: f"At most {BODY_LIMIT} bytes are accepted.",
    422: "The request does not have the expected format.",
}


class ErrorMessage(BaseModel):
    """The description of an error."""

    type: str
    message: str
    items: list[int] | None = None
    """Numbers of the items that still miss answers."""
    fields: list[str] | None = None
    """Parts of the request that were wrong."""


class ErrorBody(BaseModel):
    """The body of every 4xx answer to a program."""

    error: ErrorMessage


class HttpProblem(HTTPException):
    """A request that cannot be fulfilled; the message is shown to the visitor."""

    def __init__(self, status: int, message: str = "", *, type: str = "", **more: Any) -> None:
        super().__init__(status, message or _SENTENCES.get(status, ""), {})
        self.type = type or _TYPES[status]
        self.more = more

    def __str__(self) -> str:
        return self.detail


class SignIn(HttpProblem):
    """The page is for staff, and nobody is signed in."""

    def __init__(self) -> None:
        super().__init__(401, "Please sign in.")


@contextmanager
def errors_as(status: int) -> Iterator[None]:
    """Turn an error of the study into an answer with this HTTP status."""
    try:
        yield
    except EvenEditError as error:
        raise HttpProblem(status, str(error)) from None


def wants_page(request: Request) -> bool:
    """Return whether the request comes from a browser that expects a page, not from a program."""
    return "text/html" in request.headers.get("accept", "")


def _answer(request: Request, problem: HTTPException) -> Response:
    if not isinstance(problem, HttpProblem):
        problem = HttpProblem(problem.status_code if problem.status_code in _TYPES else 400)
    if isinstance(problem, SignIn) and wants_page(request) and request.method == "GET":
        path = f"{request.url.path}?{request.url.query}".rstrip("?")
        if len(path) > LONGEST_PATH:
            path = request.url.path
        return RedirectResponse(f"/admin/login?next={quote(path)}", 303)
    if wants_page(request):
        known = request.app.state.languages
        language = language_of(request, known.codes)
        answer: Response = page(
            request,
            "error.html",
            problem.status_code,
            message=str(problem),
            hint=known.texts(language)["error"]["hint"],
            language=language,
            direction=known.direction(language),
        )
    else:
        body = ErrorMessage(type=problem.type, message=str(problem), **problem.more)
        answer = JSONResponse(ErrorBody(error=body).model_dump(exclude_none=True), problem.status_code)
    answer.headers.update(problem.headers or {})
    return answer


def _on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _answer(request, error)


def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    fields = sorted({".".join(map(str, problem["loc"])) for problem in error.errors()})
    return _answer(request, HttpProblem(422, fields=fields))


def _on_unstorable(request: Request, error: Exception) -> Response:
    """Answer a text or number that the database cannot store, such as a NUL character on PostgreSQL."""
    return _answer(request, HttpProblem(422))


def _on_failure(request: Request, error: Exception) -> Response:
    """Answer an unexpected exception; its details go to the server's log only."""
    answer = _answer(request, HttpProblem(500))
    answer.headers.update(HEADERS)  # this response does not pass through the middleware
    return answer


def handle_errors(app: FastAPI) -> None:
    """Register handlers that answer every error in the same form."""
    app.add_exception_handler(HTTPException, _on_problem)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(DataError, _on_unstorable)
    app.add_exception_handler(Exception, _on_failure)
