"""Skin tone of a face, and how an edit moved it.

The same spots of skin are read in both pictures, found by a mesh of the face. Spots that are covered or turned away
in either picture are left out; the rest must agree, on both sides of the face, or there is no number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenedit.core import color
from evenedit.core.color import Lab
from evenedit.instruments import picture
from evenedit.instruments.agreement import Agreement, agree
from evenedit.instruments.face import Face
from evenedit.instruments.light import Relighting
from evenedit.instruments.mesh import LEAST_SCORE, Mesh, find_mesh
from evenedit.instruments.patches import (
    Sampled,
    SkinPatch,
    labs,
    outline,
    patchwork,
    sampled,
    skin_colour,
)
from evenedit.instruments.picture import Mask, Picture, Pixels

CUTS = (-10.0, -3.0, 3.0, 10.0)
"""L* steps between the five answers of the skin axis: half-way between planted steps of 0, ±6 and ±14."""
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])
MIDDLE = (40.0, 60.0)
"""Percentiles of luminance that make up the tone."""
LEAST_SKIN = 60
"""Points of skin that a source must show."""
IN_PLACE = 0.08
"""Where the mesh of an edit is this close to where registration puts the source's, both are read at the same spots."""
CLIPPED = 0.97
"""Linear light from which a channel may be clipped."""
SURE = 1.96
"""Standard errors of a 95 % interval."""
UNLIT = "no unedited place with texture to judge the light by"


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
    """Standard error of delta L*, calibrated on portraits with planted changes."""
    left_right_L: tuple[float | None, float | None]  # noqa: N815
    """L* of the left minus the right cheek, before and after."""
    patches_before: tuple[SkinPatch, ...]
    patches_after: tuple[SkinPatch, ...]
    discarded: Mapping[str, str]
    """Parts of the face of which nothing was used, and why."""
    agreement: Agreement

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


def tone(rgb: Pixels, face: Face) -> Lab | None:
    """The skin tone of one face; None where too little skin is in sight."""
    found = sampled(rgb, face, find_mesh(rgb, face).points)
    skin = skin_colour(labs(found.light), found.clear)
    return picture.lab_of(_middle(found.light[skin])) if skin.sum() >= LEAST_SKIN else None


def skin_change(
    source: Picture,
    edited: Pixels,
    source_face: Face,
    edited_face: Face,
    light: Relighting | None,
    matrix: NDArray[np.float64],
) -> SkinChange | str:
    """Compare the skin of an edit with its source's at the same spots; text says why it cannot be done.

    `matrix` takes source pixels to edited pixels, as registration found.
    """
    mesh, now = source.once(_mesh, source_face), find_mesh(edited, edited_face)
    for name, one in (("source", mesh), ("edited picture", now)):
        if one.score < LEAST_SCORE:
            return f"{name}: no clear face"
    before = source.once(_sampled, source_face)
    laid = mesh.points @ matrix[:, :2].T + matrix[:, 2]
    apart = float(np.median(np.hypot(*(now.points - laid).T))) / edited_face.unit
    after = sampled(edited, edited_face, laid if apart < IN_PLACE else now.points)
    skin = source.once(_skin, source_face)
    if skin.sum() < LEAST_SKIN:
        return "source: too little skin in sight"
    relit = None if light is None else in_old_light(before, after, light, source.rgb.shape[:2])
    found = agree(before, after, skin, relit, light)
    if isinstance(found, str):
        return found
    return _change(before, after, skin, found, light is not None)


def in_old_light(before: Sampled, after: Sampled, light: Relighting, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """The light at the edit's points with the change of light removed."""
    if light.steady:
        return after.light
    place = before.place / max(shape[:2])
    source = after.light
    for _ in range(6):  # the factor depends on the source's value: iterate to the fixed point
        source = after.light / light.factor(source, place)
    clipped = (
        after.light.max(axis=1) > CLIPPED
    )  # clipped light cannot be recovered: relight the source and clip it alike
    if clipped.any():
        relit = np.minimum(before.light * light.factor(before.light, place), 1.0)
        source[clipped] = (before.light * after.light / np.maximum(relit, 1e-4))[clipped]
    return source


def to_axis(delta_L: float, cuts: Sequence[float] = CUTS) -> int:  # noqa: N803
    """The answer, 1 (much darker) to 5 (much lighter), for a change of L*."""
    return 1 + sum(delta_L > cut if cut < 0 else delta_L >= cut for cut in cuts)


def _mesh(source: Picture, face: Face) -> Mesh:
    return find_mesh(source.rgb, face)


def _sampled(source: Picture, face: Face) -> Sampled:
    return sampled(source.rgb, face, source.once(_mesh, face).points)


def _skin(source: Picture, face: Face) -> Mask:
    found = source.once(_sampled, face)
    return skin_colour(labs(found.light), found.clear)


def _middle(light: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean light of the middle fifth by luminance: shine and shadow lie outside it."""
    bright = light @ LUMINANCE
    low, high = np.percentile(bright, MIDDLE)
    mean: NDArray[np.float64] = light[(bright >= low) & (bright <= high)].mean(axis=0)
    return mean


def _change(before: Sampled, after: Sampled, skin: Mask, found: Agreement, lit: bool) -> SkinChange:
    was = _middle(before.light[skin])
    lab = picture.lab_of(was)
    work = patchwork()
    used = [number for number, good in enumerate(found.used) if good]
    gone = {name for name in work.names if name not in {work.names[number] for number in used}}
    pairs = [
        tuple(
            SkinPatch(
                work.names[number], outline(one.place[work.of == number]), picture.lab_of(_middle(one.light[here]))
            )
            for one in (before, after)
        )
        for number in used
        if (here := (work.of == number) & found.skin).any()
    ]
    first, second = zip(*pairs, strict=True)
    return SkinChange(
        before=lab,
        after=_moved(lab, found.raw),
        after_relit=_moved(lab, found.shift) if lit else None,
        light_before=was,
        uncertainty_L=found.error,
        left_right_L=(_left_right(first), _left_right(second)),
        patches_before=first,
        patches_after=second,
        discarded=dict.fromkeys(sorted(gone), "covered, turned away or unlike the rest"),
        agreement=found,
    )


def _moved(lab: Lab, shift: NDArray[np.float64]) -> Lab:
    lightness, a, b = (float(one + by) for one, by in zip(lab, shift, strict=True))
    return lightness, a, b


def _left_right(patches: Sequence[SkinPatch]) -> float | None:
    sides = [[patch.lab[0] for patch in patches if patch.name == f"{side} cheek"] for side in ("left", "right")]
    return math.fsum(sides[0]) / len(sides[0]) - math.fsum(sides[1]) / len(sides[1]) if all(sides) else None
