"""Linear algebra on one thread for as long as it is asked for."""

import numpy as np
from threadpoolctl import threadpool_info

from evenedit.core.blas_threads import single_blas_thread


def threads() -> list[int]:
    np.linalg.inv(np.eye(2))
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@single_blas_thread()
def counted() -> list[int]:
    return threads()


def test_linear_algebra_has_one_thread_inside_and_as_many_as_before_outside():
    before = threads()
    assert before
    with single_blas_thread():
        assert set(threads()) == {1}
    assert set(counted()) == {1}
    assert threads() == before
