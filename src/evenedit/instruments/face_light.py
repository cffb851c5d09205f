"""Whether new light on the face alone explains a change of skin: then eyes and lips changed as the skin did."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from evenedit.instruments import picture
from evenedit.instruments.light import Relighting
from evenedit.instruments.mesh import Mesh
from evenedit.instruments.picture import Pixels
from evenedit.instruments.tone import LUMINANCE

_LEFT_EYE = (33, 7, 163, 144, 145, 153, 154, 155, 133, 173, 157, 158, 159, 160, 161, 246)
_RIGHT_EYE = (362, 382, 381, 380, 374, 373, 390, 249, 263, 466, 388, 387, 386, 385, 384, 398)
_LIPS = (61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291, 409, 270, 269, 267, 0, 37, 39, 40, 185)
_PARTS = (((_LEFT_EYE, _RIGHT_EYE), (25, 50, 75)), ((_LIPS,), (50,)))
"""Points of the mesh around eyes and lips, and the percentiles of light read there: lids are skin."""
ALIKE = (0.5, 1.7)
"""How much eyes and lips change at least and in the middle, as shares of the skin, where one light explains all."""
FLOOR = 0.002
"""Added to linear light before logarithms, against noise."""


def lit_alike(
    lightness: float,
    moved: float,
    source: tuple[Pixels, Mesh],
    edited: tuple[Pixels, Mesh],
    light: Relighting | None,
) -> bool:
    """Return whether eyes and lips changed as the skin, so that light on the face alone may explain all of it.

    `lightness` is the source's L*, `moved` its change that is left when the light on the whole picture is removed.
    """
    skin = float(np.log(_luminance(lightness + moved) / _luminance(lightness)))
    shares = []
    for outlines, percentiles in _PARTS:
        before, after = _part(*source, outlines, percentiles), _part(*edited, outlines, percentiles)
        if light is not None:
            before = before * light.factor(before)
        shares.append(np.log((after @ LUMINANCE + FLOOR) / (before @ LUMINANCE + FLOOR)) / skin)
    return all(part.min() > ALIKE[0] and np.median(part) < ALIKE[1] for part in shares)


def _luminance(lightness: float) -> float:
    return max(((lightness + 16) / 116) ** 3, 1e-4)


def _part(
    rgb: Pixels, mesh: Mesh, outlines: tuple[tuple[int, ...], ...], percentiles: tuple[int, ...]
) -> NDArray[np.float64]:
    """Return percentiles of the light inside some outlines of the mesh, one a row."""
    polygons = [np.round(mesh.points[list(outline)]).astype(np.int32) for outline in outlines]
    left, top, wide, high = cv2.boundingRect(np.vstack(polygons))
    left, top = max(0, left), max(0, top)
    part = rgb[top : top + high, left : left + wide]
    inside = np.zeros(part.shape[:2], dtype=np.uint8)
    cv2.fillPoly(inside, polygons, 1, offset=(-left, -top))
    if not inside.any():
        return np.zeros((len(percentiles), 3))
    light = picture.linear(part[inside > 0][None])[0].astype(np.float64)
    return np.asarray(np.percentile(light, percentiles, axis=0))
