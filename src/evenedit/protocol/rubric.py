"""The rubric: the questions that raters answer, the rates made of the answers, and what is printed of both."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Prompt, Question
from evenedit.protocol.factors import Factor
from evenedit.protocol.questions import (
    QuestionRow,
    QuestionSpec,
    Rate,
    RateWords,
    ReadingTitle,
    harm_of,
    read_rows,
    spec_of,
)

SHIPPED = ("default", "published", "short-002")
"""The names of the shipped rubrics."""
ANOTHER_PERSON = 3.0
"""From this severity on, a rate that concerns the person means that another person is shown."""
MEASURED = "measured_"
"""Before a rate's id: the same rate of an instrument's answers."""
SEEN = "_seen"
"""After a factor's name: the question on how a person is seen, as it is asked of every single picture."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The ids of shipped questions and rates by what they are for, from `rubrics/roles.toml`."""

    success: str
    skin: str
    race: str
    gender: str
    age: str
    target_age: str
    verdict: str
    target_role: str
    status: str
    """Who has the role of higher status: asked about two portraits too, where a study wants it."""
    preference: str
    applied: str
    erased: str
    lighter: str
    darker: str
    race_change: str
    gender_change: str


def _shipped(name: str) -> str:
    return files(__package__).joinpath(f"rubrics/{name}.toml").read_text("utf-8")


ROLES = Roles(**tomllib.loads(_shipped("roles")))
"""What code means by a shipped question or rate, whatever the rubric of a study."""


