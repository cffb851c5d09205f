"""Editors that are Python objects, given to `Study.run` and recorded in the study by id and revision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from PIL.Image import Image

from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.core.given import method_of, revision_of
from evenedit.core.images import from_array
from evenedit.core.interfaces import Refusal


class PythonEditor:
    """The record of an editor that is a Python object: enough to plan and report, not to edit."""

    added_settings = frozenset({"batch"})

    def __init__(self, *, revision: str = "", max_images: int = 1, batch: int = 1) -> None:
        self.revision = revision
        """The version of the object that made the edits."""
        self.max_images = max_images
        """The number of input images it takes at most."""
        self.batch = batch
        """Edits that were made in one call at most."""

    def edit(self, images: Sequence[Image], instruction: str, seed: int) -> Image | Refusal:
        """Refuse to edit: the object itself is not here."""
        raise EvenEditError(
            "this editor is a Python object, which a study cannot keep; give it again from Python: "
            'evenedit.Study.load(FOLDER).run(editors={"ID": EDITOR})'
        )


class GivenEditor:
    """An object with `.edit(images, instruction, seed)`, or a plain function of these, as an editor."""

    def __init__(self, ident: str, given: Any) -> None:
        self._edit: Callable[..., Any] = method_of("editor", "edit", ident, given)
        self.revision = revision_of("editor", ident, given)
        self.max_images = int(getattr(given, "max_images", 1))
        self._edit_many: Callable[..., Any] | None = getattr(given, "edit_many", None)
        self.batch = int(getattr(given, "batch", 1)) if callable(self._edit_many) else 1
        """Edits in one call: one unless the object has `edit_many` and says how many it wants."""
        self.threads = int(getattr(given, "threads", 1))
        """Edits under way at once: one unless the object says that it can do more."""
        self._facts: Callable[[], Any] | None = getattr(given, "facts", None)

    def edit(self, images: Sequence[Image], instruction: str, seed: int) -> Image | Refusal:
        """Return what the object made; anything but a picture or a refusal is a failure."""
        return _picture(self._edit(images, instruction, seed))

    def edit_many(
        self, images: Sequence[Sequence[Image]], instructions: Sequence[str], seeds: Sequence[int]
    ) -> list[Image | Refusal]:
        """Return what the object made of several requests in one call."""
        assert self._edit_many is not None
        return [_picture(output) for output in self._edit_many(images, instructions, seeds)]

    def facts(self) -> dict[str, Any]:
        """What is stored with every edit."""
        own = self._facts() if callable(self._facts) else {}
        return {**own, "revision": self.revision}


def _picture(output: Any) -> Image | Refusal:
    if isinstance(output, Image | Refusal):
        return output
    if isinstance(output, np.ndarray):
        return from_array(output)
    raise Failed(
        Failure.BAD_IMAGE,
        f"the editor returned {type(output).__name__}; expected a PIL image, an array or evenedit.Refusal",
    )
