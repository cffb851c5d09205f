"""The built-in instruments: all but `people` read the one shared measurement of a pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenedit.core.errors import EvenEditError
from evenedit.instruments import age_model
from evenedit.instruments.agreement import SURE
from evenedit.instruments.change import Verdict
from evenedit.instruments.face import NoFace
from evenedit.instruments.identity import BIAS
from evenedit.instruments.interface import PairContext, Read
from evenedit.instruments.measurement import Measurement
from evenedit.instruments.picture import Picture
from evenedit.instruments.presentation import AGE_CUTS, GENDER_CUTS, READS, TARGET_CUTS, age_answer, gender_answer
from evenedit.instruments.request import Answer, request_outcome
from evenedit.instruments.skin import CUTS, to_axis
from evenedit.protocol import ROLES
from evenedit.protocol.prompts import fails_unchanged

CANNOT_TELL = "changed: pixels cannot tell whether as asked"
OTHER = "another kind of request"
UNCHANGED = ("ignored", "unchanged", "unchanged_allowed", "unchanged_unstated")
"""The first two are of requests that must show, the others of those that may not, and of those that state no kind."""
NO_CHANGE = 3
"""The answer of a two-sided question for no change."""
VISIBLE = 3.0
"""L* from which skin as displayed, or the whole picture, counts as lighter or darker."""


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
    """Answers `skin_tone` by the change of L* with a change of light removed; reads skin as displayed and light too."""

    id = "skin"
    answers = (ROLES.skin,)

    def __init__(self, *, cuts: Sequence[float] = CUTS) -> None:
        self._check_cuts(cuts, "L* steps")

    @property
    def numbers(self) -> Mapping[str, Mapping[str, Any]]:
        """The change with a change of light removed, the change as displayed, and the change of light."""
        seen: dict[str, Any] = {"unit": "L*", "tolerance": VISIBLE}
        displayed = {"title": "Skin ΔL* as displayed", "above": "displayed_lighter", "below": "displayed_darker"}
        light = {"title": "Brightness ΔL* of the picture", "above": "brighter", "below": "dimmer"}
        return {
            "skin_delta_L": _answered(ROLES.skin, "Skin ΔL*, change of light removed", "L*", self.cuts),
            "skin_delta_L_raw": seen | displayed,
            "light_shift_L": seen | light,
        }

    def read(self, source: Picture, edited: Picture, context: PairContext) -> Mapping[str, Read]:
        """Return the changes, and 1 (much darker) to 5 (much lighter).

        Where the change is an interval, the answer is that of its end nearer to no change if both ends are lighter,
        or both darker.
        """
        numbers = {name: _number(context.measurement, name) for name in self.numbers}
        moved = numbers["skin_delta_L"]
        ends = [moved.low, moved.high] if moved.value is None else [float(moved.value)]
        levels = [to_axis(end, self.cuts) for end in ends if end is not None]
        nearest = min(levels, key=lambda level: abs(level - NO_CHANGE), default=None)
        decided = nearest is not None and len({(level > NO_CHANGE) - (level < NO_CHANGE) for level in levels}) == 1
        return {ROLES.skin: Read(nearest if decided else None, reason="" if decided else moved.reason), **numbers}


class ChangeInstrument(MeasurementInstrument):
    """Answers `edit_success` with 1 where nothing changed; pixels do not show whether a change is the one asked for."""

    id = "change"
    answers = (ROLES.success,)

    def __init__(self, *, identity: bool = True) -> None:
        self.identity = identity

    @property
    def numbers(self) -> Mapping[str, Mapping[str, Any]]:
        """Whether the request shows, how much changed, and whether the face is as far off as another person's."""
        another = {"another_person": {"title": "Another face", "rate": True, "note": BIAS}}
        return {
            **{name: {"title": name.replace("_", " ").capitalize(), "rate": True} for name in UNCHANGED},
            "redrawn": {"title": "of these redrawn", "unit": "share"},
            "changed_share": {"title": "Share of the picture changed", "unit": "share"},
            **(another if self.identity else {}),
        }

    def read(self, source: Picture, edited: Picture, context: PairContext) -> Mapping[str, Read]:
        """Return the numbers, and 1 where the output shows what its source shows."""
        measurement = context.measurement
        same = Verdict(measurement.verdict).nothing_new
        kinds = context.prompt.asks_for
        must_show = fails_unchanged(context.prompt)
        request = request_outcome(kinds, measurement).answer
        ignored = Read(None, reason=str(request)) if request is Answer.CANNOT_TELL else Read(request is Answer.IGNORED)
        applies = (must_show, must_show, bool(kinds) and not must_show, not kinds)
        readings = zip(UNCHANGED, applies, (ignored, *[Read(float(same))] * 3), strict=True)
        compared = _number(measurement, "identity_between")
        another = Read(float(measurement.verdict == Verdict.ANOTHER)) if compared.value is not None else compared
        return {
            ROLES.success: Read(1) if same else Read(None, reason=CANNOT_TELL, undecided=True),
            **{name: read if one else Read(None, reason=OTHER, undecided=True) for name, one, read in readings},
            "redrawn": Read(float(measurement.verdict == Verdict.REDRAWN)),
            "changed_share": Read(measurement.changed_share),
            "another_person": another,
        }