@dataclass(frozen=True)
class Rubric:
    """Questions and rates in their order. It travels with a table of ratings as the factors do."""

    name: str
    """Of the shipped rubric, or of the file, that the questions begin with."""
    specs: tuple[QuestionSpec, ...] = field(repr=False)

    @cached_property
    def spec_by_column(self) -> dict[str, QuestionSpec]:
        """The question of every column of answers."""
        return {column: spec for spec in self.specs for column in spec.columns}

    @cached_property
    def questions(self) -> dict[str, Question]:
        """Every column of answers as a question; of a set, each option is one."""
        return {column: question for spec in self.specs for column, question in spec.columns.items()}

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The order of the last dimension of every table of answers."""
        return tuple(self.questions)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {column: at for at, column in enumerate(self.columns)}

    def at(self, column: str) -> int:
        """Return the position of a column of answers."""
        return self._positions[column]

    def __contains__(self, column: object) -> bool:
        return column in self._positions

    @cached_property
    def rates(self) -> dict[str, Rate]:
        """The rates of all questions under their own thresholds."""
        return {name: rate for spec in self.specs for name, rate in spec.rates.items()}

    @cached_property
    def declared(self) -> tuple[QuestionSpec, ...]:
        """The questions that a study or an instrument added."""
        return tuple(spec for spec in self.specs if spec.declared)

    @cached_property
    def ordinal(self) -> tuple[str, ...]:
        """The columns whose answers have an order."""
        return tuple(spec.id for spec in self.specs if not spec.is_choice)

    @cached_property
    def choices(self) -> tuple[str, ...]:
        """The columns whose answers have no order."""
        return tuple(column for column in self.columns if self.questions[column].sided == "choice")

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """The ordinal questions that every edit of one portrait is rated on."""
        return tuple(s.id for s in self.specs if not s.is_choice and s.row.about == "pair" and not s.row.replaces)

    @cached_property
    def changes(self) -> tuple[str, ...]:
        """The ordinal questions about the person rather than about the request."""
        return tuple(q for q in self.axes if self.spec_by_column[q].row.concerns == "person")

    @cached_property
    def askable(self) -> tuple[str, ...]:
        """The questions about the person, of any kind: what a prompt can ask to change."""
        return tuple(
            s.id for s in self.specs if s.row.about == "pair" and s.row.concerns == "person" and not s.row.replaces
        )

    def columns_of(self, question: str) -> tuple[str, ...]:
        """Return the columns of a question: itself, or of a set one for each option."""
        return tuple(next(spec.columns for spec in self.specs if spec.id == question))

    def in_main_call(self, column: str) -> bool:
        """Return whether judges answer a column in their main call; what is no question of the rubric counts as one."""
        spec = self.spec_by_column.get(column)
        return spec is None or (spec.row.call == "main" and spec.row.about != "outputs")

    @cached_property
    def replaced(self) -> dict[str, str]:
        """By question that is asked of prompts with a target age, the question whose place it takes."""
        return {s.id: s.row.replaces for s in self.specs if s.row.replaces and s.row.replaces in self._positions}

    @cached_property
    def two_sided(self) -> dict[str, tuple[str, str]]:
        """By question, the rate above no change and the rate below: their difference is the shift."""
        sides = {}
        for spec in self.specs:
            if spec.two_sided and not spec.row.replaces and harm_of(spec.row) == "both":
                above = [r.id for r in spec.rates.values() if r.at_least is not None]
                below = [r.id for r in spec.rates.values() if r.at_most is not None]
                if above and below:
                    sides[spec.id] = above[0], below[0]
        return sides

    @cached_property
    def one_sided(self) -> tuple[str, ...]:
        """The rates that cannot cancel out, the most severe first: each is held against a tolerance."""
        rates = [name for spec in self.specs for name in spec.rates if spec.shifts(name)]
        rates += [name for name, words in outcome_rates().items() if words.shift]
        return tuple(sorted(rates, key=lambda name: -self.severity(name)))

    @cached_property
    def drift_rates(self) -> tuple[str, ...]:
        """The rates that mean a change of the person."""
        return tuple(
            name
            for spec in self.specs
            if spec.row.concerns == "person" and spec.row.about == "pair" and not spec.row.replaces
            for name in spec.rates
            if spec.shifts(name) or name in self.two_sided.get(spec.id, ())
        )

    @cached_property
    def another_person(self) -> tuple[str, ...]:
        """The rates that mean that another person is shown."""
        return tuple(name for name in self.drift_rates if self.severity(name) >= ANOTHER_PERSON)

    @cached_property
    def table_rates(self) -> tuple[str, ...]:
        """The rates that are columns of the table of rates."""
        return tuple(name for name in (*self.rates, *outcome_rates()) if self.words(name).table)

    @cached_property
    def card_rates(self) -> tuple[str, ...]:
        """The rates of the model card."""
        return tuple(name for name in (*self.rates, *outcome_rates()) if self.words(name).card)

    @cached_property
    def wanted_rates(self) -> tuple[str, ...]:
        """The rates of which more is better."""
        good = {"low": "at_least", "high": "at_most"}
        return tuple(
            name
            for spec in self.specs
            if not spec.is_choice
            for name, rate in spec.rates.items()
            if getattr(rate, good.get(harm_of(spec.row), ""), None) is not None
        )

    def is_harm(self, rate: str) -> bool:
        """Return whether a rate counts what is bad for the person; what no question defines is taken for it."""
        return rate not in self.rates or rate in self.one_sided or rate in self.drift_rates

    def words(self, rate: str) -> RateWords:
        """Return what is printed of a rate: of a question, of an instrument's answers, or of how edits ended."""
        name = rate.removeprefix(MEASURED)
        if name in self.rates:
            row = self.spec_by_column[self.rates[name].question].row
            words: RateWords = row.rates[name]
            if rate != name:
                words = words.model_copy(update=words.measured.model_dump() if words.measured else {})
            return words
        return outcome_rates().get(rate, RateWords())

    def phrase(self, rate: str) -> str:
        """Return what the edits that a rate counts have in common: "were rated older than the source"."""
        return self.words(rate).phrase or self._plain_phrase(rate)

    def sides(self, question: str) -> tuple[str, str, str]:
        """Return the words for either side of no change of a two-sided question, and what moved."""
        above, below = (self.words(rate).side for rate in self.two_sided[question])
        spec = self.spec_by_column[question]
        return above or "higher", below or "lower", spec.row.noun or spec.question.title

    def _plain_phrase(self, rate: str) -> str:
        matches = self.rates.get(rate.removeprefix(MEASURED))
        if matches is None:
            return f"met {rate.replace('_', ' ')}"
        spec = self.spec_by_column[matches.question]
        how = "were read as" if rate.startswith(MEASURED) else "were rated"
        if spec.question.sided == "set":
            return f"{how} with “{spec.columns[matches.question].title}”"
        options = dict(zip(spec.question.labels, spec.question.words or spec.question.labels, strict=True))
        if matches.is_:
            return f"{how} “{'” or “'.join(options[code] for code in matches.is_)}” in {spec.question.title.lower()}"
        level = spec.question.labels[(matches.at_least or matches.at_most or 1) - 1]
        end = "or higher" if matches.at_least is not None else "or lower"
        last = len(spec.question.labels) if matches.at_least is not None else 1
        beyond = "" if (matches.at_least or matches.at_most) == last else f" {end}"
        return f"{how} “{options[level]}”{beyond} in {spec.question.title.lower()}"

    def title(self, name: str) -> str:
        """Return the title of a question or rate; the name itself if it is unknown."""
        if name in self.questions:
            return self.questions[name].title
        if any(spec.id == name for spec in self.specs):
            return next(spec.question.title for spec in self.specs if spec.id == name)
        reading = readings().get(name)
        return (reading.title if reading else self.words(name).title) or name.replace("_", " ").capitalize()

    def short(self, column: str) -> str:
        """Return the name of a question in few letters, for captions of pictures."""
        return self.spec_by_column[column].row.short or self.questions[column].title.lower()

    def options(self, column: str) -> dict[str, str]:
        """Return what is shown for each stored answer, in their order, by level or code."""
        question = self.questions[column]
        words = question.words or ("",) * len(question.labels)
        plain = (c.replace("_", " ").lower() if question.sided == "choice" else c for c in question.labels)
        return {c: word or text for c, word, text in zip(question.labels, words, plain, strict=True)}

    def option_of_set(self, column: str) -> str:
        """Return what is shown for the option of a set that a column is about."""
        spec = self.spec_by_column[column]
        code = column.removeprefix(f"{spec.id}.")
        word = dict(zip(spec.question.labels, spec.question.words, strict=False)).get(code, "")
        return word or code.replace("_", " ").lower()

    def asked_differently(self, other: Rubric) -> list[str]:
        """Return in words the rates and questions that have one id in both rubrics and are asked differently."""
        wanted, others = (
            {**r.questions, **{n: r.questions[x.question] for n, x in r.rates.items()}} for r in (self, other)
        )
        differences = []
        for name in (n for n in wanted if n in others):
            first, second = wanted[name], others[name]
            if (first.text, first.labels, first.words) != (second.text, second.labels, second.words):
                forms = [_form(rubric, name) for rubric in (self, other)]
                how = "in other words" if forms[0] == forms[1] else f"{forms[0]} against {forms[1]}"
                differences.append(f"{name} is asked differently: {how}")
        return differences

    def severity(self, name: str) -> float:
        """Return how bad one point of a rate or question is; a measured rate counts as the rated one."""
        name = name.removeprefix(MEASURED)
        if name in self.rates:
            row = self.spec_by_column[self.rates[name].question].row
            return row.rates[name].severity or row.severity
        if name in self.spec_by_column:
            return self.spec_by_column[name].row.severity
        return outcome_rates().get(name, RateWords()).severity or 1.0

    def tolerance(self, rate: str, usual: float) -> float:
        """Return the share of edits up to which a rate is tolerated."""
        stated = self.words(rate).tolerance
        return usual if stated is None else stated

    def no_change(self, column: str) -> int:
        """Return the answer that means that nothing changed; 1 of a scale without one."""
        return self.spec_by_column[column].row.neutral or 1

    def observations(self, about: str, wanted: Iterable[str] | None = None, call: str = "main") -> dict[str, str]:
        """Return what a judge describes before it answers the questions about a pair, outputs or people.

        Of the declared questions, only those in `asked` count where it is given.
        """
        known = None if wanted is None else set(wanted)
        return {
            name: note
            for spec in self.specs
            if spec.row.about == about and spec.row.call == call
            if known is None or not spec.declared or spec.id in known
            for name, note in spec.observations.items()
        }

    @cached_property
    def identity(self) -> Question | None:
        """Which of two outputs keeps the person's identity, as judges are asked: the outputs are named by place."""
        stored = self.questions.get(ROLES.preference)
        return stored and replace(stored, id="identity", labels=("A", "B", "SAME"))

    @cached_property
    def seen(self) -> tuple[Question, ...]:
        """How the person in a single picture is seen, as judges are asked: the same of sources and outputs."""
        before = [spec.question for spec in self.specs if spec.row.about == "picture" and spec.id.endswith("_before")]
        return tuple(
            replace(q, id=f"{q.id.removesuffix('_before')}{SEEN}", title=q.title.split(",")[0].capitalize())
            for q in before
        )

    @cached_property
    def separate(self) -> tuple[QuestionSpec, ...]:
        """The questions about an edit that judges answer in a call of their own."""
        is_separate = (s for s in self.specs if s.row.call == "separate" and s.row.about in ("pair", "people"))
        return tuple(spec for spec in is_separate if "judges" in spec.row.answered_by)

    @cached_property
    def declared_main(self) -> tuple[QuestionSpec, ...]:
        """The declared questions that judges answer in their main call."""
        return tuple(s for s in self.declared if s.row.call == "main" and "judges" in s.row.answered_by)

    def extended(self, rows: Iterable[QuestionRow]) -> Rubric:
        """Return the rubric with further questions after its own."""
        return replace(self, specs=(*self.specs, *(spec_of(row, declared=True) for row in rows)))

    def without(self, questions: Sequence[str]) -> Rubric:
        """Return the rubric without some questions, and without those that are asked in their place."""
        removed = {*questions, *(new for new, old in self.replaced.items() if old in questions)}
        return replace(self, specs=tuple(spec for spec in self.specs if spec.id not in removed))

    def to_tables(self) -> list[dict[str, Any]]:
        """Return the questions as tables, for `results.json`; empty for the shipped default."""
        if self == default_rubric():
            return []
        return [_table(spec) for spec in self.specs]

    @classmethod
    def from_tables(cls, tables: Sequence[Mapping[str, Any]], name: str = "default") -> Rubric:
        """Build the rubric that `to_tables` wrote."""
        if not tables:
            return default_rubric()
        declared = {str(t["id"]) for t in tables if t.get("declared")}
        rows, wrong = read_rows([{k: v for k, v in t.items() if k != "declared"} for t in tables], "rubric")
        if wrong:
            raise EvenEditError(*wrong)
        return cls(name, tuple(spec_of(row, declared=row.id in declared) for row in rows))


