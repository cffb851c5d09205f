"""Pictures of what was measured, computed once for a pair of pictures: change maps, and the skin that was read."""

from __future__ import annotations

import io
import threading
from pathlib import Path

from evenedit.cases.thumbnails import FOLDER, read_or_make
from evenedit.core.errors import EvenEditError
from evenedit.core.images import ImageFolder
from evenedit.instruments import VERSION
from evenedit.instruments.evidence_image import change_map, skin_outlines

LONGEST = 768
"""The longer side of a map, in pixels."""
QUALITY = 85


DRAWN = {"change": change_map, "skin": skin_outlines}
"""By kind, what draws a source and its edit."""


class ChangeMaps:
    """The change maps and outlines of a study; a new version of the instruments makes new ones."""

    def __init__(self, images: ImageFolder, study: Path) -> None:
        self._images = images
        self._folder = study / FOLDER
        self._one = threading.Lock()  # a map takes a core for a second: one at a time keeps the server responsive

    def get(self, source: str, edited: str, kind: str = "change") -> bytes:
        """Return the change map of two stored pictures as WebP, or with "skin" both with outlines."""
        target = self._folder / f"{kind}-{VERSION}" / edited[:2] / f"{edited}-{source[:16]}.webp"
        with self._one:
            return read_or_make(target, lambda: self._make(source, edited, kind))

    def _make(self, source: str, edited: str, kind: str) -> bytes:
        pictures = self._images.open(source), self._images.open(edited)
        try:
            picture = DRAWN[kind](*pictures)
        except Exception as error:
            raise EvenEditError(f"the change could not be measured ({type(error).__name__}: {error})") from None
        picture.thumbnail((LONGEST, LONGEST))
        buffer = io.BytesIO()
        picture.save(buffer, "WEBP", quality=QUALITY)
        return buffer.getvalue()
