"""Outputs that somebody already has: an editor that looks them up instead of making them."""

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
from evenedit.core.interfaces import Refusal


class ExistingOutputs:
    """Finds an output by source picture and instruction in a table: columns source, edited, prompt, and refused."""

    max_images = 1

    def __init__(self, *, path: str) -> None:
        self.pairs = Path(path)
        """CSV whose paths are relative to its folder."""

    def edit(self, images: Sequence[Image], instruction: str, seed: int) -> Image | Refusal:
        """The output that lies there for this portrait and prompt."""
        row = self._rows.get((pixels(images[0]), instruction))
        if row is None:
            raise Failed(Failure.BAD_IMAGE, "there is no output for this portrait and prompt")
        if row.get("refused"):
            return Refusal(str(row["refused"]))
        return read_image(self.pairs.parent / row["edited"])

    @cached_property
    def _rows(self) -> dict[tuple[str, str], dict[str, Any]]:
        if not self.pairs.is_file():
            raise EvenEditError(f"no table of outputs at {self.pairs}")
        with self.pairs.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        names = {row["source"]: pixels(read_image(self.pairs.parent / row["source"])) for row in rows}
        return {(names[row["source"]], row["prompt"]): row for row in rows}


def pixels(image: Image) -> str:
    """Names a picture by what it shows, whatever file it came from."""
    return hashlib.sha256(image.convert("RGB").tobytes()).hexdigest()
