"""How a drawn person is painted: neck, face, features, and the soft light that holds them together."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from evenedit.core.color import Lab
from evenedit.simulation.portraits.canvas import (
    RELIEF,
    Array,
    Canvas,
    CanvasPatch,
    Frame,
    PixelLabel,
    Strokes,
    Tint,
    curve,
    ellipse,
    flip,
    gauss,
    mirrored,
    mix,
    ribbon,
    shift,
    smoothstep,
)
from evenedit.simulation.portraits.hair import HairPainter
from evenedit.simulation.portraits.headwear import covers_hair, draw_headwear
from evenedit.simulation.portraits.traits import Portrait
from evenedit.simulation.portraits.wardrobe import draw_outfit

BROW_Y, EYE_Y, CHIN_Y = 0.390, 0.446, 0.716
GRAY: Lab = (80.0, 0.0, 2.0)
LASH: Lab = (9.0, 4.0, 4.0)
SIDES = (-1, 1)
SKIN_PATCH = CanvasPatch(-0.26, 0.14, 0.26, 0.98, 200)


def draw_person(canvas: Canvas, person: Portrait, frame: Frame) -> None:
    """Paint one person over whatever the canvas shows."""
    canvas.labels.paste(int(PixelLabel.BACKGROUND), (0, 0, canvas.side, canvas.side))
    Painter(canvas, person, frame).paint()
    canvas.frame = Frame()


class Painter:
    """One person's measures, and the strokes that follow from them."""

    def __init__(self, canvas: Canvas, person: Portrait, frame: Frame) -> None:
        self.canvas = canvas
        self.person = person
        self.rng = np.random.default_rng(person.seed)
        self.side = 1 if self.rng.random() < 0.5 else -1
        """Where the parting is and the head leans."""
        self.age = smoothstep(30, 84, person.years)
        onset = 40 + 14 * self.rng.random()
        self.hair = mix(person.hair_color, GRAY, 0.92 * smoothstep(onset - 6, onset + 28, person.years))
        self.body = replace(frame, drop=0.030 * person.slump)
        lean = self.side * (0.010 + 0.055 * person.slump)
        self.head = replace(frame, tilt=lean, drop=0.058 * person.slump)
        self.half = 0.172 + 0.030 * person.face_width
        """Half the face's width at the cheekbones."""
        self.eye_x = 0.43 * self.half
        self.nose_y = 0.543 + 0.022 * person.nose_length
        self.nose_half = 0.028 + 0.017 * person.nose_width
        self.mouth_y = self.nose_y + 0.062
        self.deep = smoothstep(-60, -18, -person.skin[0])
        """0 for light skin, 1 for the deepest: there, features show by light more than by shadow."""
        self.line = shift(person.skin, -13 - 0.20 * person.skin[0], 6, 3)

    def paint(self) -> None:
        """Paint from back to front."""
        canvas, person = self.canvas, self.person
        hair = HairPainter(canvas, person, self.hair, self.half, self.side, self.age)
        canvas.frame = self.head
        bare = not covers_hair(person.headwear)
        if bare:
            hair.draw_behind()
        canvas.frame = self.body
        self._neck()
        draw_outfit(canvas, person.outfit, person.outfit_color, person.slump)
        canvas.frame = self.head
        self._ears()
        canvas.fill(curve(self._face(), closed=True), person.skin, PixelLabel.SKIN)
        for side in SIDES:
            self._eye(side)
        self._lips()
        if bare:
            hair.draw_front()
        draw_headwear(canvas, person.headwear, shift(person.outfit_color, 8), self.half, hair.lift)
        tints = self._tints(hair.hairline)
        self._shade_skin()
        if bare:
            hair.shade()
        for tint, color in tints:
            canvas.apply(tint, color)

    def _face(self) -> Array:
        half, jaw, cheeks = self.half, self.person.jaw, self.person.cheeks
        sag = 0.006 * self.age
        return mirrored(
            [
                (0.0, 0.186),
                (0.52 * half, 0.200),
                (0.88 * half, 0.270),
                (0.985 * half, 0.370),
                (half, 0.455),
                ((0.930 + 0.045 * cheeks) * half, 0.540),
                ((0.75 + 0.11 * jaw + 0.04 * cheeks) * half + sag, 0.618),
                ((0.43 + 0.14 * jaw) * half + sag, 0.680),
                ((0.18 + 0.08 * jaw) * half, 0.7125),
                (0.0, CHIN_Y + 0.002),
            ]
        )

    def _neck(self) -> None:
        half = (0.38 + 0.12 * self.person.jaw) * self.half
        outline = mirrored([(half, 0.58), (half, 0.74), (half + 0.012, 0.785), (half + 0.10, 0.86), (0.19, 0.95)])
        self.canvas.fill(curve(outline, closed=True), self.person.skin, PixelLabel.NECK)

    def _ears(self) -> None:
        x = self.half
        ear = [(x - 0.02, 0.428), (x + 0.012, 0.420), (x + 0.026, 0.445), (x + 0.020, 0.498)]
        ear += [(x + 0.007, 0.534), (x - 0.015, 0.530)]
        for side in SIDES:
            self.canvas.fill(curve(flip(ear, side), closed=True), self.person.skin, PixelLabel.SKIN)

    # Features

    def _eye(self, side: int) -> None:
        person, canvas = self.person, self.canvas
        wide = 0.0375 + 0.007 * person.eye_size
        tall = 0.0190 + 0.0080 * person.eye_size - 0.0035 * self.age
        t = np.linspace(-1, 1, 25)  # from the inner corner to the outer
        rise = -(0.06 + 0.20 * (person.eye_tilt - 0.4)) * wide * t
        upper = rise - tall * (1 - np.abs(t) ** 2.3) * (1 - 0.14 * t)
        lower = rise + 0.60 * tall * (1 - np.abs(t) ** 2.4) * (1 + 0.12 * t)
        x = self.eye_x + wide * t

        def edge(heights: Array) -> Array:
            return flip(np.stack([x, EYE_Y + heights], axis=1), side)

        white: Lab = (91.0 - 8 * self.deep, 1.0, 3.0)
        canvas.fill(np.concatenate([edge(upper), edge(lower)[::-1]]), white)
        under_lid = np.minimum(upper + 0.34 * tall, lower)
        canvas.fill(np.concatenate([edge(upper), edge(under_lid)[::-1]]), shift(white, -13, 1, 1))
        self._iris(side, x, upper, lower)
        thick = 0.0048 + 0.0042 * person.lashes
        canvas.fill(np.concatenate([edge(upper - 0.5 * thick), edge(upper + 0.6 * thick)[::-1]]), LASH)
        flick = 0.022 * max(0.0, person.lashes - 0.35)
        if flick > 0.001:
            tip = (x[-1] + flick, EYE_Y + upper[-1] - 0.8 * flick)
            corner = curve([(x[-6], EYE_Y + upper[-6]), (x[-2], EYE_Y + upper[-2]), tip])
            canvas.stroke(flip(corner, side), 0.9 * thick, LASH)

    def _iris(self, side: int, x: Array, upper: Array, lower: Array) -> None:
        radius = 0.0182 + 0.0026 * self.person.eye_size

        def disc(share: float, dx: float = 0.0, dy: float = 0.0) -> Array:
            ring = ellipse(self.eye_x + dx * radius, EYE_Y - 0.003 + dy * radius, share * radius, share * radius)
            top = EYE_Y + np.interp(ring[:, 0], x, upper)
            bottom = EYE_Y + np.interp(ring[:, 0], x, lower)
            return flip(np.stack([ring[:, 0], np.clip(ring[:, 1], top, bottom)], axis=1), side)

        color = self.person.eye_color
        self.canvas.fill(disc(1.0), shift(color, -12))
        self.canvas.fill(disc(0.87), color)
        self.canvas.fill(disc(0.60, dy=0.24), shift(color, 10, 1, 4))
        self.canvas.fill(disc(0.48), (5.0, 1.0, 1.0))
        self.canvas.fill(disc(0.23, dx=-0.34 * side, dy=-0.36), (98.0, 0.0, 0.0))

    def _lips(self) -> None:
        person, y, canvas = self.person, self.mouth_y, self.canvas
        wide = 0.060 + 0.007 * person.face_width
        full = 0.52 + 0.48 * person.lip_fullness - 0.20 * self.age
        above, below = 0.0195 * full, 0.0260 * full
        corner = (wide, y - 0.0085 + 0.013 * person.slump)
        left = (-corner[0], corner[1])
        dip = [(0.55 * wide, y - 0.72 * above - 0.002), (0.20 * wide, y - above - 0.002)]
        bow = curve([left, *flip(dip, -1).tolist(), (0.0, y - 0.80 * above), *dip[::-1], corner])
        low = y + 0.74 * below
        bed = curve([left, (-0.58 * wide, low), (0.0, y + below + 0.002), (0.58 * wide, low), corner])
        seam = curve([left, (-0.45 * wide, y + 0.0004), (0.0, y + 0.0014), (0.45 * wide, y + 0.0004), corner])
        deep = self.deep
        base = shift(person.skin, -12 + 21 * deep, 15 - 2 * deep, 3 - 2 * deep)
        canvas.fill(np.concatenate([seam, bed[::-1]]), shift(base, 3, 1, 0))
        canvas.fill(np.concatenate([bow, seam[::-1]]), shift(base, -5))
        shine = curve([(-0.30 * wide, y + 0.48 * below), (0.0, y + 0.57 * below), (0.30 * wide, y + 0.48 * below)])
        canvas.stroke(shine, 0.28 * below, shift(base, 8, -1, 0))
        canvas.stroke(seam, 0.0044, shift(base, -22, -3, -1), taper=0.7)

    # Light

    def _shade_skin(self) -> None:
        face = _face_relief(
            self.half, self.eye_x, self.nose_y, self.nose_half, self.mouth_y, self.person.cheeks, self.age
        )
        reliefs = {(PixelLabel.SKIN, PixelLabel.COVERED): face, (PixelLabel.NECK,): _neck_relief(self.half)}
        self.canvas.shade(SKIN_PATCH, reliefs, self._skin_ramp())

    def _skin_ramp(self) -> Array:
        """Colours from the deepest shadow to the brightest light, with the planted skin in the middle."""
        skin = self.person.skin
        step = (np.arange(256) - 128) / 128 * RELIEF
        shadow = min(1.0, 0.40 + skin[0] / 90)
        light = min(1.0 + 1.3 * self.deep, (99 - skin[0]) / 8)
        lightness = np.clip(skin[0] + np.where(step < 0, shadow, light) * step, 2, 99)
        warmth = np.where(step < 0, -0.34, 0.28 * self.deep - 0.08) * step
        return np.stack([lightness, skin[1] + warmth, skin[2] + 0.55 * warmth], axis=1)

    def _tints(self, hairline: Array) -> list[tuple[Tint, Lab]]:
        """Blush, lines, brows and facial hair: translucent, so the skin's light stays visible under them."""
        person = self.person
        blush = [(ellipse(side * 0.60 * self.half, 0.545, 0.036, 0.022), 0.42) for side in SIDES]
        tints = [
            (self.canvas.tint(blush, 0.018, PixelLabel.SKIN), shift(person.skin, 0, 14, 5)),
            self._over_skin([(ribbon(hairline, 0.022, 0.3), 0.30)], 0.007, shift(person.skin, -16, 4, 2)),
        ]
        if person.facial_hair > 0.04:
            tints.append(self._over_skin(self._beard(), 0.0055, mix(self.hair, person.skin, 0.12)))
        lines = [*self._feature_lines(), *(self._age_lines() if self.age > 0.02 else ())]
        tints.append(self._over_skin(lines, 0.0018, self.line))
        if person.marks > 0.02:
            color = shift(person.skin, 13 * self.deep - 15 * (1 - self.deep), 9, 2)
            tints.append(self._over_skin(self._mark_lines(), 0.0013, color))
        brow = mix(self.hair, (4.0 + 8 * (1 - self.deep), 3.0, 3.0), (0.35 + 0.4 * self.deep) * (1 - self.age))
        return [*tints, self._over_skin([(self._brow(side), 0.92) for side in SIDES], 0.0018, brow)]

    def _over_skin(self, strokes: Strokes, blur: float, color: Lab) -> tuple[Tint, Lab]:
        return self.canvas.tint(strokes, blur, PixelLabel.SKIN, covers=0.05), color

    def _brow(self, side: int) -> Array:
        weight = 0.0090 + 0.0110 * self.person.brow_weight
        worry = 0.013 * self.person.slump
        lift = 0.009 + 0.008 * (self.person.eye_tilt - 0.5)
        inner, outer = self.eye_x - 0.044, self.eye_x + 0.052
        line = curve(
            [
                (inner, BROW_Y + 0.002 - worry),
                (self.eye_x - 0.008, BROW_Y - 0.7 * lift - 0.3 * worry),
                (self.eye_x + 0.024, BROW_Y - lift),
                (outer, BROW_Y + 0.011 + 0.5 * worry),
            ]
        )
        t = np.linspace(0, 1, len(line))
        half = weight / 2 * np.minimum(1, 3 * t + 0.6) * (1 - 0.86 * t**2.4)
        offset = np.stack([0 * t, half], axis=1)
        return flip(np.concatenate([line - offset, (line + offset)[::-1]]), side)

    def _feature_lines(self) -> Strokes:
        y, half, eye = self.nose_y, self.nose_half, self.eye_x
        lid = EYE_Y - 0.034 - 0.005 * self.person.eye_size
        wing = curve([(half - 0.003, y - 0.018), (half, y - 0.007), (half - 0.006, y + 0.002), (half - 0.013, y)])
        nostril = curve([(0.008, y + 0.003), (0.46 * half + 0.002, y - 0.0015), (half - 0.011, y + 0.001)])
        crease = curve([(eye - 0.032, EYE_Y - 0.018), (eye, lid), (eye + 0.036, EYE_Y - 0.019)])
        ear = curve([(self.half + 0.006, 0.445), (self.half + 0.015, 0.455), (self.half + 0.008, 0.498)])
        tip = curve([(-0.010, y + 0.005), (0.0, y + 0.008), (0.010, y + 0.005)])
        strokes = [(ribbon(tip, 0.0045), 0.45)]
        for side in SIDES:
            strokes += [
                (ribbon(flip(wing, side), 0.0048), 0.60),
                (ribbon(flip(nostril, side), 0.0085), 0.95),
                (ribbon(flip(crease, side), 0.0042), 0.60),
                (ribbon(flip(ear, side), 0.0050), 0.50),
            ]
        return strokes

    def _age_lines(self) -> Strokes:
        age, eye, m = self.age, self.eye_x, self.mouth_y
        strokes = [*self._forehead_lines()]
        fold = curve(
            [
                (self.nose_half + 0.008, self.nose_y - 0.010),
                (self.nose_half + 0.022, self.nose_y + 0.016),
                (0.074, m - 0.016),
                (0.083, m + 0.004),
            ]
        )
        pouch = curve([(eye - 0.034, EYE_Y + 0.021), (eye - 0.004, EYE_Y + 0.032), (eye + 0.032, EYE_Y + 0.025)])
        for side in SIDES:
            strokes.append((ribbon(flip(fold, side), 0.0062), 0.10 + 0.42 * age))
            strokes.append((ribbon(flip(pouch, side), 0.0044), 0.08 + 0.36 * age))
            for ray in (-1, 0, 1):
                start = (eye + 0.051, EYE_Y - 0.004 + 0.008 * ray)
                end = (eye + 0.064 + 0.008 * age, EYE_Y - 0.002 + 0.017 * ray)
                strokes.append((ribbon(flip(np.linspace(start, end, 8), side), 0.0040), 0.52 * age))
        return strokes

    def _forehead_lines(self) -> Strokes:
        strokes = []
        for row in range(3):
            wide = (0.60 - 0.09 * row) * self.half * (0.7 + 0.3 * self.age)
            y = 0.350 - 0.025 * row + self.rng.uniform(-0.003, 0.003)
            bend = self.rng.uniform(0.001, 0.005)
            line = curve([(-wide, y + bend), (-0.4 * wide, y), (0.4 * wide, y - 0.001), (wide, y + bend)])
            strokes.append((ribbon(line, 0.0040), self.age * (0.44 - 0.05 * row)))
        return strokes

    def _mark_lines(self) -> Strokes:
        side, x, marks = self.side, 0.60 * self.half, self.person.marks
        strength = 0.25 + 0.4 * marks
        scar = curve([(x - 0.022, 0.522), (x - 0.004, 0.542), (x + 0.010, 0.570)])
        nick = curve([(-0.52 * self.half, 0.335), (-0.50 * self.half, 0.350), (-0.45 * self.half, 0.365)])
        return [
            (flip(ellipse(x + 0.018, 0.588, 0.012, 0.009), side), 0.4 * strength),
            (ribbon(flip(scar, side), 0.0055 + 0.003 * marks), strength),
            (ribbon(flip(nick, side), 0.0050), strength),
        ]

    def _beard(self) -> Strokes:
        amount, half, m = self.person.facial_hair, self.half, self.mouth_y
        jaw = [(1.03 * x, y) for x, y in self._face().tolist() if y > 0.5 and x > 0.2 * half]
        rim = [*jaw, (0.10 * half, CHIN_Y + 0.01)]
        edge = curve([*rim, *flip(rim, -1)[::-1].tolist()])
        line = [
            (0.97 * half, 0.455),
            (0.88 * half, 0.505),
            (0.78 * half, 0.575 - 0.02 * amount),
            (0.50 * half, m - 0.004),
            (0.068, m - 0.020),
            (0.034, m - 0.040),
            (0.0, m - 0.037),
        ]
        inner = curve([*flip(line, -1).tolist(), *line[-2::-1]])
        return [(np.concatenate([inner, edge]), 0.16 + 0.70 * smoothstep(0.25, 0.70, amount))]


