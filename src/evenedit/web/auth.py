"""Authentication of staff: passwords, session cookies, and a limit on failed attempts."""

from __future__ import annotations

import json

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from fastapi import Request, Response
from itsdangerous import BadSignature, TimestampSigner

from evenedit.core.hashing import digest
from evenedit.storage.store import Store
from evenedit.web.access_log import AuditLog
from evenedit.web.errors import HttpProblem, SignIn
from evenedit.web.security_headers import SAFE, is_own
from evenedit.web.settings import Setup, check_password
from evenedit.web.throttle import Limit

COOKIE = "staff"
HOURS = 12
"""How long a member of staff stays signed in."""
ADMIN = "admin"
_FACT = "staff"
_hasher = PasswordHasher()


def staff(request: Request) -> str:
    """The name of the signed-in member of staff (reviewer, curator, administrator); for use with `Depends`."""
    name = authentication(request).name(request.cookies.get(COOKIE, ""))
    if name is None:
        raise SignIn
    if request.method not in SAFE and not is_own(request.headers):
        raise HttpProblem(403, "This request did not come from a page of this server.")
    return name


def authentication(request: Request) -> StaffAuthentication:
    """The app's authentication of staff."""
    auth: StaffAuthentication = request.app.state.authentication
    return auth


class StaffAuthentication:
    """Checks passwords, limits failed attempts, and signs the session cookies of staff."""

    def __init__(self, store: Store, setup: Setup, log: AuditLog) -> None:
        self._store = store
        self._setup = setup
        self._log = log
        self._signer = TimestampSigner(setup.secret, salt="evenedit-staff")
        self._temporary = _hasher.hash(setup.password) if setup.password and not setup.production else None
        self._limit = Limit()

    @property
    def has_accounts(self) -> bool:
        """Whether any member of staff has a password."""
        return bool(self._hashes())

    def sign_in(self, name: str, password: str, address: str) -> str:
        """Check a password and return a session cookie; repeated failures are blocked for a while."""
        try:
            self._limit.check(address)
        except HttpProblem:
            self._log.note(name, "sign-in blocked", address=address)
            raise
        known = self._hashes().get(name)
        if not _matches(known or _NOBODY, password) or known is None:
            self._limit.count(address)
            self._log.note(name, "sign-in failed", address=address)
            raise HttpProblem(401, "Name or password is wrong.")
        self._log.note(name, "signed in", address=address)
        return self._signer.sign(f"{name}/{digest(known)}").decode()

    def name(self, cookie: str) -> str | None:
        """The member of staff a cookie belongs to. Changing a password ends its sessions."""
        try:
            name, _, mark = self._signer.unsign(cookie, max_age=HOURS * 3600).decode().rpartition("/")
        except (BadSignature, UnicodeDecodeError):
            return None
        known = self._hashes().get(name)
        return name if known is not None and mark == digest(known) else None

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

    def _hashes(self) -> dict[str, str]:
        return passwords(self._store) | ({ADMIN: self._temporary} if self._temporary else {})


def passwords(store: Store) -> dict[str, str]:
    """Hashes of the staff's passwords by name."""
    hashes: dict[str, str] = json.loads(store.fact(_FACT) or "{}")
    return hashes


def set_password(store: Store, name: str, password: str) -> None:
    """Store a password as its argon2 hash."""
    check_password(password, name)
    store.set_fact(_FACT, json.dumps(passwords(store) | {name: _hasher.hash(password)}))


_NOBODY = _hasher.hash("nobody")
"""Checked for unknown names too, so that response times do not reveal which names exist."""


def _matches(known: str, password: str) -> bool:
    try:
        return _hasher.verify(known, password)
    except (VerificationError, InvalidHashError):
        return False
