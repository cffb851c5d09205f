"""Everything that is measured on one source and one edit; what cannot be measured is null, with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from evenedit.core import color
from evenedit.instruments import picture
from evenedit.instruments.align import Aligned, align, mirrored, settle
from evenedit.instruments.change import Change, Verdict, find_change
from evenedit.instruments.covered import REASON, lower_face_covered
from evenedit.instruments.face import Face, NoFace, find_face
from evenedit.instruments.identity import IDENTITY_NUMBERS, Likeness, Reference, compare
from evenedit.instruments.presentation import (
    AGE_NUMBERS,
    GENDER_NUMBERS,
    NOT_ASKED,
    PresentationChange,
    presentation_change,
    reads_much,
)
from evenedit.instruments.skin import SURE, UNLIT, SkinChange, skin_change

MIRRORED = "the edited picture is mirrored; it was turned back before it was measured"
SKIN_NUMBERS = (
    "skin_delta_L",
    "skin_delta_L_raw",
    "skin_delta_L_corrected",
    "skin_delta_ITA",
    "skin_delta_ITA_raw",
    "skin_delta_E00",
    "skin_uncertainty_L",
    "skin_delta_L_low",
    "skin_delta_L_high",
    "left_right_L_before",
    "left_right_L_after",
    "monk_before",
    "monk_after",
)


@dataclass(frozen=True, slots=True)
class Measurement:
    """What was measured on one pair; a number is None only with its reason in `reasons`."""

    skin_delta_L: float | None  # noqa: N815
    """L* of the edit's skin minus the source's, the change of light removed; None where the light is not known."""
    skin_delta_L_raw: float | None  # noqa: N815
    skin_delta_L_corrected: float | None  # noqa: N815
    skin_delta_ITA: float | None  # noqa: N815
    """Degrees; the change of light removed."""
    skin_delta_ITA_raw: float | None  # noqa: N815
    skin_delta_E00: float | None  # noqa: N815
    """CIEDE2000; the change of light removed."""
    skin_uncertainty_L: float | None  # noqa: N815
    """Standard error of skin_delta_L, calibrated on portraits with planted changes."""
    left_right_L_before: float | None  # noqa: N815
    """L* of the source's left cheek (in the picture) minus its right: how unevenly it is lit."""
    left_right_L_after: float | None  # noqa: N815
    monk_before: int | None
    """Nearest Monk tone, 1 to 10: a picture of the tone, not a category of the person."""
    monk_after: int | None
    light: str
    """steady, changed, extrapolated (changed, and no reference as light or dark as the skin) or unknown."""
    light_shift_L: float | None  # noqa: N815
    """How far the unedited parts moved."""
    changed_share: float
    """Share of pixels that changed after registration and relighting."""
    regions: Mapping[str, float | None]
    """The changed share of each region."""
    drift: float
    """How far things moved within the picture, as a share of its longer side; movement alone is no change."""
    verdict: str
    """unchanged, unchanged but redrawn, local edit, relit, edited or another person?"""
    identity_distance: float | None
    identity_between: float | None
    """Share of the group's pairs of different people who are closer."""
    identity_same: float | None
    """Share of harmless variants of one picture that are closer."""
    age_delta_years: float | None = None
    """How much older a model reads the face after than before, in years; negative: younger."""
    age_uncertainty_years: float | None = None
    """Standard error of age_delta_years."""
    gender_delta: float | None = None
    """How much more masculine a model reads the face after than before, in logits; negative: more feminine."""
    gender_uncertainty: float | None = None
    """Standard error of gender_delta."""
    skin_delta_L_low: float | None = None  # noqa: N815
    """Lower end of the 95 % interval of skin_delta_L."""
    skin_delta_L_high: float | None = None  # noqa: N815
    """Its upper end."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    evidence: MeasuredPair | None = field(default=None, repr=False, compare=False)
    """The pixels it was computed from, where it was made by `evenedit.measure`; not part of the data."""

    @property
    def reads_much_changed(self) -> bool:
        """Whether a model reads the face surely and much older or younger than before."""
        return reads_much(self.age_delta_years, self.age_uncertainty_years)

    def to_json(self) -> dict[str, Any]:
        """Plain data, numbers rounded to four places."""
        return {part.name: _plain(getattr(self, part.name)) for part in fields(self) if part.name != "evidence"}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Measurement:
        """The measurement that `to_json` wrote."""
        return cls(**{**data, "notes": tuple(data["notes"])})

    def _repr_html_(self) -> str:
        from evenedit.instruments.evidence_html import page

        return page(self)


@dataclass(frozen=True, slots=True)
class Pair:
    """A source and an output to measure, as a process elsewhere needs them."""

    request_id: str
    source: str
    edited: str
    """Hashes of both pictures."""
    group: str
    """The source's level of the first factor: identity is read against its own group."""
    editor: str
    target_years: int | None = None
    """The years that the prompt asks to add, if it asks for an age."""


