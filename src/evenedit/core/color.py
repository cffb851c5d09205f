"""Colour science: CIELAB of sRGB values, ITA, CIEDE2000 and the Monk skin tones."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Lab: TypeAlias = tuple[float, float, float]
Array: TypeAlias = NDArray[np.float64]

LEAST_B = 1.0
"""ITA is an angle over b*: at or under this it says nothing."""
LEAST_RADIUS = 5.0
"""ITA says nothing this close to L* 50, b* 0 either, where a tiny change turns the angle round."""

_TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
_FROM_XYZ = np.linalg.inv(_TO_XYZ)
_WHITE = _TO_XYZ.sum(axis=1)
_EPSILON, _KAPPA = 216 / 24389, 24389 / 27


def rgb_to_lab(rgb: Any) -> Array:
    """CIELAB (D65) of sRGB values in 0..255, over the last axis."""
    value = np.asarray(rgb, dtype=np.float64) / 255
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    xyz = linear @ _TO_XYZ.T / _WHITE
    f = np.where(xyz > _EPSILON, np.cbrt(xyz), (_KAPPA * xyz + 16) / 116)
    x, y, z = f[..., 0], f[..., 1], f[..., 2]
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def _lab_to_linear(lab: Any) -> Array:
    value = np.asarray(lab, dtype=np.float64)
    y = (value[..., 0] + 16) / 116
    f = np.stack([y + value[..., 1] / 500, y, y - value[..., 2] / 200], axis=-1)
    xyz = np.where(f**3 > _EPSILON, f**3, (116 * f - 16) / _KAPPA) * _WHITE
    linear: Array = xyz @ _FROM_XYZ.T
    return linear


def lab_to_rgb(lab: Any) -> Array:
    """Return sRGB in 0..255 (not rounded, clipped to the gamut) of CIELAB (D65) values, over the last axis."""
    linear = np.clip(_lab_to_linear(lab), 0, 1)
    return 255 * np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def in_gamut(lab: Lab) -> bool:
    """Return whether sRGB can show this colour."""
    linear = _lab_to_linear(lab)
    return bool((linear > -1e-4).all() and (linear < 1 + 1e-4).all())


_MONK_HEX = [
    "f6ede4",
    "f3e7db",
    "f7ead0",
    "eadaba",
    "d7bd96",
    "a07e56",
    "825c43",
    "604134",
    "3a312a",
    "292420",
]


def triple(values: Any) -> Lab:
    """Three numbers as a CIELAB colour."""
    first, second, third = (float(value) for value in values)
    return first, second, third


MONK: tuple[Lab, ...] = tuple(triple(rgb_to_lab(list(bytes.fromhex(tone)))) for tone in _MONK_HEX)
"""CIELAB (D65) of the ten Monk skin tones, lightest first."""


def ita(lab: Lab) -> float | None:
    """Individual typology angle in degrees; None where b* makes it meaningless."""
    lightness, _, b = lab
    if b <= LEAST_B or math.hypot(lightness - 50, b) < LEAST_RADIUS:
        return None
    return math.degrees(math.atan2(lightness - 50, b))


def nearest_monk(lab: Lab) -> int:
    """Return the nearest Monk tone, 1 (lightest) to 10."""
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
