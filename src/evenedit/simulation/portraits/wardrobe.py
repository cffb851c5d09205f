"""Clothes and scenes of drawn people: plain and recognisable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from evenedit.core.color import Lab
from evenedit.simulation.portraits.canvas import (
    Array,
    Canvas,
    PixelLabel,
    box,
    curve,
    ellipse,
    flip,
    mix,
    ribbon,
    rounded,
    shift,
)

Points = Sequence[tuple[float, float]]

WHITE: Lab = (94.0, 0.0, 2.0)
INK: Lab = (22.0, 0.0, -5.0)
GOLD: Lab = (74.0, 6.0, 48.0)
STEEL: Lab = (62.0, -1.0, -4.0)
BLUE: Lab = (46.0, 2.0, -42.0)
PINK: Lab = (66.0, 38.0, 4.0)
RED: Lab = (50.0, 48.0, 28.0)
GREEN: Lab = (52.0, -28.0, 20.0)
WOOD: Lab = (55.0, 14.0, 28.0)
SKY: Lab = (88.0, -6.0, -10.0)
SIDES = (-1, 1)


# Clothes


@dataclass(frozen=True, slots=True)
class ClothesPainter:
    """Paints one outfit onto shoulders that may droop."""

    canvas: Canvas
    color: Lab
    slump: float

    def fill(self, outline: Array | Points, color: Lab) -> None:
        """Add a piece of cloth."""
        self.canvas.fill(self._droop(np.asarray(outline, dtype=np.float64)), color, PixelLabel.CLOTHES)

    def both(self, outline: Points, color: Lab) -> None:
        """Add a piece on each side."""
        for side in SIDES:
            self.fill(flip(outline, side), color)

    def stitch(self, line: Array, width: float, color: Lab, taper: float = 0.0) -> None:
        """Add a seam, strap or band."""
        self.fill(ribbon(line, width, taper), color)

    def torso(self, color: Lab, neckline: Points) -> None:
        """Draw the garment's body, open at the neckline (its right half, from the middle outwards)."""
        open_edge = curve([*flip(neckline[:0:-1], -1).tolist(), *neckline])
        last = neckline[-1]
        arm = curve([last, (0.18, 0.820), (0.275, 0.848), (0.345, 0.892), (0.385, 0.97), (0.400, 1.08)])
        self.fill(np.concatenate([open_edge, arm, flip(arm, -1)[::-1]]), color)

    def collar(self, color: Lab) -> None:
        """Draw the two flaps of a shirt collar."""
        flap = [(0.100, 0.782), (0.118, 0.803), (0.082, 0.892), (0.0, 0.868), (0.050, 0.846), (0.088, 0.812)]
        self.both(flap, color)

    def epaulettes(self, color: Lab) -> None:
        """Draw a strap on each shoulder."""
        self.both([(0.205, 0.826), (0.325, 0.878), (0.312, 0.905), (0.195, 0.852)], color)

    def _droop(self, points: Array) -> Array:
        reach = np.abs(points[:, 0]) / 0.35
        drooped = points * (1 - 0.05 * self.slump, 1)
        drooped[:, 1] += 0.032 * self.slump * reach
        return drooped


CREW: Points = [(0.0, 0.862), (0.045, 0.855), (0.085, 0.830), (0.110, 0.793)]
VEE: Points = [(0.0, 0.935), (0.030, 0.905), (0.075, 0.845), (0.110, 0.793)]
HIGH: Points = [(0.0, 0.772), (0.040, 0.770), (0.072, 0.764), (0.094, 0.756)]


def draw_outfit(canvas: Canvas, outfit: str, color: Lab, slump: float) -> None:
    """Dress the person whose shoulders the canvas's frame is at."""
    clothes = ClothesPainter(canvas, color, slump)
    _OUTFITS[outfit](clothes)
    folds = [(ribbon(flip(curve([(0.268, 1.04), (0.262, 0.96), (0.285, 0.915)]), s), 0.014), 0.22) for s in SIDES]
    sides = [(flip([(0.42, 0.84), (0.42, 1.08), (0.34, 1.08), (0.355, 0.93)], s), 0.20) for s in SIDES]
    neck = [(ribbon(curve([(-0.12, 0.80), (-0.07, 0.87), (0.0, 0.895), (0.07, 0.87), (0.12, 0.80)]), 0.03), 0.16)]
    shadow = canvas.tint([*folds, *sides, *neck], 0.008, PixelLabel.CLOTHES)
    canvas.apply(shadow, shift(mix(color, INK, 0.7), -12))


