"""OpenAI's image models (the gpt-image family), through the official SDK's image edits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from PIL.Image import Image

from evenedit.core.errors import Failed, Failure
from evenedit.core.interfaces import Refusal
from evenedit.providers.calls import Declined, Provider, to_image, to_png

if TYPE_CHECKING:
    from openai import OpenAI


class OpenAIImages:
    """Edits with an OpenAI image model. The API takes no seed: another seed is only another draw.

    `model` has no default: models are retired (`gpt-image-1` on 2026-10-23, says the SDK), and an audit names its own.
    """

    max_images = 2
    remote = True
    seed_supported = False

    def __init__(
        self,
        *,
        model: str,
        size: str = "1024x1024",
        quality: str = "auto",
        input_fidelity: str | None = None,
        base_url: str | None = None,
        api_key_env: str = "OPENAI_API_KEY",
        timeout: float = 180,
        attempts: int = 5,
    ) -> None:
        self.options: dict[str, Any] = {
            "model": model,
            "size": size,
            "quality": quality,
            "output_format": "png",
        }
        if input_fidelity is not None:  # some models refuse the parameter, whatever its value
            self.options["input_fidelity"] = input_fidelity

        def connect(key: str) -> OpenAI:
            from openai import OpenAI

            return OpenAI(api_key=key, base_url=base_url, timeout=timeout, max_retries=0)

        self.provider = Provider(connect, model=model, key_env=api_key_env, attempts=attempts)

    def missing(self) -> list[str]:
        """What is needed to use it and not there."""
        return self.provider.missing("openai")

    def edit(self, images: Sequence[Image], instruction: str, seed: int) -> Image | Refusal:
        """Return the edited picture, or the provider's policy refusal with its reason."""
        files = [(f"image{n}.png", to_png(image), "image/png") for n, image in enumerate(images, 1)]

        def ask(client: OpenAI) -> str | None:
            reply = client.images.edit(image=files, prompt=instruction, **self.options)
            if isinstance(reply, str):  # what the SDK returns for a page that is not JSON
                raise Failed(Failure.SERVER, "the reply is not JSON; check 'base_url' if this lasts")
            return reply.data[0].b64_json if reply.data else None

        try:
            encoded = self.provider.call(ask)
        except Declined as declined:
            return Refusal(str(declined))
        if not encoded:
            raise Failed(Failure.BAD_IMAGE, "no image in the reply")
        return to_image(encoded)
