"""Photo figures: pictures side by side as one figure, as a file for a paper and as part of the page."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

PHOTO_FIGURES = ("figure5", "figure7", "figure12", "figure13")
"""The ids of the photo figures that a report can hold."""
WIDEST = 1400
"""The width of a photo figure on the page, in pixels; its file has the full width."""


@dataclass(frozen=True, slots=True)
class PhotoFigure:
    """Pictures side by side as one figure, with title and caption."""

    id: str
    title: str
    caption: str
    alt: str
    """A description for readers who cannot see it."""
    png: bytes
    inline: str
    """The picture on the page, as a data URI."""
    size: tuple[int, int]
    """Width and height on the page."""


def photo_figure(sheet: Image, id: str, title: str, caption: str, alt: str, *, simulated: bool) -> PhotoFigure:
    """Return a contact sheet as a figure: in full as a file, smaller on the page."""
    png, webp = io.BytesIO(), io.BytesIO()
    sheet.save(png, "PNG", compress_level=4)  # half the time of 6, and hardly larger
    small = sheet.copy()
    small.thumbnail((WIDEST, sheet.height))
    small.save(webp, "WEBP", quality=80, method=2)  # the same
    inline = f"data:image/webp;base64,{base64.b64encode(webp.getvalue()).decode()}"
    alt = f"SIMULATED. {alt}" if simulated else alt
    return PhotoFigure(id, title, caption, alt, png.getvalue(), inline, small.size)
