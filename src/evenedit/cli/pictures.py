"""Commands over pictures that exist."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from evenedit.cli.base import INCOMPLETE, OUT, STUDY, example, folder_of, open_study, write_report


def _example(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    """Print a table of pairs, and on the side how to try it."""
    if not wanted or context.resilient_parsing:
        return
    from evenedit.run.pair_table import EXAMPLE

    click.echo(EXAMPLE, nl=False)
    click.echo("Its pictures are drawn by: evenedit dev pictures FOLDER. Save the table in that FOLDER.", err=True)
    context.exit()


@click.command()
@click.option("--pairs", type=click.Path(path_type=Path), help="CSV with a row for each edit; see --example.")
@click.option("--sources", type=click.Path(path_type=Path), help="Folder of the sources; the CSV's own by default.")
@click.option("--edited", type=click.Path(path_type=Path), help="Folder of the outputs; the CSV's own by default.")
@click.option("--pattern", default="{prompt}_{source}.png", show_default=True, help="Without --pairs: outputs' names.")
@click.option("--prompts", help="Prompt set whose ids the table or {prompt} names; the built-in ones when left out.")
@click.option("--factors", metavar="NAMES", help="Columns to group by, with commas; race,gender,age when left out.")
@click.option("--editor", default="audited", show_default=True, help="Whose edits they are.")
@click.option("--example", is_flag=True, is_eager=True, expose_value=False, callback=_example, help="Print such a CSV.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Study folder to write to.")
@example(
    "evenedit audit --pairs edits.csv --editor my-editor --out audit\n"
    "evenedit audit --pairs edits.csv --factors monk,headwear --out audit"
)
def audit(
    pairs: Path | None,
    sources: Path | None,
    edited: Path | None,
    pattern: str,
    prompts: str | None,
    factors: str | None,
    editor: str,
    out: Path,
) -> None:
    """Audit edited images that exist. They are named by a table of pairs, or by how their files are called.

    Columns of the table: source, edited, prompt (a text, or a known id), race, gender and age or the --factors; and
    where there is something to say prompt_id (a label), asks, editor, seed, refused.
    """
    from evenedit.core.errors import EvenEditError
    from evenedit.run.from_images import table_of
    from evenedit.study.audit import begin_audit

    names = None if factors is None else [name.strip() for name in factors.split(",") if name.strip()]
    if pairs is None:
        if edited is None or sources is None:
            raise EvenEditError("name a table with --pairs, or folders with --edited and --sources (and --pattern)")
        table = table_of(edited, pattern, sources, prompts, names)
        study = begin_audit(table, editor=editor, prompts=prompts, factors=names, out=out)
    else:
        study = begin_audit(
            pairs, editor=editor, sources=sources, edited=edited, prompts=prompts, factors=names, out=out
        )
    summary = study.run()
    write_report(study, out / "report")
    if not summary.complete:
        click.echo(summary, err=True)
        sys.exit(INCOMPLETE)


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("edited", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--picture", type=click.Path(path_type=Path), help="Where to draw patches and change map.")
@click.option("--reference", type=click.Path(path_type=Path), help="Folder of portraits of the same group.")
@click.option("--gender", is_flag=True, help="Also read gender presentation, as a difference.")
@example("evenedit measure portrait.jpg edited.jpg --picture measured.png")
def measure(
    source: Path, edited: Path, as_json: bool, picture: Path | None, reference: Path | None, gender: bool
) -> None:
    """Measure what one edit did to the pixels.

    Skin tone, what changed and where, how far the faces and their ages are apart.
    """
    import json

    from evenedit.instruments.pair import measure as measure_pair
    from evenedit.instruments.pair import save_evidence

    measured = measure_pair(source, edited, reference=reference, gender=gender)
    if picture is not None:
        save_evidence(measured, picture)
    found = measured.to_json()
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    for name, value in found.items():
        if name not in ("reasons", "notes"):
            click.echo(f"{name:24}{value if value is not None else '– ' + found['reasons'].get(name, '')}")
    for note in found.get("notes", ()):
        click.echo(f"note: {note}")


@click.command()
@STUDY
@OUT
@click.option("--count", default=20, show_default=True, type=click.IntRange(min=1), help="How many cases.")
@example("evenedit cards my-study --count 12 --out cards")
def cards(study: Path, out: Path | None, count: int) -> None:
    """Write blind evidence cards, one printable page per case.

    They show no label, editor or score; the key is a file apart.
    """
    from evenedit.study.cards import write_cards

    page, key = write_cards(open_study(study), out or folder_of(study) / "cards", count)
    click.echo(f"{page}\nkey, to be kept apart: {key}")