def _edge(neckline: Points) -> Array:
    return curve([*flip(neckline[:0:-1], -1).tolist(), *neckline])


def _plain(clothes: ClothesPainter) -> None:
    clothes.torso(clothes.color, CREW)
    clothes.stitch(_edge(CREW), 0.016, shift(clothes.color, -6))


def _suit(clothes: ClothesPainter) -> None:
    clothes.torso(WHITE, CREW)
    _tie(clothes, RED)
    _jacket(clothes, clothes.color)
    clothes.collar(shift(WHITE, -2))


def _tie(clothes: ClothesPainter, color: Lab) -> None:
    clothes.fill([(-0.020, 0.868), (0.020, 0.868), (0.013, 0.900), (-0.013, 0.900)], shift(color, -4))
    clothes.fill([(-0.012, 0.900), (0.012, 0.900), (0.032, 1.04), (-0.032, 1.04)], color)


def _jacket(clothes: ClothesPainter, color: Lab) -> None:
    arm = [(0.18, 0.818), (0.275, 0.846), (0.346, 0.890), (0.387, 0.97), (0.402, 1.08)]
    for side in SIDES:
        front = [(0.012, 1.08), (0.075, 0.93), (0.118, 0.792)]
        clothes.fill(flip(np.concatenate([np.array(front), curve([front[-1], *arm])]), side), color)
    lapel = [(0.118, 0.790), (0.150, 0.806), (0.178, 0.900), (0.150, 0.912), (0.168, 0.930), (0.020, 1.08)]
    clothes.both([*lapel, (0.070, 0.930)], shift(color, 6))
    clothes.both([(0.118, 0.790), (0.106, 0.830), (0.070, 0.930), (0.020, 1.08), (0.012, 1.08)], shift(color, -8))


def _uniform(clothes: ClothesPainter) -> None:
    clothes.torso(shift(clothes.color, 32, 0, 0), CREW)
    _tie(clothes, shift(INK, 2))
    _jacket(clothes, clothes.color)
    clothes.collar(shift(clothes.color, 36))
    clothes.epaulettes(GOLD)
    for row in range(2):
        for column, color in enumerate((RED, GOLD, BLUE, GREEN)):
            left, top = 0.185 + 0.020 * column, 0.930 + 0.018 * row
            clothes.fill(box(left, top, left + 0.019, top + 0.014), color)
    for side in SIDES:
        clothes.fill(ellipse(side * 0.135, 0.868, 0.010, 0.010), GOLD)


def _scrubs(clothes: ClothesPainter) -> None:
    clothes.torso(clothes.color, VEE)
    clothes.stitch(_edge(VEE), 0.020, shift(clothes.color, 9))
    clothes.fill(rounded(0.145, 0.935, 0.235, 1.06, 0.008), shift(clothes.color, -5))
    for side in SIDES:
        tube = curve([(0.108, 0.785), (0.135, 0.860), (0.125, 0.940), (0.110, 1.02)])
        clothes.stitch(flip(tube, side), 0.013, INK)
    clothes.fill(ellipse(-0.110, 0.975, 0.024, 0.024), STEEL)
    clothes.fill(ellipse(-0.110, 0.975, 0.015, 0.015), shift(STEEL, 20))


def _security(clothes: ClothesPainter) -> None:
    color = clothes.color
    clothes.torso(color, CREW)
    clothes.collar(shift(color, 7))
    clothes.stitch(np.array([(0.0, 0.880), (0.0, 1.05)]), 0.006, shift(color, -8))
    clothes.epaulettes(shift(color, -9))
    shield = [(0.150, 0.915), (0.175, 0.907), (0.200, 0.915), (0.198, 0.945), (0.175, 0.966), (0.152, 0.945)]
    clothes.fill(shield, GOLD)
    clothes.fill(ellipse(0.175, 0.933, 0.011, 0.011), shift(GOLD, -18))
    for side in SIDES:
        clothes.stitch(curve([(side * 0.100, 0.800), (side * 0.060, 0.900), (-0.030, 0.985)]), 0.008, BLUE)
    clothes.fill(rounded(-0.075, 0.975, 0.015, 1.06, 0.008), WHITE)
    clothes.fill(rounded(-0.062, 0.990, -0.032, 1.02, 0.004), shift(BLUE, 20))


