"""The page on which owners manage the accounts of staff.

GET  /admin/accounts            every account with its role; a form for a new one
POST /admin/accounts            name, role, password: add an account
POST /admin/accounts/role       name, role: change what an account may do
GET  /admin/accounts/remove     POST /admin/accounts/remove (name, sure=yes): remove an account and end its sessions
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from evenedit.core.errors import EvenEditError
from evenedit.web.auth import Accounts, Staff, authentication, staff
from evenedit.web.errors import HttpProblem
from evenedit.web.pages import page
from evenedit.web.roles import Role

PATH = "/admin/accounts"
AccountName = Annotated[str, Form(max_length=80)]


def router() -> APIRouter:
    """Return the routes of the page; `staff` opens them to owners only."""
    routes = APIRouter(prefix=PATH, tags=["staff"], dependencies=[Depends(staff)], default_response_class=HTMLResponse)
    routes.get("")(accounts)
    routes.post("")(add)
    routes.post("/role")(change_role)
    routes.get("/remove")(ask_removal)
    routes.post("/remove")(remove)
    return routes


def accounts(request: Request) -> Response:
    """Show every account."""
    return _page(request)


def add(
    request: Request,
    owner: Staff,
    name: AccountName,
    role: Annotated[Role, Form()],
    password: Annotated[str, Form(max_length=200)],
) -> Response:
    """Add an account."""
    try:
        known = _accounts(request).add(name, role, password)
    except EvenEditError as error:
        return _page(request, 422, problem=str(error), name=name, chosen=role)
    request.app.state.log.note(owner, f"added the account {known} ({role})")
    return RedirectResponse(PATH, 303)


def change_role(request: Request, owner: Staff, name: AccountName, role: Annotated[Role, Form()]) -> Response:
    """Change what an account may do."""
    try:
        _accounts(request).set_role(name, role)
    except EvenEditError as error:
        return _page(request, 409, problem=str(error))
    request.app.state.log.note(owner, f"made {name} {role}")
    return RedirectResponse(PATH, 303)


def ask_removal(request: Request, name: str = "") -> Response:
    """Ask before an account is removed."""
    if name not in _accounts(request).all():
        raise HttpProblem(404, "There is no account with this name.")
    return page(request, "admin/remove_account.html", name=name)


def remove(request: Request, owner: Staff, name: AccountName, sure: Annotated[Literal["yes"], Form()]) -> Response:
    """Remove an account."""
    try:
        known = _accounts(request).remove(name)
    except EvenEditError as error:
        return _page(request, 409, problem=str(error))
    request.app.state.log.note(owner, f"removed the account {known}")
    return RedirectResponse(PATH, 303)


def _accounts(request: Request) -> Accounts:
    return authentication(request).accounts


def _page(request: Request, status: int = 200, **more: str) -> Response:
    known = list(_accounts(request).all().values())
    return page(request, "admin/accounts.html", status, accounts=known, roles=list(Role), **more)
