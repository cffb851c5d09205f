"""Further variants of portraits: only a part of the picture changed, or its colour, or it is mirrored.

Added after weak spots were found on people of the calibration half: light was taken from a background that became
lighter by itself, and a part of the face may change while the rest stays.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from validation.skin_variants import (
    Pixels,
    Sitter,
    Soft,
    Variant,
    backdrop,
    brighter,
    contrast,
    in_lab,
    jpeg,
    mask,
    over,
    resized,
    side_light,
    tinted,
)


def around(sitter: Sitter, factors: Any) -> Pixels:
    """The background lighter, darker or in another colour, the person as before."""
    return over(sitter.rgb, np.clip(sitter.rgb * np.asarray(factors), 0, 255), 1 - sitter.person)


def hair(sitter: Sitter) -> Soft:
    """About where hair is."""
    u, v = sitter.own[..., 0], sitter.own[..., 1]
    head = ((u / 1.75) ** 2 + ((v + 0.05) / 1.9) ** 2 < 1) & (v < 1.7)
    return np.asarray(sitter.blurred(head) * (1 - sitter.skin) * (1 - sitter.oval) * sitter.person, np.float32)


def clothes(sitter: Sitter) -> Soft:
    """About where clothes are."""
    return np.asarray(sitter.blurred(sitter.own[..., 1] > 1.95) * (1 - sitter.skin) * sitter.person, np.float32)


def colourful(rgb: Pixels, factor: float) -> Pixels:
    """More or less saturated."""
    gray = cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY)[..., None].astype(np.float64)
    return np.asarray(np.clip(np.rint(gray + (rgb - gray) * factor), 0, 255), dtype=np.uint8)


def sepia(rgb: Pixels) -> Pixels:
    """Brown, as old photographs are."""
    mix = np.array([[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]])
    return np.asarray(np.clip(np.rint(rgb @ mix.T), 0, 255), dtype=np.uint8)


def mirror(rgb: Pixels) -> Pixels:
    return np.ascontiguousarray(rgb[:, ::-1])


def own_colour(sitter: Sitter) -> Any:
    """The colour of the face."""
    return np.median(sitter.rgb[sitter.oval > 0.9], axis=0)


def one_half(u: Any, v: Any) -> Any:
    return u < 0


def below(u: Any, v: Any) -> Any:
    return v > 0.6


def forehead(u: Any, v: Any) -> Any:
    return v < -0.25


def a_cheek(u: Any, v: Any) -> Any:
    return ((u - 0.6) / 0.4) ** 2 + ((v - 0.6) / 0.5) ** 2 < 1


def cheeks(u: Any, v: Any) -> Any:
    return ((np.abs(u) - 0.6) / 0.35) ** 2 + ((v - 0.6) / 0.45) ** 2 < 1


PARTS = (
    Variant("one half of the face +8", "part", shift=(8, 0, 0), where=one_half, held=True),
    Variant("lower face -8", "part", shift=(-8, 0, 0), where=below, held=True),
    Variant("forehead -10", "part", shift=(-10, 0, 0), where=forehead),
    Variant("one cheek +12", "part", shift=(12, 0, 0), where=a_cheek),
    Variant("both cheeks +10", "part", shift=(10, 0, 0), where=cheeks, held=True),
    Variant("background brighter", "place", lambda s, c: around(s, 1.2)),
    Variant("background darker", "place", lambda s, c: around(s, 0.75), held=True),
    Variant("background warmer", "place", lambda s, c: around(s, (1.15, 1.0, 0.8)), held=True),
    Variant("hair darker", "place", lambda s, c: in_lab(s.rgb, (-15, 0, 0), hair(s)), held=True),
    Variant("hair fair", "place", lambda s, c: in_lab(s.rgb, (30, 5, 25), hair(s))),
    Variant("clothes darker", "place", lambda s, c: in_lab(s.rgb, (-20, 0, 0), clothes(s)), held=True),
    Variant("blurred backdrop", "place", lambda s, c: over(s.rgb, cv2.GaussianBlur(s.rgb, (0, 0), 8), 1 - s.person)),
    Variant("mirrored", "moved", lambda s, c: mirror(s.rgb), held=True),
    Variant("cool light", "light", lambda s, c: tinted(s.rgb, (0.88, 1.0, 1.12)), held=True),
    Variant("less contrast", "light", lambda s, c: contrast(s.rgb, 0.75)),
    Variant("gamma 0.8", "light", lambda s, c: brighter(s.rgb, 1.0, 0.8), held=True),
    Variant("paler colours", "light", lambda s, c: colourful(s.rgb, 0.5), held=True),
    Variant("stronger colours", "light", lambda s, c: colourful(s.rgb, 1.4)),
    Variant("black and white", "light", lambda s, c: colourful(s.rgb, 0.0), held=True),
    Variant("sepia", "light", lambda s, c: sepia(s.rgb), held=True),
    Variant("blur, more", "file", lambda s, c: np.asarray(cv2.GaussianBlur(s.rgb, (0, 0), 5.0))),
    Variant("JPEG 10", "file", lambda s, c: jpeg(s.rgb, 10), held=True),
    Variant("128 pixels", "file", lambda s, c: resized(s.rgb, 128 / max(s.shape)), held=True),
    Variant("mask lighter than the skin", "covered", lambda s, c: mask(s, 1.12 * own_colour(s), c), held=True),
    Variant("skin -30", "skin", shift=(-30, 0, 0)),
    Variant("skin +5, background brighter", "both", lambda s, c: around(s, 1.2), shift=(5, 0, 0)),
    Variant("skin +12, side light", "both", lambda s, c: side_light(s, 0.15, c), shift=(12, 0, 0), held=True),
    Variant("skin -15, backdrop", "both", lambda s, c: brighter(backdrop(s, c), 1.15), shift=(-15, 0, 0), held=True),
    Variant("skin +8, mirrored", "both", lambda s, c: mirror(s.rgb), shift=(8, 0, 0), held=True),
)
"""Seen on the calibration half; those held back stay out of the calibration of errors."""
