"""Read results from a file or from the folder of a report or analysis."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from evenedit.core.errors import EvenEditError
from evenedit.results import long_lists
from evenedit.results.results import FILE, Results

RESULTS = FILE
STUDY = "study.toml"


def is_study(where: Path) -> bool:
    """Return whether the path is a study's folder or file."""
    return where.suffix == ".toml" or (where / STUDY).is_file()


def is_bundle(where: Path) -> bool:
    """Return whether the path is a bundle (a zip file)."""
    return where.suffix.lower() == ".zip"


def refuse_results_alone(where: Path) -> None:
    """Refuse to bundle the folder of an analysis or a report: its numbers could be held against nothing."""
    if not is_study(where) and (where / RESULTS).is_file():
        raise EvenEditError(
            f"{where} holds results and no study: without requests, digests of pictures and raw replies nobody could "
            "score them again. Bundle the study they came from; hand on scores of your own as the CSV files they are"
        )


def results_file(where: Path) -> Path:
    """Return the results.json at a place that is no study."""
    file = where / RESULTS if where.is_dir() else where
    if not file.is_file():
        what = "holds neither results.json nor study.toml" if where.is_dir() else "there is no such file or folder"
        raise EvenEditError(
            f"{where}: {what}; name a results.json, the folder of a report or analysis, a study, or a bundle"
        )
    return file


def read_results(path: Path) -> Results:
    """Read a results.json, with all rows of the CSV files next to it."""
    try:
        return Results.from_files(_reader(path))
    except EvenEditError as error:
        raise EvenEditError(f"{path}: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise EvenEditError(f"{path} cannot be read: {error}") from None


def lacks_rows(path: Path) -> bool:
    """Return whether a CSV file that belongs to a results.json is missing or changed."""
    described = json.loads(path.read_text("utf-8"))[long_lists.KEY]
    return bool(long_lists.unread_files(described, _reader(path)))


def _reader(path: Path) -> Callable[[str], bytes | None]:
    """Return a function that reads a results.json and the files next to it."""

    def read(name: str) -> bytes | None:
        file = path if name == RESULTS else path.parent / name
        return file.read_bytes() if name == RESULTS or file.is_file() else None

    return read
