"""Variants of a portrait with a known answer: what leaves it as it was, and what changes something.

All work on pixels at the size instruments measure at, with the landmarks of the face; each is drawn from a seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image

from evenedit.core.hashing import digest
from evenedit.instruments import picture
from evenedit.instruments.face import Face, find_face
from evenedit.instruments.picture import Pixels

DATA = Path(os.environ.get("EVENEDIT_DATA") or Path(__file__).parents[2] / "shared" / "data")
"""Photographs for the validations: `portraits` and `step1x_edits`; they are no part of the project."""

Random = np.random.Generator
Draw = Callable[[Pixels, Face, Random], Pixels]


@dataclass(frozen=True)
class Sitter:
    """A portrait, its face and the dataset's labels."""

    name: str
    rgb: Pixels
    face: Face

    @property
    def race(self) -> str:
        """The dataset's label."""
        return self.name.split("_")[0]

    @property
    def gender(self) -> str:
        """The dataset's label."""
        return self.name.split("_")[1]

    @property
    def age(self) -> int:
        """The middle of the dataset's age label."""
        return {"70plus": 75}.get(self.name.split("_")[2]) or int(self.name.split("_")[2][:2]) + 5

    @property
    def calibrates(self) -> bool:
        """Whether this person is in the half that thresholds are chosen on: every other one of each label."""
        ages = ("20s", "30s", "40s", "50s", "60s", "70plus")
        race, gender, age = self.name.split("_")[:3]
        odd = ages.index(age) + (gender == "Male")
        return (odd + len(race)) % 2 == 0

    def random(self, kind: str) -> Random:
        """The numbers that draw one kind of variant of this portrait."""
        return np.random.default_rng(int(digest([self.name, kind])[:8], 16))


def sitters(paths: Iterable[Path] | None = None) -> list[Sitter]:
    """The portraits, or these pictures, with a face; none where the photographs are absent."""
    found = []
    for path in sorted((DATA / "portraits").glob("*.jpg")) if paths is None else paths:
        rgb = picture.pixels(Image.open(path))
        face = find_face(rgb)
        if isinstance(face, Face):
            found.append(Sitter(path.stem, rgb, face))
    return found


def draw(kinds: Mapping[str, Draw], sitter: Sitter) -> Iterator[tuple[str, Pixels]]:
    """Every kind of variant of one portrait."""
    for kind, make in kinds.items():
        yield kind, np.ascontiguousarray(make(sitter.rgb, sitter.face, sitter.random(kind)))


# What leaves the picture as it was -------------------------------------------------------------------------------


def encoded(quality: int, suffix: str = ".jpg") -> Draw:
    """Stored and read again."""
    flag = cv2.IMWRITE_WEBP_QUALITY if suffix == ".webp" else cv2.IMWRITE_JPEG_QUALITY

    def make(rgb: Pixels, face: Face, random: Random) -> Pixels:
        _, content = cv2.imencode(suffix, rgb[..., ::-1], [flag, quality])
        return _pixels(cv2.imdecode(content, cv2.IMREAD_COLOR)[..., ::-1])

    return make


def blurred(sigma: float) -> Draw:
    """A little softer."""
    return lambda rgb, face, random: _pixels(cv2.GaussianBlur(rgb, (0, 0), sigma))


def sharpened(rgb: Pixels, face: Face, random: Random) -> Pixels:
    """A little sharper."""
    soft = cv2.GaussianBlur(rgb, (0, 0), 1.2).astype(np.float32)
    return _pixels(rgb + 0.5 * (rgb - soft))


def grain(sigma: float) -> Draw:
    """Noise in every pixel."""
    return lambda rgb, face, random: _pixels(rgb + random.normal(0, sigma, rgb.shape))


