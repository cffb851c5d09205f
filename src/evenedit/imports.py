"""Other people's score tables in: CSV files, one row per edit and judge, become one `RatingTable`.

Scores need the columns of SCORE_COLUMNS, verdicts those of VERDICT_COLUMNS; which one a file is, its columns
tell. Nothing is guessed or clamped: rows that cannot be read are listed with their line numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.protocol import AXES, FACTORS, QUESTIONS, VERDICTS, PromptSet, level_code, load_prompts
from evenedit.protocol.prompts import BUILT_IN, merge
from evenedit.ratings import EDIT_COLUMNS, NOT_ASKED, QUESTION_IDS, STATUSES, RatingTable
from evenedit.records import Experiment, Kind, Outcome, Status, UserError

_COMMON = ("experiment", "condition", "editor", "prompt_id", "judge", "status")
SCORE_COLUMNS = (*_COMMON, "source_id", *(f.id for f in FACTORS), *AXES)
"""Columns of a file of scores."""
VERDICT_COLUMNS = (*_COMMON, "verdict")
"""Columns of a file of stereotype verdicts."""
OPTIONAL = {"seed": "0", "outcome": Outcome.EDITED.value, "kind": Kind.VLM.value, "request_id": "", "source_id": ""}
"""Columns a file may have, and what holds where they are absent or empty."""
SHOWN = 20
"""At most so many bad rows are listed."""
KINDS = (Kind.VLM, Kind.INSTRUMENT, Kind.HUMAN)
"""The order of raters in a table; within a kind, the order of the files."""
EDIT_KEY = ["experiment", "condition", "editor", "source_id", "prompt_id", "seed"]


@dataclass(slots=True)
class _Problems:
    """Bad rows, as they are found."""

    rows: list[tuple[str, int, str]] = field(default_factory=list)
    count: int = 0

    def add(self, frame: pd.DataFrame, bad: NDArray[np.bool_], message: str) -> None:
        """Note every bad row; only the first few are put in words, the message's {column}s filled in."""
        self.count += int(bad.sum())
        for at in np.flatnonzero(bad)[:SHOWN]:
            row = {str(name): value for name, value in frame.iloc[at].items()}
            self.rows.append((row["_file"], int(row["_line"]), message.format_map(row)))

    def check(self) -> None:
        """Stop if anything was noted."""
        if self.count:
            shown = [f"{file} line {line}: {text}" for file, line, text in sorted(self.rows)[:SHOWN]]
            more = self.count - len(shown)
            raise UserError(*shown, *([f"and {more} more"] if more else []))


def read_tables(paths: Sequence[Path], prompt_sets: Sequence[PromptSet] = ()) -> RatingTable:
    """Read score and verdict files as one table; `prompt_sets` beside the built-in ones tell further prompts."""
    frames = [_read(Path(path)) for path in paths]
    if not frames:
        raise UserError("no file to read; give at least one CSV of scores or verdicts")
    problems = _Problems()
    rows = pd.concat([_checked(frame, problems) for frame in frames], ignore_index=True)
    problems.check()
    prompts = merge([*(load_prompts(name) for name in BUILT_IN), *prompt_sets])
    found = prompts.resolve_all(rows["prompt_id"].unique())
    targeted = rows["prompt_id"].map({name: bool(p.target_years) for name, p in found.items()}).to_numpy(bool)
    rows["prompt_id"] = rows["prompt_id"].map({name: p.id for name, p in found.items()})
    for question in QUESTIONS.values():
        if question.replaces:
            old, new = question.replaces, question.id
            rows[new] = np.where(targeted, rows[old], 0)
            rows[old] = np.where(targeted, 0, rows[old])
    return _assemble(rows, problems)