def _cardigan(clothes: ClothesPainter) -> None:
    clothes.torso(WHITE, CREW)
    clothes.stitch(_edge(CREW), 0.012, shift(WHITE, -7))
    arm = [(0.18, 0.818), (0.275, 0.846), (0.346, 0.890), (0.387, 0.97), (0.402, 1.08)]
    rim = curve([(0.030, 1.08), (0.062, 0.960), (0.105, 0.860), (0.122, 0.793)])
    for side in SIDES:
        clothes.fill(flip(np.concatenate([rim, curve([(0.122, 0.793), *arm])]), side), clothes.color)
        clothes.stitch(flip(rim, side), 0.024, shift(clothes.color, 7))
    for y in (0.930, 0.985):
        clothes.fill(ellipse(0.083 if y < 0.95 else 0.058, y, 0.008, 0.008), WOOD)


def _apron(clothes: ClothesPainter) -> None:
    _plain(clothes)
    cloth = shift(WHITE, -4)
    for side in SIDES:
        clothes.stitch(flip(curve([(0.112, 0.795), (0.128, 0.85), (0.132, 0.91)]), side), 0.016, cloth)
    clothes.fill(rounded(-0.150, 0.900, 0.150, 1.10, 0.014), cloth)
    clothes.stitch(np.array([(-0.140, 0.916), (0.140, 0.916)]), 0.004, shift(cloth, -12))
    clothes.fill(rounded(-0.070, 0.965, 0.070, 1.08, 0.010), shift(cloth, -7))


def _coverall(clothes: ClothesPainter) -> None:
    color = clothes.color
    clothes.torso(color, CREW)
    clothes.collar(shift(color, 7))
    clothes.stitch(np.array([(0.0, 0.875), (0.0, 1.06)]), 0.010, STEEL)
    for side in SIDES:
        clothes.fill(flip(box(0.030, 0.965, 0.262, 0.990), side), (86.0, -2.0, 10.0))
    clothes.fill(rounded(0.110, 0.905, 0.200, 0.940, 0.006), shift(WHITE, -3))
    clothes.fill(rounded(0.124, 0.918, 0.186, 0.926, 0.003), shift(color, -6))


def _sportswear(clothes: ClothesPainter) -> None:
    color = clothes.color
    clothes.torso(color, CREW)
    stripe = shift(WHITE, -1)
    for side in SIDES:
        clothes.stitch(flip(curve([(0.122, 0.800), (0.225, 0.842), (0.325, 0.895), (0.372, 1.0)]), side), 0.012, stripe)
        clothes.stitch(
            flip(curve([(0.124, 0.826), (0.215, 0.866), (0.300, 0.915), (0.345, 1.01)]), side), 0.012, stripe
        )
    clothes.stitch(_edge(CREW), 0.018, stripe)
    clothes.fill([(-0.055, 0.985), (0.0, 0.945), (0.055, 0.985), (0.055, 1.005), (0.0, 0.966), (-0.055, 1.005)], stripe)


def _fashion(clothes: ClothesPainter) -> None:
    clothes.torso(shift(INK, 4), HIGH)
    clothes.stitch(curve([(-0.094, 0.772), (0.0, 0.790), (0.094, 0.772)]), 0.004, shift(INK, 16))
    arm = [(0.19, 0.806), (0.295, 0.832), (0.372, 0.880), (0.412, 0.97), (0.425, 1.08)]
    for side in SIDES:
        clothes.fill(flip(np.concatenate([[(0.070, 1.08)], curve([(0.120, 0.786), *arm])]), side), clothes.color)
    clothes.both(
        [(0.120, 0.780), (0.175, 0.800), (0.235, 0.905), (0.195, 0.930), (0.075, 1.08)], shift(clothes.color, 8)
    )
    chain = curve([(-0.085, 0.815), (-0.050, 0.880), (0.0, 0.915), (0.050, 0.880), (0.085, 0.815)])
    clothes.stitch(chain, 0.0045, GOLD)
    clothes.fill(ellipse(0.0, 0.924, 0.012, 0.016), GOLD)


