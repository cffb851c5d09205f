"""Everything that is measured on one source and one edit; what cannot be measured is null, with the reason."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from evenedit.core import color
from evenedit.instruments import picture
from evenedit.instruments.agreement import around
from evenedit.instruments.align import Aligned, align, mirrored, settle
from evenedit.instruments.change import REDRAWN, Change, Verdict, find_change
from evenedit.instruments.covered import REASON, lower_face_covered
from evenedit.instruments.face import Face, NoFace, find_face
from evenedit.instruments.identity import IDENTITY_NUMBERS, Likeness, Reference, compare
from evenedit.instruments.measurement import MeasuredPair, Measurement
from evenedit.instruments.presentation import (
    AGE_NUMBERS,
    GENDER_NUMBERS,
    NOT_ASKED,
    PresentationChange,
    presentation_change,
)
from evenedit.instruments.skin import UNLIT, SkinChange, skin_change

SKIN_KEPT, SKIN_ANEW = 0.4, 0.75
"""Shares of new shading of the skin under which a face is the same, and from which it may be another's."""
MIRRORED = "the edited picture is mirrored; it was turned back before it was measured"
SKIN_NUMBERS = tuple(p.name for p in fields(Measurement) if p.name.startswith(("skin_", "left_right_", "monk_")))
LIGHT_NUMBERS = ("light_shift_L", "light_shift_L_low", "light_shift_L_high")


def measure(
    source: Image | picture.Picture,
    edited: Image,
    *,
    identity: bool = True,
    age: bool = False,
    gender: bool = False,
    reference: Reference | None = None,
    group: str | None = None,
) -> Measurement:
    """Measure one pair; with a reference and the source's group, the faces' distance is compared with that group.

    A source given as a Picture can be measured against many edits without being looked at anew. Age and gender
    presentation are read only when asked for.
    """
    pair = examine(source, edited, identity=identity, age=age, gender=gender, reference=reference, group=group)
    return pair.measurement


def examine(
    source: Image | picture.Picture,
    edited: Image,
    *,
    identity: bool = True,
    age: bool = False,
    gender: bool = False,
    reference: Reference | None = None,
    group: str | None = None,
) -> MeasuredPair:
    """Measure one pair and keep the pixels it was computed from."""
    first = source if isinstance(source, picture.Picture) else picture.Picture(picture.pixels(source))
    second = picture.pixels(edited)
    faces, aligned = _align_pair(first, second)
    turned = mirrored(first, second, aligned)
    if turned:
        second = np.asarray(cv2.flip(second, 1), dtype=np.uint8)
        faces, aligned = _align_pair(first, second)
    source_face, edited_face = (face if isinstance(face, Face) else None for face in faces)
    change = find_change(first, settle(first, aligned), source_face)
    if turned and change.verdict.nothing_new:
        change = replace(change, verdict=Verdict.REDRAWN)
    skin = _skin(first, second, faces, change, aligned.matrix)
    numbers, reasons = _skin_numbers(skin)
    light, shift = _light(change, skin)
    if source_face is None:
        reasons["regions"] = _missing(faces)
    else:
        absent = [name for name, share in change.regions.items() if share is None]
        reasons.update({f"regions.{name}": "not in the picture" for name in absent})
    if shift is None:
        reasons.update(dict.fromkeys(LIGHT_NUMBERS, UNLIT))
    if change.colour is None:
        reasons["colour_shift"] = UNLIT
    relighted = None if shift is None or change.light is None else around(shift, change.light.shift_error)
    missing = _missing(faces)
    compared = identity or age or gender
    if source_face and edited_face and compared and lower_face_covered(first.rgb, second, source_face, edited_face):
        missing, edited_face = REASON, None
    who = Likeness(reasons=dict.fromkeys(IDENTITY_NUMBERS, NOT_ASKED))
    if identity:
        who = compare(first.rgb, second, source_face, edited_face, reference, group, missing, drawn_anew(skin, change))
    read = PresentationChange(reasons=dict.fromkeys((*AGE_NUMBERS, *GENDER_NUMBERS), NOT_ASKED))
    if age or gender:
        read = presentation_change(first, second, (source_face, edited_face), missing, gender=gender)
    measurement = Measurement(
        **numbers,
        light=light,
        light_shift_L=shift,
        light_shift_L_low=relighted[0] if relighted else None,
        light_shift_L_high=relighted[1] if relighted else None,
        colour_shift=change.colour,
        changed_share=change.share,
        regions=dict(change.regions),
        drift=change.drift,
        verdict=str(verdict(change.verdict, who, read)),
        identity_distance=who.distance,
        identity_between=who.between,
        identity_same=who.same,
        age_delta_years=read.age_delta_years,
        age_uncertainty_years=read.age_uncertainty_years,
        gender_delta=read.gender_delta,
        gender_uncertainty=read.gender_uncertainty,
        reasons={**reasons, **who.reasons, **read.reasons},
        notes=(*who.notes, MIRRORED) if turned else who.notes,
    )
    return MeasuredPair(measurement, first.rgb, second, change, None if isinstance(skin, str) else skin)


