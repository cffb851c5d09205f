"""Work in a second process: the same result as here, whatever becomes of that process."""

import os
import subprocess
import sys
import time
from math import factorial
from operator import truediv
from pathlib import Path

import pytest

from evenedit.core.parallel import SEQUENTIAL, SecondProcess

several = pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor has no second process")


def test_work_is_done_elsewhere_and_its_result_is_the_same():
    with SecondProcess() as second:
        first = second.submit(factorial, 500)
        assert first() == factorial(500)
        assert second.submit(sorted, "large" * 100_000)() == sorted("large" * 100_000)


@several
def test_it_is_another_process_that_works_with_one_thread():
    with SecondProcess() as second:
        assert second.submit(os.getpid)() != os.getpid()
        assert second.submit(os.getenv, "OPENBLAS_NUM_THREADS")() == "1"


@several
def test_it_has_loaded_what_its_work_will_need():
    with SecondProcess(modules=["wave"]) as second:
        assert second.submit(is_loaded, "wave")()
        assert not second.submit(is_loaded, "sndhdr")()


def is_loaded(module: str) -> bool:
    return module in sys.modules


def test_without_a_second_process_this_one_works():
    assert SEQUENTIAL.submit(os.getpid)() == os.getpid()
    with SecondProcess(enabled=False) as second:
        assert second.submit(os.getpid)() == os.getpid()


@several
def test_what_is_given_to_a_busy_process_is_done_here():
    with SecondProcess() as second:
        there, here = second.submit(os.getpid), second.submit(os.getpid)
        assert here() == os.getpid()
        assert there() == second.submit(os.getpid)() != os.getpid()


def test_work_of_a_process_that_ends_is_done_here():
    with SecondProcess() as second:
        assert second.submit(ends_elsewhere, os.getpid())() == "done here"
        assert second.submit(os.getpid)() == os.getpid()


def ends_elsewhere(home: int) -> str:
    if os.getpid() != home:
        os._exit(1)
    return "done here"


def test_an_error_of_the_work_is_raised_here():
    with SecondProcess() as second:
        result = second.submit(truediv, 1, 0)
        with pytest.raises(ZeroDivisionError):
            result()


def test_work_can_be_left_unfinished():
    with SecondProcess() as second:
        second.submit(time.sleep, 1)
    assert second.submit(os.getpid)() == os.getpid()


def test_a_script_without_a_main_guard_is_run_once(tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(
        "from math import factorial\n"
        "from evenedit.core.parallel import SecondProcess\n"
        "print('once')\n"
        "with SecondProcess() as second:\n"
        "    print(second.submit(factorial, 5)())\n"
    )
    made = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert made.stdout.split() == ["once", "120"]
