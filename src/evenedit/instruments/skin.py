"""Skin tone of a face, and how an edit moved it.

The same spots of skin are read in both pictures, found by a mesh of the face. Spots that are covered or turned away
in either picture are left out; the rest must agree, on both sides of the face, or there is no number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenedit.core import color
from evenedit.core.color import Lab
from evenedit.instruments import picture
from evenedit.instruments.agreement import PatchAgreement, agree, around, hull
from evenedit.instruments.face import Face
from evenedit.instruments.face_light import without_face_light
from evenedit.instruments.light import Relighting
from evenedit.instruments.mesh import LEAST_SCORE, Mesh, find_mesh
from evenedit.instruments.patches import (
    Sampled,
    SkinPatch,
    labs,
    patchwork,
    sampled,
    skin_colour,
    skin_patches,
)
from evenedit.instruments.picture import Mask, Picture, Pixels
from evenedit.instruments.tone import LEAST_SKIN, skin_light

CUTS = (-10.0, -3.0, 3.0, 10.0)
"""L* steps between the five answers of the skin axis: half-way between planted steps of 0, ±6 and ±14."""
IN_PLACE = 0.08
"""Where the mesh of an edit is this close to where registration puts the source's, both are read at the same spots."""
TURNED = 0.05
"""Inter-eye distances by which the nose may be found elsewhere on a head that was not turned."""
CLIPPED = 0.97
"""Linear light from which a channel may be clipped."""
SAME = 0.03
"""Log ratio of light within which a point of skin is as it was."""
LEAST_SAME = 0.6
"""Share of the skin's points from which a face is as it was: then no light fell on it anew, whatever lies around it."""
MOST_TOLD = 0.5
"""Share of new shading from which eyes and lips tell nothing about light on the face: a face only smoothed has less."""
DARKEST = 0.004
"""Linear light under which ratios are noise."""
UNLIT = "no unedited place with texture to judge the light by"
RELIT_FACE = "eyes and lips changed too, as under new light on the face alone"
UNSEEN = 3.0
"""Standard error in L* of a raw change of skin where the light cannot be judged: the spread of changes of light."""
ALL_LIGHT = 15.0
"""L* beyond which such a change may be all light, as at dusk: no planted change of skin is as large."""


@dataclass(frozen=True, slots=True)
class SkinChange:
    """How the skin changed between source and edit; `raw` is before the change of light is removed."""

    before: Lab
    after: Lab
    """In the edit's own light."""
    after_relit: Lab | None
    """In the source's light; None where the change is in doubt."""
    doubt: str
    """Why the change is no one number but an interval; empty where it is one."""
    light_before: NDArray[np.float64]
    """`before` in linear light."""
    uncertainty_L: float  # noqa: N815
    """Standard error of delta L*, calibrated on portraits with planted changes."""
    left_right_L: tuple[float | None, float | None]  # noqa: N815
    """L* of the left minus the right cheek, before and after."""
    sampled: tuple[Sampled, Sampled]
    """What was read in the source and in the edit."""
    agreement: PatchAgreement
    interval: tuple[float, float]
    """95 % interval of delta L*; in doubt it holds both the raw change and the one with the light removed."""

    @property
    def patches_before(self) -> tuple[SkinPatch, ...]:
        """The source's patches that were used."""
        return skin_patches(self.sampled[0], self.agreement.used, self.agreement.skin)

    @property
    def patches_after(self) -> tuple[SkinPatch, ...]:
        """The edit's patches that were used."""
        return skin_patches(self.sampled[1], self.agreement.used, self.agreement.skin)

    @property
    def corrected(self) -> Lab:
        """After the edit, in the source's light where that is known."""
        return self.after_relit or self.after

    def delta_L(self, after: Lab) -> float:  # noqa: N802
        """Return the rise of L*."""
        return after[0] - self.before[0]

    def delta_ita(self, after: Lab) -> float | None:
        """Return the rise of ITA in degrees; None where b* makes it meaningless."""
        first, second = color.ita(self.before), color.ita(after)
        return None if first is None or second is None else second - first


