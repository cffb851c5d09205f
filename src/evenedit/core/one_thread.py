"""Linear algebra on one thread.

Our matrices are small or thin: threads of a linear algebra library wait for each other longer than they compute, and
take the processors from whatever runs beside. On one thread the last digits do not depend on how many processors a
machine has either.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """For as long as it lasts, or as long as a function takes that it decorates."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield
