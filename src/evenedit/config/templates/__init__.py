"""Commented study files to start a study from."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import tomli_w

from evenedit.config.study_file import FILE, StudyFile
from evenedit.core import plugins
from evenedit.core.errors import EvenEditError
from evenedit.core.images import write_whole
from evenedit.core.jsonable import plain

TEMPLATES = ("small", "demo", "published", "paper", "curated", "monk", "open")


def write(name: str, folder: Path, *, seed: int = 1, changes: Mapping[str, Any] | None = None) -> Path:
    """Write a study file into a folder that has none, with these tables merged into the template's."""
    path = folder / FILE
    if name not in TEMPLATES:
        raise EvenEditError(f"there is no template '{name}'{plugins.suggest(name, TEMPLATES)}")
    if path.exists():
        raise EvenEditError(f"{path} exists already; choose another folder, or edit that file")
    text = files(__package__).joinpath(f"{name}.toml").read_text("utf-8").replace("@SEED@", str(seed))
    if changes:
        merged = plain(merge(tomllib.loads(text), changes))
        StudyFile.parse(merged, folder)
        text = f"# Begun from the template '{name}'.\n\n{_toml(merged)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode())
    except (FileExistsError, NotADirectoryError):
        raise EvenEditError(f"{folder} is a file; name a folder for the study") from None
    return path


def merge(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with changes: tables are merged key by key, other values replaced; None removes a key.

    A changed `kind` drops the settings of the previous one.
    """
    merged = dict(table)
    if changes.get("kind", table.get("kind")) != table.get("kind"):
        merged.pop("settings", None)
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = value
    return merged


def _toml(table: Mapping[str, Any]) -> str:
    try:
        return tomli_w.dumps(table)
    except TypeError as error:
        raise EvenEditError(f"study.toml cannot hold this: {error}") from None