def _read(path: Path) -> pd.DataFrame:
    """One file as text, with the name and line of each row."""
    try:
        frame = pd.read_csv(
            path, dtype=str, keep_default_na=False, encoding="utf-8-sig", skip_blank_lines=False,
            index_col=False, on_bad_lines="error",
        )  # fmt: skip
    except FileNotFoundError:
        raise UserError(f"{path} is not there; give the path of a CSV file") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder; give the path of a CSV file") from None
    except PermissionError:
        raise UserError(f"{path} cannot be read: permission denied") from None
    except pd.errors.EmptyDataError:
        raise UserError(f"{path} is empty; expected a CSV file with a header") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not a UTF-8 text; save it as CSV in UTF-8") from None
    except (pd.errors.ParserError, ValueError) as error:
        raise UserError(f"{path} is not a CSV file: {error}") from None
    frame.columns = [str(name).strip() for name in frame.columns]
    wanted = VERDICT_COLUMNS if "verdict" in frame.columns else SCORE_COLUMNS
    missing = [name for name in wanted if name not in frame.columns]
    if missing:
        shown = ", ".join(name[:40] for name in frame.columns[:30])
        raise UserError(f"{path} lacks the columns: {', '.join(missing)}", f"  it has: {shown}")
    frame = frame.loc[:, ~frame.columns.duplicated()]
    frame = frame.reindex(columns=[*wanted, *(c for c in OPTIONAL if c not in wanted)], fill_value="").fillna("")
    frame = frame.assign(_file=path.name, _line=np.arange(2, len(frame) + 2))
    frame = frame[(frame[list(wanted)] != "").any(axis=1)]
    if frame.empty:
        raise UserError(f"{path} has a header but no rows")
    return frame


def _checked(frame: pd.DataFrame, problems: _Problems) -> pd.DataFrame:
    """The rows with codes for texts: each distinct text is read once."""
    out = frame[["_file", "_line"]].copy()
    is_verdict = "verdict" in frame.columns
    for column in (*_COMMON, "source_id", "request_id"):
        out[column] = _each(frame[column], str.strip)
    for column in ("seed", "outcome", "kind"):
        out[column] = _each(frame[column], lambda text, empty=OPTIONAL[column]: text.strip() or empty)
    allowed = [Experiment.STEREOTYPE] if is_verdict else [Experiment.DIAGNOSIS, Experiment.MITIGATION]
    no_judge = (out["judge"] == "") & (out["status"] == "") & (out["outcome"] != Outcome.EDITED)
    for column, known in (("experiment", allowed), ("outcome", list(Outcome)), ("kind", list(KINDS))):
        _known(out, problems, column, known)
    _known(out, problems, "status", list(Status), ignore=no_judge.to_numpy())
    for column in ("condition", "editor", "prompt_id", *(() if is_verdict else ("source_id",))):
        problems.add(out, (out[column] == "").to_numpy(), f"{column} is empty")
    problems.add(out, ((out["judge"] == "") & ~no_judge).to_numpy(), "judge is empty")
    seeds = _each(out["seed"], _whole)
    problems.add(out, seeds.isna().to_numpy(), "seed '{seed}' is not a whole number")
    out["seed"] = seeds.fillna(0).astype(np.int64)
    for factor in FACTORS:
        out[factor.id] = "" if is_verdict else _levels(frame, factor.id, problems)
    _answers(frame, out, is_verdict, problems)
    return out


def _answers(frame: pd.DataFrame, out: pd.DataFrame, is_verdict: bool, problems: _Problems) -> None:
    """Fill in every question's value code."""
    columns = {"stereotype": "verdict"} if is_verdict else {axis: axis for axis in AXES}
    scored = (out["status"] == Status.SCORED).to_numpy()
    impossible = scored & (out["outcome"] != Outcome.EDITED).to_numpy()
    problems.add(out, impossible, "status is scored but the outcome is {outcome}")
    for question in QUESTION_IDS:
        out[question] = np.zeros(len(out), dtype=np.int8)
    for question, column in columns.items():
        text = _each(frame[column], str.strip)
        value = _each(text, _verdict if is_verdict else _score)
        unknown = value.isna().to_numpy() | (is_verdict & scored & (text == "").to_numpy())
        expected = f"one of: {', '.join(VERDICTS)}" if is_verdict else "a whole number from 1 to 5"
        shown = out.assign(_text=text)
        problems.add(shown, unknown, f"{column} is '{{_text}}'; expected {expected}")
        value = value.fillna(0).astype(np.int8)
        problems.add(
            shown,
            ~scored & (value > 0).to_numpy(),
            f"{column} is '{{_text}}' but the status is '{{status}}'",
        )
        out[question] = value


