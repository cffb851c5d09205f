"""Maps of where an edit changed its source: computed once for a pair of pictures and kept on disk."""

from __future__ import annotations

import io
import threading
from pathlib import Path

from evenedit.cases.thumbnails import FOLDER, read_or_make
from evenedit.core.errors import EvenEditError
from evenedit.core.images import ImageFolder
from evenedit.instruments import VERSION
from evenedit.instruments.evidence_image import change_map

LONGEST = 768
"""The longer side of a map, in pixels."""
QUALITY = 85


class ChangeMaps:
    """The change maps of a study; a new version of the instruments makes new ones."""

    def __init__(self, images: ImageFolder, study: Path) -> None:
        self._images = images
        self._folder = study / FOLDER / f"change-{VERSION}"
        self._one = threading.Lock()  # a map takes a core for a second: one at a time keeps the server responsive

    def get(self, source: str, edited: str) -> bytes:
        """Return the change map of two stored pictures as WebP."""
        target = self._folder / edited[:2] / f"{edited}-{source[:16]}.webp"
        with self._one:
            return read_or_make(target, lambda: self._make(source, edited))

    def _make(self, source: str, edited: str) -> bytes:
        pictures = self._images.open(source), self._images.open(edited)
        try:
            picture = change_map(*pictures)
        except Exception as error:
            raise EvenEditError(f"the change could not be measured ({type(error).__name__}: {error})") from None
        picture.thumbnail((LONGEST, LONGEST))
        buffer = io.BytesIO()
        picture.save(buffer, "WEBP", quality=QUALITY)
        return buffer.getvalue()
