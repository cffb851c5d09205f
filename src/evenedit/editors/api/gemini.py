"""Gemini's image models, through the official SDK's generate_content.

What counts as a refusal: the provider says so in a field made for it, that is, the prompt was blocked
(`promptFeedback.blockReason`) or generation was stopped by a policy (`finishReason` in POLICY). Text without an image
after a normal end (STOP, NO_IMAGE) is the outcome `no_image`: it may be a polite no, a question or a promise of an
image that never came, and to tell them apart would be to guess. Everything else that brings no image is a failure,
with the model's words in its message: another ending without a stated policy (OTHER, LANGUAGE, MAX_TOKENS …), or no
words at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.core.interfaces import NoImage, Output, Refusal
from evenedit.editors.api.base import RemoteEditor
from evenedit.providers.calls import POLICY, to_image
from evenedit.providers.messages import join_messages
from evenedit.providers.remote import GeminiModel

if TYPE_CHECKING:
    from google.genai import Client


ANSWERED = frozenset({"STOP", "NO_IMAGE"})
"""Finish reasons of an answer that is complete."""


class GeminiImages(RemoteEditor["Client"], GeminiModel):
    """Edits with a Gemini image model, under the provider's own safety settings. The seed is sent, not guaranteed."""

    seed_supported = True

    def __init__(self, *, model: str, temperature: float | None = None, **shared: Any) -> None:
        if temperature is not None and not 0 <= temperature <= 2:
            raise EvenEditError(f"setting 'temperature' is {temperature}; it must lie between 0 and 2")
        super().__init__(model=model, **shared)
        self.temperature = temperature

    def send(self, client: Client, pictures: Sequence[bytes], instruction: str, seed: int) -> Any:
        """Make one call; return the raw reply, because the SDK's parsed one drops finishMessage."""
        from google.genai.types import Content, GenerateContentConfig, Part

        parts = [Part.from_bytes(data=picture, mime_type="image/png") for picture in pictures]
        response = client.models.generate_content(
            model=self.model,
            contents=Content(role="user", parts=[*parts, Part.from_text(text=instruction)]),
            config=GenerateContentConfig(
                response_modalities=["TEXT", "IMAGE"],  # text too: it tells why there is no image
                temperature=self.temperature,
                seed=seed % 2**31,  # the API's is a 32-bit integer
                should_return_http_response=True,
            ),
        ).sdk_http_response
        reply = json.loads((response and response.body) or "")
        if not isinstance(reply, Mapping):
            raise Failed(Failure.SERVER, "the reply is not a JSON object")
        return reply

    def read(self, reply: Any) -> Output:
        """Return the picture in a reply, a refusal, or the words that stand there instead; else raise Failed."""
        feedback = reply.get("promptFeedback") or {}
        if feedback.get("blockReason"):
            return Refusal(
                join_messages(f"prompt blocked, {feedback['blockReason']}", feedback.get("blockReasonMessage"))
            )
        candidate: Mapping[str, Any] = next(iter(reply.get("candidates") or []), {})
        # Thinking models show drafts on the way, marked as thoughts.
        parts = [part for part in (candidate.get("content") or {}).get("parts") or [] if not part.get("thought")]
        ending = candidate.get("finishReason") or "no finish reason"
        words = [candidate.get("finishMessage"), " ".join(part["text"] for part in parts if part.get("text"))]
        if ending in POLICY:
            return Refusal(join_messages(ending, *words))
        for part in parts:
            if data := (part.get("inlineData") or {}).get("data"):
                return to_image(data)
        if ending in ANSWERED and any(words):
            return NoImage(join_messages(*words))
        raise Failed(Failure.BAD_IMAGE, join_messages("no image in the reply", ending, *words))
