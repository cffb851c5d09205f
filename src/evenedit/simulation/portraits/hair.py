"""How drawn hair is shaped and lit. Length,  texture and volume are independent of everything else."""

from __future__ import annotations

import numpy as np

from evenedit.core.color import Lab
from evenedit.simulation.portraits.canvas import (
    RELIEF,
    Array,
    Canvas,
    CanvasPatch,
    PixelLabel,
    curve,
    ellipse,
    flip,
    gauss,
    mirrored,
    ribbon,
    shift,
    smoothstep,
)
from evenedit.simulation.portraits.traits import Portrait

LONG = 0.32
"""Hair at least this long falls behind the ears."""
SPRING = {"straight": 0.75, "wavy": 0.95, "curly": 1.15, "coily": 1.2}
"""How much a texture lifts hair off the head."""
CURLS = {"straight": (0.0, 1.0), "wavy": (0.005, 0.075), "curly": (0.012, 0.046), "coily": (0.0065, 0.026)}
"""Depth and width of the bumps along an outline."""


class HairPainter:
    """Paints one person's hair: a part behind the head, a part in front."""

    def __init__(self, canvas: Canvas, person: Portrait, color: Lab, half: float, side: int, age: float) -> None:
        self.canvas = canvas
        self.person = person
        self.color = color
        self.half = half
        self.side = side
        self.age = age
        self.rng = np.random.default_rng([person.seed, 1])
        self.long = person.hair_length >= LONG
        self.coily = person.hair_texture == "coily"
        self.style = self._style()
        grown = smoothstep(0.0, 0.4, person.hair_length)
        lift = 0.012 + (0.016 + 0.040 * person.hair_volume) * grown * SPRING[person.hair_texture]
        self.lift = lift * (1 - 0.22 * age)
        """How far the hair stands off the skull."""
        self.spread = half + self.lift + 0.016 + 0.018 * person.hair_volume
        self.end = 0.54 + 0.46 * smoothstep(LONG - 0.1, 1.05, person.hair_length)
        """How far down long hair falls."""
        self.patch = CanvasPatch(-0.38, 0.02, 0.38, self.end + 0.08 if self.long else 0.54, 170)
        self.hairline = curve(flip(self._hairline(), side))

    def _style(self) -> str:
        chance = self.rng.random()
        if not self.long or self.coily:
            return "swept"
        if self.person.hair_length > 0.5 and chance < 0.2:
            return "bun"
        return "swept" if chance < 0.55 else "parted" if chance < 0.82 else "fringe"

    def draw_behind(self) -> None:
        """Paint what lies behind the head and shoulders."""
        if not self.long:
            return
        if self.coily:
            reach = 0.02 + 0.075 * self.person.hair_volume + 0.05 * self.person.hair_length
            halo = ellipse(0.0, 0.365 + 0.045 * self.person.hair_length, self.half + reach, 0.225 + 0.7 * reach, 120)
            self._fill(self._curled(halo))
        elif self.style == "bun":
            self._fill(self._curled(ellipse(0.0, 0.150 - self.lift, 0.080, 0.070, 60)))
        else:
            self._fill(self._curled(curve(self._fall(), closed=True)), -5)

    def draw_front(self) -> None:
        """Paint what frames the face."""
        self._fill(np.concatenate([self._curled(curve(flip(self._crown(), self.side))), self.hairline]))
        if self.long and not self.coily and self.style != "bun":
            for side in (-1, 1):
                self._fill(flip(self._curled(curve(self._lock(), closed=True)), side))

    def shade(self) -> None:
        """Light the hair along its strands, and draw a few of them."""
        self.canvas.shade(self.patch, {(PixelLabel.HAIR,): self._relief()}, self._ramp())
        if self.person.hair_texture == "curly":
            self._draw_curls()

    def _fill(self, outline: Array, lightness: float = 0.0) -> None:
        self.canvas.fill(outline, shift(self.color, lightness), PixelLabel.HAIR)

    # Outlines

    def _crown(self) -> list[tuple[float, float]]:
        half, lift = self.half, self.lift
        loose = self.long and self.style != "bun"
        side_lift = lift * (0.9 if loose else 0.42)
        low = 0.46 if loose else 0.425
        right = [
            (0.56 * half, 0.188 - 0.92 * lift),
            (0.90 * half + 0.9 * lift, 0.262),
            (half + side_lift, 0.36),
            (half + 0.3 * side_lift, low),
        ]
        return [*((-x, y) for x, y in right[::-1]), (0.0, 0.164 - lift), *right]

    def _hairline(self) -> list[tuple[float, float]]:
        """From the right ear over the forehead to the left ear."""
        half = self.half
        low = 0.425 if not self.long or self.style == "bun" else 0.46
        ear = [(0.975 * half, low), (0.935 * half, 0.375)]
        forehead = {"swept": self._swept, "bun": self._swept, "parted": self._parted, "fringe": self._fringe}[
            self.style
        ]()
        return [*ear, *forehead, *((-x, y) for x, y in ear[::-1])]

    def _swept(self) -> list[tuple[float, float]]:
        half = self.half
        back = 0.020 * self.age * (0.4 if self.long else 1.0)
        top = 0.252 - back
        sweep = 0.030 * smoothstep(0.08, 0.5, self.person.hair_length) * (0.2 + 0.8 * self.rng.random())
        return [
            (0.87 * half - 1.2 * back, 0.312 - 0.4 * back),
            (0.62 * half - back, top + 0.014 - 0.6 * back + sweep),
            (0.25 * half, top + 0.6 * sweep),
            (-0.15 * half, top - 0.006 - 0.3 * sweep),
            (-0.42 * half, top - 0.004 - 0.5 * sweep),
            (-0.67 * half + back, top + 0.018 - 0.6 * back),
            (-0.87 * half + 1.2 * back, 0.312 - 0.4 * back),
        ]

    def _parted(self) -> list[tuple[float, float]]:
        half = self.half
        right = [(0.86 * half, 0.330), (0.56 * half, 0.272), (0.20 * half, 0.238)]
        return [*right, (0.0, 0.222), *((-x, y) for x, y in right[::-1])]

    def _fringe(self) -> list[tuple[float, float]]:
        half = self.half
        right = [(0.86 * half, 0.362), (0.50 * half, 0.352), (0.20 * half, 0.346)]
        return [*right, (-0.10 * half, 0.342), *((-x, y) for x, y in right[1::-1])]

    def _fall(self) -> Array:
        half, lift, spread, end = self.half, self.lift, self.spread, self.end
        return mirrored(
            [
                (0.0, 0.168 - lift),
                (0.6 * half, 0.192 - lift),
                (half + lift, 0.300),
                (spread, 0.450),
                (spread + 0.008, 0.5 * (0.45 + end)),
                (spread - 0.008, end - 0.020),
                (0.62 * spread, end + 0.006),
                (0.0, end - 0.004),
            ]
        )

    def _lock(self) -> list[tuple[float, float]]:
        half, lift, spread, end = self.half, self.lift, self.spread, self.end
        inner = 0.90 - 0.22 * smoothstep(0.72, 1.0, end)
        return [
            (0.70 * half, 0.232 - 0.5 * lift),
            (half + 0.75 * lift, 0.285),
            (spread, 0.45),
            (spread + 0.008, 0.5 * (0.45 + end)),
            (spread - 0.008, end - 0.020),
            (0.5 * (spread + inner * half), end + 0.006),
            (inner * half, end - 0.014),
            (0.5 * (inner + 0.92) * half, 0.5 * (0.46 + end) + 0.02),
            (0.945 * half, 0.47),
            (0.90 * half, 0.345),
            (0.80 * half, 0.285),
        ]

    def _curled(self, outline: Array) -> Array:
        """Add the soft bumps of curls to an outline."""
        depth, width = CURLS[self.person.hair_texture]
        if depth == 0.0:
            return outline
        depth *= 0.4 + 0.6 * smoothstep(0.1, 0.5, self.person.hair_length)
        steps = np.hypot(*np.diff(outline, axis=0).T)
        along = np.concatenate([[0], np.cumsum(steps)])
        even = np.linspace(0, along[-1], int(along[-1] / 0.004) + 2)
        line = np.stack([np.interp(even, along, outline[:, axis]) for axis in (0, 1)], axis=1)
        tangent = np.gradient(line, axis=0)
        normal = np.stack([tangent[:, 1], -tangent[:, 0]], axis=1)
        normal /= np.maximum(np.hypot(normal[:, 0], normal[:, 1]), 1e-9)[:, None]
        outward = np.sign(np.sum((line - line.mean(axis=0)) * normal))
        jitter = 0.25 * width * np.sin(even / width * 1.7 + self.rng.uniform(0, 6))
        bump = np.abs(np.sin(np.pi * (even + jitter) / width + self.rng.uniform(0, 3))) - 0.4
        curled: Array = line + outward * normal * (depth * bump)[:, None]
        return curled

    # Light

    def _relief(self) -> Array:
        x, y = self.patch.axes()
        root = self.side * 0.055 if self.style in ("swept", "bun") else 0.0
        away, down = x - root, np.minimum(y, 0.38) - 0.10
        angle = np.arctan2(away, down) + 0.0 * y
        if self.person.hair_texture == "wavy":
            angle = angle + 0.045 * np.sin(46 * y + 9 * np.abs(x) + self.rng.uniform(0, 6))
        strands = self._strands(angle)
        ring = np.exp(-0.5 * ((np.hypot(0.92 * x, y - 0.40) - 0.192) / 0.024) ** 2)
        sheen = ring / (1 + np.exp((y - 0.36) / 0.015)) * (0.8 - 1.8 * x)
        body = 3.0 * gauss(np.abs(x), y, (self.half + 0.03, 0.60), (0.03, 0.12)) - 4.0 * np.clip((y - 0.42) / 0.4, 0, 1)
        if self.coily:
            strands = 0.30 * strands + 0.55 * self._coils(x, y)
        strength = {"straight": 1.0, "wavy": 1.1, "curly": 0.6, "coily": 1.0}[self.person.hair_texture]
        relief: Array = 2.6 * strength * strands + (7.0 + 2.0 * strands) * sheen + body
        return relief

    def _strands(self, angle: Array) -> Array:
        """Light and dark along the way hair falls, looked up by the angle it leaves the crown."""
        bins = np.linspace(-np.pi, np.pi, 720)
        waves = self.rng.uniform(9, 48, 8)[:, None]
        profile = np.sin(bins * waves + self.rng.uniform(0, 6.3, 8)[:, None]).sum(axis=0) / 8**0.5
        index = np.clip((angle + np.pi) * (720 / (2 * np.pi)), 0, 719).astype(np.intp)
        values: Array = profile[index]
        return values

    def _coils(self, x: Array, y: Array) -> Array:
        first, second = self.rng.uniform(0, 6, 2)
        across = np.sin(170 * x + 2.0 * np.sin(110 * y + first))
        down = np.sin(170 * y + 2.0 * np.sin(110 * x + second))
        coils: Array = across * down
        return coils

    def _ramp(self) -> Array:
        color = self.color
        step = (np.arange(256) - 128) / 128 * RELIEF
        shadow = min(1.0, 0.25 + color[0] / 50)
        lightness = np.clip(color[0] + np.where(step < 0, shadow, 1.0) * step, 2, 97)
        return np.stack([lightness, color[1] + 0.05 * step, color[2] + 0.18 * step], axis=1)

    def _draw_curls(self) -> None:
        bottom = self.end if self.long else 0.40
        count, rng = 24, self.rng
        x = rng.uniform(-1, 1, count) * (self.spread + 0.01)
        y = rng.uniform(0.13, bottom, count)
        size = rng.uniform(0.010, 0.017, count)
        turn = np.linspace(0.2, 4.2, 12) * rng.choice((-1, 1), (count, 1)) + rng.uniform(0, 6, (count, 1))
        arcs = np.stack([x[:, None] + size[:, None] * np.cos(turn), y[:, None] + size[:, None] * np.sin(turn)], axis=2)
        curls = [(ribbon(arc, 0.0048), 0.34) for arc in arcs]
        self.canvas.apply(self.canvas.tint(curls, 0.0016, PixelLabel.HAIR), shift(self.color, 11, 1, 3))
