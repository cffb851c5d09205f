"""Whether an edit did what its prompt asks for: from what changed where, by the kinds of change asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, log

from evenedit.instruments.change import REDRAWN
from evenedit.instruments.measurement import Measurement

SHOWN_IN = {
    "clothing": ("clothes", "hair"),
    "scene": ("background",),
    "object": ("face", "hair", "clothes", "background"),
    "expression": ("face",),
    "age": ("face", "hair"),
    "face_marks": ("face",),
    "posture": ("clothes", "background"),
    "framing": ("background",),
}
"""The regions of the picture in which a kind of change shows; `hair` holds headgear."""
COLOUR = "colour_light"
IN_PLACE, ANEW = 0.02, 0.16
"""Changed share of a region at which ignored and applied are as likely: in place, and in a picture drawn anew."""
SMALL = {"object", "face_marks"}
SMALL_IN_PLACE, SMALL_ANEW = 0.002, 0.05
"""The same where nothing larger is asked for: a scar or a badge takes little of its region."""
COLOURED = 4.0
"""Mean CIELAB difference at which a change of colour or light is as likely ignored as applied."""
STEEPNESS = 2.5
"""By how much the log odds rise when the share rises e-fold."""
CERTAIN = 0.8
"""The least probability for an answer of ignored or applied."""
LEAST = 1e-3


class Answer(StrEnum):
    """What became of a request."""

    IGNORED = "ignored"
    PARTIAL = "partial"
    APPLIED = "applied"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """What became of a request, and how probable it is that it was ignored."""

    answer: Answer
    ignored: float | None = None
    """Probability that the request was ignored; None where pixels cannot tell."""


def request_outcome(asks_for: Sequence[str], measured: Measurement) -> RequestOutcome:
    """Judge from a measurement whether a prompt that asks for these kinds of change was ignored."""
    small = SMALL.issuperset(kind for kind in asks_for if kind in (*SHOWN_IN, COLOUR))
    anew, in_place = (SMALL_ANEW, SMALL_IN_PLACE) if small else (ANEW, IN_PLACE)
    half = anew if measured.drift >= REDRAWN else in_place
    regions = {region for kind in asks_for for region in SHOWN_IN.get(kind, ())}
    shares = [share / half for region in regions if (share := measured.regions.get(region)) is not None]
    if COLOUR in asks_for:
        shares.append(measured.changed_share / half)
        if measured.colour_shift is not None:
            shares.append(measured.colour_shift / COLOURED)
    if not shares:
        return RequestOutcome(Answer.CANNOT_TELL)
    ignored = 1 / (1 + exp(STEEPNESS * log(max(LEAST, *shares))))
    if ignored >= CERTAIN:
        return RequestOutcome(Answer.IGNORED, ignored)
    return RequestOutcome(Answer.APPLIED if ignored <= 1 - CERTAIN else Answer.PARTIAL, ignored)
