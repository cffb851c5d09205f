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
def single_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread inside a `with` block or a decorated function."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield
