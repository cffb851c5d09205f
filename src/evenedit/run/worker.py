"""One worker: makes edits on any machine. It loads an editor once, on first use, and writes the pictures."""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any

from PIL.Image import Image

from evenedit.core import plugins
from evenedit.core.errors import ENDING, DamagedImageError, EvenEditError, Failed, Failure, LoadError
from evenedit.core.images import NOTE, as_image, open_images
from evenedit.core.interfaces import BatchEditor, Editor, NoImage, Output, Refusal
from evenedit.core.records import Edit, Outcome, Request
from evenedit.core.retry import retry
from evenedit.core.submissions import SubmittedJob

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
    gpus: int = 1
    """GPUs of each worker."""


class Worker:
    """Makes one edit after another with one editor."""

    def __init__(
        self,
        setup: WorkerSetup,
        editor: Editor | None = None,
        submission: Callable[[str], SubmittedJob] | None = None,
    ) -> None:
        self.setup = setup
        self._submission = submission
        """The record of what is sent to a service for an edit, by its id; None where nothing is recorded."""
        self.images = open_images(setup.images)
        self._editor_object = editor
        self._editor: Editor | None = None
        self._broken: Exception | None = None
        self._one_by_one = False
        """Whether a batch was too much for the memory here."""
        self._lock = Lock()

    def prepare(self) -> Editor:
        """Build and load the editor, once; an error here would repeat for each edit, so it is not retried."""
        with self._lock:
            if self._broken is not None:
                raise self._broken
            if self._editor is None:
                try:
                    self._editor = self._editor_object or _built(self.setup)
                except Exception as error:
                    self._broken = error
                    raise
            return self._editor

    def is_ready(self) -> bool:
        """Load the editor if it is not loaded yet and return True; can be called from another machine."""
        return self.prepare() is not None

    @property
    def _tries_by_itself(self) -> bool:
        """A failure is final: a service's client has already retried, and a Python object's error is its own."""
        return self._editor_object is not None or plugins.is_remote("editors", self.setup.editor)

    def edit(self, task: EditTask) -> Edit:
        """Make the edit and store its picture; record any error as its outcome unless it stops the editor."""
        request = task.request
        editor = self.prepare()
        started = time.perf_counter()
        try:
            portraits = [self.images.open(sha256) for sha256 in task.images]  # its own: decoding is not thread-safe
            make = partial(editor.edit, portraits, request.instruction, request.seed)
            if self._submission is not None:
                make = partial(make, submission=self._submission(request.id))
            output = retry(
                lambda: _as_image(_named(make)),
                0 if self._tries_by_itself else self.setup.retries,
                self.setup.backoff,
            )
        except DamagedImageError as error:
            return failed(request.id, Failed(Failure.BAD_IMAGE, str(error)), time.perf_counter() - started)
        except (EvenEditError, LoadError):
            raise
        except Exception as error:
            return failed(request.id, error, time.perf_counter() - started)
        return self._to_edit(editor, request, output, time.perf_counter() - started)

    def edit_batch(self, tasks: Sequence[EditTask]) -> list[Edit]:
        """Make several edits, in one call if the editor can; retry failed ones one by one."""
        editor = self.prepare()
        if len(tasks) == 1 or self._one_by_one:
            return [self.edit(task) for task in tasks]
        edits: dict[str, Edit] = {}
        alike: dict[Any, list[tuple[EditTask, list[Image]]]] = defaultdict(list)
        for task in tasks:
            try:
                portraits = [self.images.open(sha256) for sha256 in task.images]
            except Exception:  # by itself it is tried again, and fails by itself
                edits[task.request.id] = self.edit(task)
            else:
                alike[tuple(portrait.size for portrait in portraits)].append((task, portraits))
        for batch in alike.values():
            edits.update((edit.request_id, edit) for edit in self._edit_together(editor, batch))
        return [edits[task.request.id] for task in tasks]

    def _edit_together(self, editor: Any, batch: Sequence[tuple[EditTask, list[Image]]]) -> list[Edit]:
        """Make edits of pictures of one size in one call."""
        tasks = [task for task, _ in batch]
        if len(tasks) == 1:
            return [self.edit(tasks[0])]
        started = time.perf_counter()
        try:
            outputs = _named(lambda: _many(editor, batch))
        except (EvenEditError, LoadError):
            raise
        except Exception as error:
            return self._edit_singly(tasks, error)
        seconds = (time.perf_counter() - started) / len(tasks)
        edits = [self._to_edit(editor, t.request, out, seconds) for t, out in zip(tasks, outputs, strict=True)]
        return [replace(edit, detail={**edit.detail, "batch": len(tasks)}) for edit in edits]

    def _edit_singly(self, tasks: Sequence[EditTask], error: Exception) -> list[Edit]:
        """Make the edits of a failed batch one by one, unless the GPU is unusable in this process."""
        lost = [failed(task.request.id, error) for task in tasks]
        kind = lost[0].detail["failure"]
        if kind == Failure.GPU:
            return lost
        self._one_by_one = self._one_by_one or kind == Failure.OUT_OF_MEMORY
        why = {"batch_failed": f"{kind}: {error}"}
        return [replace(edit, detail={**edit.detail, **why}) for edit in map(self.edit, tasks)]

    def _to_edit(self, editor: Editor, request: Request, output: Output, seconds: float) -> Edit:
        """Return the record of an editor's output, with its picture stored."""
        if isinstance(output, Refusal):
            return Edit(request.id, Outcome.REFUSED, None, {"reason": output.reason}, seconds)
        if isinstance(output, NoImage):
            return Edit(request.id, Outcome.NO_IMAGE, None, {"words": output.words}, seconds)
        detail: dict[str, Any] = {}
        if TRUTH in output.info:
            detail["truth"] = json.loads(output.info[TRUTH])["values"]
        facts = getattr(editor, "facts", None)
        if facts is not None:
            detail["facts"] = facts()
        try:
            image = retry(lambda: self.images.put(output), self.setup.retries, self.setup.backoff)
        except Exception as error:  # the disk is full, or the object store does not answer
            note = f"the picture could not be stored ({type(error).__name__}: {error})"
            return failed(request.id, Failed(Failure.STORAGE, note), seconds)
        return Edit(request.id, Outcome.EDITED, image, detail, seconds)


