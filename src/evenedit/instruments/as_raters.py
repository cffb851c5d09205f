"""Instruments as raters: each reads the one measurement of a pair and answers one question of the rubric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from evenedit.core.errors import EvenEditError
from evenedit.instruments.change import Verdict
from evenedit.instruments.identity import BIAS
from evenedit.instruments.measurement import Measurement
from evenedit.instruments.presentation import AGE_CUTS, GENDER_CUTS, READS, TARGET_CUTS, age_answer, gender_answer
from evenedit.instruments.skin import CUTS, to_axis
from evenedit.protocol.measures import Measure

CANNOT_TELL = "changed: pixels cannot tell whether as asked"


class Instrument(Protocol):
    """Answers a question of the rubric from a measurement. A pair is measured once for all instruments."""

    question: str
    """The question of the rubric it answers."""
    identity: bool
    """Whether the faces are to be compared for it; one that reads age or gender presentation says `age`, `gender`."""
    notes: Mapping[str, str]
    """Notes that the report prints beside a reading, by its name."""

    def answer(self, measurement: Measurement) -> int | None:
        """Return the position on the question's scale; None where there is no answer."""
        ...

    def reason(self, measurement: Measurement) -> str:
        """Return why there is no answer; empty if there is one."""
        ...

    def readings(self, measurement: Measurement) -> Mapping[str, float | None]:
        """Return what the report shows: rate.<name> (1 or 0) and mean.<name>, None if not measured."""
        ...

    def missing(self, measurement: Measurement, name: str) -> str:
        """Return why a reading is missing."""
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

    def answer(self, measurement: Measurement) -> int | None:
        """Return 1 (much darker) to 5 (much lighter); None where the skin could not be measured."""
        return None if measurement.skin_delta_L is None else to_axis(measurement.skin_delta_L, self.cuts)

    def reason(self, measurement: Measurement) -> str:
        """Return why there is no answer; empty if there is one."""
        return measurement.reasons.get("skin_delta_L", "")

    def readings(self, measurement: Measurement) -> Mapping[str, float | None]:
        """Return the change of lightness itself."""
        return {"mean.skin_delta_L": measurement.skin_delta_L}

    def missing(self, measurement: Measurement, name: str) -> str:
        """Return why the skin could not be measured."""
        return measurement.reasons[Measure(name).name]


class ChangeInstrument:
    """Answers `edit_success` with 1 where nothing changed; pixels do not show whether a change is the one asked for."""

    question = "edit_success"
    notes: Mapping[str, str] = {"rate.another_person": BIAS}

    def __init__(self, *, identity: bool = True) -> None:
        self.identity = identity

    def answer(self, measurement: Measurement) -> int | None:
        """Return 1 where the output shows what its source shows; else None."""
        return 1 if Verdict(measurement.verdict).nothing_new else None

    def reason(self, measurement: Measurement) -> str:
        """Return why there is no answer; empty if there is one."""
        return "" if self.answer(measurement) else CANNOT_TELL

    def readings(self, measurement: Measurement) -> Mapping[str, float | None]:
        """Return whether anything is new, how much changed, and whether the face is as far off as another person's."""
        values: dict[str, float | None] = {
            "rate.unchanged": float(Verdict(measurement.verdict).nothing_new),
            "mean.redrawn": float(measurement.verdict == Verdict.REDRAWN),
            "mean.changed_share": measurement.changed_share,
        }
        if self.identity:
            another = None if measurement.identity_between is None else float(measurement.verdict == Verdict.ANOTHER)
            values["rate.another_person"] = another
        return values

    def missing(self, measurement: Measurement, name: str) -> str:
        """Return why the faces could not be compared; the rest is always measured."""
        return measurement.reasons["identity_between"]


class AgeInstrument:
    """Answers `age_drift` by how much older or younger a model reads the face after the edit than before."""

    question = "age_drift"
    targeted = "aging_accuracy"
    """What it answers in place of `question` where a prompt asks for an age."""
    identity = False
    age = True
    notes: Mapping[str, str] = {"mean.age_delta_years": READS}

    def __init__(self, *, cuts: Sequence[float] = AGE_CUTS) -> None:
        if len(cuts) != 4 or list(cuts) != sorted(cuts):
            raise EvenEditError(f"setting 'cuts' is {list(cuts)}; it must be four steps in years in rising order")
        self.cuts = tuple(float(cut) for cut in cuts)

    def answer(self, measurement: Measurement) -> int | None:
        """Return 1 (much younger) to 5 (much older); 3 where the reading cannot be told from none."""
        return age_answer(measurement.age_delta_years, measurement.age_uncertainty_years, self.cuts)

    def answer_against(self, measurement: Measurement, years: float) -> int | None:
        """Return 1 (far too young) to 5 (far too old) for a prompt that asks for so many years more."""
        if measurement.age_delta_years is None:
            return None
        return age_answer(measurement.age_delta_years - years, measurement.age_uncertainty_years, TARGET_CUTS)

    def reason(self, measurement: Measurement) -> str:
        """Return why there is no answer; empty if there is one."""
        return measurement.reasons.get("age_delta_years", "")

    def readings(self, measurement: Measurement) -> Mapping[str, float | None]:
        """Return the difference in years, and whether it is of 15 or more, either way."""
        years = measurement.age_delta_years
        older = None if years is None else float(measurement.reads_much_changed and years > 0)
        younger = None if years is None else float(measurement.reads_much_changed and years < 0)
        return {"mean.age_delta_years": years, "rate.much_older": older, "rate.much_younger": younger}

    def missing(self, measurement: Measurement, name: str) -> str:
        """Return why the ages could not be read."""
        return measurement.reasons["age_delta_years"]


class GenderInstrument:
    """Answers `gender_drift` by how far a model's reading of gender presentation moved; only where a study asks."""

    question = "gender_drift"
    identity = False
    gender = True
    notes: Mapping[str, str] = {"mean.gender_delta": READS}

    def __init__(self, *, cuts: Sequence[float] = GENDER_CUTS) -> None:
        if len(cuts) != 4 or list(cuts) != sorted(cuts) or min(cuts) < 0:
            raise EvenEditError(f"setting 'cuts' is {list(cuts)}; it must be four steps from 0 on in rising order")
        self.cuts = tuple(float(cut) for cut in cuts)

    def answer(self, measurement: Measurement) -> int | None:
        """Return 1 (same) to 5 (complete change); 1 where the reading cannot be told from none."""
        return gender_answer(measurement.gender_delta, measurement.gender_uncertainty, self.cuts)

    def reason(self, measurement: Measurement) -> str:
        """Return why there is no answer; empty if there is one."""
        return measurement.reasons.get("gender_delta", "")

    def readings(self, measurement: Measurement) -> Mapping[str, float | None]:
        """Return the difference itself: above 0 read as more masculine, below 0 as more feminine."""
        return {"mean.gender_delta": measurement.gender_delta}

    def missing(self, measurement: Measurement, name: str) -> str:
        """Return why gender presentation could not be read."""
        return measurement.reasons["gender_delta"]