def _align_pair(first: picture.Picture, second: picture.Pixels) -> tuple[tuple[Face | NoFace, Face | NoFace], Aligned]:
    """Both faces, or why there are none, and the edited picture laid over its source."""
    faces = first.once(_face), find_face(second)
    return faces, align(first, second, *(face if isinstance(face, Face) else None for face in faces))


def verdict(change: Verdict, who: Likeness, read: PresentationChange) -> Verdict:
    """Return the kind of change in one word: another person before another age, and these before all else."""
    if who.stranger:
        return Verdict.ANOTHER
    if read.much and change is not Verdict.UNCHANGED:
        return Verdict.OLDER if (read.age_delta_years or 0.0) > 0 else Verdict.YOUNGER
    return change


def drawn_anew(skin: SkinChange | str, change: Change) -> bool | None:
    """Return whether the skin of the face was drawn anew; None where it was not compared, or it is not clear."""
    if isinstance(skin, str) or SKIN_KEPT <= skin.agreement.redrawn < SKIN_ANEW:
        return None
    return skin.agreement.redrawn >= SKIN_ANEW and (change.drift >= REDRAWN or None)


def _face(source: picture.Picture) -> Face | NoFace:
    return find_face(source.rgb)


def _missing(faces: tuple[Face | NoFace, Face | NoFace]) -> str:
    """Return which picture lacks a measurable face, and why; empty if none does."""
    where = zip(("source", "edited picture"), faces, strict=True)
    return "; ".join(f"{name}: {face.reason}" for name, face in where if isinstance(face, NoFace))


def _skin(
    first: picture.Picture,
    second: picture.Pixels,
    faces: tuple[Face | NoFace, Face | NoFace],
    change: Change,
    matrix: NDArray[np.float64],
) -> SkinChange | str:
    source_face, edited_face = faces
    if not isinstance(source_face, Face) or not isinstance(edited_face, Face):
        return _missing(faces)
    if any(change.gray):
        which = [name for name, gray in zip(("source", "edited picture"), change.gray, strict=True) if gray]
        return f"{' and '.join(which)}: no colour"
    return skin_change(first, second, source_face, edited_face, change.light, matrix, change.disputed)


def _skin_numbers(skin: SkinChange | str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the skin's part of a measurement, and the reasons for what is missing in it."""
    if isinstance(skin, str):
        return dict.fromkeys(SKIN_NUMBERS), dict.fromkeys(SKIN_NUMBERS, skin)
    relit = skin.after_relit
    moved = None if relit is None else skin.delta_L(relit)
    numbers: dict[str, Any] = {
        "skin_delta_L": moved,
        "skin_delta_L_raw": skin.delta_L(skin.after),
        "skin_delta_L_raw_low": skin.agreement.raw_interval[0],
        "skin_delta_L_raw_high": skin.agreement.raw_interval[1],
        "skin_delta_L_corrected": moved,
        "skin_delta_ITA": None if relit is None else skin.delta_ita(relit),
        "skin_delta_ITA_raw": skin.delta_ita(skin.after),
        "skin_delta_E00": None if relit is None else color.delta_e00(skin.before, relit),
        "skin_uncertainty_L": None if relit is None else skin.uncertainty_L,
        "skin_delta_L_low": skin.interval[0],
        "skin_delta_L_high": skin.interval[1],
        "left_right_L_before": skin.left_right_L[0],
        "left_right_L_after": skin.left_right_L[1],
        "monk_before": color.nearest_monk(skin.before),
        "monk_after": None if relit is None else color.nearest_monk(relit),
    }
    why = {
        **dict.fromkeys(numbers, skin.doubt),
        "skin_delta_ITA": skin.doubt if relit is None else "b* too low for an angle",
        "skin_delta_ITA_raw": "b* too low for an angle",
        "left_right_L_before": "only one cheek in sight",
        "left_right_L_after": "only one cheek in sight",
    }
    return numbers, {name: reason for name, reason in why.items() if numbers[name] is None}


def _light(change: Change, skin: SkinChange | str) -> tuple[str, float | None]:
    if change.light is None:
        return "unknown", None
    if change.light.steady:
        return "steady", 0.0
    seen = isinstance(skin, str) or change.light.covers(skin.light_before)
    return ("changed" if seen else "extrapolated"), change.light.shift_L
