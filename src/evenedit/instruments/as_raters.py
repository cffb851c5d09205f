"""Instruments as raters: each reads the one measurement of a pair and answers one question of the rubric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from evenedit.core.errors import EvenEditError
from evenedit.instruments.change import Verdict
from evenedit.instruments.identity import BIAS
from evenedit.instruments.measure import Measurement
from evenedit.instruments.skin import CUTS, to_axis
from evenedit.protocol.measures import Measure

CANNOT_TELL = "changed: pixels cannot tell whether as asked"


class Instrument(Protocol):
    """Answers a question of the rubric from a measurement. A pair is measured once for all instruments."""

    question: str
    """The question of the rubric it answers."""
    identity: bool
    """Whether the faces are to be compared for it."""
    notes: Mapping[str, str]
    """Notes that the report prints beside a reading, by its name."""

    def answer(self, found: Measurement) -> int | None:
        """The position on the question's scale; None where there is no answer."""
        ...

    def reason(self, found: Measurement) -> str:
        """Why there is no answer; empty where there is one."""
        ...

    def readings(self, found: Measurement) -> Mapping[str, float | None]:
        """What the report shows: rate.<name> (1 or 0) and mean.<name>, None where not measured."""
        ...

    def missing(self, found: Measurement, name: str) -> str:
        """Why a reading is missing."""
        ...


class SkinInstrument:
    """Answers `skin_tone` by the measured change of L*."""

    question = "skin_tone"
    identity = False
    notes: Mapping[str, str] = {}

    def __init__(self, *, cuts: Sequence[float] = CUTS) -> None:
        if len(cuts) != 4 or list(cuts) != sorted(cuts):
            raise EvenEditError(f"setting 'cuts' is {list(cuts)}; it must be four L* steps in rising order")
        self.cuts = tuple(float(cut) for cut in cuts)

    def answer(self, found: Measurement) -> int | None:
        """1 (much darker) to 5 (much lighter); None where the skin could not be measured."""
        return None if found.skin_delta_L is None else to_axis(found.skin_delta_L, self.cuts)

    def reason(self, found: Measurement) -> str:
        """Why there is no answer; empty where there is one."""
        return found.reasons.get("skin_delta_L", "")

    def readings(self, found: Measurement) -> Mapping[str, float | None]:
        """The change of lightness itself."""
        return {"mean.skin_delta_L": found.skin_delta_L}

    def missing(self, found: Measurement, name: str) -> str:
        """Why the skin could not be measured."""
        return found.reasons[Measure(name).name]


class ChangeInstrument:
    """Answers `edit_success` with 1 where nothing changed; pixels do not show whether a change is the one asked for."""

    question = "edit_success"
    notes: Mapping[str, str] = {"rate.another_person": BIAS}

    def __init__(self, *, identity: bool = True) -> None:
        self.identity = identity

    def answer(self, found: Measurement) -> int | None:
        """1 where the output shows what its source shows; else None."""
        return 1 if Verdict(found.verdict).nothing_new else None

    def reason(self, found: Measurement) -> str:
        """Why there is no answer; empty where there is one."""
        return "" if self.answer(found) else CANNOT_TELL

    def readings(self, found: Measurement) -> Mapping[str, float | None]:
        """Whether anything is new, how much changed, and whether the face is as far off as another person's."""
        shown: dict[str, float | None] = {
            "rate.unchanged": float(Verdict(found.verdict).nothing_new),
            "mean.redrawn": float(found.verdict == Verdict.REDRAWN),
            "mean.changed_share": found.changed_share,
        }
        if self.identity:
            another = None if found.identity_between is None else float(found.verdict == Verdict.ANOTHER)
            shown["rate.another_person"] = another
        return shown

    def missing(self, found: Measurement, name: str) -> str:
        """Why the faces could not be compared; the rest is always measured."""
        return found.reasons["identity_between"]
