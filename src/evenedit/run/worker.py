"""One worker: makes edits, wherever it runs. It loads an editor once, on first use, and writes the pictures."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from PIL.Image import Image

from evenedit.core import plugins
from evenedit.core.errors import ENDING, CannotLoad, Damaged, EvenEditError, Failed, Failure
from evenedit.core.images import NOTE, as_image, open_images
from evenedit.core.interfaces import Editor, Refusal
from evenedit.core.records import Edit, Outcome, Request
from evenedit.core.retry import retry

TRUTH = NOTE + "truth"
POISONED = re.compile(
    r"CUDA error|CUDA driver error|device-side assert|illegal memory access|unspecified launch failure|"
    r"CUBLAS_STATUS_(?!ALLOC)|CUDNN_STATUS_(?!ALLOC)|HIP error",
)
"""What torch says when the GPU's context is broken for the rest of the process."""


@dataclass(frozen=True, slots=True)
class EditTask:
    """One edit to make, as a worker elsewhere needs it."""

    request: Request
    images: tuple[str, ...]
    """Hashes of the source portraits."""


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """All a worker needs to begin, small enough to send anywhere."""

    editor: str
    """Name of the installed editor."""
    settings: Mapping[str, Any]
    images: str
    """Where pictures are read and written: a folder or a URL every worker can reach."""
    retries: int = 2
    backoff: float = 0.5
    """Seconds before the first retry; doubled each time."""
    instructions: tuple[str, ...] = ()
    """All that it will be asked for, where the editor wants to know that before."""


class Worker:
    """Makes one edit after another with one editor."""

    def __init__(self, setup: WorkerSetup, editor: Editor | None = None) -> None:
        self.setup = setup
        self.images = open_images(setup.images)
        self._given = editor
        self._editor: Editor | None = None
        self._broken: Exception | None = None
        self._lock = Lock()

    def prepare(self) -> Editor:
        """Build the editor and have it load, once; what fails here would fail for every edit, so it is tried once."""
        with self._lock:
            if self._broken is not None:
                raise self._broken
            if self._editor is None:
                try:
                    self._editor = self._given or _built(self.setup)
                except Exception as error:
                    self._broken = error
                    raise
            return self._editor

    def is_ready(self) -> bool:
        """Load the editor if it is not loaded yet, and say so: what can be called from another machine."""
        return self.prepare() is not None

    @property
    def _tries_by_itself(self) -> bool:
        """Whether a failure is final: a service's client has tried again already, and an object's error is its own."""
        return self._given is not None or plugins.is_remote("editors", self.setup.editor)

    def edit(self, task: EditTask) -> Edit:
        """Make the edit and store its picture; whatever happens is an outcome, but for what stops the editor."""
        request = task.request
        editor = self.prepare()
        started = time.perf_counter()
        try:
            portraits = [self.images.open(sha256) for sha256 in task.images]  # its own: decoding is not thread-safe
            output = retry(
                lambda: _whole(_named(lambda: editor.edit(portraits, request.instruction, request.seed))),
                0 if self._tries_by_itself else self.setup.retries,
                self.setup.backoff,
            )
        except Damaged as error:
            return failed(request.id, Failed(Failure.BAD_IMAGE, str(error)), time.perf_counter() - started)
        except (EvenEditError, CannotLoad):
            raise
        except Exception as error:
            return failed(request.id, error, time.perf_counter() - started)
        seconds = time.perf_counter() - started
        if isinstance(output, Refusal):
            return Edit(request.id, Outcome.REFUSED, None, {"reason": output.reason}, seconds)
        detail: dict[str, Any] = {}
        if TRUTH in output.info:
            detail["truth"] = json.loads(output.info[TRUTH])["values"]
        facts = getattr(editor, "facts", None)
        if facts is not None:
            detail["facts"] = facts()
        try:
            image = retry(lambda: self.images.put(output), self.setup.retries, self.setup.backoff)
        except Exception as error:  # the disk is full, or the object store does not answer
            note = f"the picture was made and could not be stored ({type(error).__name__}: {error})"
            return failed(request.id, Failed(Failure.STORAGE, note), seconds)
        return Edit(request.id, Outcome.EDITED, image, detail, seconds)


def _whole(output: Image | Refusal) -> Image | Refusal:
    """What an editor gave, its picture read as every other; one that cannot be read is a failure."""
    if isinstance(output, Refusal):
        return output
    try:
        return as_image(output)
    except EvenEditError as error:
        raise Failed(Failure.BAD_IMAGE, f"the editor's picture cannot be read: {error}") from None


def failed(request_id: str, error: Exception, seconds: float = 0.0) -> Edit:
    """The record of an edit that failed, with the kind of failure."""
    kind = error.failure if isinstance(error, Failed) else Failure.CRASH
    detail = {"failure": kind.value, "error": f"{type(error).__name__}: {error}"}
    return Edit(request_id, Outcome.FAILED, None, detail, seconds)


def out_of_time(request_id: str, limit: float) -> Edit:
    """The record of an edit that was not made within its time limit."""
    note = f"no result within {limit:g} s, the time limit of an edit ([executor] timeout)"
    return failed(request_id, Failed(Failure.TIMEOUT, note), limit)


def not_loaded(limit: float) -> CannotLoad:
    """Why an editor is stopped that was not ready within its time limit."""
    return CannotLoad(Failure.TIMEOUT, f"it did not load within {limit:g} s ([executor] load_timeout)")


def _built(setup: WorkerSetup) -> Editor:
    """The editor, ready to edit."""
    try:
        editor: Editor = plugins.build("editors", setup.editor, setup.settings)
        encode = getattr(editor, "encode", None)
        if callable(encode) and setup.instructions:
            encode(setup.instructions)
        load = getattr(editor, "load", None)
        if callable(load):
            load()
        return editor
    except (EvenEditError, CannotLoad):
        raise
    except (Exception, *ENDING) as error:
        kind = error.failure if isinstance(error, Failed) else Failure.CRASH
        raise CannotLoad(kind, f"it cannot be loaded ({type(error).__name__}: {error})") from None


def _named(call: Any) -> Any:
    """Call; an error that says that the GPU's context is broken gets its name. Nobody but the user ends the program."""
    try:
        return call()
    except (EvenEditError, CannotLoad):
        raise
    except ENDING as error:
        raise Failed(Failure.CRASH, f"{type(error).__name__}: {error}") from None
    except Exception as error:
        if POISONED.search(str(error)):
            raise Failed(Failure.GPU, f"{type(error).__name__}: {error}") from None
        raise
