"""Clothes and scenes of drawn people: plain and recognisable. What they look like is in `wardrobe.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from importlib.resources import files
from typing import Any

import numpy as np

from evenedit.core.color import Lab, triple
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

SIDES = (-1, 1)
ARM = ((0.18, 0.820), (0.275, 0.848), (0.345, 0.892), (0.385, 0.97), (0.400, 1.08))
Shape = Mapping[str, Any]


@cache
def wardrobe() -> Mapping[str, Mapping[str, Any]]:
    """Return all drawings, as the file has them."""
    return tomllib.loads(files(__package__).joinpath("wardrobe.toml").read_text("utf-8"))


def draw_outfit(canvas: Canvas, outfit: str, color: Lab, slump: float) -> None:
    """Dress the person whose shoulders the canvas's frame is at; they may droop."""

    def fill(outline: Array, paint: Lab) -> None:
        drooped = outline * (1 - 0.05 * slump, 1)
        drooped[:, 1] += 0.032 * slump * (np.abs(outline[:, 0]) / 0.35)
        canvas.fill(drooped, paint, PixelLabel.CLOTHES)

    _draw(wardrobe()["outfits"][outfit], {"garment": color}, fill)
    folds = [(ribbon(flip(curve([(0.268, 1.04), (0.262, 0.96), (0.285, 0.915)]), s), 0.014), 0.22) for s in SIDES]
    sides = [(flip([(0.42, 0.84), (0.42, 1.08), (0.34, 1.08), (0.355, 0.93)], s), 0.20) for s in SIDES]
    neck = [(ribbon(curve([(-0.12, 0.80), (-0.07, 0.87), (0.0, 0.895), (0.07, 0.87), (0.12, 0.80)]), 0.03), 0.16)]
    shadow = canvas.tint([*folds, *sides, *neck], 0.008, PixelLabel.CLOTHES)
    canvas.apply(shadow, shift(mix(color, triple(wardrobe()["colors"]["ink"]), 0.7), -12))


def draw_scene(canvas: Canvas, scene: str, wall: Lab) -> None:
    """Paint what is behind people."""
    _draw(wardrobe()["scenes"][scene], {"wall": wall}, partial(canvas.fill, label=PixelLabel.BACKGROUND))


def draw_foreground(canvas: Canvas, scene: str, wall: Lab) -> None:
    """Paint what is in front of people; it belongs to no region."""
    _draw(wardrobe()["foregrounds"].get(scene, ()), {"wall": wall}, canvas.fill)


def _draw(shapes: Iterable[Shape], colors: Mapping[str, Lab], fill: Callable[[Array, Lab], None]) -> None:
    """Paint shapes one after the other."""
    for shape in shapes:
        if "part" in shape:
            _draw(wardrobe()["parts"][shape["part"]], colors, fill)
            continue
        for side in SIDES if "both" in shape else (shape.get("side", 1),):
            fill(flip(_outline(shape), side), _color(shape, colors))


def _color(shape: Shape, colors: Mapping[str, Lab]) -> Lab:
    known = {**wardrobe()["colors"], **colors}
    color = triple(known[shape["color"]] if isinstance(shape["color"], str) else shape["color"])
    if "mix" in shape:
        other, share = shape["mix"]
        color = mix(color, triple(known[other]), share)
    return shift(color, *shape.get("shift", (0.0,)))


def _outline(shape: Shape) -> Array:
    """Return the outline of a shape on the right side."""
    line = next((make(shape[name]) for name, make in _MAKERS.items() if name in shape), None)
    if line is None:
        parts = [curve(points) for points in shape.get("curves", ())]
        line = np.concatenate([*parts, *([np.array(shape["corners"])] if "corners" in shape else [])])
    line = curve(line) if "smooth" in shape else line
    return ribbon(line, shape["width"], shape.get("taper", 0.0)) if "width" in shape else line


def _edge(neckline: str) -> Array:
    """Return the upper edge of a garment, from left to right."""
    half = wardrobe()["necklines"][neckline]
    return curve([*flip(half[:0:-1], -1).tolist(), *half])


def _torso(neckline: str) -> Array:
    """Return the body of a garment."""
    arm = curve([wardrobe()["necklines"][neckline][-1], *ARM])
    return np.concatenate([_edge(neckline), arm, flip(arm, -1)[::-1]])


def _arc(circle: tuple[float, float, float]) -> Array:
    x, y, radius = circle
    angle = np.linspace(np.pi, 2 * np.pi, 40)
    return np.stack([x + radius * np.cos(angle), y + radius * np.sin(angle)], axis=1)


_MAKERS: Mapping[str, Callable[[Any], Array]] = {
    "box": lambda numbers: box(*numbers),
    "rounded": lambda numbers: rounded(*numbers),
    "ellipse": lambda numbers: ellipse(*numbers),
    "loop": lambda points: curve(points, closed=True),
    "arc": _arc,
    "edge": _edge,
    "torso": _torso,
}
