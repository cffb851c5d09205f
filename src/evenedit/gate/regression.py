"""Has an editor become worse than a baseline? From two results alone, each with its own intervals.

The difference of two estimates has an interval made from both (Zou 2007), as if they were independent. Of the same
faces and prompts that is too wide rather than too narrow; `evenedit compare` pairs edits and is sharper. Where people
rated enough in both results, the estimates are those corrected by people. The tests of all measures of all editors are
adjusted with Holm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from evenedit.core.errors import EvenEditError
from evenedit.core.records import ConditionKind, Estimate, Experiment
from evenedit.gate.gate import GateAnswer, RuleOutcome
from evenedit.protocol import Rubric
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.results.finding import ALPHA
from evenedit.results.results import Results
from evenedit.stats.engine.families import holm

NORMAL = NormalDist()
RULE = "no clear regression against the baseline"


@dataclass(frozen=True, slots=True)
class EstimateChange:
    """One measure now and in the baseline."""

    editor: str
    measure: str
    group: str
    before: Estimate
    after: Estimate
    p: float
    """One-sided: that it is worse now."""


def regressions(results: Results, baseline: Results, editors: Sequence[str]) -> list[RuleOutcome]:
    """Return one outcome for each clear regression, or one that says there is none, for each editor."""
    confidence = float(results.rules.get("confidence", 0.95))
    if differences := results.full_rubric.asked_differently(baseline.full_rubric):
        raise EvenEditError(*(f"{line}; the baseline cannot be compared" for line in differences))
    pairs = {editor: _counterpart(editor, results, baseline) for editor in editors}
    changes = [c for editor, other in pairs.items() for c in _changes(results, baseline, editor, other, confidence)]
    if not changes:
        raise EvenEditError(
            "the baseline has no estimate in common with these results; both need the same measures and factors"
        )
    adjusted = [p or 0.0 for p in holm([c.p for c in changes])]
    outcomes = []
    for editor in editors:
        compared = [(c, p) for c, p in zip(changes, adjusted, strict=True) if c.editor == editor]
        worse = [(c, p) for c, p in compared if p < ALPHA]
        for c, p in worse:
            outcomes.append(RuleOutcome(f"{RULE}: {c.measure}{c.group}", editor, GateAnswer.FAIL, _evidence(c, p)))
        if not worse:
            smallest = min((p for _, p in compared), default=1.0)
            summary = f"{len(compared)} measures compared, smallest p {smallest:.3g} after Holm over {len(changes)}"
            outcomes.append(RuleOutcome(RULE, editor, GateAnswer.PASS, summary))
    return outcomes


def _evidence(c: EstimateChange, p: float) -> str:
    ends = [f"{e.value:.4g} [{e.low:.4g}, {e.high:.4g}]" for e in (c.before, c.after)]
    return f"from {ends[0]} to {ends[1]}, p = {p:.3g} after Holm"


def _counterpart(editor: str, results: Results, baseline: Results) -> str:
    """Return the baseline's editor of the same name, or the only one if each side has one."""
    if editor in baseline.editors:
        return editor
    if len(baseline.editors) == len(results.editors) == 1:
        return baseline.editors[0]
    known = ", ".join(baseline.editors) or "none"
    raise EvenEditError(f"the baseline has no editor '{editor}'; it has: {known}. Name others with --editor")


def _changes(
    results: Results, baseline: Results, editor: str, other: str, confidence: float
) -> Iterator[EstimateChange]:
    rubric = results.full_rubric
    before = {_place(e): e for e in _estimates(baseline, other)}
    for e in _estimates(results, editor):
        was = before.get(_place(e))
        if was is None:
            continue
        corrected = baseline.corrected(was), results.corrected(e)
        if corrected[0] is not None and corrected[1] is not None:
            was, e = (
                replace(x, value=p.value, low=p.low, high=p.high) for x, p in zip((was, e), corrected, strict=True) if p
            )
        p = _worse(was, e, confidence, rubric)
        if p is not None:
            group = "".join(f"[{k}]" for k in e.group)
            yield EstimateChange(editor, e.measure, group, was, e, p)


def _place(e: Estimate) -> tuple[object, ...]:
    return e.measure, frozenset(e.group.items())


def _estimates(results: Results, editor: str) -> Iterator[Estimate]:
    """Shifts, rates that cannot cancel out, success and gaps of an editor's diagnosis; the judges' before others'."""
    seen: set[tuple[object, ...]] = set()
    rubric = results.full_rubric
    for e in (*results.estimates, *(e for m in results.measured for e in m.estimates)):
        matches = (e.editor, e.experiment, e.condition) == (editor, Experiment.DIAGNOSIS, ConditionKind.BASELINE)
        if matches and None not in (e.value, e.low, e.high) and _compared(e, rubric) and _place(e) not in seen:
            seen.add(_place(e))
            yield e


def _compared(e: Estimate, rubric: Rubric) -> bool:
    measure = Measure(e.measure)
    if measure.kind == MeasureKind.GAP:
        return True
    if e.group:
        return False
    return measure.kind == MeasureKind.SHIFT or (
        measure.kind == MeasureKind.RATE and measure.name in (*rubric.one_sided, *rubric.wanted_rates)
    )


def _worse(was: Estimate, now: Estimate, confidence: float, rubric: Rubric) -> float | None:
    """Return the p value of a change for the worse; None if an estimate does not vary."""
    assert was.value is not None and now.value is not None
    assert None not in (was.low, was.high, now.low, now.high)
    measure = Measure(now.measure)
    direction = 1.0
    if measure.name in rubric.wanted_rates and measure.kind == MeasureKind.RATE:
        direction = -1.0
    if measure.kind == MeasureKind.SHIFT and measure.name in rubric.two_sided:
        direction = 1.0 if now.value >= 0 else -1.0  # further from no change on the side where it is now
        if abs(now.value) <= abs(was.value):
            return 1.0
    difference = direction * (now.value - was.value)
    # the half of each interval that lies towards the other estimate
    towards = now.value - _end(now, -direction * difference), was.value - _end(was, direction * difference)
    reach = (towards[0] ** 2 + towards[1] ** 2) ** 0.5
    if reach <= 0:
        return None
    return 1 - NORMAL.cdf(difference / reach * NORMAL.inv_cdf(0.5 + confidence / 2))


def _end(e: Estimate, side: float) -> float:
    end = e.high if side > 0 else e.low
    assert end is not None
    return end
