"""A drawn portrait: its parameters, its picture, and where in the picture skin, hair and clothes are.

Skin tone, hair, age signs and face shape are independent parameters, so one can be moved and nothing else.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from evenedit.core.color import MONK, Lab, in_gamut, lab_to_rgb, rgb_to_lab, triple
from evenedit.core.errors import EvenEditError
from evenedit.core.images import encode
from evenedit.simulation.portraits.canvas import Canvas, Frame
from evenedit.simulation.portraits.figure import draw_person
from evenedit.simulation.portraits.hair import TEXTURES
from evenedit.simulation.portraits.headwear import HEADWEAR, NONE
from evenedit.simulation.portraits.wardrobe import OUTFITS, SCENES, draw_foreground, draw_scene

__all__ = [
    "MONK",
    "OUTFITS",
    "SCENES",
    "Portrait",
    "lab_to_rgb",
    "lighten",
    "portrait_of",
    "regions",
    "render",
    "render_pair",
    "rgb_to_lab",
]

REMEMBERED = 512
"""Finished pictures kept in memory as PNG, those that were not asked for the longest dropped first."""
SKIN_LIGHTNESS = (10.0, 96.0)
"""The L* that `lighten` stays within."""

_PORTRAIT, _PAIR = "evenedit-portrait", "evenedit-pair"
_PLACES = {1: (Frame(),), 2: (Frame(x=0.26, y=0.24, scale=0.76), Frame(x=0.74, y=0.24, scale=0.76))}
"""Where people stand, by how many there are."""
_remembered: dict[tuple[Any, ...], bytes] = {}


@dataclass(frozen=True, slots=True)
class Portrait:
    """Everything that decides how a drawn person looks; shape parameters run from 0 to 1."""

    seed: int
    """Micro-variation: strands, parting, asymmetry."""
    skin: Lab
    """CIELAB of the lit skin."""
    hair_color: Lab
    """CIELAB of the hair before graying."""
    hair_length: float
    """From cropped (0) to below the shoulders (1)."""
    hair_texture: str
    """straight, wavy, curly or coily."""
    hair_volume: float
    """How far the hair stands off the head."""
    years: float
    """Age; drives graying, lines and hairline."""
    face_width: float
    """Narrow to wide."""
    jaw: float
    """Tapered to square."""
    cheeks: float
    """Lean to full."""
    nose_width: float
    """Narrow to wide."""
    nose_length: float
    """Short to long."""
    eye_size: float
    """Small to large."""
    eye_tilt: float
    """Outer corners low to high."""
    brow_weight: float
    """Fine to heavy."""
    lip_fullness: float
    """Thin to full."""
    facial_hair: float
    """None, stubble, beard."""
    lashes: float
    """Plain to marked."""
    eye_color: Lab
    """CIELAB of the iris."""
    outfit: str
    """One of OUTFITS."""
    outfit_color: Lab
    """CIELAB of the main garment."""
    scene: str
    """One of SCENES."""
    background: Lab
    """CIELAB of the wall behind."""
    marks: float
    """Subtle facial marks, none to plain."""
    slump: float
    """Posture: upright to shoulders and head lowered."""
    headwear: str = NONE
    """One of HEADWEAR."""


_FIELDS = tuple(field.name for field in fields(Portrait))


def render(portrait: Portrait, size: int = 512) -> Image.Image:
    """Draw the portrait; its parameters travel in the picture's metadata."""
    image = _picture(size, portrait)
    image.info[_PORTRAIT] = json.dumps(_note(portrait))
    return image


def render_pair(left: Portrait, right: Portrait, size: int = 512) -> Image.Image:
    """Draw two people side by side in the left one's scene."""
    image = _picture(size, left, right)
    image.info[_PAIR] = json.dumps([_note(left), _note(right)])
    return image


def regions(portrait: Portrait, size: int = 512) -> dict[str, NDArray[np.bool_]]:
    """Where `render` drew skin, hair, clothes and background.

    The masks are disjoint. Eyes, brows, lips, facial hair, lines and blended edges belong to none.
    """
    return _paint(size, portrait).masks()


