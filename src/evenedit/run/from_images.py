"""Make a study from existing images: a table of pairs in, a study folder out."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from evenedit.config.check import RESERVED
from evenedit.config.sections import FACTOR_NAME
from evenedit.config.study_file import FILE, StudyFile
from evenedit.core import plugins
from evenedit.core.errors import EvenEditError
from evenedit.core.images import PICTURES, write_whole
from evenedit.core.records import Prompt
from evenedit.protocol import FACTORS, Factor, found_factor, load_prompts
from evenedit.run.pair_prompts import known_set, prompts_of
from evenedit.run.pair_table import PairTable, need_columns, read_csv, write_csv
from evenedit.run.pairs import GivenPair, PairChecker, Row

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_FACTORS = tuple(f.name for f in FACTORS)
PAIRS, PROMPTS = "pairs.csv", "prompts.toml"
"""Files of the study: its edits, and what they asked for."""

Factors = Sequence[str | Factor] | None
"""Columns to group by, or factors with their levels; race, gender and age when None."""


def begin(
    pairs: Path | pd.DataFrame | PairTable,
    out: Path,
    *,
    editor: str,
    sources: Path | None = None,
    edited: Path | None = None,
    prompts: str | None = None,
    factors: Factors = None,
    instruments: Sequence[str] | None = None,
) -> Path:
    """Write a study over existing pairs: portraits and labels, prompts, and a study file to run.

    Everything is checked before the first file is written. A folder that holds an audit of the same pairs is left as
    it is, so that the audit goes on; one of other pairs is refused. Without `instruments`, all that can read are used.
    """
    unready = instruments_at_hand() if instruments is None else {}
    kinds = [kind for kind, why in unready.items() if not why] if instruments is None else instruments
    names = DEFAULT_FACTORS if factors is None else _checked_names([_name(f) for f in factors])
    table = PairTable.read(pairs)
    table.check_columns(names)
    known = {f.name: f for f in factors or () if isinstance(f, Factor)}
    folders = sources or table.folder, edited or table.folder
    checker = PairChecker(table, *folders, editor, names, known, declared=factors is not None)
    checked = checker.pairs(prompts_of(table, known_set(prompts)))
    groups = [] if factors is None else [known.get(name) or _factor_of(name, checked, table.name) for name in names]
    files = _files(table, checked, groups, out, kinds)
    if (out / FILE).exists():
        _refuse_other_pairs(out, files)
        if table.uses("asks") or table.uses("asks_for"):
            _update_asks(out, files[PROMPTS])
        return out
    StudyFile.parse(tomllib.loads(files[FILE]) | {"prompts": {"sets": ["diagnostic"]}}, out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise EvenEditError(f"{out} is a file; name a folder for the audit") from None
    for name, text in files.items():
        write_whole(out / name, text.encode())
    return out


def instruments_at_hand() -> dict[str, str]:
    """Return every installed kind of instrument with the reason why it cannot read; empty where it can."""
    reasons = {}
    for kind in plugins.installed("instruments"):
        problems = "; ".join(plugins.problems("instruments", kind, {}))
        reasons[kind] = problems or getattr(plugins.build("instruments", kind, {}), "unready", "")
    return reasons


def _files(
    table: PairTable, pairs: Sequence[GivenPair], factors: Sequence[Factor], out: Path, instruments: Sequence[str]
) -> dict[str, str]:
    """Return the study's files by name."""
    portraits = {pair.source: dict(pair.labels) for pair in pairs}
    for factor in factors:
        for labels in portraits.values():
            labels[factor.name] = factor.code_of(labels[factor.name])
    files = {table.name: table.to_csv(out)} if table.is_new else {}
    return files | {
        "labels.csv": write_csv([{"file": os.path.relpath(s, out), **labels} for s, labels in portraits.items()]),
        PAIRS: write_csv([_written(table, pair, out) for pair in pairs]),
        PROMPTS: _prompt_file({pair.prompt.id: pair.prompt for pair in pairs}.values()),
        FILE: _study_file(pairs, table, factors, instruments),
    }


def _written(table: PairTable, pair: GivenPair, out: Path) -> Row:
    """Return a row of the study's table, with editor and seed if the input table has them."""
    row = {
        "source": os.path.relpath(pair.source, out),
        "edited": os.path.relpath(pair.edited, out) if pair.edited else "",
        "prompt": pair.prompt.text,
        "refused": pair.refused,
    }
    if table.uses("editor"):
        row["editor"] = pair.editor
    if table.uses("seed"):
        row["seed"] = "" if pair.seed is None else str(pair.seed)
    return row


def _name(factor: str | Factor) -> str:
    return factor.name if isinstance(factor, Factor) else factor


def _refuse_other_pairs(out: Path, files: Mapping[str, str]) -> None:
    """Raise an error if a folder holds an audit of other pairs."""
    for name in (PAIRS, "labels.csv"):
        path = out / name
        if not path.is_file() or path.read_bytes() != files[name].encode():
            raise EvenEditError(f"{out} holds a study of other pairs; choose another folder to write to")