_OUTFITS: dict[str, Callable[[ClothesPainter], None]] = {
    "plain": _plain,
    "suit": _suit,
    "uniform": _uniform,
    "scrubs": _scrubs,
    "security": _security,
    "cardigan": _cardigan,
    "apron": _apron,
    "coverall": _coverall,
    "sportswear": _sportswear,
    "fashion": _fashion,
}
OUTFITS = tuple(_OUTFITS)
"""What a person can wear."""


# Scenes


@dataclass(frozen=True, slots=True)
class Scene:
    """Builds one scene; what stands in front of people belongs to no region."""

    canvas: Canvas
    wall: Lab
    label: PixelLabel

    def fill(self, outline: Array | Points, color: Lab) -> None:
        """Add a thing."""
        self.canvas.fill(np.asarray(outline, dtype=np.float64), color, self.label)

    def line(self, points: Points | Array, width: float, color: Lab) -> None:
        """Add a bar, rod or drawn line."""
        self.fill(ribbon(np.asarray(points, dtype=np.float64), width, 0.0), color)

    def floor(self, y: float) -> None:
        """Draw a skirting line and the floor below it."""
        self.fill(box(-0.5, y, 0.5, 1), shift(self.wall, -6))
        self.fill(box(-0.5, y, 0.5, y + 0.012), shift(self.wall, 5))

    def window(self, left: float, top: float, right: float, bottom: float) -> None:
        """Draw a window with a plain sky."""
        self.fill(rounded(left - 0.012, top - 0.012, right + 0.012, bottom + 0.012, 0.01), WHITE)
        self.fill(box(left, top, right, bottom), SKY)
        self.fill(box(left, bottom - 0.3 * (bottom - top), right, bottom), shift(mix(SKY, GREEN, 0.35), 2))
        self.fill(box((left + right) / 2 - 0.005, top, (left + right) / 2 + 0.005, bottom), WHITE)

    def sign(self, x: float, y: float, color: Lab, half: float = 0.085) -> None:
        """Draw a square sign board."""
        self.fill(rounded(x - half - 0.008, y - half - 0.008, x + half + 0.008, y + half + 0.008, 0.02), WHITE)
        self.fill(rounded(x - half, y - half, x + half, y + half, 0.016), color)

    def seated(self, x: float, y: float, color: Lab, pregnant: bool = False) -> None:
        """Draw a pictogram of a seated person."""
        self.fill(ellipse(x - 0.012, y - 0.048, 0.016, 0.016), color)
        self.line(
            curve([(x - 0.018, y - 0.022), (x - 0.022, y + 0.020), (x + 0.020, y + 0.022), (x + 0.026, y + 0.062)]),
            0.020,
            color,
        )
        self.line([(x - 0.046, y - 0.020), (x - 0.046, y + 0.044), (x + 0.006, y + 0.044)], 0.007, color)
        if pregnant:
            self.fill(ellipse(x + 0.004, y + 0.000, 0.023, 0.020), color)
        else:
            self.line([(x + 0.050, y + 0.064), (x + 0.050, y - 0.008), (x + 0.036, y - 0.008)], 0.007, color)


def draw_scene(canvas: Canvas, scene: str, wall: Lab) -> None:
    """Paint what is behind people."""
    _SCENES[scene](Scene(canvas, wall, PixelLabel.BACKGROUND))


def draw_foreground(canvas: Canvas, scene: str, wall: Lab) -> None:
    """Paint what is in front of people."""
    if scene in _FRONTS:
        _FRONTS[scene](Scene(canvas, wall, PixelLabel.NONE))


def _halo(stage: Scene) -> None:
    stage.fill(ellipse(0, 0.45, 0.42, 0.42, 120), shift(stage.wall, 4))


def _office(stage: Scene) -> None:
    stage.window(-0.47, 0.08, -0.21, 0.50)
    for x, top in ((-0.44, 0.30), (-0.39, 0.24), (-0.32, 0.33), (-0.27, 0.27)):
        stage.fill(box(x, top, x + 0.042, 0.50), shift(SKY, -12, 0, -3))
    for y in (0.24, 0.46):
        stage.fill(box(0.22, y, 0.5, y + 0.014), shift(WOOD, 14))
    for number, color in enumerate((BLUE, RED, GOLD, GREEN, STEEL, BLUE)):
        x = 0.30 + 0.028 * number
        stage.fill(box(x, 0.15 + 0.012 * (number % 3), x + 0.023, 0.24), mix(color, stage.wall, 0.35))
    _plant(stage, 0.40, 0.46)


