"""Any program as an editor that is started once, so that weights load once: JSON lines on its input and output.

    ▶ {"ready": true}                                                   when it has loaded; may hold "facts"
    ◀ {"id": 1, "images": [paths of PNG files], "instruction": …, "seed": …, "output": path to write}
    ▶ {"id": 1}                                                         it has written the output
    ▶ {"id": 1, "refusal": reason}
    ▶ {"id": 1, "no_image": words}                                      an answer in words, without a picture
    ▶ {"id": 1, "failure": "out_of_memory", "message": …}               or another of the failures

Lines that are no answers are passed over. The program ends when its input does. One that dies is started again by the
next edit; one that hangs is killed with its children.
"""

from __future__ import annotations

import os
import shutil
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL.Image import Image

from evenedit.core import settings
from evenedit.core.errors import EvenEditError, Failed, Failure, LoadError
from evenedit.core.interfaces import NoImage, Output, Refusal
from evenedit.editors.line_process import LineProcess
from evenedit.providers.calls import to_image, to_png


class WorkerProgram:
    """Edits with a program that stays: `command`, a list of strings, is started without a shell."""

    def __init__(
        self,
        *,
        command: Sequence[str],
        timeout: float = 600.0,
        load_timeout: float = 7200.0,
        max_images: int = 1,
        revision: str = "",
    ) -> None:
        if isinstance(command, str) or not command or not all(isinstance(part, str) for part in command):
            raise EvenEditError("setting 'command' must be a list of strings: the program and its arguments")
        self.command = tuple(command)
        self.timeout = settings.number("timeout", timeout)
        """Seconds for one edit."""
        self.load_timeout = settings.number("load_timeout", load_timeout)
        """Seconds until it says that it is ready."""
        self.max_images = settings.count("max_images", max_images)
        """The number of input images it takes at most."""
        self.revision = revision
        """The version of the program or its weights: another one means other requests."""
        self._lock = threading.Lock()
        self._running: list[LineProcess] = []  # the one that runs, or none
        self._starts = self._requests = 0
        self._facts: dict[str, Any] = {}
        weakref.finalize(self, _close, self._running)

    def missing(self) -> list[str]:
        """Return one message for each missing requirement."""
        return (
            [] if shutil.which(self.command[0]) else [f"the program '{self.command[0]}' was not found; check 'command'"]
        )

    def load(self) -> None:
        """Start the program and wait until it is ready; raise LoadError if that would fail for each edit."""
        with self._lock:
            try:
                self._worker()
            except Failed as failed:
                raise LoadError(failed.failure, f"it cannot be loaded ({failed})") from None

    def edit(self, images: Sequence[Image], instruction: str, seed: int) -> Output:
        """Return what the program wrote, or its refusal."""
        if len(images) > self.max_images:
            raise EvenEditError(
                f"the worker takes {self.max_images} image(s), but the request has {len(images)}. Try: max_images = "
                f'{len(images)}, or leave the editor out with experiments = ["diagnosis"]'
            )
        with self._lock, TemporaryDirectory(prefix="evenedit-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            paths = [folder / f"source{number}.png" for number in range(1, len(images) + 1)]
            for path, image in zip(paths, images, strict=True):
                path.write_bytes(to_png(image))
            output = folder / "output.png"
            self._requests += 1
            request = {
                "id": self._requests,
                "images": [str(path) for path in paths],
                "instruction": instruction,
                "seed": seed,
                "output": str(output),
            }
            return _result(self._ask(request), output)

    def facts(self) -> dict[str, Any]:
        """Return what ran: the program, how often it was started, and what it reported about itself."""
        return {"command": list(self.command), "revision": self.revision, "starts": self._starts, **self._facts}

    def close(self) -> None:
        """End the program, if it runs; the next edit starts it again."""
        with self._lock:
            _close(self._running)

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer; end a program that died or hung."""
        worker = self._worker()
        try:
            return worker.ask(request, self.timeout, lambda line: line.get("id") == request["id"])
        except BaseException:
            self._running.clear()
            worker.kill()
            raise

    def _worker(self) -> LineProcess:
        if self._running:
            return self._running[0]
        program = shutil.which(self.command[0])
        if program is None:
            raise EvenEditError(
                f"the program '{self.command[0]}' was not found, or may not be executed; check 'command'"
            )
        started = LineProcess([str(Path(program).absolute()), *self.command[1:]], "the worker", os.environ)
        self._starts += 1
        try:
            ready = started.ask(None, self.load_timeout, lambda line: line.get("ready") is True)
        except BaseException:
            started.kill()
            raise
        facts = ready.get("facts")
        self._facts = dict(facts) if isinstance(facts, Mapping) else {}
        self._running.append(started)
        return started


def _result(answer: Mapping[str, Any], output: Path) -> Output:
    if "refusal" in answer:
        return Refusal(str(answer["refusal"]) or "the worker gave no reason")
    if "no_image" in answer:
        return NoImage(str(answer["no_image"]))
    if "failure" in answer:
        named = answer["failure"]
        kind = Failure(named) if named in set(Failure) else Failure.CRASH
        raise Failed(kind, str(answer.get("message") or named))
    try:
        content = output.read_bytes()
    except OSError:
        raise Failed(Failure.BAD_IMAGE, "the worker answered but wrote no output image") from None
    return to_image(content)


def _close(running: list[LineProcess]) -> None:
    while running:
        running.pop().close()
