"""Skin tone of a face, and how an edit moved it.

Cheek and forehead patches say what skin looks like here; the tone is then the middle of all such pixels of face
and neck, so that neither shine nor shadow decides it. Patches give the spread, and the picture to check by.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from evenedit.core import color
from evenedit.core.color import Lab
from evenedit.instruments import picture
from evenedit.instruments.face import Face
from evenedit.instruments.light import Relighting
from evenedit.instruments.patches import LUMINANCE, PATCHES, SkinPatch, outlines, read, strays
from evenedit.instruments.picture import Picture

CUTS = (-10.0, -3.0, 3.0, 10.0)
"""L* steps between the five answers of the skin axis: half-way between planted steps of 0, ±6 and ±14."""
ALIKE = 0.25
"""Log ratio of red or blue to green within which a pixel has the patches' colour."""
SHADOW, SHINE = 9.0, 9.0
"""L* below and above the middle that skin may have."""
MIDDLE = (40.0, 60.0)
"""Percentiles of luminance that make up the tone."""
GREENER, GRAY = 8.0, 3.0
"""The largest loss of a* and the least chroma of skin: beyond them something covers it."""
CLIPPED = 0.97
"""Linear light from which a channel may be clipped."""
LEAST_CHART = 60
"""With fewer grid points of skin than this, only the patches are read."""
SAME_PLACE = 0.15
"""Landmarks this close, in inter-eye distances, let both pictures be read at the same spots."""


def _grid() -> NDArray[np.float64]:
    """Points of face and neck in the face's own coordinates."""
    u, v = (part.ravel() for part in np.meshgrid(np.linspace(-1.2, 1.2, 49), np.linspace(-1.0, 2.1, 63)))
    oval = (u / 1.15) ** 2 + ((v - 0.35) / 1.35) ** 2 < 1
    neck = (np.abs(u) < 0.65) & (v > 1.5)
    return np.stack([u, v], axis=-1)[oval | neck]


_GRID = _grid()


@dataclass(frozen=True, slots=True)
class Chart:
    """A face unrolled: light on a grid of its own coordinates, so that two pictures compare spot by spot."""

    light: NDArray[np.float64]
    """One row of light for each grid point; NaN outside the picture."""

    def skin(self, seed: NDArray[np.float64]) -> picture.Mask:
        """The points that have the seed's colour, however they are lit."""
        inside: picture.Mask = np.asarray(np.isfinite(self.light).all(axis=1))
        light = np.where(inside[:, None], self.light, 1.0)
        alike = np.abs(_chroma(light) - _chroma(seed)).max(axis=1) < ALIKE
        bright, middle = _lightness(light @ LUMINANCE), float(_lightness(seed @ LUMINANCE))
        for _ in range(3):  # the seed may be lit more than the rest: search again around the new middle
            found: picture.Mask = inside & alike & (bright > middle - SHADOW) & (bright < middle + SHINE)
            if not found.any():
                break
            middle = float(np.median(bright[found]))
        return found

    def tone(self, where: picture.Mask) -> NDArray[np.float64]:
        """The mean light of the middle fifth of these points, by luminance: shine and shadow lie outside it."""
        light = self.light[where]
        bright = light @ LUMINANCE
        low, high = np.percentile(bright, MIDDLE)
        mean: NDArray[np.float64] = light[(bright >= low) & (bright <= high)].mean(axis=0)
        return mean


@dataclass(frozen=True, slots=True)
class SkinChange:
    """How the skin changed between source and edit; `raw` is before the change of light is removed."""

    before: Lab
    after: Lab
    """In the edit's own light."""
    after_relit: Lab | None
    """In the source's light; None where the light could not be judged."""
    light_before: NDArray[np.float64]
    """`before` in linear light."""
    uncertainty_L: float  # noqa: N815
    """Standard error of delta L*, from the spread over patches, their quarters, and patches against the whole face."""
    left_right_L: tuple[float | None, float | None]  # noqa: N815
    """L* of the left minus the right cheek, before and after."""
    patches_before: tuple[SkinPatch, ...]
    patches_after: tuple[SkinPatch, ...]
    discarded: Mapping[str, str]
    """Patches left out, and why."""

    @property
    def corrected(self) -> Lab:
        """After the edit, in the source's light where that is known."""
        return self.after_relit or self.after

    def delta_L(self, after: Lab) -> float:  # noqa: N802
        """By how much L* rose."""
        return after[0] - self.before[0]

    def delta_ita(self, after: Lab) -> float | None:
        """By how many degrees ITA rose; None where b* makes it meaningless."""
        first, second = color.ita(self.before), color.ita(after)
        return None if first is None or second is None else second - first


