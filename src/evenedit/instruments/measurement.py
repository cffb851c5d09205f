"""What was measured on one pair: the numbers, the pixels they come from, and their display in a notebook."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from typing import Any

from PIL import Image

from evenedit.core import color
from evenedit.core.color import Lab
from evenedit.instruments.change import Change
from evenedit.instruments.picture import Pixels
from evenedit.instruments.presentation import reads_much
from evenedit.instruments.skin import SkinChange

SIZE = 224
"""Longest side of a picture, in pixels."""
KEPT_OUT = ("readings", "evidence")
"""Fields that are not part of the data."""
NUMBERS = (
    ("skin_delta_L", "Skin ΔL*"),
    ("skin_uncertainty_L", "± (standard error)"),
    ("changed_share", "Share of pixels changed"),
    ("identity_distance", "Distance between the faces"),
)


@dataclass(frozen=True, slots=True)
class Measurement:
    """What was measured on one pair; a number is None only with its reason in `reasons`."""

    skin_delta_L: float | None  # noqa: N815
    """L* of the edit's skin minus the source's, the change of light removed; None where it is no one number."""
    skin_delta_L_raw: float | None  # noqa: N815
    """The same with the light left in: the skin as displayed."""
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
    """Lower end of the 95 % interval of skin_delta_L. Where that is None because light and skin cannot be told apart or
    the face changed in parts, the interval holds both explanations; None only without face, colour or skin in sight."""
    skin_delta_L_high: float | None = None  # noqa: N815
    """Its upper end."""
    skin_delta_L_raw_low: float | None = None  # noqa: N815
    """Lower end of the 95 % interval of skin_delta_L_raw."""
    skin_delta_L_raw_high: float | None = None  # noqa: N815
    """Its upper end."""
    colour_shift: float | None = None
    """Mean CIELAB difference that the change of light and colour makes over the picture."""
    light_shift_L_low: float | None = None  # noqa: N815
    """Lower end of the 95 % interval of light_shift_L."""
    light_shift_L_high: float | None = None  # noqa: N815
    """Its upper end."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    readings: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """By name, the `Read` of each instrument that was given to `evenedit.measure`; not part of the data."""
    evidence: MeasuredPair | None = field(default=None, repr=False, compare=False)
    """The pixels it was computed from, where it was made by `evenedit.measure`; not part of the data."""

    @property
    def reads_much_changed(self) -> bool:
        """Whether a model reads the face surely and much older or younger than before."""
        return reads_much(self.age_delta_years, self.age_uncertainty_years)

    def to_json(self) -> dict[str, Any]:
        """Plain data, numbers rounded to four places."""
        return {part.name: _plain(getattr(self, part.name)) for part in fields(self) if part.name not in KEPT_OUT}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Measurement:
        """Read the measurement that `to_json` wrote."""
        return cls(**{**data, "notes": tuple(data["notes"])})

    def _repr_html_(self) -> str:
        return _page(self)


@dataclass(frozen=True, slots=True)
class MeasuredPair:
    """A measurement and the pixels it was computed from, for the evidence image."""

    measurement: Measurement
    source: Pixels
    edited: Pixels
    change: Change
    skin: SkinChange | None


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _page(measured: Measurement) -> str:
    """Return what a notebook shows of a measurement."""
    rows = "".join(_row(title, getattr(measured, name), measured.reasons.get(name, "")) for name, title in NUMBERS)
    pictures = _pictures(measured.evidence) if measured.evidence else ""
    return (
        f"<div>{pictures}<table><tr><th>Verdict</th><td>{escape(measured.verdict)}</td></tr>"
        f"<tr><th>Light</th><td>{escape(measured.light)}</td></tr>{rows}</table></div>"
    )


def _row(title: str, value: float | None, reason: str) -> str:
    text = f"{value:.2f}" if value is not None else f"– {escape(reason)}"
    return f"<tr><th>{escape(title)}</th><td>{text}</td></tr>"


def _pictures(pair: MeasuredPair) -> str:
    tones = (pair.skin.before, pair.skin.corrected) if pair.skin else (None, None)
    figures = (("source", pair.source, tones[0]), ("edited", pair.edited, tones[1]))
    return (
        '<div style="display:flex;gap:8px">'
        + "".join(
            f'<figure style="margin:0"><img alt="{name}" src="{_inline(pixels)}">'
            f"<figcaption>{name} {_swatch(tone)}</figcaption></figure>"
            for name, pixels, tone in figures
        )
        + "</div>"
    )


def _swatch(tone: Lab | None) -> str:
    if tone is None:
        return "(skin not measured)"
    code = "#" + "".join(f"{round(float(value)):02x}" for value in color.lab_to_rgb(tone))
    return (
        f'<span title="mean skin tone {code}" style="display:inline-block;width:2.5em;height:1em;vertical-align:middle;'
        f'border:1px solid #888;background:{code}"></span> {code}'
    )


def _inline(pixels: Pixels) -> str:
    image = Image.fromarray(pixels)
    image.thumbnail((SIZE, SIZE))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