def skin_change(
    source: Picture,
    edited: Pixels,
    source_face: Face,
    edited_face: Face,
    light: Relighting | None,
    matrix: NDArray[np.float64],
    disputed: Relighting | None = None,
) -> SkinChange | str:
    """Compare the skin of an edit with its source's at the same spots; text says why it cannot be done.

    `matrix` takes source pixels to edited pixels, as registration found; `disputed` is a change of light that the
    places it was judged by do not agree on.
    """
    mesh, now = source.once(_mesh, source_face), find_mesh(edited, edited_face)
    for name, one in (("source", mesh), ("edited picture", now)):
        if one.score < LEAST_SCORE:
            return f"{name}: no clear face"
    before = source.once(_sampled, source_face)
    mapped = mesh.points @ matrix[:, :2].T + matrix[:, 2]
    distance = float(picture.median(np.hypot(*(now.points - mapped).T))) / edited_face.unit
    read_at = mapped if distance < IN_PLACE else now.points
    after = sampled(edited, edited_face, read_at)
    skin = source.once(_skin, source_face)
    if skin.sum() < LEAST_SKIN:
        return "source: too little skin in sight"
    same = as_it_was(before, after, skin)
    light = None if same else light
    relit = None if light is None else in_old_light(before, after, light, source.rgb.shape[:2])
    turn = max(0.0, abs(edited_face.turn - source_face.turn) - TURNED)
    agreement = agree(before, after, skin, relit, light, turn)
    if isinstance(agreement, str):
        return agreement
    was = source.once(_tone, source_face)
    interval, doubt = agreement.interval, agreement.doubt
    if same:
        return _change(was, (before, after), agreement, doubt, interval)
    if light is None:
        unseen = float(np.hypot(agreement.error, UNSEEN))
        explained = [float(agreement.raw[0])]
        if abs(explained[0]) > ALL_LIGHT:
            explained.append(0.0)
        if disputed is not None:
            relighted = in_old_light(before, after, disputed, source.rgb.shape[:2])
            explained.append(float(np.median((labs(relighted) - labs(before.light))[agreement.skin, 0])))
        interval, doubt = hull(interval, *(around(one, unseen) for one in explained)), doubt or UNLIT
    if agreement.redrawn < MOST_TOLD:
        moved, tone = float(agreement.shift[0]), picture.lab_of(was)[0]
        left = without_face_light(tone, moved, (source.rgb, mesh.points), (edited, read_at), light)
        if left is not None and not interval[0] <= left[0] <= left[1] <= interval[1]:
            interval = hull(interval, *(around(one, agreement.error) for one in left))
            doubt = doubt or RELIT_FACE
    return _change(was, (before, after), agreement, doubt, interval)


def as_it_was(before: Sampled, after: Sampled, skin: Mask) -> bool:
    """Return whether most of the skin is unchanged in light and place."""
    was, now = (np.maximum(one.light[skin], DARKEST) for one in (before, after))
    return bool((np.abs(np.log(now / was)) < SAME).all(axis=1).mean() >= LEAST_SAME)


def in_old_light(before: Sampled, after: Sampled, light: Relighting, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the light at the edit's points with the change of light removed."""
    place = before.place / max(shape[:2])
    source = after.light
    for _ in range(10):  # the factor depends on the source's value: iterate to the fixed point
        source = after.light / light.factor(source, place)
    clipped = (
        after.light.max(axis=1) > CLIPPED
    )  # clipped light cannot be recovered: relight the source and clip it alike
    if clipped.any():
        relit = np.minimum(before.light * light.factor(before.light, place), 1.0)
        source[clipped] = (before.light * after.light / np.maximum(relit, 1e-4))[clipped]
    return source


def to_axis(delta_L: float, cuts: Sequence[float] = CUTS) -> int:  # noqa: N803
    """Return the answer, 1 (much darker) to 5 (much lighter), for a change of L*."""
    return 1 + sum(delta_L > cut if cut < 0 else delta_L >= cut for cut in cuts)


def _mesh(source: Picture, face: Face) -> Mesh:
    return find_mesh(source.rgb, face)


def _sampled(source: Picture, face: Face) -> Sampled:
    return sampled(source.rgb, face, source.once(_mesh, face).points)


def _skin(source: Picture, face: Face) -> Mask:
    points = source.once(_sampled, face)
    return skin_colour(labs(points.light), points.clear)


def _tone(source: Picture, face: Face) -> NDArray[np.float64]:
    return skin_light(source.rgb, face, source.once(_sampled, face), source.once(_skin, face))


def _change(
    was: NDArray[np.float64],
    read: tuple[Sampled, Sampled],
    agreement: PatchAgreement,
    doubt: str,
    interval: tuple[float, float],
) -> SkinChange:
    lab = picture.lab_of(was)
    return SkinChange(
        before=lab,
        after=_moved(lab, agreement.raw),
        after_relit=None if doubt else _moved(lab, agreement.shift),
        doubt=doubt,
        light_before=was,
        uncertainty_L=agreement.error,
        left_right_L=(_left_right(read[0], agreement), _left_right(read[1], agreement)),
        sampled=read,
        agreement=agreement,
        interval=interval,
    )


def _moved(lab: Lab, shift: NDArray[np.float64]) -> Lab:
    lightness, a, b = (float(one + by) for one, by in zip(lab, shift, strict=True))
    return lightness, a, b


def _left_right(one: Sampled, agreement: PatchAgreement) -> float | None:
    """Return L* of the left minus the right cheek over the patches that agree."""
    work = patchwork()
    sides = []
    for name in ("left cheek", "right cheek"):
        good = agreement.used & (np.array(work.names) == name)
        light = one.light[agreement.skin & good[work.of]]
        if not len(light):
            return None
        sides.append(picture.lab_of(picture.median(light))[0])
    return sides[0] - sides[1]
