"""A picture for checking a measurement: source, edit, skin patches, change map and tones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont, ImageOps

from evenedit.core import color
from evenedit.core.color import MONK, Lab
from evenedit.instruments import picture
from evenedit.instruments.align import align, settle
from evenedit.instruments.change import Change, find_change
from evenedit.instruments.face import Face, find_face
from evenedit.instruments.measure import examine
from evenedit.instruments.measurement import MeasuredPair, Measurement
from evenedit.instruments.patches import SkinPatch
from evenedit.simulation.portraits.canvas import ink

PANEL = 384
FOOT = 150
INK, PAPER, OUTLINE = (32, 32, 36), (255, 255, 255), (0, 230, 118)
SKIN_READINGS = {
    "skin_delta_L_raw": "skin as displayed",
    "light_shift_L": "brightness of the picture",
    "skin_delta_L": "skin, change of light removed",
}
"""The three readings of skin and light, in the order in which they are printed."""
HOTTEST = 40.0
"""CIELAB difference shown as the hottest colour."""


def draw(evidence: MeasuredPair) -> Image.Image:
    """Draw one picture: source, edit, change map; below them tones and numbers."""
    panels = [
        _panel(evidence.source, evidence.skin.patches_before if evidence.skin else ()),
        _panel(evidence.edited, evidence.skin.patches_after if evidence.skin else ()),
        _fit(_heat(evidence.source, evidence.change)),
    ]
    image = Image.new("RGB", (PANEL * 3 + 32, PANEL + FOOT), PAPER)
    brush = ImageDraw.Draw(image)
    font = ImageFont.load_default(14)
    for number, (panel, title) in enumerate(zip(panels, ("source", "edited", "changed"), strict=True)):
        left = 8 + number * (PANEL + 8)
        image.paste(panel, (left, 28))
        brush.text((left, 6), title, fill=INK, font=font)
    top = PANEL + 36
    if evidence.skin is not None:
        _tones(brush, evidence.skin.before, evidence.skin.corrected, top, font)
    for row, line in enumerate(_lines(evidence.measurement)):  # the font has no minus sign
        brush.text((PANEL + 16, top + 18 * row), line.replace("−", "-"), fill=INK, font=font)
    return image


def change_map(source: Image.Image, edited: Image.Image) -> Image.Image:
    """Draw where an edit differs from its source, over a faint source: dark is the same, bright has changed."""
    first, second = picture.pixels(source), picture.pixels(edited)
    source_face, edited_face = (
        face if isinstance(face, Face) else None for face in (find_face(first), find_face(second))
    )
    view = picture.Picture(first)
    change = find_change(view, settle(view, align(view, second, source_face, edited_face)), source_face)
    return Image.fromarray(_heat(first, change))


def skin_outlines(source: Image.Image, edited: Image.Image) -> Image.Image:
    """Draw source and edit side by side, with outlines around the skin that was read in both."""
    pair = examine(source, edited, identity=False)
    skin = pair.skin
    both = Image.new("RGB", (2 * PANEL, PANEL), PAPER)
    both.paste(_panel(pair.source, skin.patches_before if skin else ()), (0, 0))
    both.paste(_panel(pair.edited, skin.patches_after if skin else ()), (PANEL, 0))
    return both


def skin_lines(numbers: Mapping[str, Any], reasons: Mapping[str, str]) -> list[str]:
    """Describe the readings of skin and light of a measurement, each with its interval or the reason for none."""
    lines = []
    for name, what in SKIN_READINGS.items():
        stored = (numbers.get(f"{name}{end}") for end in ("", "_low", "_high"))
        value, low, high = (None if one is None else round(one, 1) + 0.0 for one in stored)
        reach = "" if low is None or high is None else f"{low:+.1f} to {high:+.1f}"
        if value is not None:
            text = f"L* {value:+.1f}" + (f" ({reach})" if reach and low != high else "")
        else:
            why = f"({reasons.get(name) or 'not measured'})"
            text = f"L* between {reach.replace(' to ', ' and ')} {why}" if reach else f"not measured {why}"
        lines.append(f"{what} {text}".replace("-", "−"))
    return lines


def _panel(rgb: picture.Pixels, patches: Sequence[SkinPatch]) -> Image.Image:
    drawn = np.ascontiguousarray(rgb.copy())
    width = max(1, round(max(rgb.shape) / 256))
    mask = np.zeros(rgb.shape[:2], dtype=np.uint8)
    for patch in patches:
        cv2.fillPoly(mask, [np.round(patch.outline).astype(np.int32)], 1)
    joined = cv2.morphologyEx(mask, cv2.MORPH_CLOSE, np.ones((4 * width + 1,) * 2, dtype=np.uint8))
    contours, _ = cv2.findContours(joined, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    cv2.drawContours(drawn, contours, -1, OUTLINE, width, cv2.LINE_AA)
    return _fit(drawn)


def _heat(source: picture.Pixels, change: Change) -> picture.Pixels:
    """Draw the change map over a faint source."""
    scaled = np.clip(change.heat * (255 / HOTTEST), 0, 255).astype(np.uint8)
    hot = cv2.applyColorMap(scaled, cv2.COLORMAP_INFERNO)[:, :, ::-1]
    faint = cv2.cvtColor(source, cv2.COLOR_RGB2GRAY)[:, :, None] // 3
    picture_of_change = np.where(change.changed[:, :, None], hot, np.maximum(hot // 2, faint))
    return np.asarray(picture_of_change, dtype=np.uint8)


def _fit(rgb: picture.Pixels) -> Image.Image:
    """Return the picture as large as a panel, padded where it is not square."""
    size, method = (PANEL, PANEL), Image.Resampling.LANCZOS
    return ImageOps.pad(Image.fromarray(rgb), size, method, color=(240, 240, 240))


def _tones(brush: ImageDraw.ImageDraw, before: Lab, after: Lab, top: int, font: Any) -> None:
    """Both tones side by side, over the Monk scale with the nearest marked."""
    for number, (tone, name) in enumerate(((before, "before"), (after, "after"))):
        left = 8 + number * 120
        brush.rectangle((left, top, left + 119, top + 40), fill=ink(tone))
        brush.text((left + 4, top + 44), f"{name} L* {tone[0]:.1f}", fill=INK, font=font)
    marks = {color.nearest_monk(before): "b", color.nearest_monk(after): "a"}
    if len(marks) == 1:
        marks = dict.fromkeys(marks, "b=a")
    for number, tone in enumerate(MONK, start=1):
        left = 8 + (number - 1) * 24
        brush.rectangle((left, top + 64, left + 23, top + 78), fill=ink(tone))
        brush.text((left + 4, top + 79), marks.get(number, ""), fill=INK, font=font)


def _lines(measurement: Measurement) -> list[str]:
    parts = ", ".join(f"{name} {share:.0%}" for name, share in measurement.regions.items() if share is not None)
    who = "identity: not measured"
    if measurement.identity_distance is not None:
        who = f"identity distance {measurement.identity_distance:.2f}"
    if measurement.identity_between is not None:
        who += f"; {measurement.identity_between:.0%} of different people of the group are closer"
    return [
        f"{measurement.verdict}: {measurement.changed_share:.1%} of the picture changed",
        parts or "regions: not measured",
        *skin_lines(asdict(measurement), measurement.reasons),
        who,
    ]
