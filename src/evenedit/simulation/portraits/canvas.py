"""What drawn portraits are painted with: CIELAB colours, splines, and a canvas that knows what each pixel is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from evenedit.core.color import Lab, lab_to_rgb

Array: TypeAlias = NDArray[np.float64]
Bounds: TypeAlias = tuple[int, int, int, int]
Strokes: TypeAlias = Sequence[tuple[Array, float]]
"""Outlines with their opacities."""

SUPERSAMPLING = 2
"""Shapes are drawn this much larger and averaged down, which smooths their edges."""
RELIEF = 24.0
"""The largest shading, in L* either way."""


@lru_cache(maxsize=4096)
def ink(lab: Lab) -> tuple[int, int, int]:
    """Convert a CIELAB value to an 8-bit colour."""
    red, green, blue = np.rint(lab_to_rgb(lab)).astype(int).tolist()
    return red, green, blue


def mix(first: Lab, second: Lab, share: float) -> Lab:
    """`share` of the second colour in the first."""
    a, b, c = ((1 - share) * x + share * y for x, y in zip(first, second, strict=True))
    return a, b, c


def shift(color: Lab, lightness: float, a: float = 0.0, b: float = 0.0) -> Lab:
    """Move a colour in CIELAB, keeping its lightness within 3..98."""
    return min(98.0, max(3.0, color[0] + lightness)), color[1] + a, color[2] + b


def smoothstep(low: float, high: float, value: float) -> float:
    """0 below `low`, 1 above `high`, a smooth slope between."""
    t = min(1.0, max(0.0, (value - low) / (high - low)))
    return t * t * (3 - 2 * t)


def gauss(x: Array, y: Array, at: tuple[float, float], spread: tuple[float, float]) -> Array:
    """Evaluate a soft spot of height one; a row of x and a column of y give a grid."""
    across: Array = np.exp(-0.5 * ((x - at[0]) / spread[0]) ** 2)
    down: Array = np.exp(-0.5 * ((y - at[1]) / spread[1]) ** 2)
    return across * down


_STEPS = np.linspace(0, 1, 10, endpoint=False)
_CATMULL_ROM = (
    np.stack([_STEPS**3, _STEPS**2, _STEPS, np.ones_like(_STEPS)], axis=1)
    @ np.array([[-1, 3, -3, 1], [2, -5, 4, -1], [-1, 0, 1, 0], [0, 2, 0, 0]])
    / 2
)


def curve(points: Sequence[tuple[float, float]] | Array, closed: bool = False) -> Array:
    """Return a smooth line through the points."""
    knots = np.asarray(points, dtype=np.float64)
    if closed:
        padded = np.concatenate([knots[-1:], knots, knots[:2]])
    else:
        padded = np.concatenate([2 * knots[:1] - knots[1:2], knots, 2 * knots[-1:] - knots[-2:-1]])
    line: Array = np.einsum("sk,nkd->nsd", _CATMULL_ROM, padded[_windows(len(padded) - 3)]).reshape(-1, 2)
    return line if closed else np.concatenate([line, knots[-1:]])


@lru_cache(maxsize=64)
def _windows(count: int) -> NDArray[np.intp]:
    """Four neighbours each, by number."""
    return np.arange(count)[:, None] + np.arange(4)


def mirrored(half: Sequence[tuple[float, float]] | Array) -> Array:
    """Return the knots of a symmetric outline from its right half, given from top to bottom."""
    right = np.asarray(half, dtype=np.float64)
    left = right[::-1] * _SIDES[-1]
    return np.concatenate([right, left[np.abs(left[:, 0]) > 1e-9]])


def flip(points: Sequence[tuple[float, float]] | Array, side: int) -> Array:
    """Return the points on the right (1) or mirrored to the left (-1)."""
    placed: Array = np.asarray(points, dtype=np.float64) * _SIDES[side]
    return placed


_SIDES = {1: np.array([1.0, 1.0]), -1: np.array([-1.0, 1.0])}


def ellipse(x: float, y: float, rx: float, ry: float, count: int = 40) -> Array:
    """Return the outline of an ellipse."""
    across, down = _circle(count)
    outline = np.empty((count, 2))
    outline[:, 0], outline[:, 1] = x + rx * across, y + ry * down
    return outline


@lru_cache(maxsize=8)
def _circle(count: int) -> tuple[Array, Array]:
    angle = np.linspace(0, 2 * np.pi, count, endpoint=False)
    return np.cos(angle), np.sin(angle)


def box(left: float, top: float, right: float, bottom: float) -> Array:
    """Return the corners of a rectangle."""
    return np.array([(left, top), (right, top), (right, bottom), (left, bottom)], dtype=np.float64)


def rounded(left: float, top: float, right: float, bottom: float, radius: float) -> Array:
    """Return the outline of a rectangle with round corners."""
    angle = np.linspace(0, np.pi / 2, 7)
    arc = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.concatenate(
        [
            np.add(arc, (right - radius, bottom - radius)),
            arc[::-1] * (-1, 1) + (left + radius, bottom - radius),
            -arc + (left + radius, top + radius),
            arc[::-1] * (1, -1) + (right - radius, top + radius),
        ]
    )


def ribbon(line: Array, width: float, taper: float = 1.0) -> Array:
    """Return the outline of a brush stroke along the line, its ends thinned by `taper`."""
    along = np.empty_like(line)
    along[1:-1] = line[2:] - line[:-2]
    along[0], along[-1] = line[1] - line[0], line[-1] - line[-2]
    length = np.sqrt(along[:, :1] ** 2 + along[:, 1:] ** 2)
    offset = along[:, ::-1] * _SIDES[-1] * (width * _profile(len(line), taper) / np.maximum(length, 1e-9))
    return np.concatenate([line + offset, (line - offset)[::-1]])


@lru_cache(maxsize=256)
def _profile(count: int, taper: float) -> Array:
    """Half the thickness of a brush stroke along its way, as a column."""
    bulge = np.sin(np.pi * np.linspace(0, 1, count)) ** 0.7
    thickness: Array = (1 - taper + taper * bulge)[:, None] / 2
    return thickness


class PixelLabel(IntEnum):
    """What a pixel shows."""

    NONE = 0
    SKIN = 1
    HAIR = 2
    CLOTHES = 3
    BACKGROUND = 4
    NECK = 5
    """Skin too, but lit on its own."""
    COVERED = 6
    """Skin under a brow, a line or a beard: lit as skin, counted as none."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a drawing's own coordinates (x from the middle, y from the top, picture = 1) lie on the canvas."""

    x: float = 0.5
    """Canvas x of the drawing's middle."""
    y: float = 0.0
    """Canvas y of the drawing's top."""
    scale: float = 1.0
    """How much of the canvas the drawing takes."""
    tilt: float = 0.0
    """Radians turned about the pivot."""
    drop: float = 0.0
    """How far it is lowered, in its own units."""
    pivot: float = 0.74
    """The y it turns about."""

    def place(self, points: Array) -> Array:
        """Canvas coordinates of the drawing's points."""
        matrix, offset = _placement(self)
        return points @ matrix + offset

    def locate(self, points: Array) -> Array:
        """Return the drawing's coordinates of canvas points: the inverse of `place`."""
        matrix, offset = _placement(self)
        return (points - offset) @ np.linalg.inv(matrix)


