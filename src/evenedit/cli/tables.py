"""Commands for tables of ratings."""

from __future__ import annotations

from pathlib import Path

import click

from evenedit.cli.base import FACTORS, FORMATS, OUT, STUDY, example, folder_of, open_study


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--ratings", multiple=True, type=click.Path(path_type=Path), help="Ratings by people (CSV).")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder to write to.")
@click.option(
    "--preset",
    type=click.Choice(["default", "published"]),
    help="Analysis rules; default: those of an export, or `default`.",
)
@click.option("--missing", type=click.Choice(["exclude", "neutral-3"]), help="Treatment of edits that no judge scored.")
@click.option("--prompts", multiple=True, type=click.Path(path_type=Path), help="Your own prompt set (TOML).")
@click.option("--rubric", help="The questions that were asked: `default`, `published`, `short-002` or a rubric file.")
@click.option("--primary", type=click.Path(path_type=Path), help="Tests declared before the data (TOML, [primary]).")
@FACTORS
@FORMATS
@example(
    "evenedit analyze scores.csv verdicts.csv --preset published --out results\n"
    "evenedit analyze scores.csv --ratings ratings.csv --out results\n"
    "evenedit analyze scores.csv --rubric my-rubric.toml --primary primary.toml --out results\n"
    "evenedit analyze my-study/export --out results"
)
def analyze(
    files: tuple[Path, ...],
    ratings: tuple[Path, ...],
    out: Path,
    preset: str | None,
    missing: str | None,
    prompts: tuple[Path, ...],
    rubric: str | None,
    primary: Path | None,
    factors: tuple[str, ...] | None,
    formats: tuple[str, ...],
) -> None:
    """Write the report of ratings from another tool (CSV).

    FILES have one row per edit and judge; files of --ratings have one row per edit and rater. Either can be omitted.
    A folder that `evenedit export` wrote includes the rules of its study.
    """
    from evenedit.cli.output import announce
    from evenedit.core.log import log
    from evenedit.core.parallel import PARALLEL_THRESHOLD, SecondProcess
    from evenedit.interchange.analyze import gather
    from evenedit.ratings.ratings_file import FILE, write_ratings
    from evenedit.report.contents import submit_figures
    from evenedit.report.pages.report import write_report

    log.info(f"reading {', '.join(path.name for path in (*files, *ratings))}")
    inputs = gather(
        files,
        ratings=ratings,
        prompts=prompts,
        preset=preset,
        missing=missing,
        factors=factors,
        rubric=rubric,
        primary=primary,
    )
    table = inputs.table
    for factor in table.factors:
        if missing_labels := int((table.edits.drop_duplicates("source_id")[factor.name] == "").sum()):
            log.info(f"{missing_labels:,} portraits have no label of {factor.name} and are in none of its groups")
    log.info(f"analysing {len(table.edits):,} edits")
    with SecondProcess(enabled=len(table.edits) >= PARALLEL_THRESHOLD) as second:
        results = inputs.results(second)
        figures = submit_figures(results, second, formats)
        write_ratings(table, out / FILE)
        page = write_report(results, out, title=inputs.facts.title, figures=figures)
    announce(results)
    click.echo(page)


@click.command()
@STUDY
@OUT
@click.option(
    "--cards",
    type=click.IntRange(min=1),
    is_flag=False,
    flag_value=20,
    help="Write this many blind evidence cards instead; 20 without a number.",
)
@click.option("--parquet", is_flag=True, help="Write all ratings as ratings.parquet too (needs the extra 'parquet').")
@example("evenedit export my-study --out my-study/export\nevenedit export my-study --cards 12")
def export(study: Path, out: Path | None, cards: int | None, parquet: bool) -> None:
    """Write all ratings as CSV, with the study's rules.

    `evenedit analyze` reads the folder. With --cards, write one printable page per case without label, editor or score;
    the key is a separate file.
    """
    if cards:
        from evenedit.reporting.evidence_cards import write_cards

        page, key = write_cards(open_study(study), out or folder_of(study) / "cards", cards)
        click.echo(f"{page}\nkey, to be stored separately: {key}")
        return
    from evenedit.interchange.export import write_export

    for path in write_export(open_study(study), out or folder_of(study) / "export", parquet=parquet):
        click.echo(path)
