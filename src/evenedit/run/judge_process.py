"""A judge plug-in in a separate process, so that one that hangs or crashes is replaced and the run continues."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from evenedit.core import plugins
from evenedit.core.errors import ENDING, Failed, Failure
from evenedit.core.interfaces import Case, Judge, Reply
from evenedit.core.processes import WorkerContext, end_of, end_with_parent, send_result
from evenedit.core.records import Question
from evenedit.core.retry import retry
from evenedit.judges.calling import BACKOFF
from evenedit.run.executors.pool import Limits
from evenedit.run.executors.processes import READY

_CONTEXT = WorkerContext()


class JudgeProcess:
    """A judge plug-in at the other end of a pipe, made with the first case. One thread asks it, case after case."""

    tries_again = True
    """What fails is tried again here, within the time limit."""

    def __init__(self, kind: str, settings: Mapping[str, Any], retries: int, limits: Limits) -> None:
        self.kind, self.settings, self.retries, self.limits = kind, settings, retries, limits
        self._process: Any = None
        self._pipe: Connection | None = None
        self._limit = limits.first

    def judge(self, case: Case, questions: Sequence[Question]) -> Reply:
        """Judge in the process; raise the judge's error, or Failed if it hangs or keeps dying."""
        loaded = replace(case, images=tuple(case.images))
        for left in reversed(range(self.retries + 1)):
            try:
                result = self._result(loaded, questions)
                break
            except (EOFError, OSError):
                code = self.close()
                if not left:
                    raise Failed(Failure.CRASH, f"the process of this judge died ({end_of(code)})") from None
        if isinstance(result, Exception):
            raise result
        return result

    def _result(self, case: Case, questions: Sequence[Question]) -> Reply | Exception:
        pipe = self._alive() or self._begin()
        pipe.send((case, questions))
        limit = self._limit
        note = f"no answer within {limit:g} s, the time limit of a rating ([executor] timeout)"
        result: Reply | Exception = self._next(pipe, limit, note)
        self._limit = self.limits.each
        return result

    def _next(self, pipe: Connection, limit: float, message: str) -> Any:
        """Return the next message of the process; end it if none arrives in time."""
        if not pipe.poll(limit):
            self.close()
            raise Failed(Failure.TIMEOUT, message)
        return pipe.recv()

    def close(self) -> int | None:
        """End the process, whatever it is doing; return its exit code."""
        process, pipe, self._process, self._pipe = self._process, self._pipe, None, None
        if process is None or pipe is None:
            return None
        process.join(timeout=0.5)  # where it died, let it say how
        process.kill()
        process.join()
        pipe.close()
        return int(process.exitcode)

    def _alive(self) -> Connection | None:
        if self._process is not None and not self._process.is_alive():
            self.close()
        return self._pipe

    def _begin(self) -> Connection:
        pipe, worker_pipe = _CONTEXT.Pipe()
        arguments = (worker_pipe, self.kind, self.settings, self.retries)
        self._process = _CONTEXT.Process(target=_serve, args=arguments, name=f"evenedit-{self.kind}", daemon=True)
        self._process.start()
        worker_pipe.close()  # so that the pipe ends when the process does
        self._pipe, self._limit = pipe, self.limits.first
        limit = self.limits.load
        self._next(pipe, limit, f"its process did not start within {limit:g} s ([executor] load_timeout)")
        return pipe


def _serve(pipe: Connection, kind: str, settings: Mapping[str, Any], retries: int) -> None:
    """Run the process: build the judge, leave Ctrl-C to the parent, judge until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    judge: Judge | None = None
    with suppress(EOFError, OSError):  # the parent is gone, or needs us no longer
        pipe.send(READY)
        while True:
            case, questions = pipe.recv()
            try:
                judge = judge or plugins.build("judges", kind, settings)
                result: Reply | Exception = retry(partial(judge.judge, case, questions), retries, BACKOFF)
                if not isinstance(result, Reply):
                    result = TypeError(f"the judge returned {type(result).__name__}; expected evenedit.Reply")
            except ENDING as error:
                result = Failed(Failure.CRASH, f"{type(error).__name__}: {error}")
            except Exception as error:
                result = error
            send_result(pipe, result)
