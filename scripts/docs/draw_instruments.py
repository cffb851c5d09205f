"""Draw the pictures of instruments.md from drawn portraits: `python scripts/docs/draw_instruments.py`."""

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from evenedit.core.color import MONK
from evenedit.instruments import examine
from evenedit.instruments.evidence_image import draw
from evenedit.simulation.portraits.drawn import sample
from evenedit.simulation.portraits.portrait import lighten, render

OUT = Path(__file__).parents[2] / "docs/images"
WIDTH = 760
PERSON = replace(sample({"race": "Latino", "gender": "Female", "age": "30s"}, 5), skin=MONK[6])


def redrawn(image: Image.Image) -> Image.Image:
    """The head moved a little, everything else where it was."""
    pixels = np.asarray(image)
    y, x = np.mgrid[: pixels.shape[0], : pixels.shape[1]].astype(np.float32)
    side = max(pixels.shape)
    pull = np.exp(-(((x / side - 0.5) / 0.33) ** 2) - ((y / side - 0.45) / 0.38) ** 2) * 0.022 * side
    return Image.fromarray(cv2.remap(pixels, x + pull, y - pull, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT))


PICTURES = {
    "lightened": render(lighten(PERSON, 8)),
    "redrawn": redrawn(render(PERSON)),
    "dressed": render(replace(PERSON, outfit="suit")),
    "colourless": render(PERSON).convert("L"),
}

for name, edited in PICTURES.items():
    sheet = draw(examine(render(PERSON), edited, identity=False))
    sheet = sheet.resize((WIDTH, round(sheet.height * WIDTH / sheet.width)), Image.Resampling.LANCZOS)
    sheet.quantize(256, method=Image.Quantize.MAXCOVERAGE).save(OUT / f"measured-{name}.png", optimize=True)