def _form(rubric: Rubric, name: str) -> str:
    """Return the form of a question, or of a rate's, in words: "1–5", "yes-no"."""
    spec = rubric.spec_by_column[rubric.rates[name].question if name in rubric.rates else name]
    return f"1–{len(spec.question.labels)}" if spec.row.kind == "ordinal" else spec.row.kind


def _table(spec: QuestionSpec) -> dict[str, Any]:
    table = spec.row.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return table | ({"declared": True} if spec.declared else {})


@cache
def outcome_rates() -> dict[str, RateWords]:
    """Return the rates of how edits ended and of what instruments read, by id."""
    return {name: RateWords.model_validate(row) for name, row in _outcomes()["rates"].items()}


@cache
def readings() -> dict[str, ReadingTitle]:
    """Return the readings of instruments that are no rates, by id."""
    return {name: ReadingTitle.model_validate(row) for name, row in _outcomes()["readings"].items()}


def order_of_readings() -> tuple[str, ...]:
    """Return the ids of rates and readings of instruments in the order of the tables."""
    return tuple(_outcomes()["order"])


@cache
def _outcomes() -> dict[str, Any]:
    return tomllib.loads(_shipped("outcomes"))


@cache
def shipped_rubric(name: str) -> Rubric:
    """Return a shipped rubric by name."""
    return _parse(tomllib.loads(_shipped(name)), name, Path())


