"""Editors that are Python objects, passed to `Study.run` and recorded in the study by id and revision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from PIL.Image import Image

from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.core.images import from_array
from evenedit.core.interfaces import NoImage, Output, Refusal
from evenedit.core.python_objects import resolve_method, revision_of


class RecordedEditor:
    """The record of an editor that is a Python object: enough to plan and report, not to edit."""

    added_settings = frozenset({"batch"})

    def __init__(self, *, revision: str = "", max_images: int = 1, batch: int = 1) -> None:
        self.revision = revision
        """The version of the object that made the edits."""
        self.max_images = max_images
        """The number of input images it takes at most."""
        self.batch = batch
        """Edits that were made in one call at most."""

    def edit(self, images: Sequence[Image], instruction: str, seed: int) -> Output:
        """Raise an error: the object itself is not stored."""
        raise EvenEditError(
            "this editor is a Python object, which a study cannot store; pass it again from Python: "
            'evenedit.Study.load(FOLDER).run(editors={"ID": EDITOR})'
        )


class PythonEditorAdapter:
    """An object with `.edit(images, instruction, seed)`, or a plain function of these, as an editor."""

    def __init__(self, ident: str, editor: Any) -> None:
        self._edit: Callable[..., Any] = resolve_method("editor", "edit", ident, editor)
        self.revision = revision_of("editor", ident, editor)
        self.max_images = int(getattr(editor, "max_images", 1))
        self._edit_many: Callable[..., Any] | None = getattr(editor, "edit_many", None)
        self.batch = int(getattr(editor, "batch", 1)) if callable(self._edit_many) else 1
        """Edits in one call: one unless the object has `edit_many` and says how many it wants."""
        self.threads = int(getattr(editor, "threads", 1))
        """Edits under way at once: one unless the object says that it can do more."""
        self._facts: Callable[[], Any] | None = getattr(editor, "facts", None)

    def edit(self, images: Sequence[Image], instruction: str, seed: int) -> Output:
        """Return what the object made; anything but a picture, a refusal or an answer in words is a failure."""
        return _picture(self._edit(images, instruction, seed))

    def edit_many(
        self, images: Sequence[Sequence[Image]], instructions: Sequence[str], seeds: Sequence[int]
    ) -> list[Output]:
        """Return what the object made of several requests in one call."""
        assert self._edit_many is not None
        return [_picture(output) for output in self._edit_many(images, instructions, seeds)]

    def facts(self) -> dict[str, Any]:
        """Return what is stored with each edit."""
        stored = self._facts() if callable(self._facts) else {}
        return {**stored, "revision": self.revision}


def _picture(output: Any) -> Output:
    if isinstance(output, Image | Refusal | NoImage):
        return output
    if isinstance(output, np.ndarray):
        return from_array(output)
    raise Failed(
        Failure.BAD_IMAGE,
        f"the editor returned {type(output).__name__}; "
        "expected a PIL image, an array, evenedit.Refusal or evenedit.NoImage",
    )