@lru_cache(maxsize=64)
def _placement(frame: Frame) -> tuple[Array, Array]:
    """Return the matrix and the offset that take a row (x, y) of the drawing to the canvas."""
    cos, sin = math.cos(frame.tilt), math.sin(frame.tilt)
    matrix = frame.scale * np.array([[cos, sin], [-sin, cos]])
    pivot = np.array([0.0, frame.pivot])
    lowered = np.array([frame.x, frame.y + frame.scale * (frame.pivot + frame.drop)])
    offset = lowered - pivot @ matrix
    return matrix, offset


@dataclass(frozen=True, slots=True)
class CanvasPatch:
    """A rectangle of a drawing on which shading is computed, coarsely, before it is enlarged."""

    left: float
    top: float
    right: float
    bottom: float
    density: int
    """Grid points per unit."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        wide, high = self.right - self.left, self.bottom - self.top
        return round(high * self.density), round(wide * self.density)

    def axes(self) -> tuple[Array, Array]:
        """Return a row of x and a column of y."""
        rows, columns = self.shape
        x = self.left + (np.arange(columns) + 0.5) / self.density
        y = self.top + (np.arange(rows) + 0.5) / self.density
        return x[None, :], y[:, None]


@dataclass(frozen=True, slots=True)
class Tint:
    """A soft, translucent layer waiting for its colour."""

    at: tuple[int, int]
    """Where on the canvas, in supersampled pixels."""
    opacity: Image.Image


class Canvas:
    """A picture and, pixel by pixel, what it shows. Shapes are placed by the current `frame`."""

    def __init__(self, size: int, ground: Lab) -> None:
        self.size = size
        self.side = size * SUPERSAMPLING
        self.frame = Frame()
        self.picture = Image.new("RGB", (self.side, self.side), ink(ground))
        self.labels = Image.new("L", (self.side, self.side), int(PixelLabel.BACKGROUND))
        self._brush = ImageDraw.Draw(self.picture)
        self._marker = ImageDraw.Draw(self.labels)

    def fill(self, outline: Array, color: Lab, label: PixelLabel = PixelLabel.NONE) -> None:
        """Paint the inside of an outline."""
        corners = (self.frame.place(outline) * self.side).ravel().tolist()
        self._brush.polygon(corners, fill=ink(color))
        self._marker.polygon(corners, fill=int(label))

    def stroke(
        self, line: Array, width: float, color: Lab, label: PixelLabel = PixelLabel.NONE, taper: float = 1.0
    ) -> None:
        """Paint a brush stroke along a line."""
        self.fill(ribbon(line, width, taper), color, label)

    def shade(self, patch: CanvasPatch, reliefs: Mapping[tuple[PixelLabel, ...], Array], ramp: Array) -> None:
        """Recolour labels by fields of L* shifts; the median shift, covered pixels aside, is made zero.

        `ramp` holds 256 CIELAB colours for shifts of -RELIEF..RELIEF; the median gets the middle one.
        """
        bounds = self._bounds(box(patch.left, patch.top, patch.right, patch.bottom))
        labels_in_box = self.labels.crop(bounds)
        seen = self._labels_on(patch, bounds, labels_in_box)
        middle = _median(
            np.concatenate(
                [field[_is_one_of(labels, but=PixelLabel.COVERED)[seen]] for labels, field in reliefs.items()]
            )
        )
        palette = np.rint(lab_to_rgb(ramp)).astype(np.uint8).tobytes()
        for labels, field in reliefs.items():
            mask = labels_in_box.point(_only(labels))
            part = mask.getbbox()
            if part is None:
                continue
            target = (bounds[0] + part[0], bounds[1] + part[1], bounds[0] + part[2], bounds[1] + part[3])
            steps = np.clip(np.rint(128 + (field - middle) * (128 / RELIEF)), 0, 255).astype(np.uint8)
            fine = self._enlarge(Image.fromarray(steps), patch, target)
            fine.putpalette(palette)
            wide, high = target[2] - target[0], target[3] - target[1]
            colors = fine.convert("RGB").resize((wide, high), Image.Resampling.NEAREST)
            self.picture.paste(colors, target[:2], mask.crop(part))

    def tint(self, strokes: Strokes, blur: float, within: PixelLabel, covers: float | None = None) -> Tint:
        """Prepare a soft tint of `within`: outlines with their opacities, blurred (in drawing units).

        Where it is stronger than `covers`, pixels count as covered from now on.
        """
        radius = blur * self.frame.scale * self.size
        bounds = self._bounds(np.concatenate([outline for outline, _ in strokes]), margin=int(2.5 * radius) + 1)
        wide, high = bounds[2] - bounds[0], bounds[3] - bounds[1]
        if wide <= 0 or high <= 0:
            return Tint((0, 0), Image.new("L", (1, 1)))
        start = np.array(bounds[:2]) / SUPERSAMPLING
        layer = Image.new("L", (wide // SUPERSAMPLING, high // SUPERSAMPLING))
        brush = ImageDraw.Draw(layer)
        for outline, opacity in sorted(strokes, key=lambda stroke: stroke[1]):
            corners = (self.frame.place(outline) * self.size - start).ravel().tolist()
            brush.polygon(corners, fill=round(255 * opacity))
        soft = layer.filter(ImageFilter.GaussianBlur(radius)).resize((wide, high), Image.Resampling.NEAREST)
        open_to = (PixelLabel.SKIN, PixelLabel.COVERED) if within is PixelLabel.SKIN else (within,)
        soft = ImageChops.multiply(soft, self.labels.crop(bounds).point(_only(open_to)))
        if covers is not None:
            self.labels.paste(int(PixelLabel.COVERED), bounds[:2], soft.point(_above(covers)))
        return Tint(bounds[:2], soft)

    def apply(self, tint: Tint, color: Lab) -> None:
        """Paint a prepared tint."""
        self.picture.paste(ink(color), tint.at, tint.opacity)

    def finish(self) -> Image.Image:
        """Return the picture at its final size."""
        return self.picture.reduce(SUPERSAMPLING)

    def masks(self) -> dict[str, NDArray[np.bool_]]:
        """Return the pixels that show one thing only, by what they show."""
        labels = np.asarray(self.labels)
        tiles = np.where(labels == PixelLabel.NECK, PixelLabel.SKIN, labels).reshape(
            self.size, SUPERSAMPLING, self.size, SUPERSAMPLING
        )
        visible = (PixelLabel.SKIN, PixelLabel.HAIR, PixelLabel.CLOTHES, PixelLabel.BACKGROUND)
        return {label.name.lower(): (tiles == label).all(axis=(1, 3)) for label in visible}

    def _bounds(self, points: Array, margin: int = 0) -> Bounds:
        """Return the box of whole picture pixels around drawing points, in supersampled pixels."""
        placed = self.frame.place(points) * self.size
        low, high = np.floor(placed.min(axis=0)) - margin, np.ceil(placed.max(axis=0)) + margin
        left, top = np.clip(low, 0, self.size).astype(int).tolist()
        right, bottom = np.clip(high, 0, self.size).astype(int).tolist()
        return left * SUPERSAMPLING, top * SUPERSAMPLING, right * SUPERSAMPLING, bottom * SUPERSAMPLING

    def _enlarge(self, coarse: Image.Image, patch: CanvasPatch, bounds: Bounds) -> Image.Image:
        """Resample a patch's grid to a box of the canvas at the final resolution."""
        wide, high = bounds[2] - bounds[0], bounds[3] - bounds[1]
        corners = (np.array([(0, 0), (1, 0), (0, 1)]) + np.array(bounds[:2]) / SUPERSAMPLING) / self.size
        on_grid = (self.frame.locate(corners) - (patch.left, patch.top)) * patch.density
        shape = (-(-high // SUPERSAMPLING), -(-wide // SUPERSAMPLING))
        return self._resample(coarse, on_grid, shape, Image.Resampling.BILINEAR)

    def _labels_on(self, patch: CanvasPatch, bounds: Bounds, labels: Image.Image) -> NDArray[np.uint8]:
        """Return the labels inside a box of the canvas at each point of a patch's grid."""
        corners = np.array([(0, 0), (1, 0), (0, 1)]) / patch.density + (patch.left, patch.top)
        on_canvas = self.frame.place(corners) * self.side - bounds[:2]
        return np.asarray(self._resample(labels, on_canvas, patch.shape))

    @staticmethod
    def _resample(
        image: Image.Image,
        corners: Array,
        shape: tuple[int, int],
        how: Image.Resampling = Image.Resampling.NEAREST,
    ) -> Image.Image:
        """Resample the image through an affine map, given its images of (0, 0), (1, 0) and (0, 1)."""
        (x, y), (x1, y1), (x2, y2) = corners.tolist()
        affine = (x1 - x, x2 - x, x, y1 - y, y2 - y, y)
        return image.transform(shape[::-1], Image.Transform.AFFINE, affine, resample=how, fillcolor=128)


def _median(values: Array) -> float:
    return float(np.median(values)) if len(values) else 0.0


@lru_cache(maxsize=16)
def _is_one_of(labels: tuple[PixelLabel, ...], but: PixelLabel) -> NDArray[np.bool_]:
    """Return, by label, whether it is one of these."""
    return np.array([value in labels and value != but for value in range(256)])


@lru_cache(maxsize=16)
def _only(labels: tuple[PixelLabel, ...]) -> list[int]:
    return [255 if value in labels else 0 for value in range(256)]


@lru_cache(maxsize=8)
def _above(opacity: float) -> list[int]:
    return [255 if value > 255 * opacity else 0 for value in range(256)]
