"""Read the requests of a study from a table, where editors made different edits."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from evenedit.config.study_file import EditorSection, StudyFile
from evenedit.core.errors import EvenEditError
from evenedit.core.records import Prompt, Source

NEEDED = ("source", "prompt")


class ListedRequest(NamedTuple):
    """One row of the table."""

    source: str
    """The portrait's id."""
    prompt: Prompt
    how: tuple[EditorSection, int]
    """The editor and its seed."""


def listed_requests(file: StudyFile, sources: Mapping[str, Source], name: str) -> list[ListedRequest]:
    """Read the rows of a table in the study's folder with their portraits, prompts and editors.

    A row without a seed stands for every seed of its editor.
    """
    path = file.folder / name
    portraits = {source.origin: source.id for source in sources.values()} | {ident: ident for ident in sources}
    prompts = {p.text: p for p in file.prompts} | {p.id: p for p in file.prompts}
    editors = {editor.id: editor for editor in file.editors("diagnosis")}
    only = next(iter(editors)) if len(editors) == 1 else ""
    requests: list[ListedRequest] = []
    for line, row in enumerate(_rows(path), 2):
        editor = row.get("editor") or only
        for what, value, known in (
            ("source", row["source"], portraits),
            ("prompt", row["prompt"], prompts),
            ("editor", editor, editors),
        ):
            if value not in known:
                raise EvenEditError(f"{path} line {line}: {what} '{value}' is not in the study")
        section = editors[editor]
        seeds = [_seed(row["seed"], f"{path} line {line}")] if row.get("seed") else section.seeds
        requests += [ListedRequest(portraits[row["source"]], prompts[row["prompt"]], (section, seed)) for seed in seeds]
    return requests


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
    except OSError as error:
        raise EvenEditError(f"experiments.diagnosis.requests: {path} cannot be read ({error.strerror})") from None
    absent = [column for column in NEEDED if column not in (reader.fieldnames or ())]
    if absent:
        raise EvenEditError(f"experiments.diagnosis.requests: {path} lacks the column {', '.join(absent)}")
    return rows


def _seed(text: str, where: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise EvenEditError(f"{where}: seed is '{text}', not an integer") from None
