"""Previews: a person with a signed link takes part through the real pages, in a visit that never counts.

A preview is a participant of the platform `preview`. It holds no slot, gets no completion code, and no rating, export,
count or payment reads it. There are `PLACES` of them; one that is older than `HOURS` gives way to a new one.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

import sqlalchemy as sa

from evenedit.storage.survey_schema import OF_ONE_PERSON, PREVIEW, facts, items, participants
from evenedit.survey.visits import Arrival, NotAllowedError

PLACES = 20
"""Previews that are kept at the same time, over all surveys of a study."""
HOURS = 24
"""How long a preview keeps its place."""
DAYS = 7
"""How long a link works."""


class PreviewLinks:
    """Links to previews: signed, so that nobody can make one, and valid for some days."""

    def __init__(self, key: bytes, clock: Callable[[], float] = time.time) -> None:
        self._key = key
        self._clock = clock

    def link(self, base: str, survey: int = 0) -> str:
        """Return a link to previews of a survey; each browser that opens it gets its own preview."""
        until = int(self._clock()) + DAYS * 86_400
        return signed_link(base, PREVIEW, self._key, survey, until)

    def arrive(self, query: Mapping[str, str]) -> Arrival:
        """Somebody new, if the link is one of ours."""
        survey, until = map(int, signed_parts(query, PREVIEW, self._key))
        if until < self._clock():
            raise NotAllowedError("this preview link has expired; please ask for another")
        return Arrival(PREVIEW, secrets.token_hex(16), survey=survey, signed=True)


def signed_link(base: str, parameter: str, key: bytes, *parts: object) -> str:
    """Return a link whose parameter holds these parts; nobody can forge or change them."""
    return f"{base.rstrip('/')}/survey?{parameter}={quote(_signed(parameter, key, parts))}"


def signed_parts(query: Mapping[str, str], parameter: str, key: bytes) -> list[str]:
    """Return the parts in a link's parameter; raise `NotAllowedError` unless the link is one of ours."""
    token = query.get(parameter, "")
    parts = token.split("~")[:-1]
    if not hmac.compare_digest(token.encode(), _signed(parameter, key, parts).encode()):
        raise NotAllowedError("this link is not valid; please open it exactly as you received it")
    return parts


def _signed(purpose: str, key: bytes, parts: Sequence[object]) -> str:
    texts = [str(part) for part in parts]
    signature = hmac.new(key, "\0".join([purpose, *texts]).encode(), hashlib.sha256).hexdigest()[:32]
    return "~".join([*texts, signature])


def make_room(db: sa.Connection, now: float) -> None:
    """Delete the previews whose time is over; refuse another if none of the places is free then."""
    db.execute(sa.select(facts).where(facts.c.key == "key").with_for_update())  # one at a time on PostgreSQL
    remove(db, participants.c.arrived < now - HOURS * 3600)
    held = sa.select(sa.func.count()).select_from(participants).where(participants.c.platform == PREVIEW)
    if db.execute(held).scalar_one() >= PLACES:
        raise NotAllowedError("all places for previews are taken")


def remove(db: sa.Connection, where: sa.ColumnElement[bool]) -> None:
    """Delete previews with all that was answered in them."""
    previews = sa.select(participants.c.id).where(participants.c.platform == PREVIEW, where)
    for table in OF_ONE_PERSON:
        db.execute(sa.delete(table).where(table.c.participant.in_(previews)))
    db.execute(sa.delete(participants).where(participants.c.id.in_(previews)))


def choose_task(db: sa.Connection, survey: int, task: int | None) -> int | None:
    """Return the task that a preview shows: the requested one, or any; None if the survey has no such task."""
    tasks = [row.task for row in db.execute(sa.select(items.c.task).where(items.c.survey == survey).distinct())]
    if task is not None:
        return task if task in tasks else None
    return int(secrets.choice(tasks)) if tasks else None
