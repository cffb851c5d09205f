"""The tests of [primary]: what each is about, and the problems of those that cannot be made."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from evenedit.config.sections import ContrastSection, PrimarySection, PrimaryTest, Sections
from evenedit.core import plugins
from evenedit.core.errors import EvenEditError
from evenedit.core.validation import explain
from evenedit.protocol import Factor, Rubric
from evenedit.protocol.measures import Measure
from evenedit.protocol.outcomes import OUTCOME_RATES
from evenedit.protocol.rubric import MEASURED

MOST_TESTS = 6
"""Tests of all editors together that may be declared."""
NULL_EDIT, NULL_PAIR = "null_edit", "null_pair"
Readings = Mapping[str, Sequence[str] | None]
"""By instrument, the names of what it reads; None where that is not known."""


def load_primary(path: Path) -> PrimarySection:
    """Read the table [primary] of a TOML file, which may be a study file."""
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EvenEditError(f"{path} cannot be read as TOML: {error}") from None
    if "primary" not in data:
        raise EvenEditError(f"{path} has no table [primary]; write the tests as in a study file")
    try:
        return PrimarySection.model_validate(data["primary"])
    except ValidationError as error:
        raise EvenEditError(*(f"{path}: [primary]: {line}" for line in explain(error, PrimarySection))) from None


def measure_of(test: PrimaryTest, rubric: Rubric, readings: Readings) -> tuple[str, Measure] | None:
    """Return the instrument (empty for judges) and the measure of a test; None where no outcome has this name.

    A reading may be named without its instrument if only one reads it. The kind of a reading that is named alone is
    open: `reading.<name>`.
    """
    outcome, (kind, _, name) = test.outcome, test.outcome.partition(".")
    if kind in readings and name:
        names = readings[kind]
        return (kind, Measure(f"reading.{name}")) if names is None or name in names else None
    if test.scale == "mean" and outcome in rubric.ordinal:
        return "", Measure.mean(outcome)
    if kind == "mean" and name in rubric.ordinal:
        return "", Measure(outcome)
    if test.scale == "code":
        if kind == "shift" and name in (*rubric.two_sided, *rubric.one_sided):
            return "", Measure(outcome)
        if outcome in rubric.rates or outcome in OUTCOME_RATES:
            return "", Measure.rate(outcome)
    of = [instrument for instrument, names in readings.items() if names and outcome in names]
    return (of[0], Measure(f"reading.{outcome}")) if len(of) == 1 else None


def study_problems(file: Sections, factors: Sequence[Factor], rubric: Rubric) -> Iterator[str]:
    """Yield the problems of the tests that a study declares."""
    if file.primary is not None:
        readings = {i.id: _reading_names(i.kind, i.settings, rubric) for i in file.instruments}
        yield from primary_problems(file.primary, len(file.editors), factors, rubric, readings)
        diagnosis = file.experiments.diagnosis
        if file.primary.covariate == NULL_EDIT and not (diagnosis and diagnosis.floor):
            yield f"primary.covariate: '{NULL_EDIT}' needs 'floor = true' in [experiments.diagnosis]"


def primary_problems(
    primary: PrimarySection, editors: int, factors: Sequence[Factor], rubric: Rubric, readings: Readings
) -> Iterator[str]:
    """Yield the problems of declared tests, each with what is known instead."""
    tests, number = primary.tests, len(primary.tests) * max(1, editors)
    if number > MOST_TESTS:
        each = f" ({len(tests)} for each of {editors} editors)" if editors > 1 else ""
        yield f"[primary] has {number} tests; declare at most {MOST_TESTS}, the rest is secondary{each}"
    yield from _covariate_problems(primary, readings)
    for at, test in enumerate(tests, 1):
        problems = [*_outcome_problems(test, rubric, readings), *_contrast_problems(test.contrast, factors)]
        yield from (f"primary.tests[{at}]: {problem}" for problem in problems)


def _reading_names(kind: str, settings: Mapping[str, object], rubric: Rubric) -> list[str] | None:
    """Return what an instrument reads; None where it is not installed or comes from Python."""
    try:
        instrument = plugins.build("instruments", kind, settings)
    except Exception:  # another check tells why
        return None
    answered, numbers = getattr(instrument, "answers", ()), getattr(instrument, "numbers", {})
    sides = [n.get(end) or f"{name}_{end}" for name, n in numbers.items() for end in ("above", "below")
             if n.get("tolerance") is not None and not n.get("rate") and n.get("question") not in answered]  # fmt: skip
    return [
        *numbers,
        *sides,
        *(f"{MEASURED}{name}" for name, rate in rubric.rates.items() if rate.question in answered),
    ]


def _covariate_problems(primary: PrimarySection, readings: Readings) -> Iterator[str]:
    covariate = primary.covariate
    instrument, _, name = covariate.partition(".")
    names = readings.get(instrument, ())
    if covariate in ("", NULL_EDIT, NULL_PAIR) or (name and (names is None or name in names)):
        return
    if covariate == "placebo":
        yield (
            "primary.covariate: a placebo is an edit by the same request, so an adjustment for it would remove the "
            f"difference that is tested; use '{NULL_EDIT}' or '{NULL_PAIR}'"
        )
        return
    known = [NULL_EDIT, NULL_PAIR, *(f"{i}.<reading of the portrait>" for i in readings)]
    yield f"primary.covariate: unknown covariate '{covariate}'; known: {', '.join(known)}"


def _outcome_problems(test: PrimaryTest, rubric: Rubric, readings: Readings) -> Iterator[str]:
    resolved = measure_of(test, rubric, readings)
    if resolved is None:
        shifts = [f"shift.{name}" for name in (*rubric.two_sided, *rubric.one_sided)]
        known = [*rubric.ordinal] if test.scale == "mean" else [*rubric.rates, *OUTCOME_RATES, *shifts]
        known += [f"mean.{question}" for question in rubric.ordinal]
        known += [f"{i}.{n}" for i, names in readings.items() for n in names or ("<reading>",)]
        yield f"unknown outcome '{test.outcome}' of scale '{test.scale}'; known: {', '.join(known)}"
    elif test.contrast is None and not resolved[0]:
        kind, name = resolved[1].kind, resolved[1].name
        if (kind == "mean" and name not in rubric.two_sided) or name in rubric.wanted_rates:
            yield f"'{test.outcome}' of everybody has no value of no change to be tested against; add a contrast"


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