@lru_cache(maxsize=128)
def _face_relief(
    half: float, eye_x: float, nose_y: float, nose_half: float, mouth_y: float, cheeks: float, age: float
) -> Array:
    """Return how much lighter or darker each spot of a face is than the rest of it."""
    x, y = SKIN_PATCH.axes()
    turning = -15.0 * np.clip(np.abs(x) / half - 0.64, 0, None) - 2.6 * x / half
    relief = turning - 70.0 * np.clip(y - 0.60, 0, None) + 4.0 * gauss(x, y, (0, 0.315), (0.085, 0.040))
    relief += 4.5 * gauss(x, y, (-0.001, 0.470), (0.011, 0.055))
    relief += 6.0 * gauss(x, y, (-0.003, nose_y - 0.020), (0.014, 0.013))
    relief += 6.0 * gauss(x, y, (0, 0.687), (0.034, 0.014))
    relief -= 4.5 * gauss(x, y, (0, nose_y + 0.018), (0.036, 0.010))
    relief -= 4.5 * gauss(x, y, (0, mouth_y + 0.037), (0.034, 0.008))
    hollow = 3.5 * (1 - cheeks)
    for side in SIDES:
        relief += 5.0 * gauss(x, y, (side * 0.56 * half, 0.522), (0.040, 0.026))
        relief += 3.0 * gauss(x, y, (side * eye_x, BROW_Y - 0.026), (0.040, 0.014))
        relief -= 4.5 * gauss(x, y, (side * eye_x * 0.9, EYE_Y - 0.016), (0.040, 0.018))
        relief -= 4.0 * gauss(x, y, (side * nose_half * 0.9, nose_y - 0.050), (0.010, 0.040))
        relief -= 2.5 * age * gauss(x, y, (side * eye_x, EYE_Y + 0.034), (0.034, 0.009))
        relief -= hollow * gauss(x, y, (side * 0.74 * half, 0.60), (0.03, 0.045))
    return relief


@lru_cache(maxsize=128)
def _neck_relief(half: float) -> Array:
    """Return how much lighter or darker each spot of the neck is than the rest of it."""
    x, y = SKIN_PATCH.axes()
    chin = 0.745 - 0.5 * x**2 / half
    cast = 1 / (1 + np.exp((y - chin - 0.022) / 0.010))
    return -5.0 - 8.5 * cast - 4.0 * np.clip(x / half, 0, 1)
