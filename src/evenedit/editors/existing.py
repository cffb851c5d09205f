"""Existing outputs: an editor that looks them up instead of making them."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from PIL.Image import Image

from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.core.images import read_image
from evenedit.core.interfaces import Output, Refusal


class ExistingOutputs:
    """Finds an output by source picture, instruction and seed in a table.

    Columns: source, edited, prompt and refused; editor where it holds several, seed where it holds repeats.
    """

    max_images = 1
    added_settings = ("editor",)

    def __init__(self, *, path: str, editor: str = "") -> None:
        self.pairs = Path(path)
        """CSV whose paths are relative to its folder."""
        self.editor = editor
        """Whose rows count; all do where it is empty."""

    def edit(self, images: Sequence[Image], instruction: str, seed: int) -> Output:
        """Return the existing output for this portrait and prompt."""
        source = pixels(images[0])
        row = self._rows.get((source, instruction, str(seed))) or self._rows.get((source, instruction, ""))
        if row is None:
            raise Failed(Failure.BAD_IMAGE, "there is no output for this portrait and prompt")
        if row.get("refused"):
            return Refusal(str(row["refused"]))
        return read_image(self.pairs.parent / row["edited"])

    @cached_property
    def _rows(self) -> dict[tuple[str, str, str], dict[str, Any]]:
        if not self.pairs.is_file():
            raise EvenEditError(f"no table of outputs at {self.pairs}")
        with self.pairs.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.DictReader(file) if self.editor in ("", row.get("editor"))]
        names = {name: pixels(read_image(self.pairs.parent / name)) for name in {row["source"] for row in rows}}
        return {(names[row["source"]], row["prompt"], row.get("seed") or ""): row for row in rows}


def pixels(image: Image) -> str:
    """Return a hash of the pixels of a picture, independent of its file format."""
    return hashlib.sha256(image.convert("RGB").tobytes()).hexdigest()
