"""Questions and rates as tables of TOML: read, checked, and turned into records."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Experiment, Question
from evenedit.core.validation import explain

CANNOT_TELL = "CANNOT_TELL"
"""The option that says that a question cannot be answered: an answer, and not a missing one."""
NONE_OF_THESE = "none"
"""What stands for an empty set."""
ID = "[a-z][a-z0-9_]{1,39}"
CODE = "[A-Za-z0-9_+-]{1,32}"
MOST_OPTIONS = 20
YES_NO = ("yes", "no")
YES_PARTIAL_NO = ("no", "partial", "yes")
"""Stored as 1, 2, 3; shown in the other order."""
_ENDS = (("yes",), ("no",), ("partial", "yes"), ("no", "partial"))

About = Literal["pair", "picture", "outputs", "people"]
EXPERIMENTS_OF: Mapping[About, tuple[Experiment, ...]] = {
    "pair": (Experiment.DIAGNOSIS, Experiment.MITIGATION),
    "picture": (Experiment.DIAGNOSIS,),
    "outputs": (Experiment.MITIGATION,),
    "people": (Experiment.STEREOTYPE,),
}
"""The experiments a question is asked in unless it states others."""


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class MeasuredWords(_Row):
    """The words for a rate that an instrument's answers give."""

    title: str
    phrase: str


class RateWords(_Row):
    """What is printed of a rate and what it is used for."""

    title: str = ""
    phrase: str = ""
    """What the edits that it counts have in common: "came back without the headscarf of the source"."""
    measured: MeasuredWords | None = None
    side: str = ""
    """The side of no change in a comparative: lighter."""
    severity: float | None = Field(default=None, gt=0)
    shift: bool | None = None
    """Whether it is held against a tolerance over everybody."""
    tolerance: float | None = Field(default=None, ge=0, lt=1)
    gap: bool = True
    """Whether groups are compared in it."""
    asked_as: str = ""
    """Of a rate of readings, the question by which prompts ask for it: they are left out of its shift."""
    table: bool = True
    """Whether it is a column of the table of rates."""
    card: bool = False
    """Whether the model card has it."""
    main: bool = False
    """Whether it is a headline rate."""


class ReadingTitle(_Row):
    """What is printed of a reading of an instrument that is no rate."""

    title: str
    phrase: str = ""
    """The words before its mean: "on average L* changed by"."""
    direction_of: tuple[str, ...] = ()
    """The rates whose unmeasured edits it tells the direction of: its means with and without them are printed."""
    unit: Literal["share", "change"] = "change"


class RateRow(RateWords):
    """A rate of a question: `[questions.rates.ID]`."""

    at_least: int | None = None
    at_most: int | None = None
    is_: tuple[str, ...] = Field(default=(), alias="is")
    """The options that it counts."""
    among: tuple[str, ...] = ()
    """The options that are its denominator: all but CANNOT_TELL when left out."""


class OptionRow(_Row):
    """One option of a choice."""

    code: str
    label: str = ""
    open: bool = False
    """Whether it decides nothing, so that it yields to what another rater says."""


class QuestionTranslation(_Row):
    """A question in another language."""

    title: str = ""
    text: str
    levels: tuple[str, ...] = ()
    """The levels, or the labels of the options, in their order."""


class QuestionCheck(_Row):
    """A question of the comprehension check: a text and the position of the right answer."""

    text: str
    right: int = Field(ge=1)


class QuestionRow(_Row):
    """A question: `[[questions]]` of a rubric file, a study file or an instrument."""

    id: str
    kind: Literal["ordinal", "categorical", "yes-no", "yes-partial-no", "set"]
    title: str
    short: str = ""
    """Its name in a caption of a picture; the title when left out."""
    text: str
    levels: tuple[str, ...] = ()
    options: tuple[OptionRow, ...] = ()
    cannot_tell: bool = False
    neutral: int | None = None
    """The level that means no change."""
    harm: Literal["high", "low", "both", "none"] | None = None
    """The end that is bad for the person."""
    concerns: Literal["person", "request", "scene"] = "person"
    about: About = "pair"
    asked_in: tuple[Literal["diagnosis", "mitigation", "stereotype"], ...] = ()
    prompts: tuple[str, ...] = ()
    """Ids or patterns of the prompts it is asked for; all when left out."""
    sources: Mapping[str, tuple[str, ...]] = {}
    """Labels of the portraits it is asked for, by factor; all when left out."""
    answered_by: tuple[Literal["judges", "people", "instruments"], ...] = ("judges", "people")
    call: Literal["main", "separate"] = "main"
    observe: str | Mapping[str, str] = ""
    """What a judge describes before it answers; several descriptions by name."""
    combine: Literal["ensemble", "mean", "median", "primary", "secondary", "majority", "unanimous"] = "ensemble"
    opposed: tuple[tuple[str, str], ...] = ()
    """Pairs of options that need a review where judges choose one each; any two when left out."""
    severity: float = Field(default=1.0, gt=0)
    """How bad one point is taken to be against other changes; it orders the findings and changes no number."""
    noun: str = ""
    """What moves, in the sentence about a two-sided question: "{Noun} came back {side} more often than {side}"."""
    measured: str = ""
    """How an instrument tells a side: "measured"."""
    replaces: str | None = None
    """Asked in place of this question where the prompt has a target age."""
    optional: bool = False
    """Whether it applies only where somebody answered it."""
    rates: Mapping[str, RateRow] = {}
    translations: Mapping[str, QuestionTranslation] = {}
    check: QuestionCheck | None = None


