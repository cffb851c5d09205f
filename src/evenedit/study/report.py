"""The report of a study: its results with the pictures behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evenedit.core.log import log
from evenedit.core.second_process import ALONE, SecondProcess
from evenedit.ratings import parquet
from evenedit.ratings.combine import combine
from evenedit.ratings.table import RatingTable
from evenedit.report.contents import begin_figures
from evenedit.report.figures.plots import FigureFile
from evenedit.report.pages.report import write_report
from evenedit.report.render.html import put
from evenedit.results.results import Results
from evenedit.study import example_cases as examples
from evenedit.study.gallery.cases import Casebook
from evenedit.study.gallery.search import Gallery
from evenedit.study.photo_figures import photo_figures
from evenedit.study.report_cases import Pictures, ReportCases
from evenedit.study.results import REPORT, prompts_of, results_of, rules_of
from evenedit.study.study import Study

APP = "app-report"
"""The folder of a study's report as the web app shows it."""
DIGEST = "digest.txt"
"""The file there that names the ratings and rules it was made from; it is written last."""


def report_study(study: Study, out: Path, pictures: Pictures = "thumbnails", second: SecondProcess = ALONE) -> Path:
    """Write a study's report and return the path of its page; the second process shares the work.

    In the study's own folder the pages of the web app are written too.
    """
    table = study.table()
    log.info(f"analysing {len(table.edits):,} edits")
    results = results_of(study, table, second)
    log.info("writing the report")
    own = out.resolve() == (study.folder / REPORT).resolve()
    figures = begin_figures(results, second)
    parquet.write_parquet(passed_on(table), out / parquet.FILE)
    page = write_pages(study, table, results, out, pictures, figures, app=study.folder / APP if own else None)
    if own:
        put(study.folder / APP / DIGEST, results.digest.encode())
    return page


def passed_on(table: RatingTable) -> RatingTable:
    """The ratings that go with a report.

    Beside exact rates of groups of raters, the ratings of each person would give away who is in which group.
    """
    return table.without_people() if table.profiles and table.profiles.questions else table


def write_pages(
    study: Study,
    table: RatingTable,
    results: Results,
    out: Path,
    pictures: Pictures,
    figures: Callable[[], Mapping[str, FigureFile]],
    *,
    facts: Mapping[str, Any] | None = None,
    app: Path | None = None,
) -> Path:
    """Write the pages of results that are computed already; `facts` are the study's tables as the appendix shows them.

    `figures` waits for figures that are being drawn already; `app` is the folder for the same pages as the web app
    shows them.
    """
    rules = rules_of(study.file)
    scores = combine(table, rules.ensemble, rules.missing)
    prompts, shown = prompts_of(study.file), pictures != "none"
    own = study.file.sections.model_dump(mode="json", exclude_none=True, exclude={"store"})
    return write_report(
        results,
        out,
        title=study.file.sections.study.title,
        study=own if facts is None else facts,
        examples=examples.choose(scores, study.store, prompts) if shown else (),
        photo_figures=photo_figures(scores, study.store, prompts, simulated=bool(results.simulated)) if shown else (),
        figures=figures,
        cases=ReportCases(Gallery(Casebook.of(study, scores)), pictures).bundle(),
        app=app,
    )
