"""Portraits with a planted change of skin, or with something else changed: the truth is known for each.

Every variant is drawn from a portrait with a seed. `shift` is what the skin's L* truly moved by; 0 where only light,
clothes, place, hair, headwear or the file changed.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from evenedit.instruments.change import regions
from evenedit.instruments.face import Face, find_face
from evenedit.instruments.mesh import find_mesh
from evenedit.instruments.picture import lab_map, linear

Pixels = NDArray[np.uint8]
Soft = NDArray[np.float32]
"""Weights from 0 to 1."""

OVAL = (10, 338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377)
OVAL += (152, 148, 176, 149, 150, 136, 172, 58, 132, 93, 234, 127, 162, 21, 54, 103, 67, 109)
LIPS = (61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291, 409, 270, 269, 267, 0, 37, 39, 40, 185)
EYES = ((33, 7, 163, 144, 145, 153, 154, 155, 133, 173, 157, 158, 159, 160, 161, 246),)
EYES += ((362, 382, 381, 380, 374, 373, 390, 249, 263, 466, 388, 387, 386, 385, 384, 398),)
"""Points of the face mesh around the face, the lips and the eyes."""


@dataclass
class Sitter:
    """A portrait and where its parts are."""

    name: str
    rgb: Pixels
    face: Face = field(init=False)

    def __post_init__(self) -> None:
        found = find_face(self.rgb)
        assert isinstance(found, Face), f"{self.name}: {found}"
        self.face = found

    def changed(self, rgb: Pixels) -> Sitter:
        """The same person at the same place in other pixels."""
        other = copy(self)
        other.rgb = rgb
        return other

    @property
    def shape(self) -> tuple[int, int]:
        return self.rgb.shape[0], self.rgb.shape[1]

    @property
    def group(self) -> str:
        """The race label of the file's name."""
        return self.name.split("_")[0]

    @cached_property
    def points(self) -> NDArray[np.float64]:
        return find_mesh(self.rgb, self.face).points

    @cached_property
    def own(self) -> NDArray[np.float64]:
        """Every pixel in the face's own coordinates."""
        high, wide = self.shape
        y, x = np.mgrid[:high, :wide]
        return self.face.coordinates(np.stack([x.ravel(), y.ravel()], axis=-1)).reshape(high, wide, 2)

    def soft(self, outline: Any, blur: float) -> Soft:
        """The inside of a polygon of pixels, its edge blurred by a share of the inter-eye distance."""
        mask = np.zeros(self.shape, dtype=np.float32)
        cv2.fillPoly(mask, [np.round(outline).astype(np.int32)], 1.0)
        sigma = blur * self.face.unit
        return np.asarray(cv2.GaussianBlur(mask, (0, 0), sigma) if sigma > 0.3 else mask, dtype=np.float32)

    def blurred(self, where: Any) -> Soft:
        """A mask with its edge blurred a little."""
        sigma = max(0.8, 0.02 * self.face.unit)
        return np.asarray(cv2.GaussianBlur(np.asarray(where, dtype=np.float32), (0, 0), sigma), dtype=np.float32)

    @cached_property
    def oval(self) -> Soft:
        """The face, eyes and lips included."""
        return self.soft(self.points[list(OVAL)], 0.06)

    @cached_property
    def skin(self) -> Soft:
        """Face, ears and neck as far as they have the cheeks' colour, without eyes and lips."""
        lab = lab_map(linear(self.rgb))
        cheeks = lab[self.soft(self.points[[50, 101, 205, 187, 123]], 0) > 0]
        cheeks = np.vstack([cheeks, lab[self.soft(self.points[[280, 330, 425, 411, 352]], 0) > 0]])
        middle = np.median(cheeks, axis=0)
        far = ((lab - middle) / np.array([30.0, 10.0, 12.0])) ** 2
        alike = np.exp(-0.5 * np.maximum(0, far.sum(axis=2) - 1)).astype(np.float32)
        u, v = self.own[..., 0], self.own[..., 1]
        near = ((u / 1.35) ** 2 + ((v - 0.45) / 1.7) ** 2 < 1) | ((np.abs(u) < 0.9) & (v > 1) & (v < 2.4))
        inside = self.soft(self.points[list(OVAL)], 0.03)
        mask = np.maximum(alike * near, np.minimum(inside, 0.35 + alike))
        mask = cv2.GaussianBlur(mask.astype(np.float32), (0, 0), max(1.0, 0.04 * self.face.unit))
        for part in (LIPS, *EYES):
            mask = mask * (1 - self.soft(self.points[list(part)], 0.03))
        return np.asarray(np.clip(mask, 0, 1), dtype=np.float32)

    @cached_property
    def person(self) -> Soft:
        """The person, cut out of the background."""
        high, wide = self.shape
        scale = 128 / max(high, wide)
        small = cv2.resize(self.rgb, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        zones = regions(self.face, self.shape)
        labels = np.full(small.shape[:2], cv2.GC_PR_BGD, dtype=np.uint8)
        for name, label in (("clothes", cv2.GC_PR_FGD), ("hair", cv2.GC_PR_FGD), ("face", cv2.GC_FGD)):
            zone = cv2.resize(zones[name].astype(np.float32), small.shape[1::-1], interpolation=cv2.INTER_AREA)
            labels[zone > 0.6] = label
        labels[0], labels[:40, 0], labels[:40, -1] = cv2.GC_BGD, cv2.GC_BGD, cv2.GC_BGD
        cv2.setRNGSeed(1)
        cv2.grabCut(small, labels, None, np.zeros((1, 65)), np.zeros((1, 65)), 3, cv2.GC_INIT_WITH_MASK)
        mask = np.isin(labels, (cv2.GC_FGD, cv2.GC_PR_FGD)).astype(np.float32)
        mask = cv2.GaussianBlur(cv2.resize(mask, (wide, high), interpolation=cv2.INTER_LINEAR), (0, 0), 1.5)
        return np.asarray(np.maximum(mask, self.oval), dtype=np.float32)


Draw = Callable[[Sitter, np.random.Generator], Pixels]


def as_planted(sitter: Sitter, chance: np.random.Generator) -> Pixels:
    """Nothing more is changed."""
    return sitter.rgb


@dataclass(frozen=True)
class Variant:
    """One way to change a portrait: the skin first, where a shift is given, then the rest."""

    name: str
    kind: str
    """skin, part (of the skin), covered, light, place, file, moved or both (skin and something else)."""
    draw: Draw = as_planted
    shift: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """By how much the skin's CIELAB is moved."""
    oval: bool = False
    """Whether the whole face is moved, eyes and lips included, and nothing else."""
    held: bool = False
    """Whether it stays out of the calibration."""
    where: Callable[[Any, Any], Any] | None = None
    """The part of the face that is moved, by the face's own coordinates; all of it where left out."""

    def make(self, sitter: Sitter) -> tuple[Pixels, float]:
        """The changed portrait, and what the skin's L* truly moved by: less than asked at the ends of sRGB."""
        chance = np.random.default_rng(zlib.crc32(f"{sitter.name}/{self.name}".encode()))
        if not any(self.shift):
            return self.draw(sitter, chance), 0.0
        whole = sitter.oval if self.oval else sitter.skin
        weight = whole if self.where is None else whole * sitter.blurred(self.where(*np.moveaxis(sitter.own, 2, 0)))
        planted = in_lab(sitter.rgb, self.shift, weight)
        sure = (whole > 0.95) & (sitter.oval > 0.95)
        moved = lab_map(linear(planted))[sure][:, 0] - lab_map(linear(sitter.rgb))[sure][:, 0]
        return self.draw(sitter.changed(planted), chance), float((np.mean if self.where else np.median)(moved))


def over(rgb: Pixels, colour: Any, weight: Soft) -> Pixels:
    """Paint a colour, or a picture, over a picture."""
    w = weight[..., None]
    return np.asarray(np.clip(np.rint(rgb * (1 - w) + np.asarray(colour, dtype=np.float32) * w), 0, 255), np.uint8)


def in_lab(rgb: Pixels, shift: tuple[float, float, float], weight: Soft) -> Pixels:
    """Move CIELAB values by a weighted shift."""
    lab = lab_map(linear(rgb)) + np.asarray(shift, dtype=np.float32) * weight[..., None]
    back = cv2.cvtColor(lab.astype(np.float32), cv2.COLOR_Lab2RGB)
    return np.asarray(np.clip(np.rint(255 * back), 0, 255), dtype=np.uint8)


def warped(rgb: Pixels, matrix: Any) -> Pixels:
    size = (rgb.shape[1], rgb.shape[0])
    return np.asarray(
        cv2.warpAffine(rgb, np.asarray(matrix), size, flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT)
    )


def turned(rgb: Pixels, degrees: float, scale: float = 1.0) -> Pixels:
    return warped(rgb, cv2.getRotationMatrix2D((rgb.shape[1] / 2, rgb.shape[0] / 2), degrees, scale))


def cropped(rgb: Pixels, share: float, chance: np.random.Generator) -> Pixels:
    """Cut so much of each dimension away, anywhere around, and scale back up."""
    high, wide = rgb.shape[:2]
    x, y = (round(side * share * chance.uniform(0.2, 0.8)) for side in (wide, high))
    cut = rgb[y : y + round(high * (1 - share)), x : x + round(wide * (1 - share))]
    return np.asarray(cv2.resize(cut, (wide, high), interpolation=cv2.INTER_CUBIC))


def jpeg(rgb: Pixels, quality: int) -> Pixels:
    buffer = io.BytesIO()
    Image.fromarray(rgb).save(buffer, "JPEG", quality=quality)
    return np.asarray(Image.open(buffer).convert("RGB"))


def brighter(rgb: Pixels, factor: float, gamma: float = 1.0) -> Pixels:
    """Brightness as photo software has it: sRGB values times a factor."""
    return np.asarray(np.clip(np.rint(255 * (rgb / 255) ** gamma * factor), 0, 255), dtype=np.uint8)


def tinted(rgb: Pixels, factors: tuple[float, float, float]) -> Pixels:
    return np.asarray(np.clip(np.rint(rgb * np.array(factors)), 0, 255), dtype=np.uint8)


def side_light(sitter: Sitter, strength: float, chance: np.random.Generator) -> Pixels:
    """Light that falls off from one side of the picture to the other."""
    angle = chance.choice([0, np.pi]) + chance.uniform(-0.4, 0.4)
    across = (sitter.own[..., 0] * np.cos(angle) + sitter.own[..., 1] * np.sin(angle)) / 2
    factor = np.clip(1 + strength * np.tanh(across), 0.2, 2.0)
    return np.asarray(np.clip(np.rint(sitter.rgb * factor[..., None]), 0, 255), dtype=np.uint8)


def backdrop(sitter: Sitter, chance: np.random.Generator, textured: bool = False) -> Pixels:
    """A new background: a plain or softly shaded colour, or a blurred scene of blobs."""
    colour = chance.uniform(30, 235, 3)
    high, wide = sitter.shape
    new = np.ones((high, wide, 3)) * colour
    if textured:
        blobs = chance.uniform(-90, 90, (9, 9, 3)).astype(np.float32)
        new = np.clip(new + cv2.resize(blobs, (wide, high), interpolation=cv2.INTER_CUBIC), 0, 255)
    else:
        new = new * (1 + chance.uniform(-0.2, 0.2) * np.linspace(-1, 1, high)[:, None, None])
    return over(sitter.rgb, new, 1 - sitter.person)


def dressed(sitter: Sitter, rgb: Pixels, chance: np.random.Generator, dark: bool = True) -> Pixels:
    """A suit over the shoulders, with lapels and a shirt."""
    u, v = sitter.own[..., 0], sitter.own[..., 1]
    low = 1.95 + 0.25 * np.abs(u) ** 0.7
    suit = ((v > low) & (np.abs(u) < 1.0 + 2.2 * (v - 1.7))).astype(np.float32)
    shirt = suit * (np.abs(u) < 0.38 - 0.1 * (v - 1.9))
    tone = chance.uniform(15, 70, 3) if dark else chance.uniform(150, 230, 3)
    edge = max(0.8, 0.02 * sitter.face.unit)
    out = over(rgb, tone, np.asarray(cv2.GaussianBlur(suit, (0, 0), edge)))
    lapel = suit * (np.abs(np.abs(u) - 0.55 + 0.12 * (v - 2)) < 0.03)
    out = over(out, tone * 0.6, np.asarray(cv2.GaussianBlur(lapel.astype(np.float32), (0, 0), edge)))
    return over(out, chance.uniform(200, 250, 3), np.asarray(cv2.GaussianBlur(shirt.astype(np.float32), (0, 0), edge)))


def cap(sitter: Sitter, colour: Any, low: float = -0.42) -> Pixels:
    """A cap drawn down over the forehead, with a brim."""
    u, v = sitter.own[..., 0], sitter.own[..., 1]
    crown = ((u / 1.35) ** 2 + ((v - low) / 1.35) ** 2 < 1) & (v < low)
    brim = (np.abs(v - low - 0.02 + 0.06 * u**2) < 0.09) & (np.abs(u) < 1.4)
    out = over(sitter.rgb, colour, sitter.blurred(crown))
    return over(out, np.asarray(colour) * 0.7, sitter.blurred(brim))


def mask(sitter: Sitter, colour: Any, chance: np.random.Generator) -> Pixels:
    """A face mask with folds, from the bridge of the nose to under the chin."""
    u, v = sitter.own[..., 0], sitter.own[..., 1]
    top = 0.32 + 0.16 * np.abs(u)
    where = (v > top) & (v < 1.75 - 0.35 * u**2) & (np.abs(u) < 1.02)
    folds = 1 - 0.12 * (np.sin(14 * v + chance.uniform(0, 6)) > 0.9)
    return over(sitter.rgb, np.asarray(colour) * folds[..., None], sitter.blurred(where))


def beard(sitter: Sitter, chance: np.random.Generator) -> Pixels:
    """A dark full beard of strands."""
    u, v = sitter.own[..., 0], sitter.own[..., 1]
    jaw = (v > 0.95 - 0.25 * (np.abs(u) > 0.62)) & ((u / 1.02) ** 2 + ((v - 0.6) / 1.2) ** 2 < 1)
    strands = cv2.GaussianBlur(chance.normal(0, 1, sitter.shape).astype(np.float32), (0, 0), 1.2)
    weight = sitter.blurred(jaw) * np.clip(0.8 + 0.5 * strands, 0.4, 1)
    weight *= 1 - sitter.soft(sitter.points[list(LIPS)], 0.03)
    return over(sitter.rgb, chance.uniform(15, 55) * np.array([1.1, 1.0, 0.9]), weight.astype(np.float32))


def fringe(sitter: Sitter, chance: np.random.Generator, low: float = -0.25) -> Pixels:
    """Hair over the forehead, in strands."""
    u, v = sitter.own[..., 0], sitter.own[..., 1]
    strands = np.interp(u, np.linspace(-1.4, 1.4, 90), chance.uniform(0.75, 1.25, 90))
    where = (v < low - 0.1 * strands * u**2) & (v > -1.5) & ((u / 1.15) ** 2 + (v / 1.6) ** 2 < 1)
    colour = chance.choice([[30, 24, 20], [70, 48, 32], [150, 115, 70]]) * strands[..., None]
    return over(sitter.rgb, colour, sitter.blurred(where) * 0.95)


def glasses(sitter: Sitter, tint: float, frame: float = 0.025) -> Pixels:
    """Eyeglasses: two rings and a bridge; lenses darkened by `tint`."""
    u, v = sitter.own[..., 0], sitter.own[..., 1]
    far = np.minimum(np.hypot(u - 0.5, (v - 0.04) * 1.15), np.hypot(u + 0.5, (v - 0.04) * 1.15))
    out = over(sitter.rgb, (20, 20, 24), sitter.blurred(far < 0.4) * np.float32(tint))
    rim = (np.abs(far - 0.4) < frame) | ((np.abs(u) < 0.12) & (np.abs(v) < frame))
    return over(out, (35, 30, 30), sitter.blurred(rim))


def blush(sitter: Sitter) -> Pixels:
    """Rouge on both cheeks and dark lipstick."""
    u, v = sitter.own[..., 0], sitter.own[..., 1]
    spot = np.exp(-(((np.abs(u) - 0.62) / 0.22) ** 2) - ((v - 0.5) / 0.2) ** 2).astype(np.float32)
    out = in_lab(sitter.rgb, (-4, 12, 3), spot)
    return in_lab(out, (-14, 16, 2), sitter.soft(sitter.points[list(LIPS)], 0.02))


def smile(sitter: Sitter, strength: float) -> Pixels:
    """The corners of the mouth pulled out and up, the cheeks with them."""
    u, v = sitter.own[..., 0], sitter.own[..., 1]
    corners = sum(np.exp(-(((u - side * 0.42) / 0.3) ** 2) - ((v - 1.0) / 0.32) ** 2) * side for side in (-1, 1))
    up = np.abs(corners)
    (ax, ay), size = sitter.face.across, strength
    du, dv = -size * corners, size * up
    y, x = np.mgrid[: sitter.shape[0], : sitter.shape[1]].astype(np.float32)
    moved_x, moved_y = x + (du * ax - dv * ay), y + (du * ay + dv * ax)
    return np.asarray(cv2.remap(sitter.rgb, moved_x.astype(np.float32), moved_y.astype(np.float32), cv2.INTER_CUBIC))


def bent(sitter: Sitter, chance: np.random.Generator) -> Pixels:
    """The head a little elsewhere, the rest where it was."""
    high, wide = sitter.shape
    y, x = np.mgrid[:high, :wide].astype(np.float32)
    u, v = sitter.own[..., 0], sitter.own[..., 1]
    pull = np.exp(-((u / 1.8) ** 2) - ((v - 0.3) / 2.0) ** 2) * 0.022 * max(high, wide)
    a, b = chance.choice([-1, 1], 2)
    field_x, field_y = (x + a * pull).astype(np.float32), (y + b * pull).astype(np.float32)
    return np.asarray(cv2.remap(sitter.rgb, field_x, field_y, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT))


def grain(rgb: Pixels, sigma: float, chance: np.random.Generator) -> Pixels:
    return np.asarray(np.clip(np.rint(rgb + chance.normal(0, sigma, rgb.shape)), 0, 255), dtype=np.uint8)


def resized(rgb: Pixels, scale: float) -> Pixels:
    return np.asarray(cv2.resize(rgb, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA))


def padded(rgb: Pixels, share: float) -> Pixels:
    """Zoomed out: the picture smaller within a margin of its edge colours."""
    high, wide = rgb.shape[:2]
    m = round(share * high)
    return np.asarray(cv2.resize(cv2.copyMakeBorder(rgb, m, m, m, m, cv2.BORDER_REPLICATE), (wide, high)))


def hand(sitter: Sitter, chance: np.random.Generator) -> Pixels:
    """A hand-like patch of another skin colour on one cheek."""
    side = chance.choice([-1, 1])
    u, v = sitter.own[..., 0] - side * 0.62, sitter.own[..., 1] - 0.75
    colour = chance.choice([[225, 180, 150], [165, 115, 85], [95, 62, 45]])
    return over(sitter.rgb, colour, sitter.blurred((u / 0.35) ** 2 + (v / 0.55) ** 2 < 1))


def smoothed(sitter: Sitter) -> Pixels:
    """Blemishes taken away: the skin without its fine detail."""
    soft = cv2.bilateralFilter(sitter.rgb, 9, 40, 7)
    return over(sitter.rgb, soft, sitter.skin)


def reshaded(sitter: Sitter, strength: float, chance: np.random.Generator) -> Pixels:
    """Drawn anew: lights and shadows of the face elsewhere, on average as before, and everything moved a little."""
    noise = chance.normal(0, 1, sitter.shape).astype(np.float32)
    field_ = cv2.GaussianBlur(noise, (0, 0), 0.22 * sitter.face.unit)
    skin = sitter.skin > 0.8
    field_ = (field_ - field_[skin].mean()) / field_[skin].std() * strength
    out = in_lab(sitter.rgb, (1, 0, 0), (field_ * sitter.skin).astype(np.float32))
    high, wide = sitter.shape
    y, x = np.mgrid[:high, :wide].astype(np.float32)
    moves = [cv2.GaussianBlur(chance.normal(0, 1, (high, wide)).astype(np.float32), (0, 0), 20) * 160 for _ in range(2)]
    return np.asarray(cv2.remap(out, x + moves[0], y + moves[1], cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT))


def wrapped(sitter: Sitter, colour: Any) -> Pixels:
    """A headscarf that leaves the front of the face open."""
    u, v = sitter.own[..., 0], sitter.own[..., 1]
    head = (u / 1.5) ** 2 + ((v - 0.35) / 1.9) ** 2 < 1
    front = (u / 0.82) ** 2 + ((v - 0.42) / 1.12) ** 2 < 1
    folds = 1 + 0.15 * np.sin(9 * u + 5 * v)
    return over(sitter.rgb, np.clip(np.asarray(colour) * folds[..., None], 0, 255), sitter.blurred(head & ~front))


def scarf(sitter: Sitter, chance: np.random.Generator) -> Pixels:
    """A checked scarf over mouth and chin."""
    u, v = sitter.own[..., 0], sitter.own[..., 1]
    checks = ((np.floor(6 * u) + np.floor(6 * v)) % 2)[..., None]
    colours = chance.uniform(20, 230, (2, 3))
    where = (v > 0.8 + 0.1 * np.abs(u)) & (v < 2.2) & (np.abs(u) < 1.3)
    return over(sitter.rgb, colours[0] * checks + colours[1] * (1 - checks), sitter.blurred(where))


def headband(sitter: Sitter, colour: Any) -> Pixels:
    """A band across the forehead."""
    u, v = sitter.own[..., 0], sitter.own[..., 1]
    return over(sitter.rgb, colour, sitter.blurred((np.abs(v + 0.55 - 0.08 * u**2) < 0.14) & (np.abs(u) < 1.25)))


def goggles(sitter: Sitter) -> Pixels:
    """Ski goggles over eyes, brows and the upper cheeks."""
    u, v = sitter.own[..., 0], sitter.own[..., 1]
    where = (np.abs(u) < 1.0) & (np.abs(v) < 0.45 - 0.1 * np.abs(u))
    return over(sitter.rgb, (60, 40, 90), sitter.blurred(where))


def haze(rgb: Pixels, share: float) -> Pixels:
    """A white veil over everything."""
    return np.asarray(np.rint(rgb * (1 - share) + 235 * share), dtype=np.uint8)


def vignette(rgb: Pixels) -> Pixels:
    """Darker towards the corners."""
    high, wide = rgb.shape[:2]
    y, x = np.mgrid[-1 : 1 : high * 1j, -1 : 1 : wide * 1j]
    return np.asarray(np.rint(rgb * (1 - 0.3 * np.minimum(1, (x**2 + y**2) / 2))[..., None]), dtype=np.uint8)


def spot_light(sitter: Sitter) -> Pixels:
    """A soft lamp from above one side, on the person and what is near."""
    u, v = sitter.own[..., 0], sitter.own[..., 1]
    factor = 0.92 + 0.3 * np.exp(-((u + 0.9) ** 2 + (v + 0.6) ** 2) / 2)
    return np.asarray(np.clip(np.rint(sitter.rgb * factor[..., None]), 0, 255), dtype=np.uint8)


def contrast(rgb: Pixels, factor: float) -> Pixels:
    return np.asarray(np.clip(np.rint((rgb - 128.0) * factor + 128), 0, 255), dtype=np.uint8)


def sharpened(rgb: Pixels) -> Pixels:
    return np.asarray(cv2.addWeighted(rgb, 1.8, cv2.GaussianBlur(rgb, (0, 0), 2), -0.8, 0))


VARIANTS = (
    *(Variant(f"skin {step:+d}", "skin", shift=(step, 0, 0)) for step in (-20, -10, -5, -2, 2, 5, 10, 20)),
    Variant("skin redder", "skin", shift=(0, 5, 0)),
    Variant("skin yellower", "skin", shift=(0, 0, 6)),
    *(Variant(f"face {step:+d}", "skin", shift=(step, 0, 0), oval=True, held=True) for step in (-8, 8)),
    Variant("as it is", "file"),
    Variant("JPEG 75", "file", lambda s, c: jpeg(s.rgb, 75)),
    Variant("JPEG 50", "file", lambda s, c: jpeg(s.rgb, 50)),
    Variant("JPEG 25", "file", lambda s, c: jpeg(s.rgb, 25), held=True),
    Variant("blur", "file", lambda s, c: np.asarray(cv2.GaussianBlur(s.rgb, (0, 0), 2.0))),
    Variant("grain", "file", lambda s, c: grain(s.rgb, 8, c)),
    Variant("half size", "file", lambda s, c: resized(s.rgb, 0.5)),
    Variant("third size", "file", lambda s, c: resized(s.rgb, 0.33), held=True),
    Variant("smoothed", "file", lambda s, c: smoothed(s), held=True),
    *(
        Variant(f"crop {share} %", "moved", lambda s, c, share=share: cropped(s.rgb, share / 100, c))
        for share in (4, 8, 12)
    ),
    Variant("crop 25 %", "moved", lambda s, c: cropped(s.rgb, 0.25, c), held=True),
    Variant("turned 4 degrees", "moved", lambda s, c: turned(s.rgb, 4 * c.choice([-1, 1]))),
    Variant("turned 12 degrees", "moved", lambda s, c: turned(s.rgb, 12 * c.choice([-1, 1])), held=True),
    Variant("zoomed in", "moved", lambda s, c: turned(s.rgb, 0, 1.1)),
    Variant("zoomed out", "moved", lambda s, c: padded(s.rgb, 0.1), held=True),
    Variant("smile", "moved", lambda s, c: smile(s, 0.1)),
    Variant("head moved", "moved", lambda s, c: bent(s, c)),
    Variant("shading redrawn", "moved", lambda s, c: reshaded(s, 3, c)),
    Variant("shading redrawn, more", "moved", lambda s, c: reshaded(s, 5, c), held=True),
    Variant("brighter 10 %", "light", lambda s, c: brighter(s.rgb, 1.1)),
    Variant("darker 10 %", "light", lambda s, c: brighter(s.rgb, 0.9)),
    Variant("darker 25 %", "light", lambda s, c: brighter(s.rgb, 0.75), held=True),
    Variant("gamma 1.2", "light", lambda s, c: brighter(s.rgb, 1.0, 1.2), held=True),
    Variant("warm light", "light", lambda s, c: tinted(s.rgb, (1.07, 1.0, 0.88)), held=True),
    Variant("side light, weak", "light", lambda s, c: side_light(s, 0.15, c)),
    Variant("side light, strong", "light", lambda s, c: side_light(s, 0.4, c)),
    Variant("plain backdrop", "place", lambda s, c: backdrop(s, c)),
    Variant("backdrop of shapes", "place", lambda s, c: backdrop(s, c, textured=True), held=True),
    Variant("dark suit", "place", lambda s, c: dressed(s, s.rgb, c)),
    Variant("light suit", "place", lambda s, c: dressed(s, s.rgb, c, dark=False), held=True),
    Variant("backdrop, suit", "place", lambda s, c: dressed(s, backdrop(s, c), c)),
    Variant("backdrop, suit, brighter", "place", lambda s, c: brighter(dressed(s, backdrop(s, c), c), 1.1)),
    Variant("backdrop, suit, darker", "place", lambda s, c: brighter(dressed(s, backdrop(s, c), c), 0.85), held=True),
    Variant("navy cap", "covered", lambda s, c: cap(s, (24, 32, 66))),
    Variant("white cap", "covered", lambda s, c: cap(s, (235, 232, 226)), held=True),
    Variant("tan cap, low", "covered", lambda s, c: cap(s, (196, 160, 120), -0.3), held=True),
    Variant("blue mask", "covered", lambda s, c: mask(s, (150, 195, 215), c)),
    Variant("white mask", "covered", lambda s, c: mask(s, (240, 240, 238), c), held=True),
    Variant("beige mask", "covered", lambda s, c: mask(s, (206, 170, 140), c), held=True),
    Variant("beard", "covered", lambda s, c: beard(s, c)),
    Variant("fringe", "covered", lambda s, c: fringe(s, c)),
    Variant("eyeglasses", "covered", lambda s, c: glasses(s, 0.0)),
    Variant("sunglasses", "covered", lambda s, c: glasses(s, 0.85, 0.05), held=True),
    Variant("rouge and lipstick", "covered", lambda s, c: blush(s)),
    Variant("hand on a cheek", "covered", lambda s, c: hand(s, c), held=True),
    Variant("skin +8, backdrop, suit", "both", lambda s, c: dressed(s, backdrop(s, c), c), shift=(8, 0, 0)),
    Variant("skin -8, navy cap", "both", lambda s, c: cap(s, (24, 32, 66)), shift=(-8, 0, 0)),
    Variant("skin +5, crop 8 %", "both", lambda s, c: cropped(s.rgb, 0.08, c), shift=(5, 0, 0)),
    Variant("skin +6, brighter 10 %", "both", lambda s, c: brighter(s.rgb, 1.1), shift=(6, 0, 0)),
    Variant("skin -6, beard", "both", lambda s, c: beard(s, c), shift=(-6, 0, 0), held=True),
    Variant(
        "skin +10, suit, JPEG 50", "both", lambda s, c: jpeg(dressed(s, s.rgb, c), 50), shift=(10, 0, 0), held=True
    ),
)
"""What the instrument was made with; those held back were seen, but stay out of the calibration of its errors."""

UNSEEN = (
    Variant("headscarf", "covered", lambda s, c: wrapped(s, (40, 45, 90)), held=True),
    Variant("brown headscarf", "covered", lambda s, c: wrapped(s, (120, 85, 62)), held=True),
    Variant("scarf over the mouth", "covered", lambda s, c: scarf(s, c), held=True),
    Variant("headband", "covered", lambda s, c: headband(s, (190, 40, 45)), held=True),
    Variant("ski goggles", "covered", lambda s, c: goggles(s), held=True),
    Variant("black mask", "covered", lambda s, c: mask(s, (28, 28, 30), c), held=True),
    Variant("brown mask", "covered", lambda s, c: mask(s, (122, 84, 60), c), held=True),
    Variant("haze", "light", lambda s, c: haze(s.rgb, 0.15), held=True),
    Variant("vignette", "light", lambda s, c: vignette(s.rgb), held=True),
    Variant("lamp from above", "light", lambda s, c: spot_light(s), held=True),
    Variant("more contrast", "light", lambda s, c: contrast(s.rgb, 1.2), held=True),
    Variant("blue dusk", "light", lambda s, c: tinted(s.rgb, (0.82, 0.92, 1.08)), held=True),
    Variant("brighter 30 %", "light", lambda s, c: brighter(s.rgb, 1.3), held=True),
    Variant("sharpened", "file", lambda s, c: sharpened(s.rgb), held=True),
    Variant("a quarter of the size", "file", lambda s, c: resized(s.rgb, 0.25), held=True),
    Variant("zoomed, turned, brighter", "moved", lambda s, c: brighter(turned(s.rgb, 6, 1.15), 1.08), held=True),
    Variant("warm light, backdrop", "place", lambda s, c: tinted(backdrop(s, c), (1.08, 1.0, 0.9)), held=True),
    Variant("suit, headscarf", "place", lambda s, c: dressed(s, wrapped(s, (150, 60, 60)), c), held=True),
    Variant("skin +4, shading redrawn", "both", lambda s, c: reshaded(s, 3, c), shift=(4, 0, 0), held=True),
    Variant("skin -12, headscarf", "both", lambda s, c: wrapped(s, (40, 45, 90)), shift=(-12, 0, 0), held=True),
    Variant("skin +7, darker 15 %", "both", lambda s, c: brighter(s.rgb, 0.85), shift=(7, 0, 0), held=True),
    Variant("skin -5, mask", "both", lambda s, c: mask(s, (150, 195, 215), c), shift=(-5, 0, 0), held=True),
)
"""Made before the instrument and its calibration were finished, and looked at after. Since then light that slopes over
the face (the lamp) and haze were mended: these two test no unseen kind any more."""
