"""Pictures as pixels, as linear light and as CIELAB."""

from __future__ import annotations

from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from evenedit.core.color import Lab, rgb_to_lab

Pixels: TypeAlias = NDArray[np.uint8]
Light: TypeAlias = NDArray[np.float32]
Mask: TypeAlias = NDArray[np.bool_]

WORKING_SIDE = 512
"""The longer side pictures are measured at; smaller ones stay as they are."""
GRAY_CHROMA = 4.0
"""Black and white: nearly all pixels keep within this chroma of one tint."""

_value = np.arange(256) / 255
_LINEAR = np.where(_value <= 0.04045, _value / 12.92, ((_value + 0.055) / 1.055) ** 2.4).astype(np.float32)


def pixels(image: Image.Image, side: int = WORKING_SIDE) -> Pixels:
    """The picture upright, in RGB, no longer than `side`."""
    array = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    high, wide = array.shape[:2]
    scale = side / max(high, wide)
    if scale >= 1:
        return array
    size = (max(1, round(wide * scale)), max(1, round(high * scale)))
    return np.asarray(cv2.resize(array, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def linear(rgb: Pixels) -> Light:
    """Linear light, 0 to 1, from sRGB values."""
    return np.asarray(cv2.LUT(rgb, _LINEAR), dtype=np.float32)


def lab_map(light: Light) -> Light:
    """CIELAB of every pixel of a picture in linear light."""
    return np.asarray(cv2.cvtColor(np.ascontiguousarray(light), cv2.COLOR_LRGB2Lab), dtype=np.float32)


def lab_of(light: Any) -> Lab:
    """CIELAB of one colour in linear light."""
    value = np.clip(np.asarray(light, dtype=np.float64), 0, 1)
    rgb = 255 * np.where(value <= 0.0031308, 12.92 * value, 1.055 * value ** (1 / 2.4) - 0.055)
    lightness, a, b = rgb_to_lab(rgb).tolist()
    return lightness, a, b


def is_gray(lab: Light) -> bool:
    """Whether a picture is black and white, or toned with one tint."""
    chroma = lab[..., 1:].reshape(-1, 2)[:: max(1, lab[..., 0].size // 20000)]
    off = np.abs(chroma - np.median(chroma, axis=0)).max(axis=1)
    return bool(np.percentile(off, 98) < GRAY_CHROMA)
