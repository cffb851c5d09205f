"""Commands over tables of ratings."""

from __future__ import annotations

from pathlib import Path

import click

from evenedit.cli.base import EDITOR_NAMES, FACTORS, OUT, STUDY, example, folder_of, open_study


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--ratings", multiple=True, type=click.Path(path_type=Path), help="People's ratings (CSV).")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder to write to.")
@click.option("--preset", type=click.Choice(["default", "published"]), help="The rules; an export's own, else default.")
@click.option("--missing", type=click.Choice(["exclude", "neutral-3"]), help="Edits that no judge scored.")
@click.option("--prompts", multiple=True, type=click.Path(path_type=Path), help="Your own prompt set (TOML).")
@click.option("--multilevel", is_flag=True, help="Also fit a multilevel model of each outcome (up to a minute).")
@FACTORS
@example(
    "evenedit analyze scores.csv verdicts.csv --preset published --out results\n"
    "evenedit analyze scores.csv --ratings ratings.csv --out results\n"
    "evenedit analyze my-study/export --out results"
)
def analyze(
    files: tuple[Path, ...],
    ratings: tuple[Path, ...],
    out: Path,
    preset: str | None,
    missing: str | None,
    prompts: tuple[Path, ...],
    multilevel: bool,
    factors: tuple[str, ...] | None,
) -> None:
    """Write the report of ratings that another tool made (CSV).

    A file has one row per edit and judge. With --ratings, people's ratings (one row per edit and rater) stand beside
    the judges' scores, or alone. The folder that `evenedit export` wrote brings the rules of its study along.
    """
    from evenedit.cli.findings import announce
    from evenedit.core.log import log
    from evenedit.core.second_process import LARGE, SecondProcess
    from evenedit.ratings.parquet import FILE, write_parquet
    from evenedit.report.contents import begin_figures
    from evenedit.report.pages.report import write_report
    from evenedit.study.analyze import gather

    log.info(f"reading {', '.join(path.name for path in (*files, *ratings))}")
    given = gather(
        files,
        ratings=ratings,
        prompts=prompts,
        preset=preset,
        missing=missing,
        factors=factors,
        multilevel=multilevel,
    )
    table = given.table
    for factor in table.factors:
        if missing_labels := int((table.edits.drop_duplicates("source_id")[factor.name] == "").sum()):
            log.info(f"{missing_labels:,} portraits have no label of {factor.name}: they are in no group of it")
    log.info(f"analysing {len(table.edits):,} edits")
    with SecondProcess(wanted=len(table.edits) >= LARGE) as second:
        results = given.results(second)
        figures = begin_figures(results, second)
        write_parquet(table, out / FILE)
        page = write_report(results, out, title=given.title, figures=figures)
    announce(results)
    click.echo(page)


@click.command()
@STUDY
@OUT
@example("evenedit export my-study --out my-study/export")
def export(study: Path, out: Path | None) -> None:
    """Write every rating as CSV.

    With the study's rules beside it: a folder that `evenedit analyze` reads.
    """
    from evenedit.study.export import write_export

    for path in write_export(open_study(study), out or folder_of(study) / "export"):
        click.echo(path)


@click.command("import-authors")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder of the new study.")
@EDITOR_NAMES
@example("evenedit import-authors their-files --out my-study --editor flux=flux2-dev")
def import_authors(folder: Path, out: Path, editors: dict[str, str]) -> None:
    """Make a study of the files of the paper's authors.

    Found by their columns: the judges' table (model, version, five scores), people's (rater as well), the selection log
    with its candidate pools V1, V2 …, and portraits named after their cells.
    """
    from evenedit.study.from_authors import import_authors as read

    made = read(folder, out, editors)
    click.echo(f"{made.edits:,} edits")
    for judge, edits in made.judges.items():
        click.echo(f"judge {judge}: {edits:,} edits scored")
    for people in made.people:
        click.echo(f"{people.raters} people: {people.pages:,} pages rated, {people.answers:,} answers")
    if made.pools:
        click.echo(f"portraits chosen from {', '.join(f'{pool} {n}' for pool, n in made.pools.items())}")
    for note in made.notes:
        click.echo(f"note: {note}")
    click.echo(f"{out}\nNext: evenedit report {out}")
