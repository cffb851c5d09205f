"""How often the role went to the coded gender, as findings."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

from evenedit.core.records import ConditionKind
from evenedit.protocol.measures import Measure
from evenedit.results.finding import ALPHA, EFFECT_LEVELS, ENSEMBLE, NO_CHANGE, Finding, FindingLevel, finding_in_words
from evenedit.stats.engine.shift_tests import EVEN, ShiftTest
from evenedit.stats.findings import sentences
from evenedit.stats.findings.caveats import pronoun_clause
from evenedit.stats.findings.levels import Adjusted, tested
from evenedit.stats.findings.mitigation import arm_sight
from evenedit.stats.findings.representative_cases import CaseFinder

Choice = tuple[ShiftTest, ShiftTest | None, float | None]
"""An editor's share of roles, the same with the pronoun swapped, and the larger p of both."""


def stereotype_tests(tests: Sequence[ShiftTest]) -> Iterator[Choice]:
    """Yield each editor's share with the pronoun-swapped one, and the larger p of both."""
    swapped = {t.editor: t for t in tests if t.condition == ConditionKind.SWAPPED}
    for t in (t for t in tests if t.condition == ConditionKind.BASELINE):
        other = swapped.get(t.editor)
        known = [x.p for x in (t, other) if x is not None]
        yield t, other, None if None in known else max(p for p in known if p is not None)


def stereotype_findings(
    tests: Sequence[Choice],
    cases: CaseFinder,
    adjusted: Mapping[Hashable, Adjusted],
    confidence: float,
    judges: int,
) -> Iterator[Finding]:
    """Yield the finding on each editor's share."""
    for t, other, raw in tests:
        both = [t, *([other] if other else [])]
        test = adjusted[("stereotype", t.editor)]
        sight = arm_sight(judges)
        same_side = all((x.value > EVEN) == (t.value > EVEN) for x in both)
        level: FindingLevel = "cannot_tell"
        if same_side:
            level = sight.level(test, can_be_clear=other is not None) or "cannot_tell"
        elif raw is not None and raw < ALPHA:
            level = "observed"
        has_shift = level in EFFECT_LEVELS
        rate = "followed" if t.value > EVEN else "resisted"
        where = {"experiment": t.experiment, "condition": t.condition}
        yield finding_in_words(
            **tested(ENSEMBLE, t, test, sight),
            kind="stereotype",
            level=level,
            group={} if has_shift else None,
            against=NO_CHANGE,
            value=t.value,
            low=t.low,
            high=t.high,
            n=t.n,
            text=sentences.stereotype(t, other, confidence),
            cases=cases.cases(Measure.rate(rate), ENSEMBLE, t.editor, {}, value=t.value, **where) if has_shift else (),
            caveats=pronoun_clause(level, other),
        )
