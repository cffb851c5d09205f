"""Other people's score tables in: CSV files or data frames, one row per edit and judge, become one `RatingTable`.

A table's columns tell whether it holds scores or verdicts. Nothing is guessed or clamped: rows that cannot be read
are listed with their line of the file, or their row of the data frame, counted from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import union_categoricals

from evenedit.core.errors import EvenEditError
from evenedit.core.records import NULL_PAIR_EDITOR, ConditionKind, Experiment, Kind, Outcome, Question, Rating, Status
from evenedit.core.spreadsheet import as_written
from evenedit.protocol import AXES, FACTORS, Factor, PromptSet, Rubric, default_rubric, found_factor, load_prompts
from evenedit.protocol.factors import parse_number
from evenedit.protocol.prompts import BUILT_IN, FLOOR, asked_axes, merge
from evenedit.protocol.questions import YES_NO, answer_positions, set_answers
from evenedit.protocol.rubric import ROLES
from evenedit.ratings.authors import in_our_columns
from evenedit.ratings.build import build_table
from evenedit.ratings.table import ASKED_BETWEEN, BLOCK, RatingTable, edit_columns

Tabular = str | Path | pd.DataFrame
"""A table to read: the path of a CSV file, or a data frame."""
_COMMON = ("experiment", "condition", "editor", "prompt_id", "judge", "status")
VERDICT_COLUMNS = (*_COMMON, "verdict")
"""Columns of a file of stereotype verdicts."""
Factors = Sequence[str | Factor] | None
"""What edits are grouped by: factors, or names of columns whose values are the levels; None for race, gender, age."""
OPTIONAL = {
    "seed": "0",
    "outcome": Outcome.EDITED.value,
    "kind": Kind.VLM.value,
    "request_id": "",
    "source_id": "",
    BLOCK: "",
    "asks": "",
}
"""Columns a file may have, and what holds where they are absent or empty."""
MOST_LISTED = 20
"""At most so many bad rows are listed."""
KINDS = (Kind.VLM, Kind.INSTRUMENT, Kind.HUMAN, Kind.REVIEW)
"""The order of raters in a table; within a kind, the order of the files."""
EDIT_KEY = ["experiment", "condition", "editor", "source_id", "prompt_id", "seed"]
FILE_COLUMNS = {ROLES.verdict: "verdict", ROLES.target_role: "role", ROLES.status: "higher_status"}
"""The columns of answers that are not named by their question."""

CONFIDENCE = "confidence."
"""Before a question's id: the column of how sure a judge stated it was, 0 to 1."""
UNSTATED = 2.0
"""What an empty confidence is read as, before it is NaN."""


@dataclass(slots=True)
class Problems:
    """Bad rows, as they are found."""

    rows: list[tuple[str, int, str]] = field(default_factory=list)
    count: int = 0

    def add(self, frame: pd.DataFrame, bad: NDArray[np.bool_], message: str) -> None:
        """Note every bad row; only the first few are put in words, the message's {column}s filled in."""
        self.count += int(bad.sum())
        for at in np.flatnonzero(bad)[:MOST_LISTED]:
            row = {str(name): value for name, value in frame.iloc[at].items()}
            self.rows.append((row["_place"], int(row["_line"]), message.format_map(row)))

    def check(self) -> None:
        """Stop if anything was noted."""
        if self.count:
            messages = [f"{place} {line}: {text}" for place, line, text in sorted(self.rows)[:MOST_LISTED]]
            more = self.count - len(messages)
            raise EvenEditError(*messages, *([f"and {more} more"] if more else []))


def score_columns(factors: Iterable[str], rubric: Rubric | None = None, by: str = "judges") -> tuple[str, ...]:
    """Return the columns that a file of scores has: the paper's five axes, or of another rubric what was declared."""
    rubric = rubric or default_rubric()
    rows = [spec.row for spec in rubric.declared]
    needed = [row.id for row in rows if row.about == "pair" and by in row.answered_by and not row.optional]
    return (*_COMMON, "source_id", *factors, *(AXES if rubric == default_rubric() else needed))


