"""What can go wrong: mistakes a user can mend, and failures of an edit or a call."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Any


class EvenEditError(Exception):
    """Something the user can mend: printed without a traceback, exit code 2."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Failure(StrEnum):
    """Why an edit or a call failed. None of these is a refusal."""

    OUT_OF_MEMORY = "out_of_memory"
    NAN_IMAGE = "nan_image"
    BLACK_IMAGE = "black_image"
    BAD_IMAGE = "bad_image"
    TIMEOUT = "timeout"
    RATE_LIMIT = "rate_limit"
    SERVER = "server"
    CRASH = "crash"


class Failed(Exception):
    """An attempt that failed in a known way; the pipeline tries again where that can help."""

    def __init__(self, failure: Failure, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.failure = failure
        self.retry_after = retry_after
        """Seconds the other side asked us to wait."""

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Failed, retry_after=self.retry_after), (self.failure, str(self))
