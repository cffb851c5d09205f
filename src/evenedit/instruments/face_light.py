"""Whether new light on the face alone explains a change of skin: then eyes and lips changed as the skin did."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from evenedit.instruments import picture
from evenedit.instruments.light import Relighting
from evenedit.instruments.picture import Pixels
from evenedit.instruments.tone import LUMINANCE

_LEFT_EYE = (33, 7, 163, 144, 145, 153, 154, 155, 133, 173, 157, 158, 159, 160, 161, 246)
_RIGHT_EYE = (362, 382, 381, 380, 374, 373, 390, 249, 263, 466, 388, 387, 386, 385, 384, 398)
_LIPS = (61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291, 409, 270, 269, 267, 0, 37, 39, 40, 185)
_PARTS = (((_LEFT_EYE, _RIGHT_EYE), (50, 75)), ((_LIPS,), (50,)))
"""Points of the mesh around eyes and lips, and the percentiles of light read there: dark lashes tell nothing."""
LEAST = 0.08
"""Log ratio from which their change counts as new light."""
SHARE = 0.25
"""The least share of a change of the skin that it must be: some of it always shows at the lids."""
LEAST_ALIKE = 2
"""How many of the readings of eyes and lips must show it, none the contrary: lashes and teeth may hide it in one."""
REACH, MORE = 1.5, 1.2
"""How many times as much the light on the skin may have changed as at their middle reading, and at the largest."""
FLOOR = 0.002
"""Added to linear light before logarithms, against noise."""


def without_face_light(
    lightness: float,
    moved: float,
    source: tuple[Pixels, NDArray[np.float64]],
    edited: tuple[Pixels, NDArray[np.float64]],
    light: Relighting | None,
) -> tuple[float, float] | None:
    """Return the least and the most change of the skin's L* that light on the face alone leaves.

    `lightness` is the source's L*, `moved` its change that is left when the light on the whole picture is removed.
    Both pictures come with the points of the mesh. None where eyes and lips did not become
    lighter, or darker, together.
    """
    ratios: list[float] = []
    for outlines, percentiles in _PARTS:
        before, after = _part(*source, outlines, percentiles), _part(*edited, outlines, percentiles)
        if light is not None:
            before = before * light.factor(before)
        ratios += np.log((after @ LUMINANCE + FLOOR) / (before @ LUMINANCE + FLOOR)).tolist()
    ratios.sort(key=abs)
    sign = np.sign(ratios[len(ratios) // 2])
    skin = float(np.log(_luminance(lightness + moved) / _luminance(lightness)))
    alike = [abs(ratio) for ratio in ratios if ratio * sign >= max(LEAST, SHARE * skin * sign)]
    if len(alike) < LEAST_ALIKE or any(ratio * sign <= -LEAST for ratio in ratios):
        return None
    most = min(REACH * abs(ratios[len(ratios) // 2]), MORE * alike[-1])
    left = (_luminance(lightness + moved) / float(np.exp(sign * ratio)) for ratio in (alike[0], most))
    first, second = (116 * float(np.cbrt(one)) - 16 - lightness for one in left)
    return min(first, second), max(first, second)


def _luminance(lightness: float) -> float:
    return max(((lightness + 16) / 116) ** 3, 1e-4)


def _part(
    rgb: Pixels, mesh: NDArray[np.float64], outlines: tuple[tuple[int, ...], ...], percentiles: tuple[int, ...]
) -> NDArray[np.float64]:
    """Return percentiles of the light inside some outlines of the mesh, one a row."""
    polygons = [np.round(mesh[list(outline)]).astype(np.int32) for outline in outlines]
    left, top, wide, high = cv2.boundingRect(np.vstack(polygons))
    left, top = max(0, left), max(0, top)
    part = rgb[top : top + high, left : left + wide]
    inside = np.zeros(part.shape[:2], dtype=np.uint8)
    cv2.fillPoly(inside, polygons, 1, offset=(-left, -top))
    if not inside.any():
        return np.zeros((len(percentiles), 3))
    light = picture.linear(part[inside > 0][None])[0].astype(np.float64)
    return np.asarray(np.percentile(light, percentiles, axis=0))