def read_tables(
    tables: Sequence[Tabular],
    prompt_sets: Sequence[PromptSet] = (),
    factors: Factors = None,
    rubric: Rubric | None = None,
) -> RatingTable:
    """Read tables of scores and verdicts as one; `prompt_sets` beside the built-in ones tell further prompts."""
    if not tables:
        raise EvenEditError("no file to read; give at least one CSV of scores or verdicts")
    problems = Problems()
    frames = read_frames(tables, factors, rubric)
    known, chosen = known_factors(frames, factors), asked_in(frames, rubric)
    return assemble(checked_rows(frames, known_prompts(prompt_sets), problems, known, chosen), problems, known, chosen)


def read_frames(tables: Sequence[Tabular], factors: Factors, rubric: Rubric | None = None) -> list[pd.DataFrame]:
    """Read each table of scores or verdicts as text."""
    return [_read(table, names_of(factors), rubric) for table in tables]


def asked_in(frames: Sequence[pd.DataFrame], rubric: Rubric | None) -> Rubric:
    """Return a rubric without the questions that no table has a column for; the shipped default is left as it is."""
    if rubric is None or rubric == default_rubric():
        return default_rubric()
    present = {str(name) for frame in frames for name in frame.columns}
    absent = [
        spec.id
        for spec in rubric.specs
        if not spec.row.replaces and not present & {FILE_COLUMNS.get(c, c) for c in spec.columns}
    ]
    return rubric.without(absent)


def read_edits(table: Tabular, factors: Factors) -> pd.DataFrame:
    """Read a table of edits as text: rows without ratings that define the edits and their order."""
    wanted = ("experiment", "condition", "editor", "source_id", *names_of(factors), "prompt_id", "outcome")
    return columns_of(read_table(table), table, wanted)


def known_prompts(prompt_sets: Sequence[PromptSet]) -> PromptSet:
    """Return the built-in prompts and these; the null edit too, unless one of them has its name."""
    sets = [*(load_prompts(name) for name in BUILT_IN), *prompt_sets]
    null_edit = [] if any(p.id == FLOOR.id for s in sets for p in s) else [PromptSet(FLOOR.id, (FLOOR,))]
    return merge([*sets, *null_edit])


def names_of(factors: Factors) -> tuple[str, ...]:
    """Return the columns that hold the factors."""
    return tuple(f if isinstance(f, str) else f.name for f in (FACTORS if factors is None else factors))


def known_factors(frames: Sequence[pd.DataFrame], factors: Factors) -> tuple[Factor, ...]:
    """Return the factors with their levels; for a bare name, the levels are the values in the table."""

    def values(name: str) -> list[str]:
        return [str(value) for frame in frames if name in frame.columns for value in frame[name].unique()]

    return tuple(found_factor(f, values(f)) if isinstance(f, str) else f for f in (factors or FACTORS))


def checked_rows(
    frames: list[pd.DataFrame],
    prompts: PromptSet,
    problems: Problems,
    factors: Sequence[Factor],
    rubric: Rubric | None = None,
) -> pd.DataFrame:
    """Return the rows of all frames with checked texts, numeric answers and prompt ids."""
    rubric = rubric or default_rubric()
    rows = stacked([_checked(frame, problems, factors, rubric) for frame in frames])
    problems.check()
    resolved = prompts.resolve_all(str(name) for name in rows["prompt_id"].unique())
    targeted = _numbers(rows["prompt_id"], lambda name: int(bool(resolved[name].target_years))) == 1
    named = texts(rows["prompt_id"], lambda name: ASKED_BETWEEN.join(resolved[name].asks)).astype(str)
    rows["asks"] = texts(rows["asks"].astype(str).where(rows["asks"] != "", named), str)
    rows["prompt_id"] = texts(rows["prompt_id"], lambda name: resolved[name].id)
    for replacement, question in rubric.replaced.items():
        for before, empty in (("", np.int8(0)), (CONFIDENCE, np.float32(np.nan))):
            old, new = f"{before}{question}", f"{before}{replacement}"
            rows[new] = np.where(targeted, rows[old], empty)
            rows[old] = np.where(targeted, empty, rows[old])
    return rows


