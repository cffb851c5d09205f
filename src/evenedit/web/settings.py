"""Server settings for local use and for production."""

from __future__ import annotations

from dataclasses import dataclass, field
from secrets import token_urlsafe

from evenedit.core.errors import EvenEditError

SECRET = "EVENEDIT_SECRET"
"""The environment variable that holds the server's secret."""
SECRET_LENGTH = 32
PASSWORD_LENGTH = 10
_KNOWN = ("evenedit", "password", "administrator", "1234567890", "qwertyuiop", "changeme", "letmein")
"""Passwords made of little else are guessed first."""


@dataclass(frozen=True, slots=True)
class Setup:
    """Settings of one run of the server."""

    production: bool = False
    """Only behind HTTPS: secure cookies, no description of the interface, nothing left at a default."""
    secret: str = field(default_factory=lambda: token_urlsafe(32))
    """Signs cookies; a server with a random one signs everybody out when it ends."""
    password: str | None = None
    """A temporary password for the member of staff called admin; never in production."""


def check_password(password: str, name: str = "") -> None:
    """Refuse a password that is easy to guess."""
    if len(password) < PASSWORD_LENGTH:
        raise EvenEditError(f"the password has {len(password)} characters; use {PASSWORD_LENGTH} or more")
    plain = password.lower().strip("0123456789!?._-")
    if password.lower() in _KNOWN or plain in {*_KNOWN, name.lower(), ""} or len(set(password)) < 4:
        raise EvenEditError("this password is one of the first that anybody tries; choose another")


def check_production(secret: str | None, proxy: str | None, has_password: bool) -> None:
    """Refuse to start in production with insecure settings; all problems are listed at once."""
    problems = []
    if secret is None or len(secret) < SECRET_LENGTH or len(set(secret)) < 8:
        problems.append(
            f"--production needs a secret of {SECRET_LENGTH} random characters or more in the environment variable "
            f"{SECRET}. Make one: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    if not proxy:
        problems.append(
            "--production needs --proxy: the address of the HTTPS proxy whose X-Forwarded-For and X-Forwarded-Proto "
            "headers are to be trusted, for example --proxy 127.0.0.1"
        )
    if not has_password:
        problems.append("--production needs a staff password. Set one: evenedit admin password STUDY")
    if problems:
        raise EvenEditError(*problems)