def _plant(stage: Scene, x: float, y: float) -> None:
    leaf = mix(GREEN, stage.wall, 0.2)
    for dx, dy in ((-0.05, -0.12), (0.0, -0.16), (0.05, -0.12), (-0.03, -0.15), (0.035, -0.145)):
        stage.fill(ribbon(curve([(x, y - 0.04), (x + 0.6 * dx, y + 0.6 * dy), (x + dx, y + dy)]), 0.028), leaf)
    stage.fill([(x - 0.034, y - 0.055), (x + 0.034, y - 0.055), (x + 0.024, y), (x - 0.024, y)], mix(RED, WOOD, 0.6))


def _cross(stage: Scene, x: float, y: float, size: float, color: Lab) -> None:
    stage.fill(box(x - size / 3, y - size, x + size / 3, y + size), color)
    stage.fill(box(x - size, y - size / 3, x + size, y + size / 3), color)


def _clinic(stage: Scene) -> None:
    stage.fill(box(-0.5, 0.62, 0.5, 1), shift(mix(stage.wall, SKY, 0.5), -6))
    stage.fill(rounded(-0.47, 0.10, -0.24, 0.40, 0.012), WHITE)
    stage.line([(-0.355, 0.11), (-0.355, 0.39)], 0.004, shift(WHITE, -14))
    _cross(stage, -0.413, 0.25, 0.034, mix(RED, WHITE, 0.2))
    stage.fill(rounded(0.235, 0.14, 0.475, 0.34, 0.014), shift(INK, 12))
    pulse = [(0.25, 0.25), (0.30, 0.25), (0.318, 0.20), (0.340, 0.30), (0.358, 0.25), (0.46, 0.25)]
    stage.line(pulse, 0.006, (84.0, -36.0, 24.0))
    stage.line([(0.355, 0.34), (0.355, 1.0)], 0.014, STEEL)


def _classroom(stage: Scene) -> None:
    stage.fill(rounded(-0.48, 0.10, 0.48, 0.60, 0.014), shift(WOOD, 8))
    stage.fill(box(-0.46, 0.12, 0.46, 0.58), (38.0, -16.0, 6.0))
    chalk: Lab = (86.0, 0.0, 4.0)
    stage.line(curve(ellipse(-0.36, 0.25, 0.045, 0.045, 24)), 0.007, GOLD)
    stage.line([(0.29, 0.32), (0.345, 0.20), (0.40, 0.32), (0.29, 0.32)], 0.007, chalk)
    for x, top in ((-0.41, 0.45), (-0.36, 0.42), (-0.31, 0.45)):
        stage.line([(x, 0.52), (x, top)], 0.007, chalk)
    stage.line(curve([(0.28, 0.46), (0.33, 0.44), (0.36, 0.48), (0.42, 0.46)]), 0.007, chalk)
    for number, color in enumerate((RED, GOLD, BLUE, GREEN, PINK, GOLD, BLUE, RED)):
        x = -0.44 + 0.125 * number
        stage.fill([(x - 0.045, 0.012), (x + 0.045, 0.012), (x, 0.085)], mix(color, WHITE, 0.25))


def _curtain(stage: Scene) -> None:
    cloth = mix(BLUE, stage.wall, 0.45)
    stage.fill(box(-0.5, 0, 0.5, 1), cloth)
    for number in range(10):
        stage.fill(box(-0.5 + 0.1 * number, 0, -0.46 + 0.1 * number, 1), shift(cloth, -3.5))
    for side, color in ((-1, RED), (1, GOLD)):
        stage.fill(flip(box(0.395, 0.12, 0.405, 1), side), GOLD)
        banner = [(0.395, 0.14), (0.345, 0.17), (0.315, 0.30), (0.325, 0.55), (0.36, 0.62), (0.395, 0.60)]
        stage.fill(flip(banner, side), mix(color, WHITE, 0.2))
        stage.fill(flip([(0.395, 0.14), (0.372, 0.30), (0.375, 0.61), (0.395, 0.60)], side), mix(color, WHITE, 0.1))


def _lectern(stage: Scene) -> None:
    stage.fill([(-0.30, 0.925), (0.30, 0.925), (0.27, 1.02), (-0.27, 1.02)], shift(WOOD, -14))
    stage.fill(rounded(-0.33, 0.905, 0.33, 0.935, 0.010), WOOD)
    for side in SIDES:
        stage.line(flip(curve([(0.13, 0.91), (0.11, 0.86), (0.065, 0.835)]), side), 0.009, INK)
        stage.fill(ellipse(side * 0.058, 0.830, 0.020, 0.015), shift(INK, 6))


