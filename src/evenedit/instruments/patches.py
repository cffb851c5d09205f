"""Spots of skin: where a face shows cheeks and forehead, and the light they reflect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from evenedit.core import color
from evenedit.core.color import Lab
from evenedit.instruments import picture
from evenedit.instruments.face import Face

Polygon: TypeAlias = NDArray[np.float64]

PATCHES = ("left", "right", "forehead")
"""Left and right of the picture."""
KEPT = (20.0, 80.0)
"""Percentiles of luminance kept in a patch: shadow below, shine above."""
LEAST_PIXELS = 30
STRAY = 12.0
"""Colour difference (CIEDE2000) of a patch from the others beyond which it is hair, a hat or a shadow."""
UNEVEN = 20.0
"""Range of L* over a patch's quarters beyond which an edge runs through it."""
LEAST_SIDE = 0.18
"""A cheek narrower than this, from nose to eye, is turned away."""
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])


@dataclass(frozen=True, slots=True)
class SkinPatch:
    """One spot of skin."""

    name: str
    """One of PATCHES."""
    outline: Polygon
    light: NDArray[np.float64]
    """Its mean light."""
    lab: Lab
    """Its CIELAB."""
    parts: NDArray[np.float64]
    """CIELAB of its quarters."""


def outlines(face: Face) -> dict[str, Polygon]:
    """Where to read skin: a cheek each side that faces the viewer, and the forehead."""
    own = face.own(face.landmarks)
    nose, mouth = own[2], float(own[3:, 1].mean())
    spots = {}
    for name, eye, side in (("left", own[0], -1), ("right", own[1], 1)):
        reach = side * (eye[0] - nose[0])
        if reach >= LEAST_SIDE:
            centre = (nose[0] + side * reach * 1.06, 0.53 * mouth)
            spots[name] = face.place(_ellipse(centre, 0.36 * reach, 0.15))
    spots["forehead"] = face.place(_ellipse((0.4 * nose[0], -0.52), 0.30, 0.12))
    return spots


def read(light: picture.Light, spots: Mapping[str, Polygon]) -> dict[str, SkinPatch]:
    """The patches that lie in the picture, without their shine and shadow."""
    found = {}
    for name, outline in spots.items():
        patch = _patch(light, name, outline)
        if patch is not None:
            found[name] = patch
    return found


def strays(patches: Mapping[str, SkinPatch]) -> list[str]:
    """Patches unlike the rest: the forehead where it disagrees with cheeks that agree, else the odd one out."""
    uneven = [name for name, patch in patches.items() if np.ptp(patch.parts[:, 0]) > UNEVEN]
    if 0 < len(uneven) < len(patches):
        return uneven
    far = {(a, b): color.delta_e00(patches[a].lab, patches[b].lab) > STRAY for a in patches for b in patches if a < b}
    if not any(far.values()):
        return []
    odd = [name for name in patches if all(apart for pair, apart in far.items() if name in pair)]
    if len(patches) == 2 and "forehead" in patches:
        return ["forehead"]
    if len(patches) == 3 and len(odd) in (1, 3):
        return ["forehead"] if len(odd) == 3 else odd
    return []


def _patch(light: picture.Light, name: str, outline: Polygon) -> SkinPatch | None:
    high, wide = light.shape[:2]
    left, top = np.floor(outline.min(axis=0)).astype(int)
    right, bottom = np.ceil(outline.max(axis=0)).astype(int) + 1
    if left < 0 or top < 0 or right > wide or bottom > high:
        return None
    inside = np.zeros((bottom - top, right - left), dtype=np.uint8)
    cv2.fillPoly(inside, [np.round(outline - (left, top)).astype(np.int32)], 1)
    rows, columns = np.nonzero(inside)
    values = light[top:bottom, left:right][rows, columns].astype(np.float64)
    if len(values) < LEAST_PIXELS:
        return None
    kept = _fair(values)
    middle_row, middle_column = np.median(rows), np.median(columns)
    quarters = (rows > middle_row) * 2 + (columns > middle_column)
    parts = [values[kept & (quarters == q)].mean(axis=0) for q in range(4) if (kept & (quarters == q)).sum() >= 5]
    mean = values[kept].mean(axis=0)
    return SkinPatch(name, outline, mean, picture.lab_of(mean), np.array([picture.lab_of(part) for part in parts]))


def _fair(values: NDArray[np.float64]) -> picture.Mask:
    """Pixels neither shiny nor shadowed."""
    luminance = values @ LUMINANCE
    low, high = np.percentile(luminance, KEPT)
    return np.asarray((luminance >= low) & (luminance <= high))


def _ellipse(centre: tuple[float, float], across: float, down: float) -> Polygon:
    angle = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    return np.stack([centre[0] + across * np.cos(angle), centre[1] + down * np.sin(angle)], axis=-1)
