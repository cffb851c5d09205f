"""What can go wrong: mistakes a user can mend, and failures of an edit or a call."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Any

ENDING = (SystemExit, KeyboardInterrupt)
"""What ends a program; raised by an editor or a judge it is a failure like any other."""


class EvenEditError(Exception):
    """Something the user can mend: printed without a traceback, exit code 2."""

    exit_code = 2

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class IncompleteError(EvenEditError):
    """A run that is not complete. Its results are stored; rerun the command to resume. Exit code 4."""

    exit_code = 4


class DamagedImageError(EvenEditError):
    """A stored picture that is missing or damaged."""


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
    REJECTED = "rejected"
    """The service did not take this request; nothing was made."""
    STORAGE = "storage"
    """The picture could not be stored."""
    GPU = "gpu"
    """The GPU's context is broken: nothing works in this process any more, and a new one must begin."""


class Failed(Exception):
    """An attempt that failed in a known way; the pipeline tries again where that can help."""

    def __init__(self, failure: Failure, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.failure = failure
        self.retry_after = retry_after
        """Seconds the other side asked us to wait."""
        self.tokens = (0, 0)
        """Tokens in and out that were charged all the same."""

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), retry_after=self.retry_after), (self.failure, str(self))


class LoadError(Failed):
    """An editor that cannot be made ready, so that every edit would fail: it is tried once and then stopped."""