def _read(table: Tabular, factors: Sequence[str], rubric: Rubric | None) -> pd.DataFrame:
    """Read one table of scores or verdicts."""
    frame = with_sets(read_table(table), table, rubric or default_rubric())
    wanted = VERDICT_COLUMNS if "verdict" in frame.columns else score_columns(factors, rubric)
    return columns_of(frame, table, with_options(wanted, rubric), rubric)


def with_options(wanted: Sequence[str], rubric: Rubric | None = None) -> list[str]:
    """Return columns with every set replaced by the columns of its options."""
    sets = {spec.id: list(spec.columns) for spec in (rubric or default_rubric()).specs}
    return [column for name in wanted for column in sets.get(name, [name])]


def with_sets(frame: pd.DataFrame, table: Tabular, rubric: Rubric) -> pd.DataFrame:
    """Return a frame in which each set, written as codes with ; between, is a column of yes or no for each option."""
    for spec in rubric.specs:
        if spec.question.sided != "set" or spec.id not in frame.columns:
            continue
        cells = frame[spec.id].astype(str)
        try:
            positions = answer_codes(spec.question)
            chosen = {cell: set_answers(spec.question, cell, positions) for cell in cells.unique()}
        except EvenEditError as error:
            raise EvenEditError(*(f"{name_of(table)}: {problem}" for problem in error.problems)) from None
        for column in spec.columns:
            words = {cell: YES_NO[answers[column] - 1] if answers else "" for cell, answers in chosen.items()}
            frame[column] = texts(frame[spec.id], words.__getitem__)
    return frame


def name_of(table: Tabular) -> str:
    """Return the name of a table for messages."""
    return "the data frame" if isinstance(table, pd.DataFrame) else str(table)


def read_table(table: Tabular) -> pd.DataFrame:
    """Read one table as text, with the escapes against spreadsheet formulas removed."""
    frame = table.reset_index(drop=True) if isinstance(table, pd.DataFrame) else _read_csv(Path(table))
    frame.columns = [str(name).strip() for name in frame.columns]
    if not frame.columns.is_unique:
        raise EvenEditError(f"{name_of(table)} has two columns of one name: {', '.join(frame.columns)}")
    return in_our_columns(frame, name_of(table)).apply(_as_text)


def _read_csv(path: Path) -> pd.DataFrame:
    """Read one file as text."""
    try:
        frame = pd.read_csv(path, dtype="category", keep_default_na=False, encoding="utf-8-sig", skip_blank_lines=False)
    except OSError as error:
        raise EvenEditError(f"{path} cannot be read: {error.strerror}; give the path of a CSV file") from None
    except pd.errors.EmptyDataError:
        raise EvenEditError(f"{path} is empty; expected a CSV file with a header") from None
    except UnicodeDecodeError:
        raise EvenEditError(f"{path} is not a UTF-8 text; save it as CSV in UTF-8") from None
    except (pd.errors.ParserError, ValueError) as error:
        raise EvenEditError(f"{path} is not a CSV file: {error}") from None
    if not isinstance(frame.index, pd.RangeIndex):  # pandas takes what is too much for an index
        raise EvenEditError(f"{path} is not a CSV file: line 2 has more fields than the header")
    return frame


def _as_text(column: pd.Series[Any]) -> pd.Series[Any]:
    """Convert a column's cells to text; missing cells are empty, integral floats are integers."""
    if pd.api.types.is_float_dtype(column) and (column.dropna() % 1 == 0).all():
        column = column.astype("Int64")
    if not isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object).map(str, na_action="ignore").astype("category")
    if column.isna().any():
        column = column.astype(object).fillna("").astype("category")
    return texts(column, as_written) if any(str(c).startswith("'") for c in column.cat.categories) else column