def resampled(scale: float) -> Draw:
    """Made smaller and larger again."""

    def make(rgb: Pixels, face: Face, random: Random) -> Pixels:
        small = cv2.resize(rgb, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        return _pixels(cv2.resize(small, rgb.shape[1::-1], interpolation=cv2.INTER_CUBIC))

    return make


def zoomed(scale: float, turn: float = 0.0, shift: float = 0.0) -> Draw:
    """Scaled about the middle, turned by degrees and shifted by pixels."""

    def make(rgb: Pixels, face: Face, random: Random) -> Pixels:
        high, wide = rgb.shape[:2]
        matrix = cv2.getRotationMatrix2D((wide / 2, high / 2), turn, scale)
        matrix[:, 2] += shift * random.choice([-1, 1], 2)
        return _pixels(cv2.warpAffine(rgb, matrix, (wide, high), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT))

    return make


def smoothed(rgb: Pixels, face: Face, random: Random) -> Pixels:
    """Noise removed, edges kept."""
    return _pixels(cv2.bilateralFilter(rgb, 7, 18, 3))


def mirrored(rgb: Pixels, face: Face, random: Random) -> Pixels:
    """Left and right exchanged."""
    return _pixels(rgb[:, ::-1])


def brighter(factor: float) -> Draw:
    """More or less light over all."""
    return lambda rgb, face, random: _pixels(rgb.astype(np.float32) * factor)


def warped(share: float, sigma: float = 24.0) -> Draw:
    """Everything a little elsewhere: a smooth random field with this largest move, as a share of the picture."""

    def make(rgb: Pixels, face: Face, random: Random) -> Pixels:
        high, wide = rgb.shape[:2]
        field = cv2.GaussianBlur(random.normal(0, 1, (high, wide, 2)).astype(np.float32), (0, 0), sigma)
        field *= share * max(high, wide) / np.abs(field).max()
        return _moved(rgb, field)

    return make


def head_moved(share: float) -> Draw:
    """The head and shoulders a little elsewhere, before a background that stays."""

    def make(rgb: Pixels, face: Face, random: Random) -> Pixels:
        high, wide = rgb.shape[:2]
        u, v = _own(face, rgb)
        body = np.clip(1.6 - np.hypot(u / 2.2, np.maximum(0, np.abs(v - 0.6) - 0.6) / 2.2), 0, 1)
        body = cv2.GaussianBlur(np.minimum(1, body * 1.6).astype(np.float32), (0, 0), 0.3 * face.unit)
        angle = random.uniform(0, 2 * np.pi)
        step = share * max(high, wide) * np.array([np.cos(angle), 0.5 * np.sin(angle)], dtype=np.float32)
        return _moved(rgb, body[..., None] * step)

    return make


def redrawn(share: float) -> Draw:
    """Drawn anew: head moved, all a little elsewhere, fine texture smoothed and made again, stored."""

    def make(rgb: Pixels, face: Face, random: Random) -> Pixels:
        moved = warped(share / 3)(head_moved(share)(rgb, face, random), face, random)
        fine = warped(0.003, 2.5)(smoothed(moved, face, random), face, random)
        return encoded(90)(grain(2.0)(fine, face, random), face, random)

    return make


# What changes something ------------------------------------------------------------------------------------------


def cap(rgb: Pixels, face: Face, random: Random) -> Pixels:
    """A cap over hair and forehead."""
    u, v = _own(face, rgb)
    shape = ((u / 1.45) ** 2 + ((v + 0.75) / 1.05) ** 2 < 1) & (v < -0.62)
    peak = ((u / 1.35) ** 2 + ((v + 0.62) / 0.22) ** 2 < 1) & (v < -0.5)
    return _painted(rgb, shape | peak, random.choice([[28, 34, 70], [150, 30, 30], [235, 235, 230]]), random)


def glasses(width: float) -> Draw:
    """Frames round both eyes, lines of this width in inter-eye distances."""

    def make(rgb: Pixels, face: Face, random: Random) -> Pixels:
        u, v = _own(face, rgb)
        rims = [np.abs(np.hypot((u - side) / 1.15, v) - 0.3) < width / 2 for side in (-0.5, 0.5)]
        bridge = (np.abs(v + 0.05) < width / 2) & (np.abs(u) < 0.16)
        return _painted(rgb, rims[0] | rims[1] | bridge, [25, 22, 20], random, soft=0.5)

    return make


def earring(rgb: Pixels, face: Face, random: Random) -> Pixels:
    """One earring, a seventh of the distance between the eyes."""
    u, v = _own(face, rgb)
    side = random.choice([-1, 1])
    return _painted(rgb, np.hypot(u - side * 1.15, v - 0.75) < 0.14, [226, 190, 60], random, soft=0.6)


def scar(rgb: Pixels, face: Face, random: Random) -> Pixels:
    """A thin reddish line on one cheek."""
    u, v = _own(face, rgb)
    side = random.choice([-1, 1])
    along, across = (v - 0.75) * 0.9 + side * (u - side * 0.55) * 0.4, (u - side * 0.55) * 0.9 - side * (v - 0.75) * 0.4
    return _painted(rgb, (np.abs(along) < 0.32) & (np.abs(across) < 0.045), [120, 40, 45], random, 0.6, soft=0.6)


def lips(rgb: Pixels, face: Face, random: Random) -> Pixels:
    """Red lips."""
    u, v = _own(face, rgb)
    left, right = face.coordinates(face.landmarks)[3:]
    middle, half = (left + right) / 2, abs(right[0] - left[0]) / 2
    shape = ((u - middle[0]) / half) ** 2 + ((v - middle[1] - 0.03) / 0.16) ** 2 < 1
    return _painted(rgb, shape, [170, 20, 40], random, 0.6, soft=1.0)


def backdrop(rgb: Pixels, face: Face, random: Random) -> Pixels:
    """A flat new background."""
    u, v = _own(face, rgb)
    person = ((u / 1.9) ** 2 + ((v + 0.1) / 2.1) ** 2 < 1) | ((v > 1.5) & (np.abs(u) < 1.0 + 1.7 * (v - 1.4)))
    return _painted(rgb, ~person, random.choice([[150, 152, 156], [90, 110, 140], [222, 220, 214]]), random, soft=2.0)


def suit(rgb: Pixels, face: Face, random: Random) -> Pixels:
    """Other clothes."""
    u, v = _own(face, rgb)
    shape = (v > 1.9) & (np.abs(u) < 1.0 + 1.7 * (v - 1.6))
    return _painted(rgb, shape, random.choice([[30, 34, 48], [70, 74, 70], [120, 30, 40]]), random, soft=1.5)


def badge(rgb: Pixels, face: Face, random: Random) -> Pixels:
    """A badge on the clothes."""
    u, v = _own(face, rgb)
    v0 = min(2.6, float(v.max()) - 0.25)
    shape = (np.abs(u - random.choice([-1, 1]) * 0.7) < 0.2) & (np.abs(v - v0) < 0.2)
    return _painted(rgb, shape, [210, 180, 60], random, soft=0.6)


def moustache(rgb: Pixels, face: Face, random: Random) -> Pixels:
    """A dark moustache."""
    u, v = _own(face, rgb)
    nose, mouth = face.coordinates(face.landmarks)[2], face.coordinates(face.landmarks)[3:].mean(axis=0)
    middle = (nose + 2 * mouth) / 3
    shape = ((u - middle[0]) / 0.42) ** 2 + ((v - middle[1]) / 0.11) ** 2 < 1
    return _painted(rgb, shape, [24, 20, 18], random, 0.85, soft=1.0)


def hair(rgb: Pixels, face: Face, random: Random) -> Pixels:
    """Hair of another colour."""
    u, v = _own(face, rgb)
    shape = (
        ((u / 1.6) ** 2 + ((v + 0.25) / 1.6) ** 2 < 1) & ~((u / 1.05) ** 2 + ((v - 0.35) / 1.25) ** 2 < 1) & (v < 0.4)
    )
    return _painted(rgb, shape, [150, 60, 30], random, 0.45, soft=3.0)


def tone(lightness: float) -> Draw:
    """The skin of the whole face lighter or darker by so many L*."""

    def make(rgb: Pixels, face: Face, random: Random) -> Pixels:
        u, v = _own(face, rgb)
        inside = (u / 1.1) ** 2 + ((v - 0.4) / 1.35) ** 2
        much = np.clip((1.15 - inside) / 0.3, 0, 1).astype(np.float32)
        lab = cv2.cvtColor(rgb.astype(np.float32) / 255, cv2.COLOR_RGB2Lab)
        lab[..., 0] = np.clip(lab[..., 0] + lightness * much, 0, 100)
        return _pixels(255 * np.clip(cv2.cvtColor(lab, cv2.COLOR_Lab2RGB), 0, 1))

    return make


def both(first: Draw, second: Draw) -> Draw:
    """One after the other."""
    return lambda rgb, face, random: second(first(rgb, face, random), face, random)


SAME: Mapping[str, Draw] = {
    "stored as JPEG 75": encoded(75),
    "stored as JPEG 50": encoded(50),
    "softer": blurred(0.9),
    "sharper": sharpened,
    "grain": grain(5),
    "half the size and back": resampled(0.5),
    "shifted by 1.4 pixels": zoomed(1.0, shift=1.4),
    "zoomed by 3 %": zoomed(1.03),
    "bent by 0.5 %": warped(0.005),
    "bent by 1.5 %": warped(0.015),
    "redrawn, head moved 1.5 %": redrawn(0.015),
    "redrawn, head moved 3 %": redrawn(0.03),
}
"""Nothing new."""
SAME_HELD_OUT: Mapping[str, Draw] = {
    "stored as WebP 60": encoded(60, ".webp"),
    "noise removed": smoothed,
    "turned by 1.5°": zoomed(1.04, turn=1.5),
    "zoomed by 6 %, JPEG 75": both(zoomed(1.06), encoded(75)),
    "redrawn, head moved 2 %, softer": both(redrawn(0.02), blurred(0.8)),
}
"""Nothing new, of kinds that no threshold was chosen on."""
CHANGED: Mapping[str, Draw] = {
    "cap": cap,
    "glasses, thick": glasses(0.075),
    "glasses, thin": glasses(0.035),
    "earring": earring,
    "scar": scar,
    "red lips": lips,
    "backdrop": backdrop,
    "suit": suit,
    "face 5 L* lighter": tone(5),
    "face 5 L* darker": tone(-5),
    "face 10 L* lighter": tone(10),
    "cap, redrawn": both(cap, redrawn(0.02)),
    "suit, redrawn": both(suit, redrawn(0.02)),
    "glasses, thick, redrawn": both(glasses(0.075), redrawn(0.02)),
}
"""Something new."""
CHANGED_HELD_OUT: Mapping[str, Draw] = {
    "moustache": moustache,
    "hair of another colour": hair,
    "badge": badge,
    "face 5 L* lighter, JPEG 75": both(tone(5), encoded(75)),
    "face 7 L* darker, redrawn": both(tone(-7), redrawn(0.02)),
    "backdrop, redrawn": both(backdrop, redrawn(0.02)),
}
"""Something new, of kinds that no threshold was chosen on."""
SAME_PERSON: Mapping[str, Draw] = {
    **SAME,
    **SAME_HELD_OUT,
    "mirrored": mirrored,
    "10 % brighter": brighter(1.1),
    "25 % darker": brighter(0.75),
    "backdrop": backdrop,
    "suit": suit,
    "cap": cap,
    "glasses, thick": glasses(0.075),
    "face 5 L* lighter": tone(5),
    "face 10 L* lighter": tone(10),
}
"""The same person, as old as before."""


def _own(face: Face, rgb: Pixels) -> tuple[Any, Any]:
    high, wide = rgb.shape[:2]
    x, y = np.meshgrid(np.arange(wide), np.arange(high))
    own = face.coordinates(np.stack([x.ravel(), y.ravel()], axis=1))
    return own[:, 0].reshape(high, wide), own[:, 1].reshape(high, wide)


def _painted(rgb: Pixels, shape: Any, colour: Any, random: Random, much: float = 1.0, soft: float = 0.8) -> Pixels:
    """The shape in a colour with a little shading and grain."""
    cover = much * cv2.GaussianBlur(shape.astype(np.float32), (0, 0), soft)[..., None]
    shade = cv2.GaussianBlur(random.normal(0, 1, rgb.shape[:2]).astype(np.float32), (0, 0), 12)
    paint = np.array(colour, dtype=np.float32) + 6 * (shade / np.abs(shade).max())[..., None]
    return _pixels(rgb * (1 - cover) + paint * cover)


def _moved(rgb: Pixels, field: Any) -> Pixels:
    high, wide = rgb.shape[:2]
    x, y = np.meshgrid(np.arange(wide, dtype=np.float32), np.arange(high, dtype=np.float32))
    there = (x + field[..., 0]).astype(np.float32), (y + field[..., 1]).astype(np.float32)
    return _pixels(cv2.remap(rgb, *there, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT))


def _pixels(values: Any) -> Pixels:
    return np.ascontiguousarray(np.clip(np.round(values), 0, 255).astype(np.uint8))
