"""What decides how a drawn person looks."""

from __future__ import annotations

from dataclasses import dataclass

from evenedit.core.color import Lab
from evenedit.simulation.portraits.headwear import NONE

TEXTURES = ("straight", "wavy", "curly", "coily")
"""How hair can fall."""


@dataclass(frozen=True, slots=True)
class Portrait:
    """Everything that decides how a drawn person looks; shape parameters run from 0 to 1."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

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
