"""The level of a finding: what its test shows, and who saw it.

Statistics alone give `clear` (Holm's p < 0.05 over all tests of the report; with declared tests theirs below their
alpha, that of the others below the rest of 0.05), `suggestive` (Benjamini and Hochberg's q <= 0.05) or nothing. `clear`
is then reserved for people and validated instruments. Judges alone give `clear_to_judges`, and less where they do not
agree on the outcome as it is counted.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from evenedit.results.finding import ALPHA, Evidence, FindingLevel, Reliability
from evenedit.results.results import GapTest
from evenedit.stats.engine.families import benjamini_hochberg, holm
from evenedit.stats.engine.shift_tests import ShiftTest

CHANCE = 0.01
"""Judges whose alpha is above 0 with a one-sided p of this or more are not known to agree better than chance: with the
lower end of a 95 % interval one outcome in forty of judges who answer at random would be read."""


@dataclass(frozen=True, slots=True)
class Adjusted:
    """A test of the report, adjusted for all others."""

    p: float | None
    p_adjusted: float | None
    q: float | None
    alpha: float = ALPHA
    """The familywise error of the tests that it is adjusted for."""

    @property
    def is_clear(self) -> bool:
        """True if Holm's p is below the familywise error."""
        return self.p_adjusted is not None and self.p_adjusted < self.alpha

    @property
    def is_suggestive(self) -> bool:
        """True if the false discovery rate is at most 0.05."""
        return self.q is not None and self.q <= ALPHA


NOT_TESTED = Adjusted(None, None, None)


P = Mapping[Hashable, float | None]
"""p-values by test; tests without one are no part of a family."""


def adjust(others: P, declared: P | None = None, alpha: float = ALPHA) -> dict[Hashable, Adjusted]:
    """Adjust all tests of a report.

    Declared tests share the familywise error `alpha`, the others what is left of 0.05, or all of it if every declared
    test is rejected (Wiens 2003). q is over all tests, with half of the weight on declared ones.
    """
    first = holm(list((declared or {}).values()))
    rejected = all(p is not None and p < alpha for p in first)
    values = [*(declared or {}).values(), *others.values()]
    known = [sum(p is not None for p in family) for family in (values[: len(first)], values[len(first) :])]
    weights = [sum(known) / (2 * n) if all(known) else 1.0 for n in known]
    q = benjamini_hochberg(values, [weights[0]] * len(first) + [weights[1]] * len(others))
    levels = [alpha] * len(first) + [ALPHA if rejected else ALPHA - alpha] * len(others)
    adjusted = zip(values, [*first, *holm(list(others.values()))], q, levels, strict=True)
    return dict(zip([*(declared or {}), *others], (Adjusted(*row) for row in adjusted), strict=True))


@dataclass(frozen=True, slots=True)
class Sight:
    """Who saw an outcome, and how far that can be relied on."""

    evidence: Evidence
    highest: FindingLevel
    """The highest level that this evidence allows."""
    reliability: Reliability | None = None
    caveats: tuple[str, ...] = ()

    @property
    def is_chance(self) -> bool:
        """True if the judges agree on the outcome no better than chance, or their agreement is not defined."""
        return self.evidence == "none"

    def level(self, test: Adjusted, *, can_be_clear: bool = True) -> FindingLevel | None:
        """Return the level of a tested finding; None where the test shows nothing."""
        if self.is_chance:
            return "cannot_tell"
        if test.is_clear and can_be_clear:
            return self.highest
        return "suggestive" if test.is_clear or test.is_suggestive else None


def tested(rater: str, t: ShiftTest | GapTest, test: Adjusted, sight: Sight) -> dict[str, Any]:
    """Return the fields of a finding that its test decides, and those on who saw it."""
    return {
        **{name: getattr(t, name) for name in ("experiment", "condition", "editor", "measure")},
        "rater": rater,
        "evidence": sight.evidence,
        "reliability": sight.reliability,
        "p": test.p_adjusted,
        "p_raw": test.p,
        "q": test.q,
    }


def judges_sight(judges: int, reliability: Reliability | None, threshold: float, *, is_gap: bool) -> Sight:
    """Return what judges alone can show of an outcome.

    One judge cannot make a gap by answering at random, but any shift; so its shifts are at most suggestive.
    """
    if judges < 2:
        caveat = () if is_gap else ("One judge rated this, and its error is not known.",)
        return Sight("one_judge", "clear_to_judge" if is_gap else "suggestive", None, caveat)
    if reliability is None or reliability.p is None or reliability.p >= CHANCE:
        return Sight("none", "cannot_tell", reliability)
    if reliability.low is None or reliability.low < threshold:
        return Sight("judges", "suggestive", reliability, (agreement_clause(reliability, judges),))
    return Sight("judges", "clear_to_judges", reliability)


def agreement_clause(r: Reliability, judges: int) -> str:
    """Return the sentence on judges who agree too little for a clear finding."""
    who = "two judges" if judges == 2 else f"{judges} judges"
    return f"The {who} agree only moderately on this (α = {alpha_text(r)})."


def alpha_text(r: Reliability) -> str:
    """Return alpha with its interval in words."""
    if r.value is None:
        return "not defined"
    ends = "" if r.low is None or r.high is None else f", {_number(r.low)} to {_number(r.high)}"
    return f"{_number(r.value)}{ends}"


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
