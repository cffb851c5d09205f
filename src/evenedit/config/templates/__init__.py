"""Commented study files to begin a study from."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from evenedit.config.study_file import FILE
from evenedit.core.errors import EvenEditError
from evenedit.core.images import write_whole


def write(name: str, folder: Path, *, seed: int = 1) -> Path:
    """Put a study file into a folder that has none yet."""
    path = folder / FILE
    if path.exists():
        raise EvenEditError(f"{path} exists already; choose another folder, or edit that file")
    text = files(__package__).joinpath(f"{name}.toml").read_text("utf-8").replace("@SEED@", str(seed))
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.encode())
    return path
