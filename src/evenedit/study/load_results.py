"""Results from wherever they lie: a file, the folder of a report or analysis, a study, or a bundle."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from evenedit.core.errors import EvenEditError
from evenedit.core.sealed_zip import SealedZip, find_changes
from evenedit.results.results import Results

if TYPE_CHECKING:
    import os

RESULTS = "results.json"
STUDY = "study.toml"


def load_results(path: str | os.PathLike[str]) -> Results:
    """Return the results of a results.json, of a report's or an analysis' folder, of a study, or of a bundle.

    A study's are computed only where its report is not there or no longer true of it. A bundle is verified first.
    """
    where = Path(path)
    if is_bundle(where):
        return bundled_results(open_bundle(where))
    if is_study(where):
        from evenedit.study.study import Study

        return Study.load(where).results()
    return read_results(results_file(where))


def is_study(where: Path) -> bool:
    """Whether a study is meant: its folder or its file."""
    return where.suffix == ".toml" or (where / STUDY).is_file()


def is_bundle(where: Path) -> bool:
    """Whether a bundle is meant: a zip file."""
    return where.suffix.lower() == ".zip"


def refuse_results_alone(where: Path) -> None:
    """Refuse to bundle the folder of an analysis or a report: its numbers could be held against nothing."""
    if not is_study(where) and (where / RESULTS).is_file():
        raise EvenEditError(
            f"{where} holds results and no study: without requests, digests of pictures and raw replies nobody could "
            "score them again. Bundle the study they came from; hand on scores of your own as the CSV files they are"
        )


def open_bundle(where: Path) -> SealedZip:
    """Open a bundle after every byte of it was held against its manifest."""
    if changes := find_changes(where):
        told = "; ".join(islice(changes.lines(), 3))
        raise EvenEditError(f"{where} is not as it was written: {told}. Look with: evenedit verify {where}")
    return SealedZip.open(where)


def bundled_results(bundle: SealedZip) -> Results:
    """Return the results in a bundle."""
    return Results.from_json(bundle.read(RESULTS).decode())


def results_file(where: Path) -> Path:
    """Return the results.json at a place that is no study."""
    found = where / RESULTS if where.is_dir() else where
    if not found.is_file():
        what = "holds neither results.json nor study.toml" if where.is_dir() else "there is no such file or folder"
        raise EvenEditError(
            f"{where}: {what}; name a results.json, the folder of a report or analysis, a study, or a bundle"
        )
    return found


def read_results(path: Path) -> Results:
    """Read a results.json."""
    try:
        return Results.from_json(path.read_text("utf-8"))
    except EvenEditError as error:
        raise EvenEditError(f"{path}: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise EvenEditError(f"{path} cannot be read: {error}") from None
