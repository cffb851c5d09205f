"""The requests of a study as a table lists them, where not every editor did everything."""

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
    """The rows of a table in the study's folder, with the portraits, prompts and editors they name.

    A row without a seed stands for every seed of its editor.
    """
    path = file.folder / name
    portraits = {source.origin: source.id for source in sources.values()} | {ident: ident for ident in sources}
    prompts = {p.text: p for p in file.prompts} | {p.id: p for p in file.prompts}
    editors = {editor.id: editor for editor in file.editors("diagnosis")}
    only = next(iter(editors)) if len(editors) == 1 else ""
    found: list[ListedRequest] = []
    for line, row in enumerate(_rows(path), 2):
        editor = row.get("editor") or only
        for what, value, known in (
            ("source", row["source"], portraits),
            ("prompt", row["prompt"], prompts),
            ("editor", editor, editors),
        ):
            if value not in known:
                raise EvenEditError(f"{path} line {line}: {what} '{value}' is none of the study's")
        section = editors[editor]
        seeds = [_seed(row["seed"], f"{path} line {line}")] if row.get("seed") else section.seeds
        found += [ListedRequest(portraits[row["source"]], prompts[row["prompt"]], (section, seed)) for seed in seeds]
    return found


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
        raise EvenEditError(f"{where}: seed is '{text}'; expected a whole number") from None
