"""A program that is started once and answers many requests: one JSON object per line, over its pipes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evenedit.core.errors import Failed, Failure


class LineProcess:
    """The program, in a session of its own, so that Ctrl-C lets the edit under way finish and a kill gets its children.

    Raises OSError where it cannot be started.
    """

    def __init__(self, command: Sequence[str], name: str, environment: Mapping[str, str] | None = None) -> None:
        self.name = name
        """What it is called in messages."""
        self.loaded = False
        self.process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=None if environment is None else dict(environment),
        )
        self._tail: deque[str] = deque(maxlen=20)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def ask(
        self,
        request: Mapping[str, Any] | None,
        timeout: float,
        is_answer: Callable[[Mapping[str, Any]], bool] | None = None,
    ) -> dict[str, Any]:
        """Send a request, if there is one, and wait for one answer.

        With `is_answer`, lines that are none are passed over: libraries print what they like.
        """
        assert self.process.stdin
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            self._signal()

        timer = threading.Timer(timeout, expire)
        timer.daemon = True
        timer.start()
        try:
            if request is not None:
                with contextlib.suppress(OSError):  # it is gone; its last words may be there to read
                    self.process.stdin.write(json.dumps(request).encode() + b"\n")
                    self.process.stdin.flush()
            line, answer = self._answer(is_answer)
        finally:
            timer.cancel()
        if expired.is_set():
            raise Failed(Failure.TIMEOUT, f"no answer from {self.name} within {timeout:g} s")
        if answer is None:
            self.kill()
            output = "\n".join([line.decode(errors="replace"), *self._tail]).strip()
            code = self.process.returncode
            raise Failed(Failure.CRASH, f"{self.name} died (exit code {code}); it ended with:\n{output}")
        return answer

    def _answer(self, is_answer: Callable[[Mapping[str, Any]], bool] | None) -> tuple[bytes, dict[str, Any] | None]:
        """Return the last line that was read, and the answer in it."""
        assert self.process.stdout
        while True:
            line = self.process.stdout.readline()
            try:
                message = json.loads(line)
            except ValueError:
                message = None
            if isinstance(message, dict) and (is_answer is None or is_answer(message)):
                return line, message
            if is_answer is None or not line:
                return line, None
            self._tail.append(line.decode(errors="replace").rstrip())

    def close(self) -> None:
        """Close its input, which ends it."""
        assert self.process.stdin
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        self.kill()

    def kill(self) -> None:
        """End it now with its children, and close all pipes."""
        self._signal()
        self.process.wait()
        self._listener.join(5)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe
            with contextlib.suppress(OSError):  # what was not yet written goes nowhere
                pipe.close()

    def _signal(self) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                if os.name == "posix":
                    os.killpg(self.process.pid, signal.SIGKILL)
                else:
                    self.process.kill()

    def _listen(self) -> None:
        """Read standard error so that the program never blocks; keep the end of it."""
        assert self.process.stderr
        for line in self.process.stderr:
            text = line.decode(errors="replace").rstrip()
            if text:
                self._tail.append(text.rsplit("\r", 1)[-1])