def columns_of(
    frame: pd.DataFrame, table: Tabular, wanted: Sequence[str], rubric: Rubric | None = None
) -> pd.DataFrame:
    """Return the known columns with the place and line of each row; raise if a required one is absent."""
    missing = [name for name in wanted if name not in frame.columns]
    if missing:
        names = ", ".join(name[:40] for name in frame.columns[:30])
        others = {f.name for f in FACTORS} >= set(missing)
        hint = ["  to group by other columns than race, gender and age: --factors NAME,NAME"] if others else []
        raise EvenEditError(f"{name_of(table)} lacks the columns: {', '.join(missing)}", f"  it has: {names}", *hint)
    columns = {name: frame[name] if name in frame.columns else "" for name in (*wanted, *OPTIONAL)}
    chosen = (rubric or default_rubric()).columns
    known = (*(FILE_COLUMNS.get(column, column) for column in chosen), *(CONFIDENCE + column for column in chosen))
    columns |= {name: frame[name] for name in known if name in frame.columns}
    place, first = (name_of(table) + " row", 0) if isinstance(table, pd.DataFrame) else (Path(table).name + " line", 2)
    frame = pd.DataFrame(columns, index=frame.index).assign(_place=place, _line=np.arange(first, len(frame) + first))
    frame = frame[(frame[list(wanted)] != "").any(axis=1)]
    if frame.empty:
        raise EvenEditError(f"{name_of(table)} has a header but no rows")
    return frame


def _checked(frame: pd.DataFrame, problems: Problems, factors: Sequence[Factor], rubric: Rubric) -> pd.DataFrame:
    """Return the rows with checked texts and numeric answers."""
    out = frame[["_place", "_line"]].copy()
    is_verdict, is_edits = "verdict" in frame.columns, "judge" not in frame.columns
    for column in (*_COMMON, "source_id", BLOCK, "request_id"):
        out[column] = texts(frame[column], str.strip) if column in frame.columns else _empty(frame)
    for column in ("outcome", "kind"):
        out[column] = texts(frame[column], partial(_or_else, OPTIONAL[column]))
    null = (out["condition"] == ConditionKind.NULL_PAIR) & (out["editor"] == "")
    out["editor"] = texts(out["editor"].astype(str).mask(null, NULL_PAIR_EDITOR), str)
    out["seed"] = texts(frame["seed"], _seed)
    out["asks"] = _asks(frame, problems, rubric)
    scores = [Experiment.DIAGNOSIS, Experiment.MITIGATION]
    allowed = list(Experiment) if is_edits else [Experiment.STEREOTYPE] if is_verdict else scores
    may_be_unrated = is_edits | (out["outcome"] != Outcome.EDITED)
    unrated = ((out["judge"] == "") & (out["status"] == "") & may_be_unrated).to_numpy()
    for column, known in (("experiment", allowed), ("outcome", list(Outcome)), ("kind", list(KINDS))):
        _known(out, column, known, problems)
    _known(out, "status", [*Status, ""], problems)
    problems.add(out, (out["judge"] == "").to_numpy() & ~unrated, "judge is empty")
    problems.add(out, (out["status"] == "").to_numpy() & ~unrated & ~_preferring(frame, out), "status is empty")
    for column in ("condition", "editor", "prompt_id", *(() if is_verdict else ("source_id",))):
        problems.add(out, (out[column] == "").to_numpy(), f"{column} is empty")
    problems.add(frame, (out["seed"] == "").to_numpy(), "seed is '{seed}'; expected a whole number of 64 bits")
    for factor in factors:
        out[factor.name] = _empty(frame) if is_verdict else _levels(frame, factor, problems)
    _answers(frame, out, problems, rubric)
    return out


def _empty(frame: pd.DataFrame) -> pd.Series[Any]:
    return texts(frame["outcome"], lambda _: "")


def _preferring(frame: pd.DataFrame, out: pd.DataFrame) -> NDArray[np.bool_]:
    """Return the rows of a judge that states a preference, which comes from separate calls."""
    if ROLES.preference not in frame.columns:
        return np.zeros(len(frame), dtype=np.bool_)
    return ((texts(frame[ROLES.preference], str.strip) != "") & (out["kind"] != Kind.HUMAN)).to_numpy()


