"""OpenAI's image models (the gpt-image family), through the official SDK's image edits."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from PIL.Image import Image

from evenedit.core import settings
from evenedit.core.errors import Failed, Failure
from evenedit.editors.api.base import RemoteEditor
from evenedit.editors.api.template import filled
from evenedit.providers.calls import to_image
from evenedit.providers.remote import OpenAIModel

if TYPE_CHECKING:
    from openai import OpenAI


class OpenAIImages(RemoteEditor["OpenAI"], OpenAIModel):
    """Edits with an OpenAI image model. The API takes no seed: another seed is only another draw.

    `model` has no default: models are retired (`gpt-image-1` on 2026-10-23, says the SDK), and an audit names its own.
    With `base_url` any server that speaks this language will do; what it takes beyond that goes into `extra`, where
    "{seed}" is the seed.
    """

    seed_supported = False
    added_settings = frozenset({"extra"})

    def __init__(
        self,
        *,
        model: str,
        size: str = "1024x1024",
        quality: str = "auto",
        input_fidelity: str | None = None,
        extra: Mapping[str, Any] | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(model=model, **shared)
        options = {"size": size, "quality": quality, "output_format": "png"}
        self.options: dict[str, Any] = {"model": model, **{name: value for name, value in options.items() if value}}
        self.extra = settings.table("extra", extra)
        """Further fields of the request, for servers other than OpenAI's."""
        if input_fidelity is not None:  # some models refuse the parameter, whatever its value
            self.options["input_fidelity"] = input_fidelity

    def send(self, client: OpenAI, pictures: Sequence[bytes], instruction: str, seed: int) -> str | None:
        """Make one call; return the picture as base64 text, or None if there is none."""
        files = [(f"image{n}.png", picture, "image/png") for n, picture in enumerate(pictures, 1)]
        more = {"extra_body": filled(self.extra, {"seed": seed})} if self.extra else {}
        reply = client.images.edit(image=files, prompt=instruction, **self.options, **more)
        if isinstance(reply, str):  # what the SDK returns for a page that is not JSON
            raise Failed(Failure.SERVER, "the reply is not JSON; check 'base_url' if this persists")
        if not reply.data:
            return None
        return reply.data[0].b64_json or _fetched(reply.data[0].url, self.timeout)

    def read(self, reply: str | None) -> Image:
        """Return the picture in a reply; raise Failed if there is none."""
        if not reply:
            raise Failed(Failure.BAD_IMAGE, "no image in the reply")
        return to_image(reply)


def _fetched(url: str | None, timeout: float) -> str | None:
    """Fetch a picture as base64 text: servers other than OpenAI's may answer with a URL."""
    if not url or not url.startswith("http"):
        return None
    import httpx  # takes a while to load

    response = httpx.get(url, timeout=timeout, follow_redirects=True)
    if response.status_code >= 400:
        raise Failed(Failure.SERVER, f"the picture could not be fetched ({response.status_code})")
    return base64.b64encode(response.content).decode()
