"""Ratings by people that another tool collected: a long CSV, or a results file of Amazon Mechanical Turk.

Their raters become participants without slots, so quality rules, export and analysis treat them like all others.
"""

from __future__ import annotations

import csv
import re
import time
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from evenedit.config.study_file import StudyFile, SurveySection
from evenedit.core import plugins
from evenedit.core.errors import EvenEditError
from evenedit.core.records import ConditionKind, Question, Request
from evenedit.protocol import level_code
from evenedit.protocol.questions import NONE_OF_THESE, YES_NO, answer_positions, set_answers
from evenedit.storage.store import Store
from evenedit.storage.survey_schema import answers, displayed, items, participants
from evenedit.storage.survey_store import SurveyStore, note
from evenedit.survey.answers import IMPORTED
from evenedit.survey.languages import FIRST, Languages
from evenedit.survey.questions import columns_of, shown_words, survey_questions
from evenedit.survey.tasks import CASE
from evenedit.survey.visits import VisitEnding, VisitStage

MOST_LISTED = 20
"""At most this many bad rows are listed."""
CONDITIONS = {"edited": ConditionKind.BASELINE, "preserved": ConditionKind.FEATURE, "mitigated": ConditionKind.FEATURE}
"""Names of the two outputs of a case in the authors' files."""
KEYS = (
    "rater",
    "request_id",
    "editor",
    "model",
    "prompt_id",
    "condition",
    "version",
    "source_id",
    "seed",
    "duration_ms",
)
"""Columns beside the answers and the factors that a file can have."""
_NUMBERED = re.compile(r"(Input|Answer)\.(\w+?)_(\d+)\Z")
_PREFIX = re.compile(r"(Input|Answer)\.")


@dataclass(frozen=True, slots=True)
class ImportedRow:
    """One person's scores of one output."""

    line: int
    rater: str
    request: str
    scores: Mapping[str, int]
    """By column of answers."""
    milliseconds: int
    first: bool | None
    """Whether the baseline was shown as Image A; None where the file does not say."""


@dataclass(slots=True)
class Imported:
    """Counts of an import, and its problems."""

    raters: int = 0
    pages: int = 0
    """Rated pages (a pair of outputs, or a single one), counted once per person."""
    answers: int = 0
    rejected: int = 0
    """Assignments that the platform had rejected, left out."""
    problems: list[str] = field(default_factory=list)


def read(
    path: Path,
    database: SurveyStore,
    file: StudyFile,
    store: Store,
    editors: Mapping[str, str],
    actor: str,
    columns: Mapping[str, str] | None = None,
) -> Imported:
    """Store the ratings of a file. Reading the same file again replaces them.

    `editors` maps the names a file uses to editors of the study, `columns` questions to the columns of the file.
    """
    imported = Imported()
    rows = list(_rows(path, file, store, editors, imported, columns or {}))
    if imported.problems:
        more = len(imported.problems) - MOST_LISTED
        raise EvenEditError(*imported.problems[:MOST_LISTED], *([f"and {more} more"] if more > 0 else []))
    if not rows:
        raise EvenEditError(f"{path} has no ratings that can be used")
    pages = _pages(rows, store)
    database.write(lambda db: _keep(db, database, pages, file, store, imported))
    detail = {"file": path.name, "raters": imported.raters, "answers": imported.answers}
    database.write(lambda db: note(db, time.time(), actor, "imported ratings", detail))
    return imported


def read_columns(path: Path, file: StudyFile) -> dict[str, str]:
    """Read a map of columns: the study's name of a column, and the file's."""
    try:
        columns = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise EvenEditError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EvenEditError(f"{path} is not valid TOML: {error}") from None
    known = [*file.rubric.columns, *(spec.id for spec in file.rubric.specs), *KEYS, *(f.name for f in file.factors)]
    problems = [
        f"{path}: '{name}' is neither a question of the study nor a column of an import{plugins.suggest(name, known)}"
        for name in columns
        if name not in known
    ]
    problems += [
        f"{path}: {name} is {file_columns!r}; expected a name"
        for name, file_columns in columns.items()
        if not file_columns or not isinstance(file_columns, str)
    ]
    if problems:
        raise EvenEditError(*problems)
    return columns


