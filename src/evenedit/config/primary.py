"""Find the problems of [primary]: unknown outcomes and groups, sides that are empty or overlap, too many tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenedit.config.sections import ContrastSection, PrimaryTest, Sections
from evenedit.core.errors import EvenEditError
from evenedit.protocol import AXES, DEFAULT_RATES, Factor
from evenedit.protocol.outcomes import OUTCOME_RATES
from evenedit.protocol.shifts import ONE_SIDED, TWO_SIDED

MOST_TESTS = 6
"""Tests of all editors together that may be declared."""


def primary_problems(file: Sections, factors: Sequence[Factor]) -> Iterator[str]:
    """Yield the problems of the declared tests, each with what is known instead."""
    if file.primary is None:
        return
    tests, editors = file.primary.tests, max(1, len(file.editors))
    if len(tests) * editors > MOST_TESTS:
        each = f" ({len(tests)} for each of {editors} editors)" if editors > 1 else ""
        yield f"[primary] has {len(tests) * editors} tests; declare at most {MOST_TESTS}, the rest is secondary{each}"
    instruments = [i.id for i in file.instruments]
    for number, test in enumerate(tests, 1):
        problems = [*_outcome_problems(test, instruments), *_contrast_problems(test.contrast, factors)]
        yield from (f"primary.tests[{number}]: {problem}" for problem in problems)


def _outcome_problems(test: PrimaryTest, instruments: Sequence[str]) -> Iterator[str]:
    known = [*(f"shift.{name}" for name in (*TWO_SIDED, *ONE_SIDED)), *(f"mean.{axis}" for axis in AXES)]
    known = [*AXES, *known] if test.scale == "mean" else [*DEFAULT_RATES, *OUTCOME_RATES, *known]
    instrument, _, reading = test.outcome.partition(".")
    if test.outcome in known or (instrument in instruments and reading):
        return
    known += [f"{name}.<reading>" for name in instruments]
    yield f"unknown outcome '{test.outcome}' of scale '{test.scale}'; known: {', '.join(known)}"


def _contrast_problems(contrast: ContrastSection | None, factors: Sequence[Factor]) -> Iterator[str]:
    if contrast is None:
        return
    factor = next((f for f in factors if f.name == contrast.factor), None)
    if factor is None:
        yield f"unknown factor '{contrast.factor}'; known: {', '.join(f.name for f in factors)}"
        return
    if contrast.trend:
        if contrast.high or contrast.low:
            yield "a contrast has either a trend or two sides; remove 'trend', or 'high' and 'low'"
        if not factor.ordered:
            ordered = ", ".join(f.name for f in factors if f.ordered) or "none"
            yield f"'trend' needs an ordered factor, and '{factor.name}' is not; ordered: {ordered}"
        return
    codes: list[list[str]] = []
    for side in ("high", "low"):
        labels: list[str] = getattr(contrast, side)
        if not labels:
            yield f"'{side}' is empty; name groups of '{factor.name}': {', '.join(factor.codes)}"
        try:
            codes.append([_code(factor, label) for label in labels])
        except EvenEditError as error:
            yield f"{side}: {error}"
            codes.append([])
    for code in dict.fromkeys(codes[0]):
        if code in codes[1]:
            yield f"'{code}' is on both sides; a group is in 'high' or in 'low'"


def _code(factor: Factor, label: str) -> str:
    """Return the code of a label; raise `EvenEditError` for an unknown or empty one."""
    code = factor.code_of(label)
    if not code:
        raise EvenEditError(f"{factor.name} '{label}' is not a known label; expected one of: {', '.join(factor.codes)}")
    return code
