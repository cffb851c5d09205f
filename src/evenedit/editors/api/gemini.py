"""Gemini's image models, through the official SDK's generate_content.

What counts as a refusal: the provider says so in a field made for it, that is, the prompt was blocked
(`promptFeedback.blockReason`) or generation was stopped by a policy (`finishReason` in POLICY). Everything else
that brings no image is a failure, with the model's words kept in its message: an ending without a stated policy
(OTHER, NO_IMAGE, LANGUAGE …), and also text alone after a normal STOP. Such text may be a polite no, a question or a
promise of an image that never came; to tell them apart would be to guess.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from PIL.Image import Image

from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.core.interfaces import Refusal
from evenedit.providers.calls import POLICY, Declined, Provider, to_image, to_png

if TYPE_CHECKING:
    from google.genai import Client


class GeminiImages:
    """Edits with a Gemini image model, under the provider's own safety settings. The seed is sent, not guaranteed."""

    max_images = 2
    remote = True
    seed_supported = True

    def __init__(
        self,
        *,
        model: str,
        temperature: float | None = None,
        base_url: str | None = None,
        api_key_env: str = "GEMINI_API_KEY",
        timeout: float = 180,
        attempts: int = 5,
    ) -> None:
        if temperature is not None and not 0 <= temperature <= 2:
            raise EvenEditError(f"setting 'temperature' is {temperature}; it must lie between 0 and 2")
        self.model = model
        self.temperature = temperature

        def connect(key: str) -> Client:
            from google import genai
            from google.genai.types import HttpOptions, HttpRetryOptions

            options = HttpOptions(
                base_url=base_url, timeout=int(timeout * 1000), retry_options=HttpRetryOptions(attempts=1)
            )
            return genai.Client(api_key=key, vertexai=False, http_options=options)

        self.provider = Provider(connect, model=model, key_env=api_key_env, attempts=attempts)

    def missing(self) -> list[str]:
        """What is needed to use it and not there."""
        return self.provider.missing("google.genai")

    def edit(self, images: Sequence[Image], instruction: str, seed: int) -> Image | Refusal:
        """Return the edited picture, or the provider's policy refusal with its reason."""
        pictures = [to_png(image) for image in images]

        def ask(client: Client) -> Mapping[str, Any]:
            from google.genai.types import Content, GenerateContentConfig, Part

            parts = [Part.from_bytes(data=picture, mime_type="image/png") for picture in pictures]
            response = client.models.generate_content(
                model=self.model,
                contents=Content(role="user", parts=[*parts, Part.from_text(text=instruction)]),
                config=GenerateContentConfig(
                    response_modalities=["TEXT", "IMAGE"],  # text too: it tells why there is no image
                    temperature=self.temperature,
                    seed=seed % 2**31,  # the API's is a 32-bit integer
                    should_return_http_response=True,  # the SDK's own reading drops finishMessage
                ),
            ).sdk_http_response
            reply = json.loads((response and response.body) or "")
            if not isinstance(reply, Mapping):
                raise Failed(Failure.SERVER, "the reply is not a JSON object")
            return reply

        try:
            return _outcome(self.provider.call(ask))
        except Declined as declined:
            return Refusal(str(declined))


def _outcome(reply: Mapping[str, Any]) -> Image | Refusal:
    feedback = reply.get("promptFeedback") or {}
    if feedback.get("blockReason"):
        return Refusal(_told(f"prompt blocked, {feedback['blockReason']}", feedback.get("blockReasonMessage")))
    candidate: Mapping[str, Any] = next(iter(reply.get("candidates") or []), {})
    # Thinking models show drafts on the way, marked as thoughts.
    parts = [part for part in (candidate.get("content") or {}).get("parts") or [] if not part.get("thought")]
    ending = candidate.get("finishReason") or "no finish reason"
    words = [candidate.get("finishMessage"), " ".join(part["text"] for part in parts if part.get("text"))]
    if ending in POLICY:
        return Refusal(_told(ending, *words))
    for part in parts:
        if data := (part.get("inlineData") or {}).get("data"):
            return to_image(data)
    raise Failed(Failure.BAD_IMAGE, _told("no image in the reply", ending, *words))


def _told(*parts: str | None) -> str:
    return ": ".join(part.strip() for part in parts if part and part.strip())[:1000]
