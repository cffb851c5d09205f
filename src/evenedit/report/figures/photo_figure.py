"""Figures made of pictures: a sheet as a file for a paper and as part of the page."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

PLATES = ("figure5", "figure7", "figure12", "figure13")
"""Every plate a report can hold."""
WIDEST = 1400
"""Pixels of a plate on the page; its file keeps all."""


@dataclass(frozen=True, slots=True)
class PhotoFigure:
    """A sheet of pictures with its words."""

    id: str
    title: str
    caption: str
    alt: str
    """What a reader who cannot see it is told."""
    png: bytes
    inline: str
    """The sheet for the page, as a data URI."""
    size: tuple[int, int]
    """Width and height on the page."""


def plate(sheet: Image, id: str, title: str, caption: str, alt: str, *, simulated: bool) -> PhotoFigure:
    """A sheet as a file, and small enough for the page."""
    png, webp = io.BytesIO(), io.BytesIO()
    sheet.save(png, "PNG")
    small = sheet.copy()
    small.thumbnail((WIDEST, sheet.height))
    small.save(webp, "WEBP", quality=80, method=4)
    inline = f"data:image/webp;base64,{base64.b64encode(webp.getvalue()).decode()}"
    alt = f"SIMULATED. {alt}" if simulated else alt
    return PhotoFigure(id, title, caption, alt, png.getvalue(), inline, small.size)