def _wheelchair(stage: Scene) -> None:
    stage.window(-0.46, 0.08, -0.27, 0.42)
    stage.floor(0.80)
    stage.fill(rounded(-0.31, 0.66, 0.31, 1.1, 0.05), shift(INK, 10))
    stage.fill(rounded(-0.28, 0.69, 0.28, 1.1, 0.04), shift(INK, 18))
    for side in SIDES:
        stage.line(flip(curve([(0.325, 1.0), (0.325, 0.70), (0.34, 0.645), (0.40, 0.635)]), side), 0.018, STEEL)
        stage.line(flip([(0.385, 0.635), (0.455, 0.632)], side), 0.032, INK)


def _wheels(stage: Scene) -> None:
    for side in SIDES:
        x = side * 0.46
        angle = np.linspace(np.pi, 2 * np.pi, 40)
        for radius, width, color in ((0.150, 0.020, INK), (0.122, 0.010, STEEL)):
            arc = np.stack([x + radius * np.cos(angle), 1.02 + radius * np.sin(angle)], axis=1)
            stage.line(arc, width, color)
        for turn in np.linspace(np.pi + 0.3, 2 * np.pi - 0.3, 6):
            rim = (x + 0.12 * np.cos(turn), 1.02 + 0.12 * np.sin(turn))
            stage.line([(x, 1.02), rim], 0.004, STEEL)


def _carriage(stage: Scene, cushion: Lab, pregnant: bool) -> None:
    stage.fill(box(-0.5, 0.10, 0.5, 0.52), WHITE)
    stage.fill(box(-0.5, 0.125, 0.5, 0.495), SKY)
    hills = curve([(-0.5, 0.43), (-0.3, 0.38), (-0.05, 0.42), (0.2, 0.36), (0.5, 0.41)])
    stage.fill(np.concatenate([hills, [(0.5, 0.495), (-0.5, 0.495)]]), mix(GREEN, SKY, 0.5))
    stage.fill(box(-0.5, 0.60, 0.5, 1), shift(stage.wall, -8))
    stage.fill(rounded(-0.30, 0.58, 0.30, 1.1, 0.07), cushion)
    stage.fill(rounded(-0.26, 0.62, 0.26, 1.1, 0.05), shift(cushion, 8))
    stage.line([(-0.44, 0), (-0.44, 1)], 0.022, GOLD)
    board = PINK if pregnant else BLUE
    stage.sign(0.375, 0.20, board)
    stage.seated(0.375, 0.20, WHITE, pregnant)


def _pantry(stage: Scene) -> None:
    for y in (0.30, 0.56):
        stage.fill(box(-0.5, y, 0.5, y + 0.016), shift(WOOD, 10))
    for x in (-0.46, 0.28):
        stage.fill(rounded(x, 0.19, x + 0.19, 0.30, 0.008), shift(WOOD, 2))
        for dx, color in ((0.04, RED), (0.095, GREEN), (0.15, GOLD)):
            stage.fill(ellipse(x + dx, 0.185, 0.028, 0.026), mix(color, WHITE, 0.15))
        stage.line([(x, 0.245), (x + 0.19, 0.245)], 0.005, shift(WOOD, -12))
    for number, color in enumerate((BLUE, GOLD, RED, GREEN)):
        left = (-0.46 + 0.062 * number) if number < 2 else (0.22 + 0.062 * number)
        stage.fill(rounded(left, 0.455, left + 0.05, 0.56, 0.008), mix(color, WHITE, 0.3))
        stage.fill(box(left, 0.49, left + 0.05, 0.525), WHITE)


