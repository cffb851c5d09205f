"""Where an edit changed its source, as a picture: computed once for a pair and kept on disk."""

from __future__ import annotations

import io
import threading
from pathlib import Path

from evenedit.core.errors import EvenEditError
from evenedit.core.images import ImageFolder
from evenedit.instruments import VERSION
from evenedit.instruments.evidence_image import change_map
from evenedit.study.gallery.thumbnails import FOLDER, kept

LONGEST = 768
"""The longer side of a map, in pixels."""
QUALITY = 85


class ChangeMaps:
    """Change maps of a study's pairs; a new version of the instruments makes new ones."""

    def __init__(self, images: ImageFolder, study: Path) -> None:
        self._images = images
        self._folder = study / FOLDER / f"change-{VERSION}"
        self._one = threading.Lock()  # a map takes a core for a second: one at a time leaves the server to others

    def get(self, source: str, edited: str) -> bytes:
        """WebP bytes of the map of two stored pictures."""
        target = self._folder / edited[:2] / f"{edited}-{source[:16]}.webp"
        with self._one:
            return kept(target, lambda: self._make(source, edited))

    def _make(self, source: str, edited: str) -> bytes:
        pictures = self._images.open(source), self._images.open(edited)
        try:
            made = change_map(*pictures)
        except Exception as error:
            raise EvenEditError(f"the change could not be measured ({type(error).__name__}: {error})") from None
        made.thumbnail((LONGEST, LONGEST))
        buffer = io.BytesIO()
        made.save(buffer, "WEBP", quality=QUALITY)
        return buffer.getvalue()
