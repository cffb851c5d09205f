"""Commands over tables of ratings."""

from __future__ import annotations

from pathlib import Path

import click

from evenedit.cli.base import FACTORS, OUT, STUDY, example, folder_of, open_study


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--ratings", multiple=True, type=click.Path(path_type=Path), help="People's ratings (CSV).")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder to write to.")
@click.option("--preset", type=click.Choice(["default", "published"]), default="default", show_default=True)
@click.option("--missing", type=click.Choice(["exclude", "neutral-3"]), help="Edits that no judge scored.")
@click.option("--prompts", multiple=True, type=click.Path(path_type=Path), help="Your own prompt set (TOML).")
@FACTORS
@example(
    "evenedit analyze scores.csv verdicts.csv --preset published --out results\n"
    "evenedit analyze scores.csv --ratings ratings.csv --out results"
)
def analyze(
    files: tuple[Path, ...],
    ratings: tuple[Path, ...],
    out: Path,
    preset: str,
    missing: str | None,
    prompts: tuple[Path, ...],
    factors: tuple[str, ...] | None,
) -> None:
    """Write the report of ratings that another tool made (CSV, one row per edit and judge).

    With --ratings, people's ratings (one row per edit and rater) stand beside the judges' scores, or alone.
    """
    from dataclasses import replace

    from evenedit.core.log import log
    from evenedit.core.provenance import provenance
    from evenedit.core.second_process import SecondProcess
    from evenedit.protocol import load_prompts
    from evenedit.ratings.from_csv import read_tables
    from evenedit.ratings.human_csv import read_with_people
    from evenedit.report import begin_figures, write_report
    from evenedit.stats import LARGE, AnalysisRules, analyse

    given = [*files, *ratings]
    log.info(f"reading {len(given)} files")
    own = [load_prompts(str(p)) for p in prompts]
    table = read_with_people(files, ratings, own, factors) if ratings else read_tables(files, own, factors)
    for factor in table.factors:
        if missing_labels := int((table.edits.drop_duplicates("source_id")[factor.name] == "").sum()):
            log.info(f"{missing_labels:,} portraits have no label of {factor.name}: they are in no group of it")
    log.info(f"analysing {len(table.edits):,} edits")
    rules = AnalysisRules.published() if preset == "published" else AnalysisRules.default()
    if missing:
        rules = replace(rules, missing=missing)
    facts = provenance(files=[p.name for p in given])
    with SecondProcess(wanted=len(table.edits) >= LARGE) as second:
        results = analyse(table, rules, facts, second=second)
        figures = begin_figures(results, second)
        page = write_report(results, out, title=f"Analysis of {', '.join(p.name for p in given)}", figures=figures)
    click.echo(page)


@click.command()
@STUDY
@OUT
@example("evenedit export my-study --out my-study/export")
def export(study: Path, out: Path | None) -> None:
    """Write every rating as CSV, in the format that `evenedit analyze` reads, and reviews with their notes."""
    from evenedit.ratings.to_csv import write_tables
    from evenedit.study.review_queue import write_reviews

    loaded, folder = open_study(study), out or folder_of(study) / "export"
    for path in [*write_tables(loaded.table(), folder), *write_reviews(loaded, folder)]:
        click.echo(path)