def _many(editor: BatchEditor, batch: Sequence[tuple[EditTask, list[Image]]]) -> list[Output]:
    """Make several edits in one call; raise Failed unless there is one result for each."""
    requests = [task.request for task, _ in batch]
    outputs = editor.edit_many(
        [portraits for _, portraits in batch], [r.instruction for r in requests], [r.seed for r in requests]
    )
    if len(outputs) != len(batch):
        raise Failed(Failure.BAD_IMAGE, f"the editor returned {len(outputs)} results for {len(batch)} edits")
    return [_as_image(one) for one in outputs]


def _as_image(output: Output) -> Output:
    """Return the editor's output as an image; raise Failed if it cannot be read."""
    if isinstance(output, Refusal | NoImage):
        return output
    try:
        return as_image(output)
    except EvenEditError as error:
        raise Failed(Failure.BAD_IMAGE, f"the editor's picture cannot be read: {error}") from None


def failed(request_id: str, error: Exception, seconds: float = 0.0) -> Edit:
    """Return the record of an edit that failed, with the kind of failure."""
    kind = error.failure if isinstance(error, Failed) else Failure.CRASH
    detail = {"failure": kind.value, "error": f"{type(error).__name__}: {error}"}
    return Edit(request_id, Outcome.FAILED, None, detail, seconds)


def out_of_time(request_id: str, limit: float) -> Edit:
    """Return the record of an edit that was not made within its time limit."""
    note = f"no result within {limit:g} s, the time limit of an edit ([executor] timeout)"
    return failed(request_id, Failed(Failure.TIMEOUT, note), limit)


def not_loaded(limit: float) -> LoadError:
    """Return the error of an editor that was not ready within its time limit."""
    return LoadError(Failure.TIMEOUT, f"it did not load within {limit:g} s ([executor] load_timeout)")


def _built(setup: WorkerSetup) -> Editor:
    """Build and load the editor."""
    try:
        editor: Editor = plugins.build("editors", setup.editor, setup.settings)
        encode = getattr(editor, "encode", None)
        if callable(encode) and setup.instructions:
            encode(setup.instructions)
        load = getattr(editor, "load", None)
        if callable(load):
            load()
        return editor
    except (EvenEditError, LoadError):
        raise
    except (Exception, *ENDING) as error:
        kind = error.failure if isinstance(error, Failed) else Failure.CRASH
        raise LoadError(kind, f"it cannot be loaded ({type(error).__name__}: {error})") from None


def _named(call: Any) -> Any:
    """Call; name errors that mean that the GPU is unusable. Only the user can end the program."""
    try:
        return call()
    except (EvenEditError, LoadError):
        raise
    except ENDING as error:
        raise Failed(Failure.CRASH, f"{type(error).__name__}: {error}") from None
    except Exception as error:
        if POISONED.search(str(error)):
            raise Failed(Failure.GPU, f"{type(error).__name__}: {error}") from None
        raise
