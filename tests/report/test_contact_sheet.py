"""Pictures side by side."""

from __future__ import annotations

import numpy as np
from PIL import Image

from evenedit.report.render.contact_sheet import Cell, SheetRow, collage


def _picture(colour: str, size: tuple[int, int] = (64, 64)) -> Image.Image:
    return Image.new("RGB", size, colour)


def _has(sheet: Image.Image, colour: tuple[int, int, int]) -> int:
    return int((np.asarray(sheet) == colour).all(axis=2).sum())


def test_every_picture_is_whole_and_in_its_place() -> None:
    rows = [
        SheetRow("upper", [Cell(_picture("red")), Cell(_picture("lime"))]),
        SheetRow("lower", [Cell(_picture("blue", (64, 32))), Cell(None, "refused")]),
    ]
    sheet = collage(["left", "right"], rows, simulated=False, side=64)
    assert _has(sheet, (255, 0, 0)) == _has(sheet, (0, 255, 0)) == 64 * 64
    assert _has(sheet, (0, 0, 255)) == 64 * 32  # neither cut nor stretched
    where = {
        colour: np.argwhere((np.asarray(sheet) == colour).all(axis=2)).mean(axis=0)
        for colour in ((255, 0, 0), (0, 255, 0), (0, 0, 255))
    }
    assert where[255, 0, 0][1] < where[0, 255, 0][1]
    assert where[255, 0, 0][0] < where[0, 0, 255][0]


def test_pictures_larger_than_a_cell_are_made_smaller() -> None:
    sheet = collage(["one"], [SheetRow("", [Cell(_picture("red", (400, 200)))])], simulated=False, side=100)
    red = np.asarray(sheet)[..., 0] > np.asarray(sheet)[..., 1].astype(int) + 100
    assert red.any(axis=0).sum() == 100
    assert red.any(axis=1).sum() == 50


def test_simulated_pictures_say_so() -> None:
    rows = [SheetRow("", [Cell(_picture("red"))])]
    plain, marked = (collage(["one"], rows, simulated=s, side=128) for s in (False, True))
    assert marked.height > plain.height
    assert not _has(plain, (179, 71, 0))
    assert _has(marked, (179, 71, 0))


def test_long_words_stay_inside_their_column() -> None:
    rows = [
        SheetRow("", [Cell(None, "w" * 200), Cell(None, "a caption of several words that needs more lines than one")])
    ]
    sheet = collage(["x" * 90, "y"], rows, simulated=False, side=96)
    ink = np.asarray(sheet.convert("L")) < 140
    gap = round(96 * 0.04)
    assert not ink[:, gap + 96 : 2 * gap + 96].any()  # nothing between the two columns
    assert not ink[:, -gap:].any()