@dataclass(frozen=True, slots=True)
class MeasuredPair:
    """A measurement and the pixels it was computed from, for the evidence image."""

    measurement: Measurement
    source: picture.Pixels
    edited: picture.Pixels
    change: Change
    skin: SkinChange | None


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
    here, there, laid = _laid(first, second)
    turned = mirrored(first, second, laid)
    if turned:
        second = np.ascontiguousarray(second[:, ::-1])
        here, there, laid = _laid(first, second)
    faces = first.once(_face), find_face(second)
    change = find_change(first, settle(first, laid), here)
    if turned and change.verdict.nothing_new:
        change = replace(change, verdict=Verdict.REDRAWN)
    found = _skin(first, second, faces, change, laid.matrix)
    numbers, reasons = _skin_numbers(found)
    light, shift = _light(change, found)
    if here is None:
        reasons["regions"] = _missing(faces)
    else:
        gone = [name for name, share in change.regions.items() if share is None]
        reasons.update({f"regions.{name}": "not in the picture" for name in gone})
    if shift is None:
        reasons["light_shift_L"] = UNLIT
    missing = _missing(faces)
    if here and there and (identity or age or gender) and lower_face_covered(first.rgb, second, here, there):
        missing, there = REASON, None
    who = Likeness(reasons=dict.fromkeys(IDENTITY_NUMBERS, NOT_ASKED))
    if identity:
        who = compare(first.rgb, second, here, there, reference, group, missing)
    read = PresentationChange(reasons=dict.fromkeys((*AGE_NUMBERS, *GENDER_NUMBERS), NOT_ASKED))
    if age or gender:
        read = presentation_change(first, second, (here, there), missing, gender=gender)
    measurement = Measurement(
        **numbers,
        light=light,
        light_shift_L=shift,
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
    return MeasuredPair(measurement, first.rgb, second, change, None if isinstance(found, str) else found)


def _laid(first: picture.Picture, second: picture.Pixels) -> tuple[Face | None, Face | None, Aligned]:
    """Both faces, where there are any, and the edited picture laid over its source."""
    faces = first.once(_face), find_face(second)
    here, there = (face if isinstance(face, Face) else None for face in faces)
    return here, there, align(first, second, here, there)


def verdict(change: Verdict, who: Likeness, read: PresentationChange) -> Verdict:
    """What kind of change it is in one word: another person before another age, and these before all else."""
    if who.stranger:
        return Verdict.ANOTHER
    if read.much and change is not Verdict.UNCHANGED:
        return Verdict.OLDER if (read.age_delta_years or 0.0) > 0 else Verdict.YOUNGER
    return change


def _face(source: picture.Picture) -> Face | NoFace:
    return find_face(source.rgb)


def _missing(faces: tuple[Face | NoFace, Face | NoFace]) -> str:
    """Which picture lacks a face that can be measured, and why; empty where none does."""
    where = zip(("source", "edited picture"), faces, strict=True)
    return "; ".join(f"{name}: {face.reason}" for name, face in where if isinstance(face, NoFace))


def _skin(
    first: picture.Picture,
    second: picture.Pixels,
    faces: tuple[Face | NoFace, Face | NoFace],
    change: Change,
    matrix: NDArray[np.float64],
) -> SkinChange | str:
    here, there = faces
    if not isinstance(here, Face) or not isinstance(there, Face):
        return _missing(faces)
    if any(change.gray):
        which = [name for name, gray in zip(("source", "edited picture"), change.gray, strict=True) if gray]
        return f"{' and '.join(which)}: no colour"
    return skin_change(first, second, here, there, change.light, matrix)


def _skin_numbers(found: SkinChange | str) -> tuple[dict[str, Any], dict[str, str]]:
    """The skin's part of a measurement, and the reasons for what is missing in it."""
    if isinstance(found, str):
        return dict.fromkeys(SKIN_NUMBERS), dict.fromkeys(SKIN_NUMBERS, found)
    relit = found.after_relit
    moved = None if relit is None else found.delta_L(relit)
    numbers: dict[str, Any] = {
        "skin_delta_L": moved,
        "skin_delta_L_raw": found.delta_L(found.after),
        "skin_delta_L_corrected": moved,
        "skin_delta_ITA": None if relit is None else found.delta_ita(relit),
        "skin_delta_ITA_raw": found.delta_ita(found.after),
        "skin_delta_E00": None if relit is None else color.delta_e00(found.before, relit),
        "skin_uncertainty_L": None if relit is None else found.uncertainty_L,
        "skin_delta_L_low": None if moved is None else moved - SURE * found.uncertainty_L,
        "skin_delta_L_high": None if moved is None else moved + SURE * found.uncertainty_L,
        "left_right_L_before": found.left_right_L[0],
        "left_right_L_after": found.left_right_L[1],
        "monk_before": color.nearest_monk(found.before),
        "monk_after": None if relit is None else color.nearest_monk(relit),
    }
    why = {
        **dict.fromkeys(numbers, found.unlit),
        "skin_delta_ITA": found.unlit if relit is None else "b* too low for an angle",
        "skin_delta_ITA_raw": "b* too low for an angle",
        "left_right_L_before": "only one cheek in sight",
        "left_right_L_after": "only one cheek in sight",
    }
    return numbers, {name: reason for name, reason in why.items() if numbers[name] is None}


def _light(change: Change, found: SkinChange | str) -> tuple[str, float | None]:
    if change.light is None:
        return "unknown", None
    if change.light.steady:
        return "steady", 0.0
    seen = isinstance(found, str) or change.light.covers(found.light_before)
    return ("changed" if seen else "extrapolated"), change.light.shift_L


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return list(value) if isinstance(value, tuple) else value