def portrait_of(image: Image.Image) -> Portrait | None:
    """The parameters a drawn picture carries, or None when it carries none."""
    text = image.info.get(_PORTRAIT)
    return None if text is None else _parse(text)


def lighten(portrait: Portrait, delta_L: float) -> Portrait:  # noqa: N803
    """The same person with skin L* moved by `delta_L`, within SKIN_LIGHTNESS.

    a* and b* stay unless sRGB cannot show the colour; then both shrink as little as needed.
    """
    low, high = SKIN_LIGHTNESS
    lightness = min(high, max(low, portrait.skin[0] + delta_L))
    return replace(portrait, skin=_fit(lightness, portrait.skin[1], portrait.skin[2]))


def _fit(lightness: float, a: float, b: float) -> Lab:
    if in_gamut((lightness, a, b)):
        return lightness, a, b
    shown, lost = 0.0, 1.0
    for _ in range(12):
        middle = (shown + lost) / 2
        if in_gamut((lightness, a * middle, b * middle)):
            shown = middle
        else:
            lost = middle
    return lightness, a * shown, b * shown


def _picture(size: int, *people: Portrait) -> Image.Image:
    """What `_paint` gives, at the asked size; remembered, as editors often draw what another one has drawn."""
    key = (size, *people)
    known = _remembered.pop(key, None)
    image = _paint(size, *people).finish() if known is None else Image.open(io.BytesIO(known)).copy()
    while len(_remembered) >= REMEMBERED:
        _remembered.pop(next(iter(_remembered)), None)
    _remembered[key] = encode(image) if known is None else known  # as the youngest
    return image


def _paint(size: int, *people: Portrait) -> Canvas:
    """One person, or two side by side, in the first one's scene."""
    first = people[0]
    canvas = Canvas(size, first.background)
    draw_scene(canvas, first.scene, first.background)
    for person, frame in zip(people, _PLACES[len(people)], strict=True):
        draw_person(canvas, person, frame)
    draw_foreground(canvas, first.scene, first.background)
    return canvas


def _note(portrait: Portrait) -> dict[str, Any]:
    """The parameters as a picture carries them: a bare head is left out, as in pictures of former releases."""
    values = {name: getattr(portrait, name) for name in _FIELDS}
    return {name: value for name, value in values.items() if (name, value) != ("headwear", NONE)}


def _parse(text: Any) -> Portrait:
    try:
        data = json.loads(text)
    except (TypeError, ValueError) as error:
        raise EvenEditError(f"The picture's '{_PORTRAIT}' metadata is not JSON: {error}") from error
    if not isinstance(data, Mapping):
        raise EvenEditError(f"The picture's '{_PORTRAIT}' metadata should be an object of portrait parameters")
    data = {"headwear": NONE, **data}
    expected, found = {field.name for field in fields(Portrait)}, set(data)
    if expected != found:
        raise EvenEditError(
            f"The picture's '{_PORTRAIT}' metadata does not describe a portrait: "
            f"missing {sorted(expected - found)}, unknown {sorted(found - expected)}"
        )
    try:
        portrait = Portrait(**{field.name: _typed(field.type, data[field.name]) for field in fields(Portrait)})
    except (TypeError, ValueError) as error:
        raise EvenEditError(f"The picture's '{_PORTRAIT}' metadata has a value of the wrong kind: {error}") from error
    for name, known in (("outfit", OUTFITS), ("scene", SCENES), ("hair_texture", TEXTURES), ("headwear", HEADWEAR)):
        if data[name] not in known:
            raise EvenEditError(
                f"The picture's '{_PORTRAIT}' metadata has {name} '{data[name]}'; expected one of: {', '.join(known)}"
            )
    return portrait


def _typed(kind: Any, value: Any) -> Any:
    """The JSON value as the field's type; raises ValueError or TypeError if it is not one."""
    if kind == "Lab":
        return triple(value)
    if kind == "str" and not isinstance(value, str):
        raise TypeError(f"expected text, found {value!r}")
    return {"int": int, "float": float, "str": str}[kind](value)
