"""The built-in instruments: all but `people` read the one shared measurement of a pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenedit.core.errors import EvenEditError
from evenedit.instruments.agreement import SURE
from evenedit.instruments.change import Verdict
from evenedit.instruments.face import NoFace
from evenedit.instruments.identity import BIAS
from evenedit.instruments.interface import PairContext, Read
from evenedit.instruments.measurement import Measurement
from evenedit.instruments.picture import Picture
from evenedit.instruments.presentation import AGE_CUTS, GENDER_CUTS, READS, TARGET_CUTS, age_answer, gender_answer
from evenedit.instruments.skin import CUTS, to_axis

CANNOT_TELL = "changed: pixels cannot tell whether as asked"


class MeasurementInstrument:
    """An instrument that uses only the shared measurement of a pair, which is stored: it never sees a picture.

    The version of the measurement is part of its revision, in place of its own.
    """

    version = ""
    from_measurement = True
    cuts: tuple[float, ...] = ()

    def _check_cuts(self, cuts: Sequence[float], what: str, *, least: float = -float("inf")) -> None:
        if len(cuts) != 4 or list(cuts) != sorted(cuts) or min(cuts) < least:
            raise EvenEditError(f"setting 'cuts' is {list(cuts)}; it must be four {what} in rising order")
        self.cuts = tuple(float(cut) for cut in cuts)


class SkinInstrument(MeasurementInstrument):
    """Answers `skin_tone` by the measured change of L*."""

    id = "skin"
    answers = ("skin_tone",)

    def __init__(self, *, cuts: Sequence[float] = CUTS) -> None:
        self._check_cuts(cuts, "L* steps")

    @property
    def numbers(self) -> Mapping[str, Mapping[str, Any]]:
        """The change of lightness itself."""
        return {"skin_delta_L": _answered("skin_tone", "Skin ΔL*", "L*", self.cuts)}

    def read(self, source: Picture, edited: Picture, context: PairContext) -> Mapping[str, Read]:
        """Return the change, and 1 (much darker) to 5 (much lighter)."""
        moved = _number(context.measurement, "skin_delta_L", "skin_uncertainty_L")
        level = None if moved.value is None else to_axis(float(moved.value), self.cuts)
        return {"skin_tone": Read(level, reason=moved.reason), "skin_delta_L": moved}


class ChangeInstrument(MeasurementInstrument):
    """Answers `edit_success` with 1 where nothing changed; pixels do not show whether a change is the one asked for."""

    id = "change"
    answers = ("edit_success",)

    def __init__(self, *, identity: bool = True) -> None:
        self.identity = identity

    @property
    def numbers(self) -> Mapping[str, Mapping[str, Any]]:
        """Whether anything is new, how much changed, and whether the face is as far off as another person's."""
        another = {"another_person": {"title": "Another face", "rate": True, "note": BIAS}}
        return {
            "unchanged": {"title": "Unchanged", "rate": True},
            "redrawn": {"title": "of these redrawn", "unit": "share"},
            "changed_share": {"title": "Share of the picture changed", "unit": "share"},
            **(another if self.identity else {}),
        }

    def read(self, source: Picture, edited: Picture, context: PairContext) -> Mapping[str, Read]:
        """Return the numbers, and 1 where the output shows what its source shows."""
        measurement = context.measurement
        same = Verdict(measurement.verdict).nothing_new
        compared = _number(measurement, "identity_between")
        another = Read(float(measurement.verdict == Verdict.ANOTHER)) if compared.value is not None else compared
        return {
            "edit_success": Read(1) if same else Read(None, reason=CANNOT_TELL, undecided=True),
            "unchanged": Read(float(same)),
            "redrawn": Read(float(measurement.verdict == Verdict.REDRAWN)),
            "changed_share": Read(measurement.changed_share),
            "another_person": another,
        }