def _counter(stage: Scene) -> None:
    stage.fill(box(-0.5, 0.945, 0.5, 1), shift(WOOD, 8))
    stage.fill(box(-0.5, 0.945, 0.5, 0.955), shift(WOOD, 18))
    stage.fill([(-0.42, 0.885), (-0.24, 0.885), (-0.27, 0.955), (-0.39, 0.955)], WHITE)
    stage.fill(ellipse(-0.33, 0.885, 0.09, 0.016), mix(GOLD, RED, 0.4))
    for x in (-0.365, -0.33, -0.295):
        steam = curve([(x, 0.865), (x + 0.010, 0.840), (x - 0.008, 0.815), (x + 0.004, 0.790)])
        stage.fill(ribbon(steam, 0.006), WHITE)
    stage.fill(
        curve([(0.25, 0.955), (0.26, 0.905), (0.33, 0.890), (0.41, 0.905), (0.42, 0.955)], closed=True),
        shift(WOOD, 12, 2, 6),
    )
    for x in (0.30, 0.34, 0.38):
        stage.line([(x - 0.008, 0.905), (x + 0.008, 0.925)], 0.006, shift(WOOD, 0))


def _bedroom(stage: Scene) -> None:
    stage.window(-0.44, 0.08, -0.22, 0.44)
    for x in (-0.475, -0.225):
        stage.fill(box(x, 0.05, x + 0.04, 0.50), mix(stage.wall, PINK, 0.22))
    pillow = curve(
        [(-0.34, 0.62), (0.0, 0.55), (0.34, 0.62), (0.40, 0.85), (0.36, 1.05), (-0.36, 1.05), (-0.40, 0.85)],
        closed=True,
    )
    stage.fill(pillow, WHITE)
    stage.fill(box(0.30, 0.58, 0.5, 0.60), shift(WOOD, 6))
    stage.fill(rounded(0.335, 0.475, 0.385, 0.58, 0.008), mix(RED, GOLD, 0.6))
    stage.fill(box(0.330, 0.455, 0.390, 0.482), WHITE)
    stage.fill(box(0.335, 0.505, 0.385, 0.548), WHITE)
    stage.fill([(0.415, 0.490), (0.465, 0.490), (0.458, 0.58), (0.422, 0.58)], shift(SKY, 5))


def _blanket(stage: Scene) -> None:
    edge = curve([(-0.5, 0.93), (-0.25, 0.955), (0.0, 0.965), (0.25, 0.955), (0.5, 0.93)])
    stage.fill(np.concatenate([edge, [(0.5, 1.0), (-0.5, 1.0)]]), mix(SKY, BLUE, 0.25))
    stage.line(edge, 0.016, WHITE)


def _online(stage: Scene) -> None:
    stage.fill(rounded(-0.46, 0.07, 0.46, 0.74, 0.03), WHITE)
    stage.fill(rounded(-0.46, 0.07, 0.46, 0.15, 0.03), shift(mix(stage.wall, BLUE, 0.35), 6))
    for number, color in enumerate((RED, GOLD, GREEN)):
        stage.fill(ellipse(-0.42 + 0.035 * number, 0.11, 0.011, 0.011), mix(color, WHITE, 0.2))
    stage.fill(curve([(-0.36, 0.215), (-0.415, 0.315), (-0.305, 0.315)], closed=True), mix(GOLD, WHITE, 0.1))
    stage.line([(-0.36, 0.240), (-0.36, 0.285)], 0.010, INK)
    stage.fill(ellipse(-0.36, 0.303, 0.006, 0.006), INK)
    hook = curve([(0.320, 0.245), (0.335, 0.215), (0.370, 0.215), (0.382, 0.250), (0.352, 0.275), (0.350, 0.300)])
    stage.line(hook, 0.014, mix(BLUE, WHITE, 0.3))
    stage.fill(ellipse(0.350, 0.330, 0.009, 0.009), mix(BLUE, WHITE, 0.3))
    for y in (0.42, 0.49, 0.56):
        for x in (-0.43, 0.27):
            stage.fill(rounded(x, y, x + 0.16, y + 0.035, 0.012), shift(WHITE, -8))


_SCENES: dict[str, Callable[[Scene], None]] = {
    "plain": _halo,
    "office": _office,
    "clinic": _clinic,
    "classroom": _classroom,
    "podium": _curtain,
    "wheelchair": _wheelchair,
    "priority-seat": partial(_carriage, cushion=(48.0, 0.0, -32.0), pregnant=False),
    "pregnancy-seat": partial(_carriage, cushion=(64.0, 32.0, 4.0), pregnant=True),
    "food": _pantry,
    "care": _bedroom,
    "online": _online,
}
_FRONTS: dict[str, Callable[[Scene], None]] = {
    "podium": _lectern,
    "wheelchair": _wheels,
    "food": _counter,
    "care": _blanket,
}
SCENES = tuple(_SCENES)
"""Where a person can be."""