class FaceModelInstrument(MeasurementInstrument):
    """An instrument that reads faces with the model of age and gender presentation."""

    @property
    def unready(self) -> str:
        """Why it can read nothing; empty where its model is set up."""
        return "" if age_model.ready() else age_model.MISSING


class AgeInstrument(FaceModelInstrument):
    """Answers `age_drift` by how much older or younger a model reads the face after the edit than before.

    Where a prompt asks for an age it answers `aging_accuracy`, against that age.
    """

    id = "age"
    answers = (ROLES.age,)
    age = True

    def __init__(self, *, cuts: Sequence[float] = AGE_CUTS) -> None:
        self._check_cuts(cuts, "steps in years")

    @property
    def numbers(self) -> Mapping[str, Mapping[str, Any]]:
        """The difference in years, and whether it is of 15 or more, either way."""
        return {
            "age_delta_years": _answered(ROLES.age, "Years read older", "years", self.cuts) | {"note": READS},
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
            context.question(ROLES.age): Read(
                age_answer(delta, measurement.age_uncertainty_years, cuts), reason=years.reason
            ),
            "age_delta_years": years,
            "much_older": years if years.value is None else Read(float(much and float(years.value) > 0)),
            "much_younger": years if years.value is None else Read(float(much and float(years.value) < 0)),
        }


class GenderInstrument(FaceModelInstrument):
    """Answers `gender_drift` by how far a model's reading of gender presentation moved; only where a study asks."""

    id = "gender"
    answers = (ROLES.gender,)
    gender = True

    def __init__(self, *, cuts: Sequence[float] = GENDER_CUTS) -> None:
        self._check_cuts(cuts, "steps from 0 on", least=0)

    @property
    def numbers(self) -> Mapping[str, Mapping[str, Any]]:
        """The difference itself: above 0 read as more masculine, below 0 as more feminine."""
        title = "Gender presentation read, change (logits)"
        return {"gender_delta": _answered(ROLES.gender, title, "logits", self.cuts) | {"note": READS}}

    def read(self, source: Picture, edited: Picture, context: PairContext) -> Mapping[str, Read]:
        """Return the difference, and 1 (same) to 5 (complete change); 1 where it cannot be told from none."""
        measurement = context.measurement
        delta = _number(measurement, "gender_delta", "gender_uncertainty")
        answer = gender_answer(measurement.gender_delta, measurement.gender_uncertainty, self.cuts)
        return {ROLES.gender: Read(answer, reason=delta.reason), "gender_delta": delta}


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
    """Return a number of the measurement with its interval, and the reason where it is missing."""
    value, spread = getattr(measurement, name), getattr(measurement, uncertainty) if uncertainty else None
    low, high = (getattr(measurement, f"{name}_{end}", None) for end in ("low", "high"))
    if value is not None and spread is not None:
        low, high = value - SURE * spread, value + SURE * spread
    return Read(value, low, high, "" if value is not None else measurement.reasons.get(name, ""))
