"""Where participants come from: Prolific, any panel, a signed invitation link, or a link to previews."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import httpx

from evenedit.config.study_file import PlatformSection
from evenedit.core.errors import EvenEditError
from evenedit.storage.survey_schema import PREVIEW
from evenedit.survey.previews import PreviewLinks, signed_link, signed_parts
from evenedit.survey.visits import Arrival, NotAllowedError

INVITE = "invite"
"""URL parameter of an invitation."""
TOKEN = "prolific_token"
"""URL parameter in which Prolific sends its signature, where the study asks for secure URLs."""
KEYS_LAST = 86_400.0
"""Seconds for which Prolific's public keys are kept."""
KEYS_PAUSE = 60.0
"""Seconds between two fetches of the keys."""
PANEL_SECRET = "EVENEDIT_PANEL_SECRET"
"""The environment variable with the secret that a panel signs its links with."""
SIGNATURE = "signature"
"""URL parameter of a panel's signature."""
_ID = re.compile(r"[A-Za-z0-9_.:@-]{1,128}\Z")


class PanelPlatform:
    """Any panel: the study file says which URL parameters hold the ids."""

    kind = "panel"

    def __init__(self, section: PlatformSection) -> None:
        self._section = section

    def arrive(self, query: Mapping[str, str]) -> Arrival:
        """Return the ids of the panel's link."""
        section = self._section
        participant, session, study = (
            query.get(name, "") for name in (section.participant, section.session, section.study)
        )
        if not _ID.match(participant):
            raise NotAllowedError("this link lacks your participant id; please open it from the panel's page again")
        for ident in (session, study):
            if ident and not _ID.match(ident):
                raise NotAllowedError("this link is damaged; please open it from the panel's page again")
        if section.study_ids and study not in section.study_ids:
            raise NotAllowedError("this link belongs to another study")
        arrival = Arrival(self.kind, participant, study, session, _survey(query), section.signed)
        if section.signed:
            self._verify(query, arrival)
        return arrival

    def _verify(self, query: Mapping[str, str], arrival: Arrival) -> None:
        """Refuse ids that the panel has not signed with the secret it shares with us."""
        wanted = panel_signature(arrival, os.environ.get(PANEL_SECRET, ""))
        signature = query.get(SIGNATURE, "").lower()
        if wanted is None or not hmac.compare_digest(signature.encode(), wanted.encode()):
            raise NotAllowedError("the signature of this link is wrong; please open it again from the panel's page")


def panel_signature(arrival: Arrival, secret: str) -> str | None:
    """Return the `signature` of a panel's link: HMAC-SHA256, in hex, of the ids and the survey, a line each.

    None without a secret.
    """
    text = f"{arrival.participant}\n{arrival.session}\n{arrival.study}\n{arrival.survey}"
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest() if secret else None


