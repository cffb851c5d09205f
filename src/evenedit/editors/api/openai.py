"""OpenAI's image models (the gpt-image family), through the official SDK's image edits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from PIL.Image import Image

from evenedit.core.errors import Failed, Failure
from evenedit.editors.api.base import RemoteEditor
from evenedit.providers.calls import to_image
from evenedit.providers.remote import OpenAIModel

if TYPE_CHECKING:
    from openai import OpenAI


class OpenAIImages(RemoteEditor["OpenAI"], OpenAIModel):
    """Edits with an OpenAI image model. The API takes no seed: another seed is only another draw.

    `model` has no default: models are retired (`gpt-image-1` on 2026-10-23, says the SDK), and an audit names its own.
    """

    seed_supported = False

    def __init__(
        self,
        *,
        model: str,
        size: str = "1024x1024",
        quality: str = "auto",
        input_fidelity: str | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(model=model, **shared)
        self.options: dict[str, Any] = {"model": model, "size": size, "quality": quality, "output_format": "png"}
        if input_fidelity is not None:  # some models refuse the parameter, whatever its value
            self.options["input_fidelity"] = input_fidelity

    def send(self, client: OpenAI, pictures: Sequence[bytes], instruction: str, seed: int) -> str | None:
        """One call; the picture as base64 text, None where there is none."""
        files = [(f"image{n}.png", picture, "image/png") for n, picture in enumerate(pictures, 1)]
        reply = client.images.edit(image=files, prompt=instruction, **self.options)
        if isinstance(reply, str):  # what the SDK returns for a page that is not JSON
            raise Failed(Failure.SERVER, "the reply is not JSON; check 'base_url' if this lasts")
        return reply.data[0].b64_json if reply.data else None

    def read(self, reply: str | None) -> Image:
        """The picture in a reply; raises Failed where there is none."""
        if not reply:
            raise Failed(Failure.BAD_IMAGE, "no image in the reply")
        return to_image(reply)
