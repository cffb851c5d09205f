"""A model at a provider: the settings that editors and judges behind an API share, and how each provider is reached."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from evenedit.core.errors import EvenEditError
from evenedit.core.settings import InheritsSettings
from evenedit.providers.calls import Client, Provider, rejects_key, status_of

if TYPE_CHECKING:
    from google.genai import Client as GeminiClient
    from openai import OpenAI

LOOK_UP = 20.0
"""Seconds for the card of a model."""


class RemoteModel(InheritsSettings, ABC, Generic[Client]):
    """A model that is called over the network, through the provider's official SDK."""

    remote = True
    package: ClassVar[str]
    """The SDK, as it is imported."""

    def __init__(
        self, *, model: str, base_url: str | None = None, api_key_env: str, timeout: float, attempts: int = 5
    ) -> None:
        if not api_key_env and base_url is None:
            raise EvenEditError("setting 'api_key_env' is empty: only another endpoint ('base_url') may need no key")
        self.provider: Provider[Client] = Provider(
            self.connect, model=model, key_env=api_key_env or None, attempts=attempts
        )
        self.model = model
        self.base_url = base_url
        """Another endpoint that speaks the provider's language; None: the provider itself."""
        self.timeout = timeout
        """Seconds for one call."""

    def missing(self) -> list[str]:
        """Return one message for each missing requirement."""
        return self.provider.missing(self.package)

    def check(self) -> None:
        """Raise an error if the key or the model is not known; this asks for the model's card, which is free.

        Another endpoint need not have such cards, and a key may be for ratings alone: other errors say nothing.
        """

        def look(client: Client) -> None:
            try:
                self.look_up(client)
            except Exception as error:
                if rejects_key(error) or (self.base_url is None and status_of(error) == 404):
                    raise

        self.provider.call(look, attempts=1)

    @abstractmethod
    def look_up(self, client: Client) -> None:
        """Ask the provider for the card of the model."""

    @abstractmethod
    def connect(self, key: str) -> Client:
        """Return the SDK's client with its own retries switched off."""


class OpenAIModel(RemoteModel["OpenAI"]):
    """A model at OpenAI, or at an endpoint that speaks its language."""

    package = "openai"

    def __init__(self, *, api_key_env: str = "OPENAI_API_KEY", **shared: Any) -> None:
        super().__init__(api_key_env=api_key_env, **shared)

    def connect(self, key: str) -> OpenAI:
        """Return the SDK's client with its own retries switched off."""
        from openai import OpenAI

        return OpenAI(api_key=key, base_url=self.base_url, timeout=self.timeout, max_retries=0)

    def look_up(self, client: OpenAI) -> None:
        """Ask the provider for the card of the model."""
        client.models.retrieve(self.model, timeout=LOOK_UP)


class GeminiModel(RemoteModel["GeminiClient"]):
    """A model at Google's Gemini API."""

    package = "google.genai"

    def __init__(self, *, api_key_env: str = "GEMINI_API_KEY", **shared: Any) -> None:
        super().__init__(api_key_env=api_key_env, **shared)

    def connect(self, key: str) -> GeminiClient:
        """Return the SDK's client with its own retries switched off."""
        from google import genai
        from google.genai.types import HttpOptions, HttpRetryOptions

        once = HttpRetryOptions(attempts=1)
        options = HttpOptions(base_url=self.base_url, timeout=int(self.timeout * 1000), retry_options=once)
        return genai.Client(api_key=key, vertexai=False, http_options=options)

    def look_up(self, client: GeminiClient) -> None:
        """Ask the provider for the card of the model."""
        client.models.get(model=self.model, config={"http_options": {"timeout": int(LOOK_UP * 1000)}})