def _answers(frame: pd.DataFrame, out: pd.DataFrame, problems: Problems, rubric: Rubric) -> None:
    """Fill in every question's value code, and how sure the judge was."""
    scored = (out["status"] == Status.SCORED).to_numpy()
    preferring = _preferring(frame, out)
    ended = out["status"].isin([s.value for s in Status if s != Status.SCORED]).to_numpy()
    unscored = ended | (preferring & (out["status"] == "").to_numpy())
    impossible = scored & (out["outcome"] != Outcome.EDITED).to_numpy()
    problems.add(out, impossible, "status is scored but the outcome is {outcome}")
    for question in rubric.columns:
        sure = f"{CONFIDENCE}{question}"
        out[sure] = _confidence(frame, sure, problems)
        column = FILE_COLUMNS.get(question, question)
        if column not in frame.columns or question in rubric.replaced:
            out[question] = np.zeros(len(out), dtype=np.int8)
            continue
        text = texts(frame[column], str.strip)
        value = _numbers(text, partial(_position, answer_codes(rubric.questions[question])))
        needed = question == "stereotype" and "role" not in frame  # with the role a scored call says something
        unknown = np.isnan(value) | (needed & scored & (value == 0))
        with_text = out.assign(_text=text)
        problems.add(
            with_text, unknown, f"{column} is '{{_text}}'; expected {expected_answer(rubric.questions[question])}"
        )
        is_separate = question == ROLES.preference or not rubric.in_main_call(question)
        silent = unscored & ~preferring if is_separate else unscored
        problems.add(with_text, silent & (value > 0), f"{column} is '{{_text}}' but the status is '{{status}}'")
        out[question] = np.where(unknown, 0, value).astype(np.int8)


def answer_codes(question: Question) -> dict[str, int]:
    """Return the value of each text, in lower case, that may stand for an answer: codes, labels and numbers."""
    return answer_positions(question.labels, question.option_texts)


def _position(codes: Mapping[str, int], cell: str) -> int | None:
    return codes.get(cell.casefold())


def expected_answer(question: Question) -> str:
    """Describe the texts that may stand for an answer."""
    if question.sided == "choice":
        return f"one of: {', '.join(question.labels)}"
    return f"a whole number from 1 to {len(question.labels)}"


def _confidence(frame: pd.DataFrame, column: str, problems: Problems) -> NDArray[np.float32]:
    """Return the stated confidence; NaN if there is none."""
    if column not in frame.columns:
        return np.full(len(frame), np.nan, dtype=np.float32)
    stated = _numbers(frame[column], lambda text: parse_number(text) if text.strip() else UNSTATED)
    known = (stated >= 0) & (stated <= 1) | (stated == UNSTATED)
    problems.add(frame.assign(_text=frame[column]), ~known, f"{column} is '{{_text}}'; expected a number from 0 to 1")
    return np.where(known & (stated != UNSTATED), stated, np.nan).astype(np.float32)


def assemble(
    rows: pd.DataFrame,
    problems: Problems,
    factors: Sequence[Factor],
    rubric: Rubric,
    raters: Mapping[str, Kind] | None = None,
) -> RatingTable:
    """Build a table from rows of edit × judge; `raters` are its first raters, even without rows."""
    edit = _numbered(rows, EDIT_KEY)
    first = _first(edit)
    _refuse_repeats(rows, _numbered(rows, [*EDIT_KEY, "judge"]), problems)
    for column in ("outcome", "request_id"):
        _refuse_changes(rows, edit, column, "edit", problems)
    single = rows[(rows["experiment"] != Experiment.STEREOTYPE).to_numpy()]
    for column in (BLOCK, *(f.name for f in factors)):
        _refuse_changes(single, _numbered(single, ["source_id"]), column, "source_id", problems)
    rated = (rows["judge"] != "").to_numpy()
    ratings, rated_edit = rows[rated], edit[rated]
    _refuse_changes(ratings, _numbered(ratings, ["judge"]), "kind", "judge", problems)
    problems.check()
    edits = _edits(rows.iloc[first].reset_index(drop=True), factors)
    ratings = ratings.assign(_request=edits["request_id"].to_numpy(dtype=object)[rated_edit])
    known = raters or {}
    sources = [
        CsvRatings(
            kind, ratings[(ratings["kind"] == kind).to_numpy()], rubric, [r for r, k in known.items() if k is kind]
        )
        for kind in KINDS
    ]
    return build_table(edits, factors, sources, asks=_axes_by_prompt(rows), rubric=rubric)