class Prolific(PanelPlatform):
    """Prolific's ids, with its signature checked where the study asks for secure URLs."""

    kind = "prolific"

    def __init__(self, section: PlatformSection, clock: Callable[[], float] = time.time) -> None:
        super().__init__(section)
        if section.kind == self.kind and section.signed and find_spec("cryptography") is None:
            raise EvenEditError(
                "study.toml asks for Prolific's signed links, which need the 'prolific' extra. "
                "Try: pip install 'evenedit[prolific]'"
            )
        self._clock = clock
        self._keys: dict[str, Mapping[str, str]] = {}
        self._fetched = 0.0
        self._keys_fetched = -KEYS_PAUSE
        self._lock = Lock()

    def _verify(self, query: Mapping[str, str], arrival: Arrival) -> None:
        """Refuse ids that Prolific has not signed."""
        token = query.get(TOKEN, "")
        problem = NotAllowedError("the signature of this link is wrong or expired; please open it again from Prolific")
        try:
            head, body, signature = token.split(".")
            header, claims = json.loads(_decoded(head)), json.loads(_decoded(body))
            if header.get("alg") != "RS256":  # never what the token itself proposes
                raise problem
            key = self._key(str(header.get("kid")))
            if not _is_signed(f"{head}.{body}".encode(), _decoded(signature), key):
                raise problem
            signed = claims["prolific"]
            audience = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
            origins = {urlsplit(str(a)).netloc or str(a) for a in audience}
            fresh = float(claims["exp"]) > self._clock()
        except (ValueError, KeyError, TypeError, AttributeError):
            raise problem from None
        wanted = urlsplit(self._section.origin).netloc or self._section.origin
        section = self._section
        names = {
            section.participant: arrival.participant,
            section.session: arrival.session,
            section.study: arrival.study,
        }
        if not fresh or wanted not in origins or any(signed.get(name) != value for name, value in names.items()):
            raise problem

    def _key(self, kid: str) -> Mapping[str, str]:
        """Return one of Prolific's public keys. Fetch them daily and for an unknown key, with a pause between."""
        with self._lock:
            now = self._clock()
            wanted = kid not in self._keys or now - self._fetched > KEYS_LAST
            if wanted and now - self._keys_fetched >= KEYS_PAUSE:  # a forged token can name any key
                self._keys_fetched = now
                self._fetch()
            if now - self._fetched > KEYS_LAST:
                raise NotAllowedError("the signature cannot be checked at the moment; please try again later")
            return self._keys[kid]

    def _fetch(self) -> None:
        parts = urlsplit(self._section.api)
        try:
            answer = httpx.get(f"{parts.scheme}://{parts.netloc}/.well-known/study/jwks.json", timeout=10)
            answer.raise_for_status()
            self._keys = {str(key["kid"]): key for key in answer.json()["keys"]}
        except (httpx.HTTPError, ValueError, KeyError):
            raise NotAllowedError("the signature cannot be checked at the moment; please try again later") from None
        self._fetched = self._clock()


class Invitations:
    """Invitation links: the name in them is signed, so nobody can forge one."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def link(self, base: str, name: str, survey: int = 0) -> str:
        """Return the invitation link of one person."""
        return signed_link(base, INVITE, self._key, name, survey)

    def arrive(self, query: Mapping[str, str]) -> Arrival:
        """Return the person an invitation names."""
        name, survey = signed_parts(query, INVITE, self._key)
        return Arrival("invitation", name, survey=int(survey), signed=True)


class Arrivals:
    """Every way into a survey: the platform of the study file, invitations, and previews."""

    def __init__(self, section: PlatformSection, key: bytes, clock: Callable[[], float] = time.time) -> None:
        self.invitations = Invitations(key)
        self.previews = PreviewLinks(key, clock)
        self._platforms = {"panel": PanelPlatform(section), "prolific": Prolific(section, clock)}
        self._kind = section.kind

    def arrive(self, query: Mapping[str, str]) -> Arrival:
        """Return the participant that a link identifies."""
        if INVITE in query:
            return self.invitations.arrive(query)
        if PREVIEW in query:
            return self.previews.arrive(query)
        if self._kind not in self._platforms:
            raise NotAllowedError("this survey is by invitation; please open the link you received")
        return self._platforms[self._kind].arrive(query)


def _survey(query: Mapping[str, str]) -> int:
    number = query.get("survey", "0")
    if number not in ("0", "1", "2", "3"):
        raise NotAllowedError("this survey is not open")
    return int(number)


def _is_signed(message: bytes, signature: bytes, key: Mapping[str, str]) -> bool:
    """Return True if a public key's owner signed a message (RS256)."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
    from cryptography.hazmat.primitives.hashes import SHA256

    owner = RSAPublicNumbers(_number(key["e"]), _number(key["n"])).public_key()
    try:
        owner.verify(signature, message, PKCS1v15(), SHA256())
    except InvalidSignature:
        return False
    return True


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _number(text: Any) -> int:
    return int.from_bytes(_decoded(str(text)), "big")