def _update_asks(out: Path, text: str) -> None:
    """Rewrite what the prompts ask to change, if their ids and texts are unchanged."""
    now, before = tomllib.loads(text), load_prompts(PROMPTS, out)
    if [(p["id"], p["text"]) for p in now["prompts"]] == [(p.id, p.text) for p in before]:
        write_whole(out / PROMPTS, text.encode())


def table_of(
    edited: Path, pattern: str, sources: Path, prompts: str | None, factors: Sequence[str] | None = None
) -> PairTable:
    """Make a table of pairs from files whose names follow a pattern such as `{prompt}_{source}.jpg`.

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
    matches = [m for m in (re.fullmatch(shape, p.name) for p in sorted(edited.iterdir())) if m and m["source"] in names]
    if not matches:
        raise EvenEditError(f"no file in {edited} matches '{pattern}' with a source in {sources}")
    known = known_set(prompts).resolve_all(m["prompt"] for m in matches)
    rows = [
        {
            "source": str(names[m["source"]]),
            "edited": str(edited / m.string),
            "prompt": known[m["prompt"]].text,
            "prompt_id": known[m["prompt"]].id,
            **labels[m["source"]],
        }
        for m in matches
    ]
    return PairTable(rows, list(rows[0]), "edits.csv", "line", 2, Path(), is_new=True)


def _labels(sources: Path, names: Mapping[str, Path], factors: Sequence[str] | None) -> dict[str, Row]:
    """Return the labels of the sources by file name without suffix."""
    table = sources / "labels.csv"
    if table.is_file():
        labels = _label_file(table, DEFAULT_FACTORS if factors is None else _checked_names(factors))
        unlisted = [name for name in names if name not in labels]
        if unlisted:
            raise EvenEditError(f"{table} has no row for '{names[unlisted[0]].name}'; add a row for each picture")
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
    rows, columns = read_csv(table)
    need_columns(table, ("file", *names), columns)
    return {Path(row["file"] or "").stem: {name: row[name] or "" for name in names} for row in rows}


def _checked_names(factors: Sequence[str]) -> tuple[str, ...]:
    """Return the factor names; raise an error for names that a study cannot have."""
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
        raise EvenEditError(*problems or ["--factors names no column; use e.g. --factors monk,headwear"])
    return tuple(factors)


def _factor_of(name: str, pairs: Iterable[GivenPair], table: str) -> Factor:
    """Make the factor of a column; its levels are its labels, independent of spelling."""
    labels = [pair.labels[name] for pair in pairs]
    every = found_factor(name, labels)
    used = {every.code_of(label) for label in labels}
    codes = [code for code in every.codes if code in used]
    if len(codes) < 2:
        raise EvenEditError(
            f"{table}: column '{name}' has one label only, '{codes[0]}'; a factor needs two levels to compare. "
            "Leave it out of --factors"
        )
    return Factor.of(name, codes, title=every.title, ordered=every.ordered)


def _prompt_file(prompts: Iterable[Prompt]) -> str:
    return tomli_w.dumps({"id": "audited", "prompts": [_prompt_table(p) for p in prompts]})


def _prompt_table(prompt: Prompt) -> dict[str, Any]:
    table: dict[str, Any] = {"id": prompt.id, "text": prompt.text, "category": prompt.category, "name": prompt.name}
    if prompt.target_years is not None:
        table["target_years"] = prompt.target_years
    wanted = {"asks": prompt.asks, "asks_for": prompt.asks_for}
    return table | {name: list(values) for name, values in wanted.items() if values}


def _study_file(
    pairs: Sequence[GivenPair], table: PairTable, factors: Sequence[Factor], instruments: Sequence[str]
) -> str:
    study: dict[str, Any] = {
        "study": {"title": f"Audit of {table.name}"},
        "sources": {"kind": "folder", "settings": {"path": "."}},
    }
    if factors:
        study["factors"] = [
            {"name": f.name, "title": f.title, "levels": list(f.codes), "ordered": f.ordered} for f in factors
        ]
    study |= {
        "prompts": {"sets": [PROMPTS]},
        "experiments": {"diagnosis": {"requests": PAIRS}},
        "editors": _editors(pairs),
        "instruments": [{"id": name, "kind": name} for name in instruments],
    }
    return f"{_ABOVE}\n{tomli_w.dumps(study)}\n{_BELOW}"


def _editors(pairs: Sequence[GivenPair]) -> list[dict[str, Any]]:
    """Return one editor section for each editor of the pairs, with its seeds if there are any."""
    names = list(dict.fromkeys(pair.editor for pair in pairs))
    editors = []
    for name in names:
        settings = {"path": PAIRS} | ({"editor": name} if len(names) > 1 else {})
        seeds = list(dict.fromkeys(p.seed for p in pairs if p.editor == name and p.seed is not None))
        editors.append({"id": name, "kind": "folder"} | ({"seeds": seeds} if seeds else {}) | {"settings": settings})
    return editors


_ABOVE = """\
# Written by evenedit audit. Add judges, then: evenedit run . && evenedit report .
# The instruments measure pixels: they need no key and cost nothing.
"""
_BELOW = """\
# [[judges]]                # primary judge first; without judges the report shows measurements only
# id = "..."
# kind = "..."
"""
