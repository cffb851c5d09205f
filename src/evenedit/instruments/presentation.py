"""How much older or younger, more masculine or feminine, a model reads a face after an edit than before.

These are readings of a model about two pictures, never labels of a person. What the model says of one picture is
wrong by years, and differently so by group; the same face before and after shares most of that error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray

from evenedit.instruments import age_model
from evenedit.instruments.face import Face
from evenedit.instruments.picture import Picture, Pixels

VIEWS = ((3.4, 0.6), (4.0, 0.3))
"""The squares that are read: their side in inter-eye distances, and how far below the eyes their middle lies."""
COMPRESSION = 0.67
"""Years that the model's age rises by for each year of the age label."""
AGE_FLOOR, AGE_SPREAD = 3.0, 1.0
"""The standard error of a difference in years: a floor, and how far the views' disagreement counts beside it."""
GENDER_FLOOR, GENDER_SPREAD = 0.6, 1.0
"""The same for the gender reading, in logits."""
MUCH, SAME_AGE = 15.0, 5.0
"""Years that are much, and years that are none, in the words of the rubric."""
AGE_CUTS = (-15.0, -5.0, 5.0, 15.0)
"""Years between the rubric's answers to age_drift."""
TARGET_CUTS = (-20.0, -10.0, 10.0, 20.0)
"""Years between the rubric's answers to aging_accuracy."""
GENDER_CUTS = (1.5, 3.0, 4.5, 6.0)
"""Logits between the rubric's answers to gender_drift: its words name no number, so these are a convention."""
READS = (
    "A model's reading of two pictures, compared; not anybody's age or gender. Over 84 portraits its ages are off by "
    "7 years at the mean, and by group differently; only differences between pictures of one person are reported."
)
AGE_NUMBERS = ("age_delta_years", "age_uncertainty_years")
GENDER_NUMBERS = ("gender_delta", "gender_uncertainty")
NOT_ASKED = "not asked for"


@dataclass(frozen=True, slots=True)
class FaceViews:
    """What the model reads in several squares of one face."""

    ages: NDArray[np.float64]
    logits: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PresentationChange:
    """After minus before; a number is None only with its reason."""

    age_delta_years: float | None = None
    age_uncertainty_years: float | None = None
    gender_delta: float | None = None
    gender_uncertainty: float | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def much(self) -> bool:
        """Whether the face reads surely and much older or younger."""
        return reads_much(self.age_delta_years, self.age_uncertainty_years)


def presentation_change(
    source: Picture, edited: Pixels, faces: tuple[Face | None, Face | None], missing: str, *, gender: bool
) -> PresentationChange:
    """Read both faces and compare; `missing` is why a face lacks. The gender reading is made only when asked for."""
    unasked = {} if gender else dict.fromkeys(GENDER_NUMBERS, NOT_ASKED)
    source_face, edited_face = faces
    if source_face is None or edited_face is None or not age_model.ready():
        reasons = dict.fromkeys((*AGE_NUMBERS, *GENDER_NUMBERS), missing or age_model.MISSING)
        return PresentationChange(reasons={**reasons, **unasked})
    before, after = source.once(_views, source_face), read_face(edited, edited_face)
    years, spread = _difference(after.ages / COMPRESSION, before.ages / COMPRESSION)
    age = years, float(np.hypot(AGE_FLOOR, AGE_SPREAD * spread))
    if not gender:
        return PresentationChange(*age, reasons=unasked)
    logit, spread = _difference(after.logits, before.logits)
    return PresentationChange(*age, logit, float(np.hypot(GENDER_FLOOR, GENDER_SPREAD * spread)))


def reads_much(years: float | None, uncertainty: float | None) -> bool:
    """Return whether a face reads 15 years or more older or younger, and surely more than ±5 years."""
    if years is None or uncertainty is None:
        return False
    return abs(years) >= MUCH and abs(years) - 1.96 * uncertainty > SAME_AGE


def age_answer(years: float | None, uncertainty: float | None, cuts: Sequence[float]) -> int | None:
    """Return the answer on a two-sided scale; the middle if the years cannot be distinguished from none."""
    if years is None or uncertainty is None:
        return None
    return 3 if abs(years) < 1.96 * uncertainty else 1 + sum(years >= cut for cut in cuts)


def gender_answer(delta: float | None, uncertainty: float | None, cuts: Sequence[float]) -> int | None:
    """Return the answer on a one-sided scale; 1 if the difference cannot be distinguished from none."""
    if delta is None or uncertainty is None:
        return None
    return 1 if abs(delta) < 1.96 * uncertainty else 1 + sum(abs(delta) >= cut for cut in cuts)


def read_face(rgb: Pixels, face: Face) -> FaceViews:
    """Return the model's reading of each view of a face and of its mirror image."""
    squares = []
    for side, below in VIEWS:
        square = _square(rgb, face, side, below)
        squares += [square, square[:, ::-1]]
    return FaceViews(*age_model.read_squares(np.stack(squares).astype(np.float32)))


def _views(source: Picture, face: Face) -> FaceViews:
    return read_face(source.rgb, face)


def _difference(after: NDArray[np.float64], before: NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean difference over the views, and the standard deviation between them."""
    each = after - before
    return float(each.mean()), float(each.std(ddof=1))


def _square(rgb: Pixels, face: Face, side: float, below: float) -> Pixels:
    """Crop an upright square of the face, its eyes level."""
    scale = age_model.SIDE / (side * face.unit)
    cos, sin = face.across / face.unit * scale
    turn = np.array([[cos, sin], [-sin, cos]])
    (middle,) = face.place([(0.0, below)])
    matrix = np.column_stack([turn, age_model.SIDE / 2 - turn @ middle])
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    size = (age_model.SIDE, age_model.SIDE)
    return np.asarray(cv2.warpAffine(rgb, matrix, size, flags=how, borderMode=cv2.BORDER_REPLICATE), dtype=np.uint8)