class AgeInstrument(MeasurementInstrument):
    """Answers `age_drift` by how much older or younger a model reads the face after the edit than before.

    Where a prompt asks for an age it answers `aging_accuracy`, against that age.
    """

    id = "age"
    answers = ("age_drift",)
    age = True

    def __init__(self, *, cuts: Sequence[float] = AGE_CUTS) -> None:
        self._check_cuts(cuts, "steps in years")

    @property
    def numbers(self) -> Mapping[str, Mapping[str, Any]]:
        """The difference in years, and whether it is of 15 or more, either way."""
        return {
            "age_delta_years": _answered("age_drift", "Years read older", "years", self.cuts) | {"note": READS},
            "much_older": {"title": "Read 15 years older or more", "rate": True},
            "much_younger": {"title": "Read 15 years younger or more", "rate": True},
        }

    def read(self, source: Picture, edited: Picture, context: PairContext) -> Mapping[str, Read]:
        """Return the numbers, and 1 (much younger) to 5 (much older); 3 where the years cannot be told from none."""
        measurement = context.measurement
        years = _number(measurement, "age_delta_years", "age_uncertainty_years")
        target, cuts = (context.prompt.target_years or 0, TARGET_CUTS) if context.targeted else (0, self.cuts)
        delta = None if years.value is None else float(years.value) - target
        much = measurement.reads_much_changed
        return {
            context.question("age_drift"): Read(
                age_answer(delta, measurement.age_uncertainty_years, cuts), reason=years.reason
            ),
            "age_delta_years": years,
            "much_older": years if years.value is None else Read(float(much and float(years.value) > 0)),
            "much_younger": years if years.value is None else Read(float(much and float(years.value) < 0)),
        }


class GenderInstrument(MeasurementInstrument):
    """Answers `gender_drift` by how far a model's reading of gender presentation moved; only where a study asks."""

    id = "gender"
    answers = ("gender_drift",)
    gender = True

    def __init__(self, *, cuts: Sequence[float] = GENDER_CUTS) -> None:
        self._check_cuts(cuts, "steps from 0 on", least=0)

    @property
    def numbers(self) -> Mapping[str, Mapping[str, Any]]:
        """The difference itself: above 0 read as more masculine, below 0 as more feminine."""
        title = "Gender presentation read, change (logits)"
        return {"gender_delta": _answered("gender_drift", title, "logits", self.cuts) | {"note": READS}}

    def read(self, source: Picture, edited: Picture, context: PairContext) -> Mapping[str, Read]:
        """Return the difference, and 1 (same) to 5 (complete change); 1 where it cannot be told from none."""
        measurement = context.measurement
        delta = _number(measurement, "gender_delta", "gender_uncertainty")
        answer = gender_answer(measurement.gender_delta, measurement.gender_uncertainty, self.cuts)
        return {"gender_drift": Read(answer, reason=delta.reason), "gender_delta": delta}


class PeopleInstrument:
    """Counts faces: an output of a portrait should show one person."""

    id = "people"
    version = "1"
    answers = ()
    numbers: Mapping[str, Mapping[str, Any]] = {
        "not_one_person": {
            "title": "Not exactly one face found",
            "rate": True,
            "note": "A face that is covered or turned away can pass for none; faces much smaller than the largest one "
            "do not count.",
        }
    }

    def read(self, source: Picture, edited: Picture, context: PairContext) -> Mapping[str, Read]:
        """Return 1 where the edited picture shows no face or several."""
        before, after = (_count(context, picture) for picture in (source, edited))
        if before != 1:
            return {"not_one_person": Read(None, reason="source: not exactly one face found")}
        return {"not_one_person": Read(float(after != 1))}


def _count(context: PairContext, picture: Picture) -> int:
    """Return the number of faces: 0, 1 or, for several, 2."""
    face = context.face(picture)
    return {"no face": 0, "two faces": 2}.get(face.reason, 1) if isinstance(face, NoFace) else 1


def _answered(question: str, title: str, unit: str, cuts: Sequence[float]) -> dict[str, Any]:
    """Return the table of a number that answers a question: changes begin at the cut nearest to 0."""
    return {"title": title, "unit": unit, "question": question, "tolerance": min(map(abs, cuts)) or None}


def _number(measurement: Measurement, name: str, uncertainty: str = "") -> Read:
    """Return a number of the measurement with its interval, or the reason why it is missing."""
    value, spread = getattr(measurement, name), getattr(measurement, uncertainty) if uncertainty else None
    if value is None:
        return Read(None, reason=measurement.reasons.get(name, ""))
    reach = None if spread is None else SURE * spread
    return Read(value) if reach is None else Read(value, value - reach, value + reach)