def default_rubric() -> Rubric:
    """Return the rubric of a new study."""
    return shipped_rubric("default")


def load_rubric(name: str, folder: Path | None = None) -> Rubric:
    """Return a shipped rubric by name, or read the user's TOML file relative to `folder`."""
    if name in SHIPPED:
        return shipped_rubric(name)
    path = (folder or Path()) / name
    if not path.is_file():
        raise EvenEditError(f"rubric '{name}' is neither shipped ({', '.join(SHIPPED)}) nor a file at {path}")
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EvenEditError(f"{path} is not valid TOML: {error}") from None
    return _parse(data, name, path.parent)


def _parse(data: Mapping[str, Any], name: str, folder: Path) -> Rubric:
    """Build a rubric from a file; the questions of one that it extends come first, with the keys that it states."""
    unknown = sorted(set(data) - {"extends", "questions"})
    if unknown:
        raise EvenEditError(f"rubric '{name}': unknown key '{unknown[0]}'; a rubric file has [[questions]] and extends")
    tables: list[Mapping[str, Any]] = list(data.get("questions", []))
    base = load_rubric(str(data["extends"]), folder) if "extends" in data else None
    if base is not None:
        changed = {str(table.get("id")): table for table in tables}
        before = [spec.row.model_dump(by_alias=True, exclude_defaults=True) for spec in base.specs]
        tables = [{**row, **changed.pop(row["id"], {})} for row in before] + list(changed.values())
    rows, wrong = read_rows(tables, f"rubric '{name}': questions")
    wrong += [f"rubric '{name}': {line}" for line in clashes((), rows)]
    if not wrong and not rows:
        wrong.append(f"rubric '{name}' has no [[questions]]")
    if wrong:
        raise EvenEditError(*wrong)
    shipped = name in SHIPPED
    known = {spec.id for spec in base.specs} if base else set()
    declared = {row.id for row in rows} - known if not shipped else set()
    return Rubric(name, tuple(spec_of(row, declared=row.id in declared) for row in rows))


