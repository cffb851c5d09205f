"""What an instrument says that it reads, checked, and what it read of one pair, checked against that."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any

from evenedit.core.errors import EvenEditError
from evenedit.core.interfaces import Reply
from evenedit.core.plugins import suggest
from evenedit.core.records import Status
from evenedit.instruments.interface import Instrument, PairContext, Read
from evenedit.instruments.picture import Picture
from evenedit.protocol.questions import QuestionRow, answer_positions, own_tables, read_rows, spec_of
from evenedit.protocol.rubric import DEFAULT_RATES, QUESTIONS, Rubric, default_rubric

NAME = re.compile("[A-Za-z][A-Za-z0-9_]{1,39}")


@dataclass(frozen=True, slots=True)
class NumberSpec:
    """What an instrument says about a number that it reads."""

    title: str
    unit: str = ""
    """Printed in the words of findings; `share` is a number from 0 to 1, shown in percent."""
    tolerance: float | None = None
    """Up to so far from 0 a reading is no change. The shares of edits above and below it are then rates."""
    rate: bool = False
    """It is 1 or 0, and the report shows the share of edits with 1."""
    phrase: str = ""
    """Of a rate: what the edits have in common, "show more than one face"."""
    note: str = ""
    """What must be known to read it; printed in the report."""
    question: str = ""
    """The question whose answers are made from it: they then count changes, and the tolerance adds no rates."""
    above: str = ""
    """The name of the rate of edits above the tolerance; <name>_above when left out."""
    below: str = ""
    """The name of the rate of edits below it; <name>_below when left out."""

    def sides(self, name: str) -> dict[str, int]:
        """Return the rates that the tolerance of this number adds: 1 counts the edits above it, -1 those below."""
        if self.tolerance is None or self.rate or self.question:
            return {}
        return {self.above or f"{name}_above": 1, self.below or f"{name}_below": -1}


@dataclass(frozen=True, slots=True)
class InstrumentSpec:
    """The names that an instrument reads."""

    answers: Mapping[str, tuple[str, ...]]
    """By question: its levels or the codes of its options."""
    own_tables: tuple[Mapping[str, Any], ...]
    """The tables of its own questions."""
    numbers: Mapping[str, NumberSpec]

    @property
    def reading_names(self) -> tuple[str, ...]:
        """The names of the numbers, and of the rates that their tolerances add."""
        return tuple(n for name, one in self.numbers.items() for n in (name, *one.sides(name)))

    @classmethod
    def of(cls, instrument: Instrument, name: str, rubric: Rubric) -> InstrumentSpec:
        """Check what an instrument says that it reads; raise `EvenEditError` with every problem.

        Questions of the shipped rubric that this one lacks are not answered.
        """
        answered, numbers = getattr(instrument, "answers", ()), getattr(instrument, "numbers", {})
        if isinstance(answered, str) or not isinstance(answered, Sequence) or not isinstance(numbers, Mapping):
            raise EvenEditError(f"instrument '{name}': answers is a list of questions, numbers a mapping of tables")
        tables = own_tables(answered)
        rows, problems = read_rows(tables, f"instrument '{name}': questions")
        ids = [question for question in answered if not isinstance(question, Mapping)]
        problems += [f"instrument '{name}': {p}" for p in _unknown(ids, rubric)]
        problems += [f"instrument '{name}': the rubric has a question '{r.id}'" for r in rows if r.id in QUESTIONS]
        problems += [f"instrument '{name}': {p}" for key, one in numbers.items() for p in _number_problems(key, one)]
        if not answered and not numbers:
            problems.append(f"instrument '{name}': it reads nothing; give it answers, numbers, or both")
        if problems:
            raise EvenEditError(*problems)
        columns = [column for spec in rubric.specs if spec.id in ids for column in spec.columns.values()]
        columns += [column for row in rows for column in spec_of(row).columns.values()]
        answers = {column.id: column.labels for column in columns}
        specs = {key: NumberSpec(**table) for key, table in numbers.items()}
        described = {key: s if s.question in answers else replace(s, question="") for key, s in specs.items()}
        return cls(answers, tables, described)


def own_questions(specs: Iterable[InstrumentSpec]) -> list[QuestionRow]:
    """Return the questions that instruments bring along."""
    return read_rows([table for spec in specs for table in spec.own_tables], "questions of instruments")[0]


@dataclass(frozen=True, slots=True)
class PairReading:
    """What one instrument read of one pair."""

    reply: Reply
    """Its answers; scored unless something could not be read."""
    numbers: Mapping[str, float | None]
    """Its numbers, and the ends of their intervals as <name>_low and <name>_high."""
    reasons: Mapping[str, str]
    """Why numbers are missing, by name."""


def read_pair(
    instrument: Instrument, spec: InstrumentSpec, source: Picture, edited: Picture, context: PairContext
) -> PairReading:
    """Have an instrument read a pair; what it gives wrongly is missing, with the reason."""
    readings = instrument.read(source, edited, context)
    answers: dict[str, int | None] = {}
    numbers: dict[str, float | None] = {}
    unread, wrong, undecided, reasons = list[str](), list[str](), list[str](), dict[str, str]()
    for question, codes in spec.answers.items():
        name = context.question(question)
        read, problem = _entry(readings, name)
        if not problem:
            answers[name], problem = _position(name, read, QUESTIONS[name].labels if name != question else codes)
        if answers.setdefault(name, None) is None:
            (undecided if read.undecided else unread).append(problem or read.reason)
    for name, number in spec.numbers.items():
        read, problem = _entry(readings, name)
        if not problem:
            numbers[name], problem = _number(name, read, number)
        if numbers.setdefault(name, None) is None:
            reasons[name] = "" if read.undecided and not problem else problem or read.reason
        wrong += [problem] if problem else []
        numbers |= {f"{name}_{end}": float(at) for end in ("low", "high") if (at := getattr(read, end)) is not None}
    nothing_read = len(reasons) == len(spec.numbers) and not spec.answers
    unread_numbers = list(filter(None, reasons.values())) if nothing_read else []
    missing = [*unread, *wrong, *unread_numbers]
    reply = Reply(Status.UNPARSEABLE if missing else Status.SCORED, answers, reason=next(iter(missing + undecided), ""))
    return PairReading(reply, numbers, reasons)


def _entry(readings: Mapping[str, Read], name: str) -> tuple[Read, str]:
    """Return what an instrument gave under a name, or an empty reading and what is wrong with it."""
    read = readings.get(name) if isinstance(readings, Mapping) else None
    if not isinstance(read, Read):
        return Read(None), f"the instrument gave {'nothing' if read is None else type(read).__name__} for '{name}'"
    return read, "" if read.value is not None or read.reason else f"the instrument gave no reason for no '{name}'"


def _position(name: str, read: Read, codes: tuple[str, ...]) -> tuple[int | None, str]:
    """Return the 1-based position of an answer, or why it is none."""
    value = read.value
    if value is None:
        return None, ""
    if position := answer_positions(codes).get(str(value).casefold()):
        return position, ""
    return None, f"'{value}' is no answer to {name}; answers are 1 to {len(codes)} or: {', '.join(codes)}"


def _number(name: str, read: Read, number: NumberSpec) -> tuple[float | None, str]:
    """Return a number, or why it is none."""
    value = read.value
    if value is None:
        return None, ""
    if not isinstance(value, Real) or not math.isfinite(value):
        return None, f"{name} is {value!r}, which is no number"
    if number.rate and value not in (0, 1):
        return None, f"{name} is {value!r}; a rate is 1 or 0"
    return float(value), ""


def _unknown(ids: Sequence[Any], rubric: Rubric) -> list[str]:
    """Return a problem for each question that neither this nor the shipped rubric has."""
    known = {spec.id for spec in (*rubric.specs, *default_rubric().specs) if not spec.row.replaces}
    return [
        f"it answers '{one}', which is no question of the rubric{suggest(str(one), known)}"
        for one in ids
        if one not in known
    ]


def _number_problems(name: str, table: Any) -> list[str]:
    keys = {part.name for part in fields(NumberSpec)}
    if not isinstance(name, str) or not NAME.fullmatch(name) or name in QUESTIONS or name in DEFAULT_RATES:
        return [f"its number {name!r} needs a name of its own of letters, digits and _"]
    if not isinstance(table, Mapping) or not table.get("title") or (table.keys() - keys):
        return [f"number '{name}' needs a table with a title; keys are {', '.join(sorted(keys))}"]
    if any(side in DEFAULT_RATES or not NAME.fullmatch(side) for key in ("above", "below") if (side := table.get(key))):
        return [f"number '{name}': above and below need names of their own of letters, digits and _"]
    tolerance = table.get("tolerance")
    if tolerance is not None and not (isinstance(tolerance, int | float) and 0 < tolerance < math.inf):
        return [f"number '{name}': the tolerance is {tolerance!r}; it must be a number above 0"]
    return []
