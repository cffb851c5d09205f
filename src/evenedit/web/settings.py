"""Server settings for local use and for production."""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import urlsplit

from evenedit.config.study_file import StudyFile
from evenedit.core.errors import EvenEditError
from evenedit.survey.consent import missing
from evenedit.survey.platforms import PANEL_SECRET

PASSWORD_LENGTH = 10
_KNOWN = ("evenedit", "password", "administrator", "1234567890", "qwertyuiop", "changeme", "letmein")
"""Passwords made of little else are guessed first."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Settings of one run of the server."""

    production: bool = False
    """Only behind HTTPS: secure cookies, no description of the interface, nothing left at a default."""
    address: str = ""
    """The address that visitors open; links are made from it. Empty: the address a request was sent to."""
    hosts: frozenset[str] | None = None
    """Names of hosts under which requests are taken, beside plain network addresses; None: under any name."""
    access_log: str = ""
    """A file for the access log, "-" for the standard output; empty: none is kept."""
    password: str | None = None
    """A temporary password for the member of staff called admin; never in production."""


def host_of(address: str) -> str:
    """Return the name of the host in an address, without its port."""
    return (urlsplit(address).hostname or "").lower()


def check_password(password: str, name: str = "") -> None:
    """Refuse a password that is easy to guess."""
    if len(password) < PASSWORD_LENGTH:
        raise EvenEditError(f"the password has {len(password)} characters; use {PASSWORD_LENGTH} or more")
    plain = password.lower().strip("0123456789!?._-")
    if password.lower() in _KNOWN or plain in {*_KNOWN, name.lower(), ""} or len(set(password)) < 4:
        raise EvenEditError("this password is too common; choose another")


def check_production(file: StudyFile, proxy: str | None, address: str, has_accounts: bool) -> None:
    """Refuse to start in production with insecure settings; all problems are listed at once."""
    problems = []
    if not proxy:
        problems.append(
            "--production needs --proxy: the address of the HTTPS proxy whose X-Forwarded-For and X-Forwarded-Proto "
            "headers are to be trusted, for example --proxy 127.0.0.1"
        )
    if urlsplit(address).scheme != "https" or not host_of(address):
        problems.append(
            "--production needs --address: the address that visitors open, for example --address "
            "https://survey.example "
            "(or origin in [survey.platform]); requests for other names are refused"
        )
    if not has_accounts:
        problems.append("--production needs a staff account. Add one: evenedit admin add STUDY NAME --role owner")
    survey = file.sections.survey
    if survey is not None and survey.platform.kind != "invitation" and not survey.platform.signed:
        problems.append(
            f"--production refuses unsigned links: anyone can put another person's id into a link of kind "
            f"'{survey.platform.kind}'. Set signed = true in [survey.platform], or use invitations"
        )
    elif survey is not None and survey.platform.kind == "panel" and len(os.environ.get(PANEL_SECRET, "")) < 32:
        problems.append(
            f"the panel's signed links need a secret of 32 characters or more in the environment: {PANEL_SECRET}"
        )
    if survey is not None:
        problems += [
            f"--production needs {key} in study.toml: the consent page must state it" for key in missing(survey)
        ]
    if problems:
        raise EvenEditError(*problems)
