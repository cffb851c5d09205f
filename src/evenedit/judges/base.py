"""What judges behind an API share: one prompt, counted tokens, refusals kept apart from failures."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

from evenedit.core.errors import Failed, Failure
from evenedit.core.interfaces import Case, Reply
from evenedit.core.records import Question
from evenedit.judges import prompt, published_prompt
from evenedit.judges.parsing import ModelReply, refused
from evenedit.judges.prompt import ModelPrompt, check_settings
from evenedit.providers.calls import Client, DeclinedError
from evenedit.providers.remote import RemoteModel

STRANGE = "the reply has an unexpected format; check 'base_url' if this persists"


class RemoteJudge(RemoteModel[Client]):
    """Judges with a model that sees; a provider's own class says how it is reached and how its replies are read."""

    def __init__(
        self,
        *,
        model: str,
        temperature: float | None = None,
        image_size: int = 1024,
        timeout: float = 120,
        attempts: int = 5,
        batch: bool | None = None,
        **shared: Any,
    ) -> None:
        check_settings(temperature, image_size)
        super().__init__(model=model, timeout=timeout, attempts=attempts, **shared)
        self.temperature = temperature
        """Sent only where it is set: some models take none."""
        self.image_size = image_size
        self.takes_batches = self.base_url is None if batch is None else batch
        """Whether there are batch jobs: by default only at the provider itself."""
        self._used = {"input": 0, "output": 0}
        self._lock = Lock()

    @property
    def tokens(self) -> dict[str, int]:
        """Tokens used so far, by the provider's own count."""
        with self._lock:
            return dict(self._used)

    def judge(self, case: Case, questions: Sequence[Question]) -> Reply:
        """Answer each question about the case."""
        return self.answer(self.render(case, questions)).conclude(questions)

    def render(self, case: Case, questions: Sequence[Question]) -> ModelPrompt:
        """Build the prompt about the case."""
        if case.wording == "seen":
            return prompt.render_picture(case, questions, image_size=self.image_size)
        if case.wording == "published":
            return published_prompt.render(case, questions, image_size=self.image_size)
        return prompt.render(case, questions, image_size=self.image_size)

    def ask(self, ask: ModelPrompt) -> str | Reply:
        """Return the model's answer, or a reply that states why there is none."""
        return self.answer(ask).words

    def answer(self, ask: ModelPrompt) -> ModelReply:
        """Ask the model; raises Failed where no answer came. Tokens are those of all attempts."""
        charged = [0, 0]

        def call(client: Client) -> ModelReply:
            reply = self.send(client, ask)
            try:
                tokens = self.used(reply)
                self._count(tokens)
            except (AttributeError, TypeError):
                raise Failed(Failure.SERVER, STRANGE) from None
            charged[:] = charged[0] + tokens[0], charged[1] + tokens[1]
            return self.read(reply)

        try:
            return replace(self.provider.call(call), tokens=(charged[0], charged[1]))
        except DeclinedError as declined:
            return ModelReply(refused(str(declined)), tokens=(charged[0], charged[1]))
        except Failed as failed:
            failed.tokens = (charged[0], charged[1])
            raise

    @abstractmethod
    def send(self, client: Client, ask: ModelPrompt) -> Any:
        """Make one call and return the raw reply."""

    @abstractmethod
    def used(self, reply: Any) -> tuple[int, int]:
        """Tokens in and out that a reply was charged for."""

    @abstractmethod
    def read(self, reply: Any) -> ModelReply:
        """Read a raw reply to a call or a batch line; raise Failed or DeclinedError."""

    def _count(self, tokens: tuple[int, int]) -> None:
        with self._lock:
            self._used["input"] += tokens[0]
            self._used["output"] += tokens[1]
