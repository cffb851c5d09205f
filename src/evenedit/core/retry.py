"""Trying again: one loop for editors, judges and providers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from evenedit.core.errors import EvenEditError, Failed, Failure, LoadError

T = TypeVar("T")

LASTING = frozenset({Failure.OUT_OF_MEMORY, Failure.NAN_IMAGE, Failure.BLACK_IMAGE, Failure.GPU})
"""Failures that the same request would meet again: not tried twice in one run."""


def try_again(
    call: Callable[[], T],
    *,
    attempts: int,
    helps: Callable[[BaseException], bool],
    wait: Callable[[int, BaseException], float],
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Call until it succeeds, until trying again would not help, or until it was tried `attempts` times.

    `wait` gives the seconds before the next try, from how many tries failed before this one and what this one raised.
    """
    from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

    def seconds(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        assert error is not None
        return wait(state.attempt_number - 1, error)

    loop = Retrying(
        stop=stop_after_attempt(attempts), retry=retry_if_exception(helps), wait=seconds, sleep=sleep, reraise=True
    )
    return loop(call)


def retry(call: Callable[[], T], retries: int, backoff: float) -> T:
    """Try again after a failure, doubling the wait each time; not for what the user must mend, or what lasts."""

    def helps(error: BaseException) -> bool:
        lasting = isinstance(error, LoadError) or (isinstance(error, Failed) and error.failure in LASTING)
        return isinstance(error, Exception) and not isinstance(error, EvenEditError) and not lasting

    def wait(tried: int, error: BaseException) -> float:
        requested = error.retry_after if isinstance(error, Failed) else None
        return max(float(backoff * 2**tried), requested or 0.0)

    return try_again(call, attempts=retries + 1, helps=helps, wait=wait)
