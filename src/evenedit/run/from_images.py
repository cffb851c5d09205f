"""From images that somebody already has to a study: a table of pairs in, a study folder out."""

from __future__ import annotations

import csv
import io
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from evenedit.config.check import RESERVED
from evenedit.config.sections import FACTOR_NAME
from evenedit.config.study_file import FILE, StudyFile
from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.images import read_image, write_whole
from evenedit.core.records import Prompt
from evenedit.protocol import FACTORS, Factor, found_factor, level_code, load_prompts

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_FACTORS = tuple(f.name for f in FACTORS)
NEEDED = ("source", "edited", "prompt")
PICTURES = (".png", ".jpg", ".jpeg", ".webp")
SHOWN = 20
"""Problems listed before the rest are counted."""

Row = dict[str, str]
Factors = Sequence[str | Factor] | None
"""Columns to group by, or factors with their levels; race, gender and age when None."""


@dataclass(frozen=True, slots=True)
class PairTable:
    """A table of pairs, from a CSV or a data frame."""

    rows: list[dict[str, Any]]
    columns: list[str]
    name: str
    """What to call it in messages and titles."""
    line: str
    """What to call one row: line or row …"""
    first: int
    """… and the number of the first."""
    folder: Path
    """What its paths are relative to."""

    @classmethod
    def read(cls, pairs: Path | pd.DataFrame) -> PairTable:
        """Read a CSV file, or take a data frame, whose paths are relative to the working directory."""
        if isinstance(pairs, str | os.PathLike):
            rows, columns = _read_csv(Path(pairs))
            return cls(rows, columns, Path(pairs).name, "line", 2, Path(pairs).parent)
        if not hasattr(pairs, "to_dict") or not hasattr(pairs, "columns"):
            raise EvenEditError(f"pairs is of type {type(pairs).__name__}; give a CSV file or a pandas DataFrame")
        columns = [str(column) for column in pairs.columns]
        rows = [
            {str(key): "" if value is None or value != value else str(value) for key, value in row.items()}
            for row in pairs.to_dict("records")
        ]
        return cls(rows, columns, "the data frame", "row", 0, Path())


def begin(
    pairs: Path | pd.DataFrame,
    out: Path,
    *,
    editor: str,
    sources: Path | None = None,
    edited: Path | None = None,
    prompts: str | None = None,
    factors: Factors = None,
    instruments: Sequence[str] = ("skin", "change"),
) -> Path:
    """Write a study over existing pairs: portraits and labels, prompts, and a study file to run.

    Everything is checked before the first file is written. A folder that holds an audit of the same pairs is left as
    it is, so that the audit goes on; one of other pairs is refused.
    """
    names = DEFAULT_FACTORS if factors is None else _checked_names([_name(f) for f in factors])
    table = PairTable.read(pairs)
    known = {f.name: f for f in factors or () if isinstance(f, Factor)}
    rows = _rows(table, sources or table.folder, edited or table.folder, names, known, declared=factors is not None)
    found = [] if factors is None else [known.get(name) or _factor_of(name, rows, table.name) for name in names]
    portraits = {row["source"]: {name: row[name] for name in names} for row in rows}
    for factor in found:
        for labels in portraits.values():
            labels[factor.name] = factor.code_of(labels[factor.name])
    relative = {name: os.path.relpath(name, out) for row in rows for name in (row["source"], row["edited"])}
    asked = _prompts(rows, prompts)
    files = {
        "labels.csv": _csv([{"file": relative[s], **labels} for s, labels in portraits.items()]),
        "pairs.csv": _csv(
            [
                {
                    "source": relative[r["source"]],
                    "edited": relative[r["edited"]],
                    "prompt": asked[r["prompt"]].text,
                    "refused": "",
                }
                for r in rows
            ]
        ),
        "prompts.toml": _prompt_file(asked),
        FILE: _study_file(editor, table.name, found, instruments),
    }
    if (out / FILE).exists():
        _refuse_other_pairs(out, files)
        return out
    StudyFile.parse(tomllib.loads(files[FILE]) | {"prompts": {"sets": ["diagnostic"]}}, out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise EvenEditError(f"{out} is a file; name a folder for the audit") from None
    for name, text in files.items():
        write_whole(out / name, text.encode())
    return out


def _name(factor: str | Factor) -> str:
    return factor.name if isinstance(factor, Factor) else factor


def _refuse_other_pairs(out: Path, files: Mapping[str, str]) -> None:
    """Raise an error where a folder holds an audit of other pairs."""
    for name in ("pairs.csv", "labels.csv"):
        path = out / name
        if not path.is_file() or path.read_bytes() != files[name].encode():
            raise EvenEditError(f"{out} holds a study of other pairs; choose another folder to write to")


def table_of(
    edited: Path, pattern: str, sources: Path, prompts: str, out: Path, factors: Sequence[str] | None = None
) -> Path:
    """A table of pairs from files whose names follow a pattern such as `{prompt}_{source}.jpg`.

    `{source}` is the name of a file in `sources` without its ending, `{prompt}` an id of the prompt set. Labels come
    from labels.csv in `sources` (file and a column per factor), or else from names like Black_Female_30s.
    """
    if not {"{source}", "{prompt}"} <= set(re.findall(r"\{\w+\}", pattern)):
        raise EvenEditError(
            f"the pattern '{pattern}' needs {{source}} and {{prompt}}, e.g. '{{prompt}}_{{source}}.jpg'"
        )
    for folder in (edited, sources):
        if not folder.is_dir():
            raise EvenEditError(f"{folder}: no such folder")
    shape = re.escape(pattern).replace(r"\{source\}", "(?P<source>.+)").replace(r"\{prompt\}", "(?P<prompt>.+?)")
    names = {path.stem: path for path in sorted(sources.iterdir()) if path.suffix.lower() in PICTURES}
    labels = _labels(sources, names, factors)
    found = [m for m in (re.fullmatch(shape, p.name) for p in sorted(edited.iterdir())) if m and m["source"] in names]
    if not found:
        raise EvenEditError(f"no file in {edited} follows '{pattern}' with a source in {sources}")
    known = load_prompts(prompts).resolve_all(m["prompt"] for m in found)
    rows = [
        {
            "source": os.path.relpath(names[m["source"]], out),
            "edited": os.path.relpath(edited / m.string, out),
            "prompt": known[m["prompt"]].text,
            "prompt_id": known[m["prompt"]].id,
            **labels[m["source"]],
        }
        for m in found
    ]
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / "edits.csv", _csv(rows).encode())
    return out / "edits.csv"


