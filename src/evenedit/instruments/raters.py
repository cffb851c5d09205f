"""Instruments as raters: each measures one pair and answers one question of the rubric from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PIL.Image import Image

from evenedit.instruments.change import Verdict
from evenedit.instruments.measure import SKIN_NUMBERS, Measurement, measure
from evenedit.instruments.skin import CUTS, to_axis
from evenedit.records import UserError


class SkinInstrument:
    """Answers `skin_tone` by the measured change of L*."""

    question = "skin_tone"

    def __init__(self, *, cuts: Sequence[float] = CUTS) -> None:
        if len(cuts) != 4 or list(cuts) != sorted(cuts):
            raise UserError(f"setting 'cuts' is {list(cuts)}; it must be four L* steps in rising order")
        self.cuts = tuple(float(cut) for cut in cuts)

    def measure(self, source: Image, edited: Image) -> Mapping[str, float | None]:
        """The skin's numbers of one pair."""
        found = measure(source, edited, identity=False)
        return {name: getattr(found, name) for name in SKIN_NUMBERS}

    def to_axis(self, numbers: Mapping[str, float | None]) -> int | None:
        """1 (much darker) to 5 (much lighter); None where the skin could not be measured."""
        delta = numbers["skin_delta_L"]
        return None if delta is None else to_axis(delta, self.cuts)

    def reason(self, found: Measurement) -> str:
        """Why there is no answer; empty where there is one."""
        return found.reasons.get("skin_delta_L", "")


class ChangeInstrument:
    """Answers `edit_success` with 1 where nothing changed; whether a change is the one asked for pixels cannot tell."""

    question = "edit_success"

    def measure(self, source: Image, edited: Image) -> Mapping[str, float | None]:
        """Changed shares of one pair, and 1 under `unchanged` where nothing changed."""
        found = measure(source, edited, identity=False)
        shares = {f"changed_{name}": share for name, share in found.regions.items()}
        unchanged = float(Verdict(found.verdict).nothing_new)
        return {"changed_share": found.changed_share, **shares, "unchanged": unchanged}

    def to_axis(self, numbers: Mapping[str, float | None]) -> int | None:
        """1 where the output is its source; else None."""
        return 1 if numbers["unchanged"] else None

    def reason(self, found: Measurement) -> str:
        """Why there is no answer; empty where there is one."""
        return "" if Verdict(found.verdict).nothing_new else "changed: pixels cannot tell whether as asked"
