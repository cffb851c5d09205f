"""Headwear of drawn people: a plain knitted cap, or a headscarf that covers the hair."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from evenedit.core.color import Lab
from evenedit.simulation.portraits.canvas import Array, Canvas, PixelLabel, curve, flip, mirrored, ribbon, shift

NONE = "none"
SIDES = (-1, 1)


def draw_headwear(canvas: Canvas, headwear: str, color: Lab, half: float, lift: float) -> None:
    """Paint what is on the head; `half` is half the face's width, `lift` how far the hair stands off the skull."""
    _PAINTERS[headwear](canvas, color, half, lift)


def covers_hair(headwear: str) -> bool:
    """Return whether this headwear hides all hair."""
    return headwear == "headscarf"


def _no_headwear(_canvas: Canvas, _color: Lab, _half: float, _lift: float) -> None:
    """Draw a bare head."""


def _cap(canvas: Canvas, color: Lab, half: float, lift: float) -> None:
    rim = half + 0.8 * lift + 0.006
    dome = mirrored(
        [
            (0.0, 0.142 - lift),
            (0.55 * half, 0.164 - lift),
            (0.93 * half + 0.8 * lift, 0.238 - 0.4 * lift),
            (rim, 0.318),
            (0.62 * half, 0.330),
            (0.0, 0.322),
        ]
    )
    _cloth(canvas, curve(dome, closed=True), color)
    for x in np.linspace(-0.7, 0.7, 8) * half:  # ribs of the knitting
        _cloth(
            canvas,
            ribbon(curve([(x, 0.290), (0.85 * x, 0.225), (0.45 * x, 0.165 - lift)]), 0.005, 0.8),
            shift(color, -4),
        )
    edge = curve([(-rim, 0.312), (-0.55 * half, 0.322), (0.0, 0.318), (0.55 * half, 0.322), (rim, 0.312)])
    _cloth(canvas, ribbon(edge, 0.046), shift(color, -7))
    _cloth(canvas, ribbon(np.add(edge, (0.0, -0.024)), 0.004), shift(color, -15))


def _headscarf(canvas: Canvas, color: Lab, half: float, _lift: float) -> None:
    outer = [
        (0.0, 0.148),
        (0.58 * half, 0.168),
        (0.98 * half + 0.022, 0.270),
        (half + 0.034, 0.420),
        (half + 0.030, 0.580),
        (0.90 * half + 0.040, 0.700),
        (half + 0.050, 0.800),
        (0.80 * half, 0.900),
        (0.0, 0.925),
    ]
    opening = [
        (0.0, 0.714),
        (0.42 * half, 0.688),
        (0.76 * half, 0.606),
        (0.94 * half, 0.480),
        (0.88 * half, 0.350),
        (0.55 * half, 0.268),
        (0.0, 0.246),
    ]
    for side in SIDES:
        _cloth(canvas, flip(np.concatenate([curve(outer), curve(opening)]), side), color)
    for side in SIDES:
        _cloth(canvas, ribbon(flip(curve(opening[1:]), side), 0.012), shift(color, -6))
        fold = curve([(half + 0.012, 0.420), (0.97 * half, 0.600), (0.55 * half, 0.745), (0.0, 0.800)])
        _cloth(canvas, ribbon(flip(fold, side), 0.006, 0.8), shift(color, -9))
    sweep = curve([(-0.80 * half, 0.705), (-0.20 * half, 0.790), (0.45 * half, 0.870)])
    _cloth(canvas, ribbon(sweep, 0.009, 0.7), shift(color, -11))


def _cloth(canvas: Canvas, outline: Array, color: Lab) -> None:
    canvas.fill(outline, color, PixelLabel.CLOTHES)


_PAINTERS: Mapping[str, Callable[[Canvas, Lab, float, float], None]] = {
    NONE: _no_headwear,
    "cap": _cap,
    "headscarf": _headscarf,
}
HEADWEAR = tuple(_PAINTERS)
"""What a person can wear on the head."""
