"""The shortest way for an answer that can be saved: no routing, no dependencies, no other thread than the writer's.

Whatever is not plainly right is passed on as it came, and the route of the survey says what is wrong with it.
"""

from __future__ import annotations

import re
from asyncio import wrap_future

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenedit.survey.sessions import Refused, SurveyService

PATH = "/survey/answers"
COOKIE = "visit"
BIGGEST = 2**53 - 1
"""The largest whole number that JavaScript holds exactly."""
_TOKEN = re.compile(rb"(?:^|;\s*)visit=([A-Za-z0-9_-]{1,100})(?:;|$)")


class AnswerBody(BaseModel):
    """One answer, as the evaluation page sends it."""

    model_config = ConfigDict(extra="forbid")

    item: str = Field(max_length=100)
    slot: str = Field(max_length=10)
    question: str = Field(max_length=100)
    value: int = Field(ge=1, le=10)
    sequence: int = Field(ge=1, le=BIGGEST)
    """Counts the participant's answers in the order they were given."""
    milliseconds: int = Field(default=0, ge=0, le=BIGGEST)
    """How long the item had been on the screen, all looks at it together, when this was answered."""


class SavingMiddleware:
    """Saves answers, and passes on every other request."""

    def __init__(self, app: ASGIApp, service: SurveyService) -> None:
        self.app = app
        self.service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Save an answer and acknowledge it when it is on disk; pass on what cannot be saved."""
        if scope["type"] != "http" or scope["path"] != PATH or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        message = await receive()
        if message.get("more_body", False) or message["type"] != "http.request":
            await self.app(scope, _again(message, receive), send)
            return
        stored = await self._save(scope, message.get("body", b""))
        if stored is None:
            await self.app(scope, _again(message, receive), send)
            return
        body = b'{"stored":%d}' % stored
        head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": body})

    async def _save(self, scope: Scope, body: bytes) -> int | None:
        """The sequence number that is stored; None if the answer is not one that can be saved."""
        headers = dict(scope["headers"])
        token = _TOKEN.search(headers.get(b"cookie", b""))
        if token is None or not headers.get(b"content-type", b"").startswith(b"application/json"):
            return None
        try:
            answer = AnswerBody.model_validate_json(body)
            return await wrap_future(
                self.service.saving(
                    token[1].decode(),
                    answer.item,
                    answer.slot,
                    answer.question,
                    answer.value,
                    answer.sequence,
                    answer.milliseconds,
                )
            )
        except (ValidationError, Refused):
            return None


def _again(first: Message, receive: Receive) -> Receive:
    """A receive function that gives a message that was taken once more, then the rest."""
    taken = False

    async def give() -> Message:
        nonlocal taken
        if taken:
            return await receive()
        taken = True
        return first

    return give
