"""Where and how much an edited picture differs from its source, after registration and relighting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from evenedit.instruments import picture
from evenedit.instruments.align import Aligned
from evenedit.instruments.face import Face
from evenedit.instruments.light import Relighting, relighting
from evenedit.instruments.picture import Mask, Picture

REGIONS = ("face", "hair", "clothes", "background")
VISIBLE = 5.0
"""Smoothed CIELAB difference from which a pixel counts as changed."""
RESIDUE = 0.4
"""What each L* of relighting adds to VISIBLE: no curve removes a new light entirely."""
SPECK = 0.0004
"""Changed spots smaller than this share of the picture are noise."""
LOCAL = 0.12
"""Changed share up to which an edit is local."""
LEFTOVER = 0.2
"""Changed share that relighting may leave over."""
RELIT = 3.0
"""L* by which the light must move before light alone counts as a change."""
RECOLOURED = 3.5
"""Mean CIELAB difference that the light may make over the picture before it counts as a change, whatever its L*."""
SQUARES = (np.arange(256, dtype=np.float32)[:, None, None] * np.array([1 / 2.55, 1, 1], dtype=np.float32)) ** 2
"""The squares of differences of L*, a* and b*, by their bytes."""
REDRAWN = 0.01
"""Drift, as a share of the picture, from which the picture counts as drawn anew."""
BOLD = 4.0
"""Differences this many times over VISIBLE are of another thing, not of the same thing elsewhere."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The differences that do not count as a change."""

    slack: int
    """Pixels that an edge may move, either way, without having changed."""
    share: float
    """Changed share of the picture."""
    face: float
    """Changed share of the face."""
    spot: float
    """A single changed spot of this share of the picture is an edit however little else changed."""
    bold: float
    """A single spot of this share of the picture is an edit if it differs boldly."""
    sharp: float
    """Peaks this many times over VISIBLE are things added or removed; the rest is smooth."""
    tone: float
    """CIELAB difference of the whole face, at its median, from which its tone has changed."""


IN_PLACE = Trace(slack=2, share=0.006, face=0.006, spot=0.0025, bold=0.0004, sharp=2.2, tone=4.0)
"""For pictures edited in place: noise, compression, and what relighting leaves over."""
ANEW = Trace(slack=8, share=0.03, face=0.06, spot=0.008, bold=0.0004, sharp=np.inf, tone=4.0)
"""For pictures drawn anew: strands, folds, lips and outlines move a little. Thin frames of glasses can be missed."""


class Verdict(StrEnum):
    """What kind of change it is."""

    UNCHANGED = "unchanged"
    REDRAWN = "unchanged, redrawn"
    LOCAL = "local edit"
    RELIT = "relit"
    EDITED = "edited"
    OLDER = "much older?"
    YOUNGER = "much younger?"
    ANOTHER = "another person?"

    @property
    def nothing_new(self) -> bool:
        """Whether the output shows what its source shows."""
        return self in (Verdict.UNCHANGED, Verdict.REDRAWN)


@dataclass(frozen=True, slots=True)
class Change:
    """How an edit differs from its source."""

    share: float
    """Of the picture's pixels, 0 to 1."""
    regions: Mapping[str, float | None]
    """Share by region; None where landmarks are missing or the region is not in the picture."""
    verdict: Verdict
    light: Relighting | None
    """How the light changed; None where too few unedited pixels are left."""
    heat: NDArray[np.float32]
    """CIELAB difference of every pixel of the source's frame, registered and relit."""
    changed: Mask
    gray: tuple[bool, bool]
    """Whether source and edit are black and white."""
    moved: bool
    drift: float
    """How far things moved within the picture, as a share of its longer side."""
    colour: float | None
    """Mean CIELAB difference that the change of light, or the loss of all colour, makes over the source."""
    disputed: Relighting | None = None
    """The likeliest change of light where the places it was judged by do not agree on one."""


def regions(face: Face, shape: tuple[int, int]) -> dict[str, Mask]:
    """Roughly where face, hair, clothes and background lie, by the landmarks alone; together the whole picture."""
    (ax, ay), (mx, my), square = face.across, face.middle, face.unit**2
    x = (np.arange(0.5, shape[1], 2, dtype=np.float32)[None, :] - np.float32(mx)) / np.float32(square)
    y = (np.arange(0.5, shape[0], 2, dtype=np.float32)[:, None] - np.float32(my)) / np.float32(square)
    u, v = x * np.float32(ax) + y * np.float32(ay), y * np.float32(ax) - x * np.float32(ay)
    skin = (u / 1.15) ** 2 + ((v - 0.4) / 1.4) ** 2 < 1
    neck = (np.abs(u) < 0.7) & (v > 1.4) & (v < 2.1)
    front = skin | neck
    hair = ~front & ((u / 1.75) ** 2 + ((v + 0.05) / 1.9) ** 2 < 1) & (v < 1.7)
    clothes = ~front & ~hair & (v > 1.75) & (np.abs(u) < 0.9 + 1.7 * (v - 1.6))
    zones = {"face": front, "hair": hair, "clothes": clothes, "background": ~(front | hair | clothes)}
    return {name: _doubled(zone, shape) for name, zone in zones.items()}


def _doubled(zone: Mask, shape: tuple[int, int]) -> Mask:
    """Return a mask at twice its size: the edges of regions are not known more precisely."""
    return np.repeat(np.repeat(zone, 2, axis=0), 2, axis=1)[: shape[0], : shape[1]]


def _zones(source: Picture, face: Face) -> dict[str, Mask]:
    return regions(face, source.rgb.shape[:2])