@dataclass(frozen=True, slots=True)
class Rate:
    """The share of valid answers to one question that meet a rule."""

    id: str
    question: str
    """The column of answers it is about."""
    at_least: int | None = None
    at_most: int | None = None
    is_: tuple[str, ...] = ()
    """Of a choice: the options it counts."""
    among: tuple[str, ...] = ()
    """Of a choice: the options that are its denominator."""
    codes: tuple[str, ...] = field(default=(), compare=False)
    """Of a choice: every option in the order of the stored answers."""

    @property
    def rule(self) -> str:
        """The rule as people write it: "≥3", "is removed among kept|removed"."""
        if self.is_:
            return f"is {'|'.join(self.is_)} among {'|'.join(self.among)}"
        return f"≥{self.at_least}" if self.at_least is not None else f"≤{self.at_most}"

    @classmethod
    def parse(cls, id: str, text: str, questions: Mapping[str, Question] | None = None) -> Rate:
        """Parse a rate written as question and rule: "race_drift ≥3"; `questions` know the options of choices."""
        question, rule = text.split(" ", 1)
        if rule.startswith("is "):
            counted, _, among = rule.removeprefix("is ").partition(" among ")
            codes = questions[question].labels if questions and question in questions else ()
            return cls(id, question, is_=tuple(counted.split("|")), among=tuple(among.split("|")), codes=codes)
        cut = int(rule[1:])
        return cls(id, question, at_least=cut) if rule[0] == "≥" else cls(id, question, at_most=cut)

    def met(self, values: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Return True where answers meet the rule; missing answers, 0, do not."""
        if self.is_:
            return np.isin(values, self._positions(self.is_))
        met = values >= self.at_least if self.at_least is not None else values <= (self.at_most or 0)
        return np.asarray(met & (values > 0), dtype=np.bool_)

    def counted(self, values: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Return True where answers are in the denominator."""
        return np.isin(values, self._positions(self.among)) if self.is_ else np.asarray(values > 0, dtype=np.bool_)

    def _positions(self, codes: Sequence[str]) -> list[int]:
        return [self.codes.index(code) + 1 for code in codes]


@dataclass(frozen=True, slots=True)
class QuestionSpec:
    """A question with all that an analysis needs to know of it."""

    row: QuestionRow
    question: Question
    """As it is asked."""
    columns: Mapping[str, Question]
    """As it is stored: one column, or of a set one yes or no for each option."""
    rates: Mapping[str, Rate]
    declared: bool = False
    """Whether a study or an instrument added it to a shipped rubric."""

    @property
    def id(self) -> str:
        """The question's id."""
        return self.row.id

    @property
    def is_choice(self) -> bool:
        """Whether answers have no order."""
        return self.question.sided in ("choice", "set")

    @property
    def two_sided(self) -> bool:
        """Whether no change lies inside the scale."""
        return self.question.sided == "two"

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments it is asked in."""
        return self.row.asked_in or EXPERIMENTS_OF[self.row.about]

    @property
    def open_codes(self) -> tuple[str, ...]:
        """The options that decide nothing."""
        return tuple(o.code for o in self.row.options if o.open) + ((CANNOT_TELL,) if self.row.cannot_tell else ())

    @property
    def observations(self) -> dict[str, str]:
        """What a judge describes before it answers, by name."""
        if isinstance(self.row.observe, str):
            return {self.id: self.row.observe} if self.row.observe else {}
        return dict(self.row.observe)

    def applies(self, experiment: str, prompt_id: str, labels: Mapping[str, str] | None = None) -> bool:
        """Return whether it is about an edit of this prompt, of a portrait with these labels."""
        row = self.row
        return (
            experiment in self.experiments
            and (not row.prompts or any(fnmatchcase(prompt_id, pattern) for pattern in row.prompts))
            and (labels is None or all(labels.get(factor) in levels for factor, levels in row.sources.items()))
        )

    def shifts(self, rate: str) -> bool:
        """Return whether a rate is held against a tolerance over everybody."""
        stated, harm = self.row.rates[rate].shift, harm_of(self.row)
        if self.two_sided and harm == "both":
            return False
        if stated is not None:
            return stated
        if self.is_choice:
            return harm != "none"
        return harm == ("high" if self.rates[rate].at_least is not None else "low")


def harm_of(row: QuestionRow) -> str:
    """Return the end of a question that is bad for the person; where it is not stated, the end away from no change."""
    if row.harm is not None:
        return row.harm
    if row.kind in ("categorical", "yes-no", "set"):
        return "high"
    if row.neutral is None:
        return "none"
    return "high" if row.neutral == 1 else "low" if row.neutral == len(_labels(row)) else "both"


def answer_positions(labels: Sequence[str], *wordings: Iterable[str]) -> dict[str, int]:
    """Return the 1-based position of each text, in lower case, that can stand for an answer; 0 for no text.

    A text is a label, one of other wordings of the labels, a position, or for yes and no True and False. What could
    stand for two answers stands for none; a label stands for itself.
    """
    meanings: dict[str, set[int]] = {}
    numbers = {f"{at}": at for at in range(1, len(labels) + 1)}
    named = {label.casefold(): at for at, label in enumerate(labels, 1)}
    if all(numbers.get(text, at) == at for text, at in named.items()):
        meanings = {
            f"{text}{tail}": {at} for text, at in numbers.items() for tail in ("", ".0")
        }  # some tools write 4.0
    for words in (("true", "false") if tuple(labels[:2]) == YES_NO else (), *wordings):
        for at, word in enumerate(words, 1):
            meanings.setdefault(word.casefold(), set()).add(at)
    return {text: min(ats) for text, ats in meanings.items() if len(ats) == 1} | named | {"": 0}


def set_answers(question: Question, cell: str, positions: Mapping[str, int]) -> dict[str, int]:
    """Return the answers to a set by column, from options with ; between or a list of them; none for an empty cell."""
    parts = [part.strip() for part in re.split("[;|]", cell) if part.strip()]
    if cell.startswith(("[", "(", "{")):
        with suppress(ValueError, SyntaxError, TypeError):  # what is no list is no option either
            parts = [str(part) for part in ast.literal_eval(cell)] or [NONE_OF_THESE]
    known, codes = {**positions, NONE_OF_THESE: 0}, ", ".join((*question.labels, NONE_OF_THESE))
    if unknown := [part for part in parts if part.casefold() not in known]:
        raise EvenEditError(*(f"{question.id} is '{u}'; expected codes with ; between: {codes}" for u in unknown))
    ticked = {known[part.casefold()] for part in parts}
    if len(ticked) > 1 and 0 in ticked:
        raise EvenEditError(f"{question.id} is '{cell}': none of these, and one of them")
    columns = enumerate(question.columns, 1)
    return {column: 1 if at in ticked else 2 for at, column in columns} if parts else {}


def read_rows(tables: Iterable[Mapping[str, Any]], where: str) -> tuple[list[QuestionRow], list[str]]:
    """Return the questions of these tables that can be read, and the problems of the others."""
    rows, problems = [], []
    for number, table in enumerate(tables, 1):
        name = f"{where} '{table.get('id', number)}'" if isinstance(table, Mapping) else f"{where}[{number}]"
        try:
            row = QuestionRow.model_validate(table)
        except ValidationError as error:
            problems += [f"{name}: {line}" for line in explain(error, QuestionRow)]
            continue
        wrong = [f"{name}: {line}" for line in _row_problems(row)]
        problems += wrong
        rows += [] if wrong else [row]
    return rows, problems


def own_tables(answers: Sequence[object]) -> tuple[Mapping[str, Any], ...]:
    """Return the tables of the questions that an instrument brings along, in the format of [[questions]]."""
    return tuple({"answered_by": ["instruments"], **table} for table in answers if isinstance(table, Mapping))


def spec_of(row: QuestionRow, *, declared: bool = False) -> QuestionSpec:
    """Return the specification of a checked question."""
    labels, words = tuple(_codes(row)), tuple(_words(row))
    sided: Literal["quality", "one", "two", "choice", "set"]
    if row.kind == "set":
        sided = "set"
    elif row.kind in ("categorical", "yes-no"):
        sided = "choice"
    elif row.neutral is None:
        sided = "quality"
    else:
        sided = "one" if row.neutral in (1, len(labels)) else "two"
    words = words if any(words) else ()
    neutral = row.neutral if declared else None
    wanted = Question(row.id, row.title, row.text, labels, sided, row.replaces, words=words, neutral=neutral)
    columns = {row.id: wanted}
    if sided == "set":
        columns = {
            f"{row.id}.{code}": Question(f"{row.id}.{code}", f"{row.title}: {word or code}", row.text, YES_NO, "choice")
            for code, word in zip(labels, words or labels, strict=True)
        }
    rates = {name: _rate(row, name, rate, labels) for name, rate in row.rates.items()}
    return QuestionSpec(row, wanted, columns, rates, declared)


def _rate(row: QuestionRow, name: str, rate: RateRow, labels: tuple[str, ...]) -> Rate:
    if row.kind == "set":
        return Rate(name, f"{row.id}.{rate.is_[0]}", is_=("yes",), among=YES_NO, codes=YES_NO)
    if not rate.is_:
        return Rate(name, row.id, rate.at_least, rate.at_most)
    if row.kind == "yes-partial-no":
        positions = [labels.index(code) + 1 for code in rate.is_]
        return (
            Rate(name, row.id, min(positions)) if len(labels) in positions else Rate(name, row.id, None, max(positions))
        )
    among = rate.among or tuple(code for code in labels if code != CANNOT_TELL)
    return Rate(name, row.id, is_=rate.is_, among=among, codes=labels)


def _labels(row: QuestionRow) -> tuple[str, ...]:
    """Return the levels, or the codes of the options, that a question states."""
    if row.kind == "yes-no":
        return YES_NO
    if row.kind == "yes-partial-no":
        return YES_PARTIAL_NO
    return row.levels if row.kind == "ordinal" else tuple(option.code for option in row.options)


def _codes(row: QuestionRow) -> tuple[str, ...]:
    """Return the labels of the stored answers in their order."""
    extra = (CANNOT_TELL,) if row.cannot_tell and row.kind in ("categorical", "yes-no") else ()
    return (*_labels(row), *extra)


def _words(row: QuestionRow) -> Iterator[str]:
    """Yield what is shown for each option; empty where the code is shown."""
    if row.kind in ("yes-no", "yes-partial-no"):
        yield from (label.capitalize() for label in _labels(row))
    elif row.kind == "ordinal":
        yield from ("" for _ in row.levels)
    else:
        yield from (option.label for option in row.options)
    if len(_codes(row)) > len(_labels(row)):
        yield "Cannot tell"


def _row_problems(row: QuestionRow) -> Iterator[str]:
    """Yield the problems of one question that its types do not show."""
    if not re.fullmatch(ID, row.id):
        yield "the id must be lower-case letters, digits and _, begin with a letter, and have 2 to 40 characters"
    if row.kind == "ordinal":
        if not 2 <= len(row.levels) <= 9:
            yield f"has {len(row.levels)} levels; an ordinal question has 2 to 9"
        yield from _repeats("levels", row.levels)
        numbers = {str(number): number for number in range(1, len(row.levels) + 1)}
        for number, level in enumerate(row.levels, 1):
            if numbers.get(level, number) != number:
                yield f"level {number} is called '{level}', the number of another level; use a word"
    elif row.levels:
        yield f"a question of kind '{row.kind}' has no levels; remove them, or use kind = \"ordinal\""
    if row.kind in ("categorical", "set"):
        codes = [option.code for option in row.options]
        fewest = 1 if row.kind == "set" else 2
        if not fewest <= len(codes) <= MOST_OPTIONS:
            yield f"has {len(codes)} options; a question of kind '{row.kind}' has {fewest} to {MOST_OPTIONS}"
        yield from _repeats("options", codes)
        yield from _repeats("labels of options", [option.label for option in row.options if option.label])
        for code in codes:
            if not re.fullmatch(CODE, code) or code == CANNOT_TELL or (row.kind == "set" and code == NONE_OF_THESE):
                yield f"option '{code}': a code has 1 to 32 letters, digits, _, +, -; {CANNOT_TELL} and none are taken"
    elif row.options:
        yield f"a question of kind '{row.kind}' has no options; remove them, or use kind = \"categorical\""
    if row.cannot_tell and row.kind in ("ordinal", "yes-partial-no", "set"):
        yield f"cannot_tell is for kind categorical and yes-no, not for '{row.kind}'"
    labels = _labels(row)
    yield from _combining_problems(row)
    if row.neutral is not None and row.kind not in ("ordinal", "yes-partial-no"):
        yield f"neutral is for ordinal questions, not for '{row.kind}'"
    elif row.neutral is not None and not 1 <= row.neutral <= len(labels):
        yield f"neutral is {row.neutral}; the levels are 1 to {len(labels)}"
    for language, text in row.translations.items():
        with_open = len(_codes(row)) if row.kind != "yes-no" else len(labels)
        if text.levels and len(text.levels) not in (len(labels), with_open):
            yield f"translation '{language}' has {len(text.levels)} levels; the question has {len(labels)}"
        elif not text.levels and row.kind not in ("yes-no", "yes-partial-no"):
            yield f"translation '{language}' lacks levels; translate all {len(labels)}"
    if row.check and row.check.right > len(labels):
        yield f"check.right is {row.check.right}; the answers are 1 to {len(labels)}"
    for name, rate in row.rates.items():
        yield from (f"rate '{name}': {problem}" for problem in _rate_problems(row, name, rate, labels))
    middle = row.neutral or 0
    if row.rates and harm_of(row) == "both" and middle <= len(labels):
        above = any((r.at_least or 0) > middle or r.is_ == ("yes",) for r in row.rates.values())
        below = any((r.at_most or middle) < middle or r.is_ == ("no",) for r in row.rates.values())
        if not (1 < middle < len(labels) and above and below):
            yield "a two-sided question needs one rate above and one below no change"


def _combining_problems(row: QuestionRow) -> Iterator[str]:
    """Yield the problems of how several judges' answers become one."""
    ordered = row.kind in ("ordinal", "yes-partial-no")
    if row.combine in (("majority", "unanimous") if ordered else ("mean", "median")):
        use = "mean, median, primary or secondary" if ordered else "majority, unanimous, primary or secondary"
        yield f"combine is '{row.combine}', which is for other kinds; use {use}, or leave it out"
    codes = _codes(row)
    for code in (code for pair in row.opposed for code in pair):
        if code not in codes:
            yield f"opposed names '{code}', which is no option; use {', '.join(codes)}"
    if row.kind == "categorical" and sum(not option.open for option in row.options) < 2:
        yield "has fewer than two options that decide something; remove open = true from the others"


def _rate_problems(row: QuestionRow, name: str, rate: RateRow, labels: Sequence[str]) -> Iterator[str]:
    if not re.fullmatch(ID, name):
        yield "the id must be lower-case letters, digits and _, begin with a letter, and have 2 to 40 characters"
    cuts = [cut for cut in (rate.at_least, rate.at_most) if cut is not None]
    ordered = row.kind in ("ordinal", "yes-partial-no")
    if len(cuts) + bool(rate.is_) != 1:
        yield "give one of at_least, at_most and is"
    elif cuts and not ordered:
        yield f"at_least and at_most are for ordinal questions; use is, with one of: {', '.join(labels)}"
    elif cuts:
        low, high = (2, len(labels)) if rate.at_least is not None else (1, len(labels) - 1)
        if not low <= cuts[0] <= high:
            key = "at_least" if rate.at_least is not None else "at_most"
            yield f"{key} is {cuts[0]}: it would count no answer or every answer; use {low} to {high}"
    elif row.kind == "ordinal":
        yield "is counts the options of a choice; use at_least or at_most for levels"
    else:
        codes = _codes(row)
        for key, chosen in (("is", rate.is_), ("among", rate.among)):
            for code in chosen:
                if code not in codes:
                    yield f"{key} names '{code}', which is no option; use {', '.join(codes)}"
        among = set(rate.among or (c for c in codes if c != CANNOT_TELL))
        if row.kind == "set" and (len(rate.is_) != 1 or rate.among):
            yield 'a rate of a set counts one option: is = ["CODE"], without among'
        elif row.kind == "yes-partial-no" and (rate.among or tuple(sorted(rate.is_)) not in _ENDS):
            yield "a rate of yes-partial-no counts yes or no, alone or with partial, without among"
        elif not set(rate.is_) <= among:
            yield "counts options that are not among its denominator"
        elif row.kind != "set" and set(rate.is_) == among:
            yield "it would count every answer"


def _repeats(what: str, values: Sequence[str]) -> Iterator[str]:
    if len({value.casefold() for value in values}) < len(values):
        yield f"two {what} are equal"
