"""Drawn portraits and simulated edits of them as plain files: a folder to try an audit on."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from PIL.Image import Image

from evenedit.core import plugins
from evenedit.core.errors import EvenEditError
from evenedit.protocol import load_prompts
from evenedit.simulation.portraits.drawn import Drawn

ONLY = {"race": ["White", "Black"], "age": ["20s", "70plus"]}


def write_pictures(folder: Path, *, editor: str, prompts: Sequence[str], seed: int, size: int) -> Path:
    """Write portraits/ with labels.csv, edited/ and the table edits.csv into a new folder; return the table's path."""
    if folder.exists():
        raise EvenEditError(f"{folder} exists already; name a folder that does not")
    if editor not in plugins.installed("editors") or not plugins.is_simulated("editors", editor):
        raise EvenEditError(f"'{editor}' is no simulated editor. Try: evenedit editors list")
    made = plugins.build("editors", editor, {})
    asked = load_prompts("diagnostic").resolve_all(prompts).values()
    rows: list[dict[str, str]] = []
    labelled: list[dict[str, str]] = []
    for name, labels, _, portrait in Drawn(seed=seed, size=size, only=ONLY).portraits():
        source = _saved(portrait, folder, f"portraits/{name}.png")
        labelled.append({"file": f"{name}.png", **labels})
        for prompt in asked:
            edited = made.edit([portrait], prompt.text, seed)
            if isinstance(edited, Image):
                saved = _saved(edited, folder, f"edited/{prompt.id}_{name}.png")
                rows.append({"source": source, "edited": saved, "prompt": prompt.text, **labels})
    _write(folder / "portraits" / "labels.csv", labelled)
    return _write(folder / "edits.csv", rows)


def _write(path: Path, rows: Sequence[Mapping[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else ())
        writer.writeheader()
        writer.writerows(rows)
    return path


def _saved(picture: Image, folder: Path, name: str) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path)
    return name