def find_change(source: Picture, aligned: Aligned, face: Face | None) -> Change:
    """Compare a source with the edited picture laid over it."""
    edited = Picture(aligned.rgb)
    shape = source.rgb.shape[:2]
    zones = source.once(_zones, face) if face else None
    background = aligned.seen & ~zones["face"] if zones else aligned.seen
    judged = relighting(source, edited, background)
    light = judged if judged is not None and judged.trusted else None
    gray = (source.gray, edited.gray)
    trace = ANEW if aligned.drift >= REDRAWN else IN_PLACE
    expected = source.rgb if light is None or light.steady else light.apply(source.rgb)
    if gray[0] == gray[1] and (light is None or light.steady):
        was, now = source.once(_neighbourhoods, trace.slack), edited.once(_neighbourhoods, trace.slack)
    else:
        # where one picture has no colour, compare lightness only
        was, now = (_around(one, trace.slack, coloured=gray[0] == gray[1]) for one in (expected, edited.rgb))
    tone = _tone(expected, edited.rgb, zones["face"] & aligned.seen) if zones and gray[0] == gray[1] else None
    heat = _difference(was, now)
    heat[~aligned.seen] = 0
    visible = VISIBLE + RESIDUE * (abs(light.shift_L) if light else 0.0)
    changed, largest = _without_specks(heat > visible, shape)
    seen = max(1, int(aligned.seen.sum()))
    share = float(changed.sum()) / seen
    by_region = {name: _share(changed, zones[name] & aligned.seen) if zones else None for name in REGIONS}
    lost = gray[0] != gray[1]
    colour = None if light is None and not lost else _colour_shift(source.rgb, edited.rgb if lost else expected)
    relit = (light is not None and abs(light.shift_L) >= RELIT) or (colour or 0.0) >= RECOLOURED or lost
    peak = float(np.percentile(heat[changed], 99)) / visible if changed.any() else 0.0
    little = share <= trace.share and largest < trace.spot and (by_region["face"] or 0.0) <= trace.face
    little = little and (tone or 0.0) < trace.tone and _without_specks(heat > BOLD * visible, shape)[1] < trace.bold
    if relit and share <= LEFTOVER and peak <= IN_PLACE.sharp:
        verdict = Verdict.RELIT
    elif little and peak <= trace.sharp and not relit:
        verdict = Verdict.REDRAWN if trace is ANEW else Verdict.UNCHANGED
    else:
        verdict = Verdict.LOCAL if share <= LOCAL else Verdict.EDITED
    disputed = judged if light is None else None
    moved = aligned.moved, aligned.drift
    return Change(share, by_region, verdict, light, heat, changed, gray, *moved, colour, disputed)


def _colour_shift(source: picture.Pixels, relit: picture.Pixels) -> float:
    """Return the mean CIELAB difference of two pictures, on every fourth pixel either way."""
    if relit is source:
        return 0.0
    first, second = (picture.lab_map(picture.linear(np.ascontiguousarray(one[::4, ::4]))) for one in (source, relit))
    return float(np.linalg.norm(second - first, axis=2).mean())


class Around(NamedTuple):
    """A picture in bytes of CIELAB, and the least and the most that the neighbourhood of each pixel holds."""

    soft: Any
    low: Any
    high: Any


def _around(rgb: picture.Pixels, slack: int, coloured: bool = True) -> Around:
    size = 2 * slack + 1
    window = np.ones((size, size), dtype=np.uint8)
    lab = picture.lab_bytes(rgb)
    soft = cv2.GaussianBlur(lab if coloured else np.ascontiguousarray(lab[..., 0]), (5, 5), 1.0)
    return Around(soft, cv2.erode(soft, window), cv2.dilate(soft, window))


def _neighbourhoods(view: Picture, slack: int) -> Around:
    return _around(view.rgb, slack)


def _difference(first: Around, second: Around) -> picture.Light:
    """CIELAB distance of every pixel to what its neighbourhood held in the other picture, the larger of both ways.

    An edge that moved by a pixel, or a resampled texture, stays within its neighbourhood; a new thing does not.
    """
    both = []
    for one, other in ((first, second), (second, first)):
        off = cv2.max(cv2.subtract(one.soft, other.high), cv2.subtract(other.low, one.soft))
        if off.ndim == 3:
            both.append(cv2.transform(cv2.LUT(off, SQUARES), np.ones((1, 3))))
        else:
            both.append(cv2.LUT(off, np.ascontiguousarray(SQUARES[..., 0])))
    worst = cv2.sqrt(cv2.max(*both))
    return np.asarray(cv2.GaussianBlur(worst, (0, 0), 1.2), dtype=np.float32)


def _tone(was: picture.Pixels, now: picture.Pixels, where: Mask) -> float | None:
    """Return how far the colour of a region moved: the length of the median difference of its pixels."""
    sampled = where[::2, ::2]
    if not sampled.any():
        return None
    before, after = (picture.lab_map(picture.linear(one[::2, ::2][sampled][None]))[0] for one in (was, now))
    moved = after - before
    return float(np.linalg.norm(picture.median(moved)))


def _without_specks(changed: Mask, shape: tuple[int, ...]) -> tuple[Mask, float]:
    """Return the changed pixels without noise, and the largest spot's share of the picture."""
    if not changed.any():
        return changed, 0.0
    _, labels, stats, _ = cv2.connectedComponentsWithStats(changed.view(np.uint8), connectivity=8)
    area = stats[:, cv2.CC_STAT_AREA].astype(np.float64) / (shape[0] * shape[1])
    area[0] = 0.0
    return np.asarray((area >= SPECK)[labels]), float(area.max())


def _share(changed: Mask, where: Mask) -> float | None:
    total = int(np.count_nonzero(where))
    return float(np.count_nonzero(changed & where)) / total if total else None
