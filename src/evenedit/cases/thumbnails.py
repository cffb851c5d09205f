"""Small copies of a study's pictures, made once each and kept on disk by content hash."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from PIL import Image

from evenedit.core.errors import EvenEditError
from evenedit.core.images import ImageFolder, write_whole

WIDTHS = (160, 320, 640)
"""The widths, in pixels, for a grid, a grid on a dense screen, and a page."""
MANY = 2_000
"""Edits above which the pictures of a report are small, so that a report of 5,040 edits stays below 50 MB."""
FOLDER = "thumbnails"
QUALITY = 82


def report_width(edits: int) -> int:
    """Return the picture width for a report with this many edits."""
    return WIDTHS[0] if edits > MANY else WIDTHS[1]


class Thumbnails:
    """Small copies of stored pictures; they are named by content hash, so a copy is never out of date."""

    def __init__(self, images: ImageFolder, study: Path) -> None:
        self._images = images
        self._folder = study / FOLDER

    def path(self, sha256: str, width: int) -> Path:
        """Return the path of a small copy."""
        return self._folder / str(width) / sha256[:2] / f"{sha256}.webp"

    def get(self, sha256: str, width: int) -> bytes:
        """Return the picture as WebP, no wider than `width`; it is made at the first call."""
        if width not in WIDTHS:
            raise ValueError(f"{width} is not one of {WIDTHS}")
        return read_or_make(self.path(sha256, width), lambda: self._make(sha256, width))

    def _make(self, sha256: str, width: int) -> bytes:
        picture = self._images.open(sha256)
        try:
            small = picture.convert("RGB")
        except (OSError, SyntaxError):
            raise EvenEditError(
                f"the stored image {self._images.path(sha256)} is damaged; 'evenedit doctor STUDY' lists such images"
            ) from None
        if small.width > width:
            size = width, max(1, round(small.height * width / small.width))
            small = small.resize(size, Image.Resampling.LANCZOS)
        buffer = io.BytesIO()
        small.save(buffer, "WEBP", quality=QUALITY, method=2)  # half the time of 4, and hardly larger
        return buffer.getvalue()


def read_or_make(target: Path, make: Callable[[], bytes]) -> bytes:
    """Return a file's bytes; the file is made at the first call, and again where it was left empty."""
    with suppress(FileNotFoundError):
        if stored := target.read_bytes():
            return stored
    content = make()
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, content, flush=False)
    return content
