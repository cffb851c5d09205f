"""Authentication of staff: passwords, sessions that the server can end, roles, and a limit on wrong passwords."""

from __future__ import annotations

import time
from contextlib import suppress
from hashlib import sha256
from secrets import token_urlsafe
from typing import Annotated

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from fastapi import Depends, Request, Response

from evenedit.cases.review_queue import rater_id
from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.storage.staff_store import StaffAccount, StaffSession, StaffStore, plain_name
from evenedit.storage.store import Store
from evenedit.web.audit_log import AuditLog
from evenedit.web.errors import HttpProblem, SignIn
from evenedit.web.roles import Role, may_open
from evenedit.web.security_headers import SAFE, is_own
from evenedit.web.settings import ServerSettings, check_password
from evenedit.web.throttle import ACCOUNT_TRIES, Limit

COOKIE = "staff"
HOURS = 12
"""How long a member of staff stays signed in."""
ADMIN = "admin"
_hasher = PasswordHasher()


def staff(request: Request) -> str:
    """Return the name of the signed-in member of staff, whose role may open this page; for `Depends`."""
    member = authentication(request).member(request.cookies.get(COOKIE, ""))
    if member is None:
        raise SignIn
    name, role = member
    if request.method not in SAFE and not is_own(request.headers):
        raise HttpProblem(403, "This request did not come from a page of this server.")
    request.state.role, request.state.staff = role, name
    if not may_open(role, request.url.path):
        raise HttpProblem(403, f"This page is not open to the role {role}. An owner of the study can change your role.")
    return name


Staff = Annotated[str, Depends(staff)]
"""The name of the signed-in member of staff."""


def authentication(request: Request) -> StaffAuthentication:
    """Return the app's authentication of staff."""
    auth: StaffAuthentication = request.app.state.authentication
    return auth


class Accounts:
    """The accounts of a study's staff: who can sign in, in which role."""

    def __init__(self, store: Store) -> None:
        self.file = StaffStore(store.folder)

    def all(self) -> dict[str, StaffAccount]:
        """Return all accounts by name."""
        return self.file.accounts()

    def add(self, name: str, role: Role, password: str) -> str:
        """Add an account and return its name."""
        known = rater_id(plain_name(name)).split(":", 1)[1]  # reviews are exported under the name
        if known in self.all():
            raise EvenEditError(
                f"'{known}' has an account already. To change it: evenedit admin add STUDY {known} --replace"
            )
        self._save(known, role, password)
        return known

    def set_password(self, name: str, password: str) -> None:
        """Set a password, which ends the account's sessions."""
        account = self.require(name)
        self._save(account.name, Role(account.role), password)

    def set_role(self, name: str, role: Role) -> None:
        """Change what an account may do, at once for its sessions too."""
        account = self.require(name)
        self._keep_an_owner(account, role)
        self.file.save(StaffAccount(account.name, role.value, account.hash, account.created))

    def remove(self, name: str) -> str:
        """Remove an account and end its sessions; returns its name. What the person did stays in the log."""
        account = self.require(name)
        self._keep_an_owner(account, None)
        self.file.remove(account.name)
        return account.name

    def require(self, name: str) -> StaffAccount:
        """Return an account; raise `EvenEditError` if there is none of this name."""
        known = self.all().get(plain_name(name))
        if known is None:
            raise EvenEditError(
                f"'{plain_name(name)}' has no account here; accounts: {', '.join(self.all()) or 'none'}"
            )
        return known

    def _keep_an_owner(self, account: StaffAccount, role: Role | None) -> None:
        owners = [other.name for other in self.all().values() if other.role == Role.OWNER]
        if owners == [account.name] and role is not Role.OWNER:
            raise EvenEditError(f"'{account.name}' is the only owner; make someone else an owner first")

    def _save(self, name: str, role: Role, password: str) -> None:
        check_password(password, name)
        self.file.save(StaffAccount(name, role.value, _hasher.hash(password), time.time()))


class StaffAuthentication:
    """Checks passwords, limits wrong ones, and knows the sessions of staff."""

    def __init__(self, store: Store, setup: ServerSettings, log: AuditLog) -> None:
        self.accounts = Accounts(store)
        self._setup = setup
        self._log = log
        self._temporary = _hasher.hash(setup.password) if setup.password and not setup.production else None
        self._by_address = Limit()
        self._by_account = Limit(ACCOUNT_TRIES)
        self._announcements = Limit(1)

    @property
    def has_accounts(self) -> bool:
        """Whether anybody can sign in."""
        return bool(self._known())

    def sign_in(self, name: str, password: str, address: str) -> tuple[str, Role]:
        """Check a password; returns a session cookie and the role. Wrong ones are limited before they are checked."""
        name = plain_name(name)
        try:
            taken = self._by_address.take(address)
            about = self._by_account.take(name)
        except HttpProblem:
            with suppress(HttpProblem):  # told once in a while: strangers must not be able to fill the log
                self._announcements.take(address)
                self._log.note(name, "sign-in blocked", address=address)
            raise
        known = self._known().get(name)
        if not _matches(known.hash if known else _UNKNOWN_ACCOUNT, password) or known is None:
            self._log.note(name, "sign-in failed", address=address)
            raise HttpProblem(401, "Name or password is wrong.")
        self._by_address.give_back(address, taken)
        self._by_account.give_back(name, about)
        self._log.note(name, "signed in", address=address)
        token, now = token_urlsafe(32), time.time()
        self.accounts.file.begin(_digest(token), StaffSession(name, digest(known.hash), now + HOURS * 3600), now)
        return token, Role(known.role)

    def member(self, cookie: str) -> tuple[str, Role] | None:
        """Return the name and role of the member of staff whose session a cookie belongs to."""
        session = self.accounts.file.session(_digest(cookie), time.time()) if cookie else None
        known = self._known().get(session.name) if session else None
        if session is None or known is None or session.mark != digest(known.hash):
            return None
        return known.name, Role(known.role)

    def sign_out(self, cookie: str) -> None:
        """End a session, so that its cookie is of no use to anybody."""
        self.accounts.file.end(_digest(cookie))

    def set_cookie(self, response: Response, cookie: str) -> None:
        """Set the session cookie, which scripts cannot read and other sites cannot use."""
        response.set_cookie(
            COOKIE,
            cookie,
            max_age=HOURS * 3600,
            httponly=True,
            samesite="strict",
            secure=self._setup.production,
        )

    def _known(self) -> dict[str, StaffAccount]:
        temporary = {ADMIN: StaffAccount(ADMIN, Role.OWNER.value, self._temporary, 0.0)} if self._temporary else {}
        return self.accounts.all() | temporary


_UNKNOWN_ACCOUNT = _hasher.hash("nobody")
"""Checked for unknown names too, so that response times do not reveal which names exist."""


def _digest(token: str) -> str:
    """Return the stored digest of a token; it cannot be used to sign in."""
    return sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _matches(known: str, password: str) -> bool:
    try:
        return _hasher.verify(known, password)
    except (VerificationError, InvalidHashError):
        return False
