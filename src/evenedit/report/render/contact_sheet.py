"""Contact sheets: pictures side by side with text above, beside and below them, as one picture."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import matplotlib as mpl
from PIL import Image, ImageDraw, ImageFont

INK, FAINT, EMPTY, MARK = "#1d2330", "#5b6270", "#eef0f3", "#b34700"
GAP = 0.04
"""Space between pictures, in sides of a picture."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One picture, or the reason why there is none."""

    picture: Image.Image | None
    caption: str = ""


@dataclass(frozen=True, slots=True)
class SheetRow:
    """Cells with a name beside them; the name may be empty."""

    name: str
    cells: Sequence[Cell]


def collage(columns: Sequence[str], rows: Sequence[SheetRow], *, simulated: bool, side: int = 256) -> Image.Image:
    """Draw rows under named columns; each picture is fitted into a square of `side` pixels without cropping."""
    size, gap = max(11, side // 13), round(side * GAP)
    font = _font(size)
    margin = round(side * 0.55) + gap if any(row.name for row in rows) else 0
    heads = [list(_wrapped(text, font, side)) for text in columns]
    captions = [[list(_wrapped(cell.caption, font, side)) for cell in row.cells] for row in rows]
    line = round(size * 1.3)
    above = line * (max(map(len, heads), default=0) + simulated) + gap
    heights = [side + line * max(map(len, lines), default=0) + gap for lines in captions]
    sheet = Image.new("RGB", (margin + len(columns) * (side + gap) + gap, above + sum(heights) + gap), "white")
    draw = ImageDraw.Draw(sheet)
    if simulated:
        draw.text((gap, gap // 2), "SIMULATED", MARK, font)
    for at, words in enumerate(heads):
        _write(draw, words, margin + gap + at * (side + gap), above - line * len(words) - gap // 2, font, INK)
    top = above
    for row, lines, height in zip(rows, captions, heights, strict=True):
        names = list(_wrapped(row.name, font, margin - gap))
        _write(draw, names, gap, top + (side - line * len(names)) // 2, font, INK)
        for at, (cell, words) in enumerate(zip(row.cells, lines, strict=True)):
            left = margin + gap + at * (side + gap)
            if cell.picture is None:
                draw.rectangle((left, top, left + side - 1, top + side - 1), EMPTY)
            else:
                fitted = cell.picture.convert("RGB")
                fitted.thumbnail((side, side), Image.Resampling.LANCZOS)
                sheet.paste(fitted, (left + (side - fitted.width) // 2, top + (side - fitted.height) // 2))
            _write(draw, words, left, top + side + gap // 4, font, FAINT)
        top += height
    return sheet


def _write(
    draw: ImageDraw.ImageDraw, lines: Sequence[str], left: int, top: int, font: ImageFont.FreeTypeFont, ink: str
) -> None:
    for number, text in enumerate(lines):
        draw.text((left, top + number * round(font.size * 1.3)), text, ink, font)


def _wrapped(text: str, font: ImageFont.FreeTypeFont, width: int) -> Iterator[str]:
    """Lines no wider than `width`, broken at spaces; a word that is wider alone is broken at a hyphen, or cut."""
    line = ""
    for word in re.split(r"[ \n]+", text.strip()):  # a no-break space keeps what it joins together
        for number, part in enumerate(re.split(r"(?<=-)", word) if font.getlength(word) > width else [word]):
            longer = line + part if number else f"{line} {part}".strip()
            if line and font.getlength(longer) > width:
                yield line
                longer = part
            while font.getlength(longer) > width and len(longer) > 2:
                longer = longer.rstrip("…")[:-1] + "…"
            line = longer
    if line:
        yield line


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", size)
