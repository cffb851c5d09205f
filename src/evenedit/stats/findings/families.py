"""The tests of a report as families: how the chance of a false alarm is shared out, and what is a test at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenedit.core.records import ConditionKind
from evenedit.protocol.shifts import TWO_SIDED
from evenedit.stats.engine.multiplicity import holm
from evenedit.stats.engine.shift_tests import ShiftTest

WEIGHTS = {"shift": 0.4, "gap": 0.2, "mitigation": 0.2, "stereotype": 0.2}
"""How the chance of a false alarm is shared out among the kinds of test that a report has.

Gaps get little since their step-down needs little: a permutation's smallest p does not grow with the family.
"""

Choice = tuple[ShiftTest, ShiftTest | None, float]
"""An editor's share of roles, the same with the pronoun swapped, and their p."""

FAR_BELOW = 0.9
"""A share with a larger p than this against its tolerance is not in doubt."""


def shift_p_value(t: ShiftTest) -> float | None:
    """Return the p of a share over faces, as counted in the family of shifts.

    Shares far below what is tolerated are no test, and each that stays pays for the choice (Ellis, Pecanka and
    Goeman 2020). Otherwise four editors that leave race alone would hide one that does not.
    """
    p = t.p_faces if t.p is None or t.p < 1 else t.p
    if p is None or t.measure.name in TWO_SIDED:
        return p
    return min(1.0, p / FAR_BELOW) if p < FAR_BELOW else 1.0


def weighted_holm(p: Sequence[float | None], weight: float) -> list[float | None]:
    """Adjust one kind of test by Holm with its weight of alpha; a test with p = 1 does not count."""
    known = iter(holm([x for x in p if x is not None and x < 1]))
    return [x if x is None or x >= 1 else min(1.0, next(known) / weight) for x in p]


def stereotype_tests(tests: Sequence[ShiftTest]) -> Iterator[Choice]:
    """Yield each editor's share with the pronoun-swapped one, and the larger p of both."""
    swapped = {t.editor: t for t in tests if t.condition == ConditionKind.SWAPPED}
    for t in (t for t in tests if t.condition == ConditionKind.BASELINE):
        other = swapped.get(t.editor)
        known = [x.p for x in (t, other) if x is not None]
        yield t, other, max(1.0 if p is None else p for p in known)