def _labels(sources: Path, names: Mapping[str, Path], factors: Sequence[str] | None) -> dict[str, Row]:
    """Labels of the sources by file name without ending."""
    table = sources / "labels.csv"
    if table.is_file():
        labels = _label_file(table, DEFAULT_FACTORS if factors is None else _checked_names(factors))
        unlisted = [name for name in names if name not in labels]
        if unlisted:
            raise EvenEditError(f"{table} has no row for '{names[unlisted[0]].name}'; add one for every picture there")
        return labels
    if factors is not None:
        raise EvenEditError(f"--factors needs {table} with the columns {', '.join(('file', *factors))}")
    cells = {name: name.split("_")[: len(DEFAULT_FACTORS)] for name in names}
    unclear = [name for name, parts in cells.items() if len(parts) < len(DEFAULT_FACTORS)]
    if unclear:
        raise EvenEditError(
            f"{sources} has no labels.csv, and '{unclear[0]}' does not name {'_'.join(DEFAULT_FACTORS)}"
        )
    return {name: dict(zip(DEFAULT_FACTORS, parts, strict=True)) for name, parts in cells.items()}


def _label_file(table: Path, names: Sequence[str]) -> dict[str, Row]:
    rows, columns = _read_csv(table)
    _need_columns(table, ("file", *names), columns)
    return {Path(row["file"] or "").stem: {name: row[name] or "" for name in names} for row in rows}


def _checked_names(factors: Sequence[str]) -> tuple[str, ...]:
    """The names given as factors, refused where a study cannot have them."""
    problems = [f"--factors names '{name}' twice" for name in dict.fromkeys(factors) if factors.count(name) > 1]
    for name in dict.fromkeys(factors):
        if not re.fullmatch(FACTOR_NAME, name):
            problems.append(
                f"--factors: '{name}' cannot name a factor; rename the column: small letters, digits and _, "
                "a letter first"
            )
        elif name in RESERVED:
            problems.append(f"--factors: tables have a column '{name}' already; rename the column")
    if problems or not factors:
        raise EvenEditError(*problems or ["--factors names no column; give e.g. --factors monk,headwear"])
    return tuple(factors)


def _factor_of(name: str, rows: Iterable[Row], table: str) -> Factor:
    """The factor of a column: its levels are the labels found, each once whatever its spelling."""
    labels = [row[name] for row in rows]
    every = found_factor(name, labels)
    used = {every.code_of(label) for label in labels}
    codes = [code for code in every.codes if code in used]
    if len(codes) < 2:
        raise EvenEditError(
            f"{table}: column '{name}' has one label only, '{codes[0]}'; a factor needs two levels to compare. "
            "Leave it out of --factors"
        )
    return Factor.of(name, codes, title=every.title, ordered=every.ordered)


