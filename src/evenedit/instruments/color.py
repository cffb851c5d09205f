"""Colour as light and as seen: linear sRGB, CIELAB, ITA, CIEDE2000 and the Monk tones."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from evenedit.sources.canvas import Lab, rgb_to_lab
from evenedit.sources.portrait import MONK

Pixels: TypeAlias = NDArray[np.uint8]
Light: TypeAlias = NDArray[np.float32]
Mask: TypeAlias = NDArray[np.bool_]

WORKING_SIDE = 512
"""The longer side pictures are measured at; smaller ones stay as they are."""
GRAY_CHROMA = 4.0
"""Black and white: nearly all pixels keep within this chroma of one tint."""
LEAST_B = 1.0
"""ITA is an angle over b*: at or under this it says nothing."""
LEAST_RADIUS = 5.0
"""Nor does it this close to L* 50, b* 0, where a breath turns it round."""

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
    """Light itself, 0 to 1: sRGB's curve undone."""
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


def ita(lab: Lab) -> float | None:
    """Individual typology angle in degrees; None where b* makes it meaningless."""
    lightness, _, b = lab
    if b <= LEAST_B or math.hypot(lightness - 50, b) < LEAST_RADIUS:
        return None
    return math.degrees(math.atan2(lightness - 50, b))


def nearest_monk(lab: Lab) -> int:
    """The Monk tone, 1 (lightest) to 10, that looks nearest."""
    return 1 + min(range(len(MONK)), key=lambda tone: delta_e00(lab, MONK[tone]))


def delta_e00(first: Lab, second: Lab) -> float:
    """CIEDE2000 colour difference (Sharma, Wu and Dalal 2005), with unit weights."""
    (l1, a1, b1), (l2, a2, b2) = first, second
    mean_c7 = ((math.hypot(a1, b1) + math.hypot(a2, b2)) / 2) ** 7
    g = (1 - math.sqrt(mean_c7 / (mean_c7 + 25.0**7))) / 2
    a1, a2 = a1 * (1 + g), a2 * (1 + g)
    c1, c2 = math.hypot(a1, b1), math.hypot(a2, b2)
    h1, h2 = math.degrees(math.atan2(b1, a1)) % 360, math.degrees(math.atan2(b2, a2)) % 360
    colored = c1 * c2 != 0
    turn = (h2 - h1 + 180) % 360 - 180 if colored else 0.0
    if turn == -180:  # opposite hues: Sharma's rule keeps the sign of h2 - h1
        turn = h2 - h1
    mean_l, mean_c = (l1 + l2) / 2, (c1 + c2) / 2
    mean_h = h1 + h2
    if colored:
        mean_h = mean_h / 2 if abs(h1 - h2) <= 180 else (mean_h + (360 if mean_h < 360 else -360)) / 2
    t = (
        1
        - 0.17 * _cos(mean_h - 30)
        + 0.24 * _cos(2 * mean_h)
        + 0.32 * _cos(3 * mean_h + 6)
        - 0.20 * _cos(4 * mean_h - 63)
    )
    s_l = 1 + 0.015 * (mean_l - 50) ** 2 / math.sqrt(20 + (mean_l - 50) ** 2)
    s_c, s_h = 1 + 0.045 * mean_c, 1 + 0.015 * mean_c * t
    rotation = -2 * math.sqrt(mean_c**7 / (mean_c**7 + 25.0**7))
    rotation *= math.sin(math.radians(60 * math.exp(-(((mean_h - 275) / 25) ** 2))))
    d_l, d_c = (l2 - l1) / s_l, (c2 - c1) / s_c
    d_h = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn / 2)) / s_h
    return math.sqrt(d_l**2 + d_c**2 + d_h**2 + rotation * d_c * d_h)


def _cos(degrees: float) -> float:
    return math.cos(math.radians(degrees))