def _edits(rows: pd.DataFrame, factors: Sequence[Factor]) -> pd.DataFrame:
    """Return one row for each edit, with the file's request id if it is unique."""
    edits = rows.assign(**{c: rows[c].astype(str) for c in edit_columns(factors) if c != "seed"})
    composed = edits["experiment"]
    for column in EDIT_KEY[1:]:
        composed = composed + "/" + edits[column].astype(str)
    is_unique = (edits["request_id"] != "") & ~edits["request_id"].duplicated(keep=False)
    edits["request_id"] = edits["request_id"].where(is_unique, composed)
    edits["seed"] = edits["seed"].astype(np.int64)
    if (edits[BLOCK] == "").all():
        return edits[list(edit_columns(factors))]
    edits[BLOCK] = edits[BLOCK].astype(str).where(edits[BLOCK] != "", edits["source_id"].astype(str))
    return edits[[*edit_columns(factors), BLOCK]]


@dataclass(frozen=True, slots=True)
class CsvRatings:
    """What raters of one kind answered, from rows of CSV files."""

    kind: Kind
    rows: pd.DataFrame
    """One row for each edit and rater, the edit's id in `_request`."""
    rubric: Rubric
    first: Sequence[str] = ()
    """Raters that come first, in this order."""

    @property
    def raters(self) -> Sequence[str]:
        """The raters in the order of the files."""
        return [str(name) for name in dict.fromkeys([*self.first, *self.rows["judge"]])]

    def ratings(self) -> Iterator[Rating]:
        """Yield every answer, and for a call without any its outcome."""
        columns = self.rubric.columns
        values = self.rows[list(columns)].to_numpy()
        stated = self.rows[[f"{CONFIDENCE}{column}" for column in columns]].to_numpy().tolist()
        by_call = np.array([self.kind is Kind.HUMAN or self.rubric.in_main_call(column) for column in columns])
        is_rated = np.any(values[:, by_call], axis=1).tolist()
        for request, rater, status, rated, answers, sure in zip(
            self.rows["_request"], self.rows["judge"], self.rows["status"], is_rated, values, stated, strict=True
        ):
            if status != "" and not rated:
                yield Rating(request, "", str(rater), self.kind, Status(str(status)))
            ended = Status(str(status)) if rated else Status.SCORED
            for at in np.flatnonzero(answers):
                confidence = None if isnan(sure[at]) else sure[at]
                yield Rating(
                    request, columns[at], str(rater), self.kind, ended, int(answers[at]), confidence=confidence
                )


def _refuse_repeats(rows: pd.DataFrame, key: NDArray[np.int64], problems: Problems) -> None:
    """Report rows that repeat an edit and judge."""
    earlier = _first(key)[key]
    repeated = earlier != np.arange(len(rows))
    if repeated.any():
        with_first = rows.assign(
            _first_place=rows["_place"].to_numpy()[earlier], _first_line=rows["_line"].to_numpy()[earlier]
        )
        problems.add(with_first, repeated, "the same edit and judge as {_first_place} {_first_line}")


def _refuse_changes(rows: pd.DataFrame, owner: NDArray[np.int64], column: str, what: str, problems: Problems) -> None:
    """Report rows whose value differs from the first row of the same owner."""
    earlier = _first(owner)[owner]
    codes = rows[column].cat.codes.to_numpy()
    changed = codes != codes[earlier]
    if changed.any():
        with_earlier = rows.assign(_earlier=rows[column].to_numpy()[earlier])
        message = f"{column} is '{{{column}}}' but '{{_earlier}}' on an earlier row of the same {what}"
        problems.add(with_earlier, changed, message)


def _known(rows: pd.DataFrame, column: str, known: Iterable[str], problems: Problems) -> None:
    names = [str(name) for name in known]
    expected = ", ".join(name for name in names if name)
    bad = ~rows[column].isin(names).to_numpy()
    problems.add(rows, bad, f"{column} is '{{{column}}}'; expected one of: {expected}")