def _rows(
    table: PairTable,
    sources: Path,
    outputs: Path,
    names: Sequence[str],
    known: Mapping[str, Factor],
    *,
    declared: bool,
) -> list[Row]:
    """The rows with paths that exist, images that open and labels that are known; all problems at once."""
    rows, columns = table.rows, table.columns
    if "edited" not in columns and "file" in columns:
        rows = [{"edited" if key == "file" else key: value for key, value in row.items()} for row in rows]
        columns = ["edited" if column == "file" else column for column in columns]
    _need_columns(table.name, (*NEEDED, *names), columns)
    problems: list[str] = []
    good: list[Row] = []
    seen: dict[tuple[str, str], int] = {}
    labelled: dict[Path, tuple[int, Row]] = {}
    opened: set[Path] = set()
    for line, row in enumerate(rows, table.first):
        try:
            _need_cells(row)
            labels = {name: _label(name, row[name] or "", known.get(name), declared=declared) for name in names}
            files = {"source": sources / row["source"], "edited": outputs / row["edited"]}
            for path in set(files.values()) - opened:
                read_image(path)
                opened.add(path)
            _same_labels(labels, *labelled.setdefault(files["source"], (line, labels)))
            key = (row["source"], row["prompt"])
            if key in seen:
                raise EvenEditError(f"the same source and prompt as {table.line} {seen[key]}")
            seen[key] = line
            good.append({**row, **labels, **{k: str(p) for k, p in files.items()}})
        except EvenEditError as error:
            problems.append(f"{table.name} {table.line} {line}: {error}")
    if problems:
        more = [f"and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
        raise EvenEditError(*problems[:SHOWN], *more)
    if not good:
        raise EvenEditError(f"{table.name} lists no pairs")
    return good


def _label(name: str, label: str, factor: Factor | None, *, declared: bool) -> str:
    """A row's label; where race, gender and age are not asked for by name, each must be there."""
    if not declared:
        return level_code(name, label)
    known = factor or next((f for f in FACTORS if f.name == name), None)
    return known.code_of(label) if known else label.strip()


def _same_labels(labels: Row, first_line: int, first: Row) -> None:
    for name, label in labels.items():
        if label != first[name]:
            raise EvenEditError(
                f"{name} is '{label}' here and '{first[name]}' on line {first_line} for the same source"
            )


def _need_cells(row: Mapping[str, str | None]) -> None:
    empty = [column for column in NEEDED if not row[column]]
    if empty:
        raise EvenEditError(f"{', '.join(empty)} is empty")


def _need_columns(table: Path | str, needed: Sequence[str], columns: Sequence[str]) -> None:
    absent = [column for column in needed if column not in columns]
    if absent:
        raise EvenEditError(f"{table} lacks the column {', '.join(absent)}; found: {', '.join(columns) or 'nothing'}")


def _read_csv(table: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """A table's rows and columns; cells that a short row lacks are None."""
    try:
        reader = csv.DictReader(io.StringIO(table.read_text("utf-8-sig"), newline=""))
        return list(reader), list(reader.fieldnames or ())
    except FileNotFoundError:
        raise EvenEditError(f"{table}: no such file") from None
    except UnicodeDecodeError:
        raise EvenEditError(f"{table} is not UTF-8 text; save it as a UTF-8 CSV") from None
    except (OSError, csv.Error) as error:
        raise EvenEditError(f"{table} cannot be read as a CSV: {error}") from None


def _prompts(rows: list[Row], given: str | None) -> dict[str, Prompt]:
    """The prompts of the pairs as they are written there: by text, or by id where a prompt set is given.

    Known ones keep their id and meaning, others get the id beside them or a new one.
    """
    sets = [load_prompts(name) for name in ((given,) if given else ("diagnostic",))]
    known = {p.text: p for each in sets for p in each}
    if given:
        known |= {ident: p for each in sets for p in each for ident in (p.id, *p.aliases.values())}
    prompts: dict[str, Prompt] = {}
    for row in rows:
        text = row["prompt"]
        if text not in prompts:
            ident = row.get("prompt_id") or f"P-{digest(text)[:6]}"
            prompts[text] = known.get(text) or Prompt(ident, text, "Own", name=ident)
    return prompts


def _prompt_file(prompts: Mapping[str, Prompt]) -> str:
    return tomli_w.dumps({"id": "audited", "prompts": [_prompt_table(p) for p in prompts.values()]})


def _prompt_table(prompt: Prompt) -> dict[str, Any]:
    table: dict[str, Any] = {"id": prompt.id, "text": prompt.text, "category": prompt.category, "name": prompt.name}
    return table if prompt.target_years is None else table | {"target_years": prompt.target_years}


def _study_file(editor: str, title: str, factors: Sequence[Factor], instruments: Sequence[str]) -> str:
    study: dict[str, Any] = {
        "study": {"title": f"Audit of {title}"},
        "sources": {"kind": "folder", "settings": {"path": "."}},
    }
    if factors:
        study["factors"] = [
            {"name": f.name, "title": f.title, "levels": list(f.codes), "ordered": f.ordered} for f in factors
        ]
    study |= {
        "prompts": {"sets": ["prompts.toml"]},
        "experiments": {"diagnosis": {}},
        "editors": [{"id": editor, "kind": "folder", "settings": {"path": "pairs.csv"}}],
        "instruments": [{"id": name, "kind": name} for name in instruments],
    }
    return f"{_ABOVE}\n{tomli_w.dumps(study)}\n{_BELOW}"


_ABOVE = """\
# Made by evenedit audit. Add judges and go on with: evenedit run . && evenedit report .
# The instruments measure pixels: they need no key and cost nothing.
"""
_BELOW = """\
# [[judges]]                # who scores, primary first; without one the report shows what was measured
# id = "..."
# kind = "..."
"""


def _csv(rows: list[Row]) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()
