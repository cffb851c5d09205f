"""Calls to providers, without waiting."""

from typing import Any

KEY = "sk-never-to-be-seen-4711"


class Naps(list[float]):
    """A sleep that only notes how long."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def waits(asked: Any) -> list[float]:
    """How long somebody who asks a provider would have slept."""
    assert isinstance(asked.provider.sleep, Naps)
    return asked.provider.sleep
