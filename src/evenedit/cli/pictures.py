"""Commands for existing pictures."""

from __future__ import annotations

from pathlib import Path

import click

from evenedit.cli.base import example, finish, write_report


def _example(context: click.Context, _option: click.Parameter, requested: bool) -> None:
    """Print a table of pairs, and on standard error how to try it."""
    if not requested or context.resilient_parsing:
        return
    from evenedit.run.pair_table import EXAMPLE

    click.echo(EXAMPLE, nl=False)
    click.echo("Draw its pictures: python scripts/draw_pictures.py FOLDER. Save the table in FOLDER.", err=True)
    context.exit()


@click.command()
@click.option("--pairs", type=click.Path(path_type=Path), help="CSV with one row per edit; see --example.")
@click.option("--sources", type=click.Path(path_type=Path), help="Folder of the sources; default: that of the CSV.")
@click.option("--edited", type=click.Path(path_type=Path), help="Folder of the outputs; default: that of the CSV.")
@click.option(
    "--pattern", default="{prompt}_{source}.png", show_default=True, help="Without --pairs: file names of outputs."
)
@click.option("--prompts", help="Prompt set of the ids in the table or {prompt}; default: the built-in sets.")
@click.option("--factors", metavar="NAMES", help="Columns to group by; default: race,gender,age.")
@click.option("--editor", default="audited", show_default=True, help="Name of the editor.")
@click.option(
    "--instruments",
    metavar="KINDS",
    help="Instruments that measure the edits; default: all that are installed and set up.",
)
@click.option(
    "--example", is_flag=True, is_eager=True, expose_value=False, callback=_example, help="Print an example of the CSV."
)
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
    instruments: str | None,
    out: Path,
) -> None:
    """Audit existing edits, listed in a table or found by file name.

    Columns of the table: source, edited, prompt (a text or a known id), and race, gender and age or the --factors.
    Optional columns: prompt_id (a label), asks, asks_for, editor, seed, refused.
    """
    from evenedit.api.audit import begin_audit
    from evenedit.core.errors import EvenEditError
    from evenedit.run.from_images import instruments_at_hand, table_of

    names = None if factors is None else _names(factors)
    kinds = None if instruments is None else _names(instruments)
    for kind, why in instruments_at_hand().items() if kinds is None else ():
        if why:
            click.echo(f"not measured: {kind}: {why}", err=True)
    if pairs is None:
        if edited is None or sources is None:
            raise EvenEditError("pass a table with --pairs, or folders with --edited and --sources (and --pattern)")
        table = table_of(edited, pattern, sources, prompts, names)
        study = begin_audit(table, editor=editor, prompts=prompts, factors=names, instruments=kinds, out=out)
    else:
        study = begin_audit(
            pairs,
            editor=editor,
            sources=sources,
            edited=edited,
            prompts=prompts,
            factors=names,
            instruments=kinds,
            out=out,
        )
    summary = study.run()
    write_report(study, out / "report")
    finish(summary, "", f"Fix this, then: evenedit run {out} && evenedit report {out}")


def _names(text: str) -> list[str]:
    """Return the names of a comma-separated list."""
    return [name.strip() for name in text.split(",") if name.strip()]


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("edited", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--picture", type=click.Path(path_type=Path), help="Write a picture of skin patches and change map here.")
@click.option("--reference", type=click.Path(path_type=Path), help="Folder of portraits of the same group.")
@click.option("--gender", is_flag=True, help="Also measure the change of gender presentation.")
@example("evenedit measure portrait.jpg edited.jpg --picture measured.png")
def measure(
    source: Path, edited: Path, as_json: bool, picture: Path | None, reference: Path | None, gender: bool
) -> None:
    """Measure the pixels of one edit.

    Skin tone, changed area, distance between the faces and difference in apparent age.
    """
    import json

    from evenedit.instruments.pair import measure as measure_pair
    from evenedit.instruments.pair import save_evidence

    measured = measure_pair(source, edited, reference=reference, gender=gender)
    if picture is not None:
        save_evidence(measured, picture)
    values = measured.to_json()
    if as_json:
        click.echo(json.dumps(values, indent=1))
        return
    for name, value in values.items():
        if name not in ("reasons", "notes"):
            click.echo(f"{name:24}{value if value is not None else '– ' + values['reasons'].get(name, '')}")
    for note in values.get("notes", ()):
        click.echo(f"note: {note}")
