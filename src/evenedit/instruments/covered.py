"""Whether an edit covered the lower face, as a surgical mask does: then neither person nor age can be read."""

from __future__ import annotations

import numpy as np

from evenedit.instruments import picture
from evenedit.instruments.face import Face
from evenedit.instruments.picture import Pixels

SKIN = 6.0
"""Warmth of colour (a* and b* together) from which a face surely shows skin beside the mouth."""
CLOTH = 1.0
"""Warmth up to which that place surely shows no skin."""
REASON = "edited picture: the lower face is covered"
_CHEEKS = [(u, v) for u in (-0.4, -0.25, 0.25, 0.4) for v in (0.8, 0.95, 1.1)]
"""Points beside the mouth, in the face's own coordinates."""


def lower_face_covered(source: Pixels, edited: Pixels, source_face: Face, edited_face: Face) -> bool:
    """Return whether skin beside the mouth in the source is cold or white after the edit.

    Skin of every tone is warm: red and yellow outweigh green and blue. In black and white nothing is warm, so
    there nothing can be told.
    """
    return (
        warmth(source, source_face) >= SKIN
        and warmth(edited, edited_face) <= CLOTH
        and not picture.Picture(edited).gray
    )


def warmth(rgb: Pixels, face: Face) -> float:
    """Return the sum of a* and b* of the colour beside the mouth, over the square root of 2."""
    high, wide = rgb.shape[:2]
    half = max(1, round(0.06 * face.unit))
    colours = []
    for x, y in face.place(_CHEEKS):
        left, top = min(max(0, round(x) - half), wide - 1), min(max(0, round(y) - half), high - 1)
        square = rgb[top : max(top + 1, round(y) + half + 1), left : max(left + 1, round(x) + half + 1)]
        colours.append(np.median(square.reshape(-1, 3), axis=0))
    light = picture.linear(np.median(colours, axis=0).round().astype(np.uint8)[None, None])
    _, a, b = picture.lab_map(light)[0, 0].tolist()
    return float(a + b) / 2**0.5
