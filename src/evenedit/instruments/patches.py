"""Spots of skin at the same places of two faces, and which of them show skin in both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from evenedit.core.color import Lab
from evenedit.instruments import picture
from evenedit.instruments.face import Face
from evenedit.instruments.mesh import SkinPoints, skin_points
from evenedit.instruments.picture import Mask, Pixels

Polygon: TypeAlias = NDArray[np.float64]

SOFT = 0.05
"""Inter-eye distances over which light is averaged at a point."""
LEAST_FACING = 0.25
"""Skin that looks smaller than this beside a frontal face's is seen from the side."""
SIDE = 0.26
"""Side of a patch, in inter-eye distances."""
LEAST_POINTS = 6
"""Points of skin that a patch needs."""
LEAST_SHARE = 0.5
"""Share of a patch's points that must show skin in both pictures."""
LIKE = 3.0
"""Robust standard deviations within which a point has the colour of the person's skin."""
LEAST_SPREAD = np.array([12.0 / LIKE, 2.5, 2.5])
"""The least standard deviation of L*, a* and b* over skin that is taken for granted."""
TURNED = 40.0
"""Degrees of hue by which an edit's skin may differ from its source's; beyond, something covers it."""
PALER = 0.35
"""The least chroma of an edit's skin, as a share of its source's; under it, something covers it."""
LEAST_CHROMA = 3.0
"""Chroma under which hue says nothing."""
ONE_COLOUR = 0.7
"""Share of a face's points that have one warm colour where nothing covers it."""


@dataclass(frozen=True, slots=True)
class SkinPatch:
    """One spot of skin in one picture."""

    name: str
    """Where on the face: forehead, nose, chin, left or right cheek (of the picture)."""
    outline: Polygon
    lab: Lab


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """Light at the points of skin of one face."""

    place: NDArray[np.float64]
    """Where the points are, in pixels."""
    light: NDArray[np.float64]
    clear: Mask
    """Which of them are in the picture and face the viewer."""


def sampled(rgb: Pixels, face: Face, mesh: NDArray[np.float64]) -> Sampled:
    """Read the light at the points of skin of a mesh."""
    points = skin_points()
    place = points.place(mesh)
    size = max(1, round(SOFT * face.unit))
    high, wide = rgb.shape[:2]
    left, top = np.maximum(0, np.floor(place.min(axis=0)).astype(int) - size - 2)
    right, bottom = np.minimum((wide, high), np.ceil(place.max(axis=0)).astype(int) + size + 3)
    inside = (place >= 0).all(axis=1) & (place[:, 0] <= wide - 1) & (place[:, 1] <= high - 1)
    if right <= left or bottom <= top:
        return Sampled(place, np.zeros((len(place), 3)), np.zeros(len(place), dtype=bool))
    soft = cv2.blur(picture.linear(np.ascontiguousarray(rgb[top:bottom, left:right])), (size, size))
    off_centre = 0.5 * (size % 2 == 0)  # a window of an even size lies half a pixel aside
    light = picture.interpolated(soft.transpose(2, 0, 1), (place - (left, top) + off_centre).T).T
    facing = points.facing(face.coordinates(mesh)) >= LEAST_FACING
    return Sampled(place, light, np.asarray(inside & facing))


def labs(light: NDArray[np.float64]) -> NDArray[np.float64]:
    """Convert colours in linear light to CIELAB, one a row."""
    lab = picture.lab_map(np.clip(light, 0, 1).astype(np.float32)[None])
    return np.asarray(lab[0], dtype=np.float64)


def skin_colour(lab: NDArray[np.float64], clear: Mask) -> Mask:
    """Return the clear points of the face's prevailing colour: hair, frames, lips and shadows are left out."""
    skin = clear
    for _ in range(4):
        if skin.sum() < LEAST_POINTS:
            break
        middle = picture.median(lab[skin])
        spread = np.maximum(LEAST_SPREAD, 1.4826 * picture.median(np.abs(lab[skin] - middle)))
        skin = np.asarray(clear & (np.abs(lab - middle) < LIKE * spread).all(axis=1))
    return skin


def still_skin(before: NDArray[np.float64], after: NDArray[np.float64], skin: Mask) -> Mask:
    """Return the points of skin that still have a colour possible for skin of this hue, at any lightness."""
    middle = picture.median(before[skin])
    chroma, now = float(np.hypot(middle[1], middle[2])), np.hypot(after[:, 1], after[:, 2])
    if chroma < LEAST_CHROMA:
        return skin
    turn = np.degrees(np.arctan2(after[:, 2], after[:, 1]) - np.arctan2(middle[2], middle[1]))
    turn = np.abs((turn + 180) % 360 - 180)
    return np.asarray(skin & (now >= max(PALER * chroma, LEAST_CHROMA)) & (turn <= TURNED))


def other_skin(after: NDArray[np.float64], clear: Mask) -> Mask:
    """Return the points of a face that as a whole has another colour of skin; none where something covers it."""
    alike = skin_colour(after, clear)
    warm = after[:, 1:].min(axis=1) > LEAST_CHROMA / 2
    one = alike & warm
    return one if one.sum() >= ONE_COLOUR * max(1, int(clear.sum())) else np.zeros_like(clear)


@dataclass(frozen=True, slots=True, eq=False)
class Patchwork:
    """The patches that all faces are divided into."""

    of: NDArray[np.int64]
    """The patch of each point."""
    where: NDArray[np.float64]
    """The middle of each patch on a frontal face, in the face's own coordinates."""
    names: tuple[str, ...]
    """Where each patch is: forehead, nose, chin, left or right cheek."""


@cache
def patchwork(points: SkinPoints | None = None) -> Patchwork:
    """Divide the points of skin into patches."""
    where = (points or skin_points()).where
    cells = np.floor(np.stack([where[:, 0] / SIDE + 0.5, where[:, 1] / SIDE], axis=-1)).astype(int)
    _, of = np.unique(cells, axis=0, return_inverse=True)
    middles = np.array([where[of == number].mean(axis=0) for number in range(of.max() + 1)])
    return Patchwork(of.ravel(), middles, tuple(_name(u, v) for u, v in middles))


def _name(u: float, v: float) -> str:
    if v < -0.15:
        return "forehead"
    if v > 1.2 and abs(u) < 0.5:
        return "chin"
    if abs(u) < 0.28:
        return "nose"
    return "left cheek" if u < 0 else "right cheek"


def skin_patches(one: Sampled, used: Mask, skin: Mask) -> tuple[SkinPatch, ...]:
    """Return the used patches in one picture, for drawing them."""
    work = patchwork()
    patches = []
    for number in np.flatnonzero(used):
        members = (work.of == number) & skin
        hull = cv2.convexHull(one.place[members].astype(np.float32))[:, 0]
        lab = picture.lab_of(np.median(one.light[members], axis=0))
        patches.append(SkinPatch(work.names[number], np.asarray(hull, dtype=np.float64), lab))
    return tuple(patches)