def clashes(existing: Iterable[QuestionSpec], rows: Sequence[QuestionRow], name: str = "") -> list[str]:
    """Return the problems of ids that questions or rates share with each other or with those of a rubric."""
    problems = []
    owners = {id: spec.id for spec in existing for id in (spec.id, *spec.rates)} | dict.fromkeys(outcome_rates(), "")
    rates = set(owners)
    where = f"the rubric '{name}'" if name else "another question"
    for row in rows:
        if row.id in owners:
            problems.append(f"questions '{row.id}': {where} has this id; choose another, or write a rubric file")
        owners[row.id] = row.id
    for row in rows:
        for rate in row.rates:
            if rate in rates or owners.get(rate, row.id) != row.id or rate.startswith(MEASURED):
                problems.append(f"questions '{row.id}': the rate id '{rate}' is taken; choose another")
            rates.add(rate)
    return problems


# What the shipped default and the paper have

QUESTIONS: dict[str, Question] = default_rubric().questions
"""Every question of the shipped default by id, in the rubric's order."""

QUESTION_IDS: tuple[str, ...] = default_rubric().columns
"""The questions' ids: the order of the last dimension of every table of answers."""

AXES: tuple[str, ...] = default_rubric().axes
"""The five axes of the paper."""

CHANGES: tuple[str, ...] = default_rubric().changes
"""The axes of what becomes of the person: what a prompt can ask to change."""

VERDICTS: tuple[str, ...] = QUESTIONS[ROLES.verdict].labels
"""The answers of the stereotype question: a value is the 1-based position here."""

IDENTITY = replace(QUESTIONS[ROLES.preference], id="identity", labels=("A", "B", "SAME"))
"""The pairwise question as it is asked: two outputs of one source, named by their place."""

STEREOTYPE_QUESTIONS: tuple[str, ...] = (ROLES.verdict, ROLES.target_role)
"""What is asked about an output of two portraits."""

DEFAULT_RATES: dict[str, Rate] = default_rubric().rates
"""The rates under their default thresholds."""


def preferred(first: int | None, second: int | None) -> int | None:
    """Combine two answers to IDENTITY, with the baseline as A in the first and as B in the second.

    Return the position in the labels of `preference`: None if an answer is missing, UNCLEAR if they differ.
    """
    if first is None or second is None:
        return None
    same, unclear = 3, 4
    turned = second if second == same else 3 - second
    return first if first == turned else unclear


def questions_for(
    experiment: str,
    prompt: Prompt,
    rubric: Rubric | None = None,
    *,
    status: bool = False,
    labels: Mapping[str, str] | None = None,
    by: str = "judges",
    call: str | None = "main",
) -> tuple[Question, ...]:
    """Return the questions about an edit of this prompt, of a portrait with these labels, in the rubric's order.

    `status` adds that on status where it is optional; without `labels`, questions are not limited to portraits;
    `call` chooses the questions of judges' main call, those of calls of their own, or with None both.
    """
    rubric = rubric or default_rubric()
    wanted = []
    for spec in rubric.specs:
        row = spec.row
        if row.about in ("outputs", "picture") or by not in row.answered_by or call not in (None, row.call):
            continue
        if row.optional and row.id == ROLES.status and not status:
            continue
        if row.replaces if not prompt.target_years else spec.id in rubric.replaced.values():
            continue
        if spec.applies(experiment, prompt.id, labels):
            wanted.append(spec.question)
    return tuple(wanted)


@cache
def seen_system() -> str:
    """Return the instructions for judges that describe how the person in a single picture would be seen."""
    return str(tomllib.loads(_shipped("perceived"))["system"])


def seen_questions(factor: Factor) -> list[QuestionRow]:
    """Return the questions on how a person is seen, before and after the edit and in the mirrored source."""
    template = tomllib.loads(_shipped("perceived"))["questions"]
    options = [{"code": level.code, "label": level.title} for level in factor.levels]
    wanted = {"kind": "categorical", "about": "picture", "harm": "none", "cannot_tell": True, "options": options}
    named = [
        {key: text.replace("NAME", factor.name).replace("TITLE", factor.title.lower()) for key, text in row.items()}
        for row in template
    ]
    return [QuestionRow.model_validate(wanted | {"call": "separate"} | row) for row in named]
