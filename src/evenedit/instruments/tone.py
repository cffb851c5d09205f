"""The skin tone of one face: the middle of all its skin, face and neck, so that neither shine nor shadow decides it."""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray

from evenedit.core.color import Lab
from evenedit.instruments import picture
from evenedit.instruments.face import Face
from evenedit.instruments.mesh import find_mesh
from evenedit.instruments.patches import Sampled, labs, sampled, skin_colour
from evenedit.instruments.picture import Mask, Pixels

LUMINANCE = np.array([0.2126, 0.7152, 0.0722])
MIDDLE = (40.0, 60.0)
"""Percentiles of luminance that make up the tone."""
LEAST_SKIN = 60
"""Points of skin that a face must show."""
ALIKE = 0.25
"""Log ratio of red or blue to green within which a point has the face's colour."""
SHADOW, SHINE = 9.0, 9.0
"""L* below and above the middle that skin may have."""


def tone(rgb: Pixels, face: Face) -> Lab | None:
    """Return the skin tone of one face; None if too little skin is in sight."""
    points = sampled(rgb, face, find_mesh(rgb, face).points)
    skin = skin_colour(labs(points.light), points.clear)
    return picture.lab_of(skin_light(rgb, face, points, skin)) if skin.sum() >= LEAST_SKIN else None


def skin_light(rgb: Pixels, face: Face, points: Sampled, skin: Mask) -> NDArray[np.float64]:
    """Return the light of the skin's tone: of all points on face and neck with the colour of the mesh's skin."""
    seed = middle(points.light[skin])
    values = _unrolled(rgb, face)
    alike = np.abs(_chroma(values) - _chroma(seed)).max(axis=1) < ALIKE
    bright, centre = _lightness(values @ LUMINANCE), float(_lightness(seed @ LUMINANCE))
    where = alike
    for _ in range(3):  # the seed may be lit more than the rest: search again around the new middle
        where = alike & (bright > centre - SHADOW) & (bright < centre + SHINE)
        if where.sum() < LEAST_SKIN:
            return seed
        centre = float(picture.median(bright[where]))
    return middle(values[where])


def middle(light: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean light of the middle fifth by luminance; shine and shadow lie outside it."""
    bright = light @ LUMINANCE
    low, high = np.percentile(bright, MIDDLE)
    mean: NDArray[np.float64] = light[(bright >= low) & (bright <= high)].mean(axis=0)
    return mean


@cache
def _grid() -> NDArray[np.float64]:
    """Points of face and neck in the face's own coordinates."""
    u, v = (part.ravel() for part in np.meshgrid(np.linspace(-1.2, 1.2, 49), np.linspace(-1.0, 2.1, 63)))
    oval = (u / 1.15) ** 2 + ((v - 0.35) / 1.35) ** 2 < 1
    neck = (np.abs(u) < 0.65) & (v > 1.5)
    return np.stack([u, v], axis=-1)[oval | neck]


def _unrolled(rgb: Pixels, face: Face) -> NDArray[np.float64]:
    """Return the light at the points of face and neck that lie in the picture."""
    x, y = face.place(_grid()).T.astype(np.float32)
    inside = (x >= 0) & (y >= 0) & (x <= rgb.shape[1] - 1) & (y <= rgb.shape[0] - 1)
    soft = cv2.blur(rgb, (3, 3))
    values = cv2.remap(soft, x[inside][:, None], y[inside][:, None], cv2.INTER_LINEAR)
    return picture.linear(np.asarray(values, dtype=np.uint8))[:, 0].astype(np.float64)


def _chroma(light: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log of red and of blue over green, with a floor against noise in dark pixels."""
    log = np.log(light + 0.002)
    ratios: NDArray[np.float64] = log[..., ::2] - log[..., 1:2]
    return ratios


def _lightness(luminance: NDArray[np.float64]) -> NDArray[np.float64]:
    """L* of luminance."""
    lightness: NDArray[np.float64] = np.where(
        luminance > 216 / 24389, 116 * np.cbrt(luminance) - 16, 24389 / 27 * luminance
    )
    return lightness
