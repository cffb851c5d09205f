"""Pictures as pixels, as linear light and as CIELAB."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from evenedit.core.color import Lab, rgb_to_lab
from evenedit.core.decode import to_rgb

Pixels: TypeAlias = NDArray[np.uint8]
Light: TypeAlias = NDArray[np.float32]
Mask: TypeAlias = NDArray[np.bool_]
T = TypeVar("T")

WORKING_SIDE = 512
"""The longer side pictures are measured at; smaller ones stay as they are."""
GRAY_CHROMA = 4.0
"""Black and white: nearly all pixels keep within this chroma of one tint."""

GRAY_SAMPLE = 4000
"""Pixels that are looked at for it."""

_value = np.arange(256) / 255
_LINEAR = np.where(_value <= 0.04045, _value / 12.92, ((_value + 0.055) / 1.055) ** 2.4).astype(np.float32)


class Picture:
    """A picture's pixels, and what follows from them alone: computed once, as a source is compared with many edits."""

    def __init__(self, rgb: Pixels) -> None:
        self.rgb = rgb
        self._known: dict[tuple[Any, ...], Any] = {}

    def once(self, compute: Callable[..., T], *arguments: Any) -> T:
        """Return the result of `compute` on this picture and the arguments, computed once."""
        key = (compute, *arguments)
        if key not in self._known:
            self._known[key] = compute(self, *arguments)
        value: T = self._known[key]
        return value

    @property
    def light(self) -> Light:
        """Its linear light."""
        return self.once(_light)

    @property
    def lab(self) -> Light:
        """CIELAB of its pixels."""
        return self.once(_lab)

    @property
    def gray(self) -> bool:
        """Whether it has no colour."""
        return self.once(_gray)


def pixels(image: Image.Image, side: int = WORKING_SIDE) -> Pixels:
    """Return the picture upright, in RGB, no longer than `side`."""
    upright = to_rgb(image)
    times = max(upright.size) // side
    array = np.asarray(
        upright.reduce(times) if times > 1 else upright
    )  # before it is copied out of the picture: faster
    high, wide = array.shape[:2]
    scale = side / max(high, wide)
    if scale >= 1:
        return array
    size = (max(1, round(wide * scale)), max(1, round(high * scale)))
    return np.asarray(cv2.resize(array, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def linear(rgb: Pixels) -> Light:
    """Convert sRGB values to linear light, 0 to 1."""
    return np.asarray(cv2.LUT(rgb, _LINEAR), dtype=np.float32)


def encoded(light: NDArray[np.floating]) -> Pixels:
    """Convert linear light to sRGB values."""
    value = np.clip(light, 0, 1)
    curve = np.where(value <= 0.0031308, 12.92 * value, 1.055 * value ** (1 / 2.4) - 0.055)
    return np.asarray(np.rint(255 * curve), dtype=np.uint8)


def interpolated(layers: NDArray[Any], places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return layers of a picture at rows of x and y, bilinear in double precision; OpenCV rounds these to 1/32."""
    count, high, wide = layers.shape
    x, y = np.clip(places[0], 0, wide - 1), np.clip(places[1], 0, high - 1)
    left, top = x.astype(np.intp), y.astype(np.intp)
    u, v = x - left, y - top
    right, bottom = np.minimum(left + 1, wide - 1), np.minimum(top + 1, high - 1)
    corners = (
        (top, left, (1 - v) * (1 - u)),
        (top, right, (1 - v) * u),
        (bottom, left, v * (1 - u)),
        (bottom, right, v * u),
    )
    values = np.zeros((count, len(x)))
    for row, column, weight in corners:
        values += np.take(layers.reshape(count, -1), row * wide + column, axis=1) * weight
    return values


def median(values: NDArray[Any]) -> Any:
    """Return the median along the first axis: numpy's own takes several times as long for short arrays."""
    ordered, half = np.sort(values, axis=0), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


def lab_map(light: Light) -> Light:
    """Convert every pixel of a picture in linear light to CIELAB."""
    return np.asarray(cv2.cvtColor(np.ascontiguousarray(light), cv2.COLOR_LRGB2Lab), dtype=np.float32)


def lab_bytes(rgb: Pixels) -> Pixels:
    """Convert every pixel to CIELAB in bytes: L* times 2.55, a* and b* plus 128."""
    return np.asarray(cv2.cvtColor(rgb, cv2.COLOR_RGB2Lab), dtype=np.uint8)


def lab_of(light: Any) -> Lab:
    """Convert one colour in linear light to CIELAB."""
    value = np.clip(np.asarray(light, dtype=np.float64), 0, 1)
    rgb = 255 * np.where(value <= 0.0031308, 12.92 * value, 1.055 * value ** (1 / 2.4) - 0.055)
    lightness, a, b = rgb_to_lab(rgb).tolist()
    return lightness, a, b


def is_gray(rgb: Pixels) -> bool:
    """Return whether a picture is black and white, or toned with one tint."""
    step = max(1, int((rgb.shape[0] * rgb.shape[1] / GRAY_SAMPLE) ** 0.5))
    chroma = lab_map(linear(np.ascontiguousarray(rgb[::step, ::step])))[..., 1:].reshape(-1, 2)
    off = np.abs(chroma - median(chroma)).max(axis=1)
    return bool(np.percentile(off, 98) < GRAY_CHROMA)


def _light(picture: Picture) -> Light:
    return linear(picture.rgb)


def _lab(picture: Picture) -> Light:
    return lab_map(picture.light)


def _gray(picture: Picture) -> bool:
    return is_gray(picture.rgb)