def chart(light: picture.Light, face: Face, stretch: NDArray[np.float64] | None = None) -> Chart:
    """Unroll the face and neck; `stretch` takes the face's pixels to the picture's."""
    points = face.place(_GRID) * (1.0 if stretch is None else stretch)
    high, wide = light.shape[:2]
    soft = cv2.blur(light, (3, 3))
    x, y = points.T.astype(np.float32)
    values = cv2.remap(soft, x[:, None], y[:, None], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    outside = (x < 0) | (y < 0) | (x > wide - 1) | (y > high - 1)
    light_there = values.reshape(-1, 3).astype(np.float64)
    light_there[outside] = np.nan
    return Chart(light_there)


def tone(light: picture.Light, face: Face) -> Lab | None:
    """The skin tone of one face; None where no skin is in sight."""
    patches = read(light, outlines(face))
    for name in strays(patches):
        del patches[name]
    if not patches:
        return None
    unrolled, seed = chart(light, face), _seed(patches.values())
    where = unrolled.skin(seed)
    return picture.lab_of(unrolled.tone(where) if where.sum() >= LEAST_CHART else seed)


def skin_change(
    source: Picture, edited: picture.Light, source_face: Face, edited_face: Face, light: Relighting | None
) -> SkinChange | str:
    """Compare the skin of an edit with its source's, each in its own pixels; text says why it cannot be done."""
    spots = outlines(source_face)
    high, wide = source.rgb.shape[:2]
    stretch = np.array([edited.shape[1] / wide, edited.shape[0] / high])
    apart = np.abs(edited_face.landmarks / stretch - source_face.landmarks).max() / source_face.unit
    in_place = bool(apart < SAME_PLACE)
    there = {name: spot * stretch for name, spot in spots.items()} if in_place else outlines(edited_face)
    before, after = source.once(_patches, source_face), read(edited, there)
    names = [name for name in before if name in after]
    discarded = {name: "out of the picture or turned away" for name in PATCHES if name not in names}
    for name in [name for name in names if _covered(before[name].lab, after[name].lab)]:
        names.remove(name)
        discarded[name] = "covered in the edit: no colour of skin"
    for patches in (before, after):
        for name in strays({name: patches[name] for name in names}):
            names.remove(name)
            discarded[name] = "unlike the other patches: hair, headwear or shadow"
    if not names:
        return "no skin in sight"
    first, second = [before[name] for name in names], [after[name] for name in names]
    was = source.once(_chart, source_face)
    now = chart(edited, source_face, stretch) if in_place else chart(edited, edited_face)
    skin_was, skin_now = was.skin(_seed(first)), now.skin(_seed(second))
    if in_place:
        skin_was = skin_now = skin_was & skin_now
    enough = min(skin_was.sum(), skin_now.sum()) >= LEAST_CHART
    tone_was = was.tone(skin_was) if enough else _seed(first)
    tone_now = now.tone(skin_now) if enough else _seed(second)
    lab_was, lab_now = picture.lab_of(tone_was), picture.lab_of(tone_now)
    return SkinChange(
        before=lab_was,
        after=lab_now,
        after_relit=None if light is None else _in_old_light(tone_was, tone_now, light),
        light_before=tone_was,
        uncertainty_L=_uncertainty(first, second, lab_was[0], lab_now[0], light),
        left_right_L=(_left_right(before), _left_right(after)),
        patches_before=tuple(first),
        patches_after=tuple(second),
        discarded=discarded,
    )


def _patches(source: Picture, face: Face) -> dict[str, SkinPatch]:
    return read(source.light, outlines(face))


def _chart(source: Picture, face: Face) -> Chart:
    return chart(source.light, face)


def to_axis(delta_L: float, cuts: Sequence[float] = CUTS) -> int:  # noqa: N803
    """The answer, 1 (much darker) to 5 (much lighter), for a change of L*."""
    return 1 + sum(delta_L > cut if cut < 0 else delta_L >= cut for cut in cuts)


def _covered(before: Lab, after: Lab) -> bool:
    """Whether something such as a mask covers the skin: decided by the change, as light alone can tint any skin."""
    greener = after[1] < 0 and after[1] < before[1] - GREENER
    grayer = math.hypot(*after[1:]) < GRAY and math.hypot(*before[1:]) > 3 * GRAY
    return greener or grayer


def _seed(patches: Iterable[SkinPatch]) -> NDArray[np.float64]:
    mean: NDArray[np.float64] = np.mean([patch.light for patch in patches], axis=0)
    return mean


def _chroma(light: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log of red and of blue over green, with a floor against noise in dark pixels."""
    log = np.log(light + 0.002)
    ratios: NDArray[np.float64] = log[..., ::2] - log[..., 1:2]
    return ratios


def _lightness(luminance: NDArray[np.float64]) -> NDArray[np.float64]:
    """L* of luminance."""
    lightness: NDArray[np.float64] = np.where(
        luminance > 216 / 24389, 116 * np.cbrt(luminance) - 16, 24389 / 27 * luminance
    )
    return lightness


def _in_old_light(before: NDArray[np.float64], after: NDArray[np.float64], light: Relighting) -> Lab:
    """The value of `after` with the change of light removed."""
    if after.max() > CLIPPED:  # clipped light cannot be recovered: relight the source and clip it alike
        relit = picture.lab_of(np.minimum(before * light.factor(before), 1.0))
        shifts = zip(picture.lab_of(before), picture.lab_of(after), relit, strict=True)
        lightness, a, b = (was + now - expected for was, now, expected in shifts)
        return lightness, a, b
    source = after
    for _ in range(8):  # the factor depends on the source's value: iterate to the fixed point
        source = after / light.factor(source)
    return picture.lab_of(source)


def _uncertainty(
    before: Sequence[SkinPatch], after: Sequence[SkinPatch], was: float, now: float, light: Relighting | None
) -> float:
    """The largest of: standard errors over patches and over their quarters, half the gap to the whole face.

    What one light leaves unexplained comes on top.
    """
    pairs = list(zip(before, after, strict=True))
    deltas = np.array([b.lab[0] - a.lab[0] for a, b in pairs])
    within = np.concatenate([b.parts[: len(a.parts), 0] - a.parts[: len(b.parts), 0] for a, b in pairs])
    errors = [abs(float(deltas.mean()) - (now - was)) / 2]
    for values in (deltas, within):
        if len(values) > 1:
            errors.append(float(values.std(ddof=1)) / math.sqrt(len(values)))
    per_log = (now + 16) / 3  # how far L* moves for a unit of log light
    return math.hypot(max(errors), per_log * light.spread if light else 0.0)


def _left_right(patches: Mapping[str, SkinPatch]) -> float | None:
    if "left" not in patches or "right" not in patches:
        return None
    return patches["left"].lab[0] - patches["right"].lab[0]
