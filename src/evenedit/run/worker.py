"""One worker: makes edits, wherever it runs. It loads an editor once, on first use, and writes the pictures."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from PIL.Image import Image

from evenedit.core import plugins
from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.core.images import NOTE, as_image, open_images
from evenedit.core.interfaces import Editor, Refusal
from evenedit.core.records import Edit, Outcome, Request
from evenedit.core.retry import retry

TRUTH = NOTE + "truth"


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


class Worker:
    """Makes one edit after another with one editor."""

    def __init__(self, setup: WorkerSetup, editor: Editor | None = None) -> None:
        self.setup = setup
        self.images = open_images(setup.images)
        self._given = editor

    @cached_property
    def editor(self) -> Editor:
        """The editor: the one given, or else built when first needed."""
        if self._given is not None:
            return self._given
        built: Editor = plugins.build("editors", self.setup.editor, self.setup.settings)
        return built

    @property
    def _tries_by_itself(self) -> bool:
        """Whether a failure is final: a service's client has tried again already, and an object's error is its own."""
        return self._given is not None or plugins.is_remote("editors", self.setup.editor)

    def edit(self, task: EditTask) -> Edit:
        """Make the edit and store its picture; whatever happens is an outcome."""
        request = task.request
        started = time.perf_counter()
        portraits = [self.images.open(sha256) for sha256 in task.images]  # its own copy: decoding is not thread-safe
        try:
            output = retry(
                lambda: _whole(self.editor.edit(portraits, request.instruction, request.seed)),
                0 if self._tries_by_itself else self.setup.retries,
                self.setup.backoff,
            )
        except EvenEditError:
            raise
        except Exception as error:
            return failed(request.id, error, time.perf_counter() - started)
        seconds = time.perf_counter() - started
        if isinstance(output, Refusal):
            return Edit(request.id, Outcome.REFUSED, None, {"reason": output.reason}, seconds)
        detail: dict[str, Any] = {}
        if TRUTH in output.info:
            detail["truth"] = json.loads(output.info[TRUTH])["values"]
        facts = getattr(self.editor, "facts", None)
        if facts is not None:
            detail["facts"] = facts()
        return Edit(request.id, Outcome.EDITED, self.images.put(output), detail, seconds)


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
