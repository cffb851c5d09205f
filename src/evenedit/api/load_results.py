"""Load results from a results.json, a report's folder, a study or a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evenedit.api.results import Results
from evenedit.api.study import Study
from evenedit.bundle.archive import bundled_results, open_bundle
from evenedit.study.results_file import is_bundle, is_study, read_results, results_file

if TYPE_CHECKING:
    import os


def load_results(path: str | os.PathLike[str]) -> Results:
    """Return the results of a results.json, of a report's or an analysis' folder, of a study, or of a bundle.

    A study's are computed only where its report is not there or no longer true of it. A bundle is verified first.
    """
    where = Path(path)
    if is_bundle(where):
        return Results.from_record(bundled_results(open_bundle(where)))
    if is_study(where):
        return Study.load(where).results()
    return Results.from_record(read_results(results_file(where)))