def _levels(frame: pd.DataFrame, factor: Factor, problems: Problems) -> pd.Series[Any]:
    """Return the codes of a factor's labels; an empty label is missing."""
    unknown, name = "?", factor.name

    def code(label: str) -> str:
        try:
            return factor.code_of(label)
        except EvenEditError:
            return unknown

    codes = texts(frame[name], code)
    bad = (codes == unknown).to_numpy()
    codes_shown = ", ".join(factor.codes).replace("{", "{{").replace("}", "}}")
    problems.add(frame, bad, f"{name} is '{{{name}}}'; expected one of: {codes_shown}")
    return codes


def _asks(frame: pd.DataFrame, problems: Problems, rubric: Rubric) -> pd.Series[Any]:
    """Return the axes that the prompts ask to change, in the rubric's order."""
    unknown = "?"

    def axes(text: str) -> str:
        try:
            names = text.replace(",", " ").replace(ASKED_BETWEEN, " ").split()
            return ASKED_BETWEEN.join(asked_axes(names, rubric=rubric))
        except EvenEditError:
            return unknown

    parsed = texts(frame["asks"], axes)
    known = ", ".join(rubric.askable)
    problems.add(frame, (parsed == unknown).to_numpy(), f"asks is '{{asks}}'; expected axes with ; between: {known}")
    return parsed


def _axes_by_prompt(rows: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Return the axes that each prompt asks to change."""
    axes_by_prompt: dict[str, str] = {}
    for prompt, axes in rows[["prompt_id", "asks"]].astype(str).drop_duplicates().itertuples(index=False, name=None):
        if axes and axes_by_prompt.setdefault(prompt, axes) != axes:
            raise EvenEditError(
                f"prompt '{prompt}' asks for '{axes_by_prompt[prompt]}' in one row and for '{axes}' in another"
            )
    return {prompt: tuple(axes.split(ASKED_BETWEEN)) for prompt, axes in axes_by_prompt.items()}


def _seed(text: str) -> str:
    """Normalise a seed; empty if there is none."""
    try:
        seed = int(_or_else(OPTIONAL["seed"], text).removesuffix(".0"))
    except ValueError:
        return ""
    return str(seed) if abs(seed) < 2**63 else ""


def _or_else(other: str, text: str) -> str:
    return text.strip() or other


def texts(column: pd.Series[Any], read: Callable[[str], str]) -> pd.Series[Any]:
    """`read` of each row's text, done once for each distinct text."""
    texts = column.astype("category").cat.remove_unused_categories().cat
    codes, names = pd.factorize(np.array([read(str(text)) for text in texts.categories], dtype=object))
    return pd.Series(pd.Categorical.from_codes(codes[texts.codes], pd.Index(names)), index=column.index)


def _numbers(column: pd.Series[Any], read: Callable[[str], float | None]) -> NDArray[np.float64]:
    """`read` of each row's text as a number, NaN where it is None."""
    texts = column.astype("category").cat.remove_unused_categories().cat
    numbers = np.array([read(str(text)) for text in texts.categories], dtype=np.float64)
    return np.asarray(numbers[texts.codes])


def _numbered(rows: pd.DataFrame, columns: list[str]) -> NDArray[np.int64]:
    """Assign numbers to rows in order of appearance; rows that agree in all these columns share one."""
    number = np.zeros(len(rows), dtype=np.int64)
    for column in columns:
        texts = rows[column].cat
        number = pd.factorize(number * len(texts.categories) + texts.codes)[0]
    return number.astype(np.int64)


def _first(number: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first row with each number."""
    first = np.zeros(number.max(initial=-1) + 1, dtype=np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]
    return first


def stacked(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Frames one under the other; a column that one of them lacks is empty there."""
    stacked: dict[str, Any] = {}
    for name in dict.fromkeys(name for frame in frames for name in frame.columns):
        parts = [frame[name] if name in frame.columns else _empty(frame) for frame in frames]
        is_text = isinstance(parts[0].dtype, pd.CategoricalDtype)
        stacked[name] = union_categoricals(parts) if is_text else np.concatenate(parts)
    return pd.DataFrame(stacked)
