"""Base of editors behind an API: one call per edit; the provider's explicit no is a refusal."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from PIL.Image import Image

from evenedit.core.interfaces import Output, Refusal
from evenedit.providers.calls import Client, DeclinedError, to_png
from evenedit.providers.remote import RemoteModel


class RemoteEditor(RemoteModel[Client]):
    """Edits with a model at a provider, whose own class says what is sent and how the reply is read."""

    max_images = 2

    def __init__(self, *, timeout: float = 180, **shared: Any) -> None:
        super().__init__(timeout=timeout, **shared)

    def edit(self, images: Sequence[Image], instruction: str, seed: int) -> Output:
        """Return the edited picture, or the provider's policy refusal with its reason."""
        pictures = [to_png(image) for image in images]
        try:
            return self.read(self.provider.call(lambda client: self.send(client, pictures, instruction, seed)))
        except DeclinedError as declined:
            return Refusal(str(declined))

    @abstractmethod
    def send(self, client: Client, pictures: Sequence[bytes], instruction: str, seed: int) -> Any:
        """Make one call with the pictures as PNG; return what `read` needs of the reply."""

    @abstractmethod
    def read(self, reply: Any) -> Output:
        """Return the picture in a reply, a refusal, or the words that stand there instead; else raise Failed."""