def _assemble(rows: pd.DataFrame, problems: _Problems) -> RatingTable:
    """Rows of edit × judge as a table of edits and a cube of answers."""
    edit = rows.groupby(EDIT_KEY, sort=False).ngroup().to_numpy().astype(np.int64)
    first = np.zeros(edit.max() + 1, dtype=np.int64)
    first[edit[::-1]] = np.arange(len(rows))[::-1]
    rated = rows["judge"] != ""
    _same_twice(rows, edit, problems)
    for column in ("outcome", "request_id"):
        _consistent(rows, pd.Series(edit), column, "the same edit", problems)
    for factor in FACTORS:
        single = (rows["experiment"] != Experiment.STEREOTYPE).to_numpy()
        _consistent(rows[single], rows["source_id"][single], factor.id, "the same source_id", problems)
    _consistent(rows[rated], rows["judge"][rated], "kind", "the same judge", problems)
    problems.check()
    kind_of = dict(zip(rows["judge"][rated], rows["kind"][rated], strict=True))
    raters = sorted(rows["judge"][rated].unique(), key=lambda name: KINDS.index(Kind(kind_of[name])))
    judge = rows["judge"][rated].map({name: at for at, name in enumerate(raters)}).to_numpy(np.int64)
    values = np.zeros((len(raters), len(first), len(QUESTION_IDS)), dtype=np.int8)
    values[judge, edit[rated]] = rows.loc[rated, list(QUESTION_IDS)].to_numpy(np.int8)
    status = np.full((len(raters), len(first)), NOT_ASKED, dtype=np.int8)
    codes = {s.value: at for at, s in enumerate(STATUSES)}
    status[judge, edit[rated]] = rows["status"][rated].map(codes).to_numpy(np.int8)
    edits = rows.iloc[first].reset_index(drop=True)
    composed = edits["experiment"]
    for column in EDIT_KEY[1:]:
        composed = composed + "/" + edits[column].astype(str)
    edits["request_id"] = edits["request_id"].where(edits["request_id"] != "", composed)
    return RatingTable(
        edits[list(EDIT_COLUMNS)], tuple(raters), tuple(Kind(kind_of[r]) for r in raters), values, status
    )


def _same_twice(rows: pd.DataFrame, edit: NDArray[np.int64], problems: _Problems) -> None:
    key = pd.DataFrame({"edit": edit, "judge": rows["judge"]})
    again = key.duplicated().to_numpy()
    if again.any():
        earlier = rows.assign(_edit=edit).groupby(["_edit", "judge"], sort=False)[["_file", "_line"]]
        first = earlier.transform("first").rename(columns={"_file": "_first_file", "_line": "_first_line"})
        message = "the same edit and judge as {_first_file} line {_first_line}"
        problems.add(pd.concat([rows, first], axis=1), again, message)


def _consistent(rows: pd.DataFrame, owner: pd.Series[Any], column: str, what: str, problems: _Problems) -> None:
    """Every row of one owner must have the value of its first row."""
    expected = rows[column].groupby(owner.to_numpy(), sort=False).transform("first")
    problems.add(
        rows.assign(_expected=expected),
        (rows[column] != expected).to_numpy(),
        f"{column} is '{{{column}}}' but '{{_expected}}' on an earlier row of {what}",
    )


def _known(
    rows: pd.DataFrame,
    problems: _Problems,
    column: str,
    known: Iterable[str],
    ignore: NDArray[np.bool_] | None = None,
) -> None:
    names = [str(name) for name in known]
    bad = ~rows[column].isin(names).to_numpy()
    if ignore is not None:
        bad &= ~ignore
    problems.add(rows, bad, f"{column} is '{{{column}}}'; expected one of: {', '.join(names)}")


def _levels(frame: pd.DataFrame, factor: str, problems: _Problems) -> pd.Series[str]:
    """The codes of a factor's labels."""

    def code(label: str) -> str | None:
        try:
            return level_code(factor, label)
        except UserError:
            return None

    codes = _each(frame[factor], code)
    known = ", ".join(next(f for f in FACTORS if f.id == factor).codes)
    problems.add(frame, codes.isna().to_numpy(), f"{factor} is '{{{factor}}}'; expected one of: {known}")
    return codes.fillna("")


def _each(column: pd.Series[str], read: Callable[[str], Any]) -> pd.Series[Any]:
    """Apply `read` to each distinct text."""
    return column.map({text: read(text) for text in column.unique()})


def _score(text: str) -> int | None:
    """1 to 5, 0 where there is no text, None where it is anything else. "4.0" is how some tools write 4."""
    if text == "":
        return 0
    number = text.removesuffix(".0")
    return int(number) if number in ("1", "2", "3", "4", "5") else None


def _verdict(text: str) -> int | None:
    if text == "":
        return 0
    return VERDICTS.index(text) + 1 if text in VERDICTS else None


def _whole(text: str) -> int | None:
    try:
        return int(text.removesuffix(".0"))
    except ValueError:
        return None