def _rows(
    path: Path,
    file: StudyFile,
    store: Store,
    editors: Mapping[str, str],
    imported: Imported,
    columns: Mapping[str, str],
) -> Iterator[ImportedRow]:
    find, answers_of = _Finder(file, store, editors), _Answers(file)
    for line, record in _records(path, imported, columns):
        try:
            scores = answers_of(record)
            if not scores:
                raise EvenEditError("no score")
            yield ImportedRow(
                line,
                _needed(record, "rater"),
                find(record),
                scores,
                int(float(record.get("duration_ms") or 0)),
                _flag(record.get("edited_shown_first") or record.get("shown_first") or ""),
            )
        except EvenEditError as error:
            imported.problems += [f"{path.name} line {line}: {problem}" for problem in error.problems]
        except ValueError as error:
            imported.problems.append(f"{path.name} line {line}: {error}")


def _records(path: Path, imported: Imported, columns: Mapping[str, str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the ratings of a file, under the columns of a long CSV."""
    expected_columns = {_PREFIX.sub("", file_columns): name for name, file_columns in columns.items()}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            names = [name.strip() for name in reader.fieldnames or ()]
            bare = {_PREFIX.sub("", name) for name in names}
            bare |= {match[2] for name in names if (match := _NUMBERED.match(name))}
            if absent := [file_columns for file_columns in expected_columns if file_columns not in bare]:
                raise EvenEditError(f"{path} has no column '{absent[0]}'; it has: {', '.join(names[:30])}")
            if "WorkerId" not in names:
                names = [expected_columns.get(name, name) for name in names]
            if "WorkerId" not in names and "rater" not in names:
                raise EvenEditError(
                    f"{path} has neither a column 'rater' nor 'WorkerId' (Mechanical Turk); it has: "
                    + ", ".join(names[:30])
                )
            for line, row in enumerate(reader, 2):
                record = {k.strip(): (v or "").strip() for k, v in row.items() if k is not None and isinstance(v, str)}
                if "WorkerId" in names:
                    if record.get("AssignmentStatus", "").lower() == "rejected":
                        imported.rejected += 1
                        continue
                    yield from ((line, _renamed(part, expected_columns)) for part in _assignment(record))
                else:
                    yield line, _renamed(record, expected_columns)
    except OSError as error:
        raise EvenEditError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise EvenEditError(f"{path} is not a UTF-8 text; save it as CSV in UTF-8") from None


def _renamed(record: Mapping[str, str], expected_columns: Mapping[str, str]) -> dict[str, str]:
    return {expected_columns.get(name, name): value for name, value in record.items()}


def _assignment(record: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield the ratings of one Mechanical Turk assignment, from Input.x and Answer.x, or Input.x_1 and Answer.x_1."""
    parts: dict[str, dict[str, str]] = {}
    for name, value in record.items():
        numbered = _NUMBERED.match(name)
        if numbered:
            parts.setdefault(numbered[3], {})[numbered[2]] = value
        elif name.startswith(("Input.", "Answer.")):
            parts.setdefault("", {})[name.split(".", 1)[1]] = value
    shared = parts.pop("", {}) if len(parts) > 1 else {}
    seconds = float(record.get("WorkTimeInSeconds") or 0)
    for part in parts.values():
        yield shared | part | {"rater": record["WorkerId"], "duration_ms": str(int(1000 * seconds / len(parts)))}


class _Answers:
    """Reads the answers of a row: positions, codes, or words in any language of the survey."""

    def __init__(self, file: StudyFile) -> None:
        section = file.sections.survey or SurveySection()
        languages = Languages(file.folder, list(dict.fromkeys([FIRST, *section.languages])), file.rubric)
        self._sets: dict[str, tuple[Question, dict[str, int]]] = {}
        self._known: dict[str, tuple[Question, dict[str, int]]] = {}
        for question in survey_questions(1, file.rubric):
            wordings = [languages.wording(question, code)["labels"] for code in languages.codes]
            texts = answer_positions(question.labels, shown_words(question), *wordings)
            if question.sided == "set":
                self._sets[question.id] = question, texts
                texts |= {languages.answer(NONE_OF_THESE, code).casefold(): 0 for code in languages.codes}
                yes_no = answer_positions(YES_NO, *([languages.answer(w, c) for w in YES_NO] for c in languages.codes))
                self._known |= {c: (stored, yes_no) for c, stored in columns_of(question, file.rubric).items()}
            elif not question.replaces:
                self._known[question.id] = question, texts

    def __call__(self, record: Mapping[str, str]) -> dict[str, int]:
        """Return the answers of a row by column; raise with all values that are none."""
        answers: dict[str, int] = {}
        problems: list[str] = []
        for column, (question, texts) in self._known.items():
            if text := record.get(column, ""):
                position = texts.get(text.casefold())
                answers |= {column: position} if position else {}
                problems += [] if position else [_unreadable(column, text, question)]
        for ident, (question, texts) in self._sets.items():
            try:
                answers |= set_answers(question, record.get(ident, ""), texts)
            except EvenEditError as error:
                problems += error.problems
        if problems:
            raise EvenEditError(*problems)
        return answers


def _unreadable(column: str, text: str, question: Question) -> str:
    expected = f"a whole number from 1 to {len(question.labels)}"
    if question.sided == "choice":
        expected += f", or one of: {', '.join(question.labels)}"
    return f"{column} is '{text}'; expected {expected}"


class _Finder:
    """Finds the request of the study that a row is about."""

    def __init__(self, file: StudyFile, store: Store, editors: Mapping[str, str]) -> None:
        self._editors = editors
        self._prompts = file.prompts
        self._factors = file.factors
        self._requests = store.requests()
        sources = store.sources()
        self._cells: dict[tuple[str, ...], list[str]] = {}
        for source in sources.values():
            cell = tuple(source.attributes.get(f.name, "") for f in self._factors)
            self._cells.setdefault(cell, []).append(source.id)
        self._known: dict[tuple[str, ...], list[str]] = {}
        for ident, r in self._requests.items():
            key = (str(r.condition), r.editor, r.prompt_id, "+".join(r.source_ids))
            self._known.setdefault(key, []).append(ident)

    def __call__(self, record: Mapping[str, str]) -> str:
        if record.get("request_id"):
            if record["request_id"] not in self._requests:
                raise EvenEditError(f"the study has no request '{record['request_id']}'")
            return record["request_id"]
        name = record.get("editor") or _needed(record, "model")
        editor = self._editors.get(name, name)
        named = _needed(record, "prompt_id")
        prompt = self._prompts.resolve_all([named])[named].id
        version = record.get("condition") or record.get("version") or ConditionKind.BASELINE
        condition = CONDITIONS.get(version, version)
        source = record.get("source_id") or self._cell(record)
        key = (condition, editor, prompt, source)
        matches = self._known.get(key, [])
        seeded = [i for i in matches if str(self._requests[i].seed) == record.get("seed", "")] or matches
        if len(seeded) != 1:
            what = "no such edit" if not seeded else f"{len(seeded)} such edits; give the seed or request_id"
            raise EvenEditError(f"the study has {what}: {' '.join(key)}")
        return seeded[0]

    def _cell(self, record: Mapping[str, str]) -> str:
        cell = tuple(level_code(f.name, _needed(record, f.name), self._factors) for f in self._factors)
        sources = self._cells.get(cell, [])
        if len(sources) != 1:
            raise EvenEditError(f"the study has {len(sources)} portraits of {' '.join(cell)}; add source_id")
        return sources[0]


@dataclass(frozen=True, slots=True)
class _Page:
    """One person's answers about one page."""

    rater: str
    outputs: tuple[str, ...]
    swapped: bool
    rows: Mapping[str, ImportedRow]
    """By request id."""


def _pages(rows: list[ImportedRow], store: Store) -> list[_Page]:
    """Both outputs of a case that one person rated belong to one page."""
    requests = store.requests()
    grouped: dict[tuple[object, ...], dict[str, ImportedRow]] = {}
    for row in rows:
        r = requests[row.request]
        grouped.setdefault((row.rater, r.source_ids, r.prompt_id, r.editor, r.seed), {})[row.request] = row
    pages = []
    for key, members in grouped.items():
        outputs = sorted(members, key=lambda ident: requests[ident].condition.kind is not ConditionKind.BASELINE)
        first = next(iter(members.values())).first
        pages.append(_Page(str(key[0]), tuple(outputs), len(outputs) == 2 and first is False, members))
    return pages


def _keep(
    db: sa.Connection, database: SurveyStore, pages: list[_Page], file: StudyFile, store: Store, imported: Imported
) -> None:
    requests = store.requests()
    instead = {old: new for new, old in file.rubric.replaced.items()}
    query = sa.select(items).where(items.c.survey == 1, items.c.kind == CASE)
    known = {tuple(r.outputs): r.id for r in db.execute(query)}
    raters = {rater: _participant(db, database, rater) for rater in dict.fromkeys(page.rater for page in pages)}
    places = dict.fromkeys(raters, 0)
    orders: list[dict[str, Any]] = []
    values: list[dict[str, Any]] = []
    for page in pages:
        if page.outputs not in known:
            new = {"survey": 1, "task": 0, "kind": CASE, "outputs": list(page.outputs), "expected": {}}
            known[page.outputs] = db.execute(sa.insert(items).returning(items.c.id), new).scalar_one()
        places[page.rater] += 1
        key = {"participant": raters[page.rater], "item": known[page.outputs]}
        orders.append(key | {"place": places[page.rater], "swapped": page.swapped})
        for at, output in enumerate(page.outputs):
            row = page.rows[output]
            slot = "AB"[1 - at if page.swapped else at]
            for column, value in row.scores.items():
                question = {
                    "slot": slot,
                    "question": _question_of(column, requests[output], file, instead),
                    "value": value,
                }
                values.append(key | question | {"sequence": 0, "milliseconds": row.milliseconds, "at": 0.0})
    db.execute(database.insert(displayed).on_conflict_do_nothing(), orders)
    statement = database.insert(answers)
    changed = {name: statement.excluded[name] for name in ("value", "milliseconds")}
    db.execute(statement.on_conflict_do_update(index_elements=list(answers.primary_key.columns), set_=changed), values)
    imported.raters, imported.pages, imported.answers = len(raters), len(pages), len(values)


def _participant(db: sa.Connection, database: SurveyStore, rater: str) -> int:
    query = sa.select(participants.c.id).where(
        participants.c.survey == 1, participants.c.platform == IMPORTED, participants.c.external == rater
    )
    existing = db.execute(query).scalar_one_or_none()
    if existing is not None:
        return int(existing)
    values = {
        "survey": 1,
        "platform": IMPORTED,
        "external": rater,
        "study": "",
        "session": "",
        "pseudonym": database.pseudonym(1, IMPORTED, rater),
        "stage": VisitStage.DONE,
        "ending": VisitEnding.COMPLETED,
        "tries": 0,
        "arrived": 0.0,
        "submitted": 0.0,
    }
    return int(db.execute(sa.insert(participants).values(values).returning(participants.c.id)).scalar_one())


def _question_of(column: str, request: Request, file: StudyFile, instead: Mapping[str, str]) -> str:
    """Return the question of a column; a prompt with a target age is judged against that age."""
    return instead.get(column, column) if file.prompt(request.prompt_id).target_years else column


def _needed(record: Mapping[str, str], name: str) -> str:
    if not record.get(name):
        raise EvenEditError(f"{name} is empty")
    return record[name]


def _flag(text: str) -> bool | None:
    return {"1": True, "true": True, "0": False, "false": False}.get(text.lower())
