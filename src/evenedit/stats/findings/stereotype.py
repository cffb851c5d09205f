"""How often the role went to the coded gender, as findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenedit.protocol.measures import Measure
from evenedit.results.finding import ALPHA, ENSEMBLE, NO_CHANGE, Finding, FindingLevel
from evenedit.stats.engine.shift_tests import EVEN
from evenedit.stats.findings import sentences
from evenedit.stats.findings.caveats import pronoun_clause
from evenedit.stats.findings.families import Choice, weighted_holm
from evenedit.stats.findings.representative_cases import CaseFinder


def stereotype_findings(
    tests: Sequence[Choice], cases: CaseFinder, weight: float, confidence: float
) -> Iterator[Finding]:
    """Yield the finding on each editor's share; `weight` is their share of alpha."""
    adjusted = weighted_holm([raw for _, _, raw in tests], weight)
    for (t, other, raw), p in zip(tests, adjusted, strict=True):
        both = [t, *([other] if other else [])]
        assert p is not None
        same_side = all((x.value > EVEN) == (t.value > EVEN) for x in both)
        level: FindingLevel = "cannot_tell"
        if raw < ALPHA and same_side:
            level = "clear" if p < ALPHA and other is not None else "suggestive"
        elif raw < ALPHA:
            level = "observed"
        has_shift = level in ("clear", "suggestive")
        rate = "followed" if t.value > EVEN else "resisted"
        where = {"experiment": t.experiment, "condition": t.condition}
        yield Finding(
            kind="stereotype",
            level=level,
            experiment=t.experiment,
            condition=t.condition,
            editor=t.editor,
            measure=t.measure,
            rater=ENSEMBLE,
            factor=None,
            group={} if has_shift else None,
            against=NO_CHANGE,
            value=t.value,
            low=t.low,
            high=t.high,
            p=p,
            p_raw=raw,
            n=t.n,
            faces=None,
            text=sentences.stereotype(t, other, confidence),
            cases=cases.cases(Measure.rate(rate), ENSEMBLE, t.editor, {}, value=t.value, **where) if has_shift else (),
            caveats=pronoun_clause(level, other),
        )
