"""The report of a study: its results with the pictures behind them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from evenedit.cases.casebook import Casebook
from evenedit.cases.search import Gallery
from evenedit.core.errors import EvenEditError
from evenedit.core.log import log
from evenedit.core.parallel import SEQUENTIAL, SecondProcess
from evenedit.ratings.combine import combine
from evenedit.ratings.ratings_file import FILE, write_ratings
from evenedit.ratings.table import RatingTable
from evenedit.report.contents import submit_figures
from evenedit.report.figures.base import FORMATS, FigureFile
from evenedit.report.pages.report import write_report
from evenedit.report.render.html import put
from evenedit.reporting import examples
from evenedit.reporting.case_pages import Pictures, ReportCases
from evenedit.reporting.photo_figures import photo_figures
from evenedit.results.results import Results
from evenedit.study.analysis import REPORT, all_prompts, analysis_rules, compute_results
from evenedit.study.context import StudyContext

APP = "app-report"
"""The folder of a study's report as the web app shows it."""
DIGEST = "digest.txt"
"""The file there that names the ratings and rules it was made from; it is written last."""


def report_study(
    study: StudyContext,
    out: Path,
    pictures: Pictures = "thumbnails",
    formats: Collection[str] = (),
    second: SecondProcess = SEQUENTIAL,
) -> Path:
    """Write a study's report and return the path of its page; the second process shares the work.

    In the study's own folder the pages of the web app are written too. `formats` are those of figures besides SVG.
    """
    if unknown := set(formats) - set(FORMATS):
        raise EvenEditError(f"unknown figure format '{min(unknown)}'; known: {', '.join(FORMATS)}")
    table = study.table()
    log.info(f"analysing {len(table.edits):,} edits")
    results = compute_results(study, table, second)
    log.info("writing the report")
    in_study = out.resolve() == (study.folder / REPORT).resolve()
    figures = submit_figures(results, second, formats)
    write_ratings(passed_on(table), out / FILE)
    page = write_pages(study, table, results, out, pictures, figures, app=study.folder / APP if in_study else None)
    if in_study:
        put(study.folder / APP / DIGEST, results.digest.encode())
    return page


def passed_on(table: RatingTable) -> RatingTable:
    """Return the ratings that are published with a report.

    Beside exact rates of groups of raters, the ratings of each person would give away who is in which group.
    """
    return table.without_people() if table.profiles and table.profiles.questions else table


def write_pages(
    study: StudyContext,
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
    rules = analysis_rules(study.file)
    scores = combine(table, rules.ensemble, rules.missing)
    prompts, pictured = all_prompts(study.file), pictures != "none"
    sections = study.file.sections.model_dump(mode="json", exclude_none=True, exclude={"store"})
    return write_report(
        results,
        out,
        title=study.file.sections.study.title,
        study=sections if facts is None else facts,
        examples=examples.choose(scores, study.store, prompts) if pictured else (),
        photo_figures=photo_figures(scores, study.store, prompts, simulated=bool(results.simulated))
        if pictured
        else (),
        figures=figures,
        cases=ReportCases(Gallery(Casebook.of(study, scores)), pictures).bundle(),
        app=app,
    )
