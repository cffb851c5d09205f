"""A drawn portrait: its parameters, its picture, and where in the picture skin, hair and clothes are.

Skin tone, hair, age signs and face shape are independent parameters, so one can be moved and nothing else.
"""

from __future__ import annotations

import io
import json
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import TypeAdapter

from evenedit.core.color import Lab, in_gamut
from evenedit.core.errors import EvenEditError
from evenedit.core.images import encode
from evenedit.simulation.portraits.canvas import Canvas, Frame
from evenedit.simulation.portraits.figure import draw_person
from evenedit.simulation.portraits.headwear import HEADWEAR, NONE
from evenedit.simulation.portraits.traits import TEXTURES, Portrait
from evenedit.simulation.portraits.wardrobe import draw_foreground, draw_scene, wardrobe

REMEMBERED = 512
"""Finished pictures kept in memory as PNG, those that were not asked for the longest dropped first."""
SKIN_LIGHTNESS = (10.0, 96.0)
"""The L* that `lighten` stays within."""

_PORTRAIT, _PAIR = "evenedit-portrait", "evenedit-pair"
_PLACES = {1: (Frame(),), 2: (Frame(x=0.26, y=0.24, scale=0.76), Frame(x=0.74, y=0.24, scale=0.76))}
"""Where people stand, by how many there are."""
_remembered: dict[tuple[Any, ...], bytes] = {}


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
    """Return where `render` drew skin, hair, clothes and background.

    The masks are disjoint. Eyes, brows, lips, facial hair, lines and blended edges belong to none.
    """
    return _paint(size, portrait).masks()


def portrait_of(image: Image.Image) -> Portrait | None:
    """Read the parameters from a drawn picture; None if it has none."""
    text = image.info.get(_PORTRAIT)
    return None if text is None else _parse(text)


def lighten(portrait: Portrait, delta_L: float) -> Portrait:  # noqa: N803
    """Return the same person with skin L* moved by `delta_L`, within SKIN_LIGHTNESS.

    a* and b* stay unless sRGB cannot show the colour; then both shrink as little as needed.
    """
    low, high = SKIN_LIGHTNESS
    lightness = min(high, max(low, portrait.skin[0] + delta_L))
    return replace(portrait, skin=_fit(lightness, portrait.skin[1], portrait.skin[2]))


def _fit(lightness: float, a: float, b: float) -> Lab:
    if in_gamut((lightness, a, b)):
        return lightness, a, b
    inside, outside = 0.0, 1.0
    for _ in range(12):
        middle = (inside + outside) / 2
        if in_gamut((lightness, a * middle, b * middle)):
            inside = middle
        else:
            outside = middle
    return lightness, a * inside, b * inside


def _picture(size: int, *people: Portrait) -> Image.Image:
    """Render what `_paint` draws at the requested size; cached, as editors often draw the same picture."""
    key = (size, *people)
    known = _remembered.pop(key, None)
    image = _paint(size, *people).finish() if known is None else Image.open(io.BytesIO(known)).copy()
    while len(_remembered) >= REMEMBERED:
        _remembered.pop(next(iter(_remembered)), None)
    _remembered[key] = encode(image) if known is None else known  # as the youngest
    return image


def _paint(size: int, *people: Portrait) -> Canvas:
    """Draw one person, or two side by side, in the first one's scene."""
    first = people[0]
    canvas = Canvas(size, first.background)
    draw_scene(canvas, first.scene, first.background)
    for person, frame in zip(people, _PLACES[len(people)], strict=True):
        draw_person(canvas, person, frame)
    draw_foreground(canvas, first.scene, first.background)
    return canvas


def _note(portrait: Portrait) -> dict[str, Any]:
    """Serialise the parameters for a picture's metadata; a bare head is left out."""
    values = {name: getattr(portrait, name) for name in _FIELDS}
    return {name: value for name, value in values.items() if (name, value) != ("headwear", NONE)}


def _parse(text: str) -> Portrait:
    where = f"The picture's '{_PORTRAIT}' metadata"
    try:
        portrait = _READER.validate_python({"headwear": NONE, **json.loads(text)})
    except (TypeError, ValueError) as error:
        raise EvenEditError(f"{where} does not describe a portrait: {error}") from None
    drawn = {"outfit": wardrobe()["outfits"], "scene": wardrobe()["scenes"], "headwear": HEADWEAR}
    for name, known in {**drawn, "hair_texture": TEXTURES}.items():
        if getattr(portrait, name) not in known:
            raise EvenEditError(f"{where} has {name} '{getattr(portrait, name)}'; expected one of: {', '.join(known)}")
    return portrait


_READER = TypeAdapter(Portrait)
