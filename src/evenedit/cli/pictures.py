"""Commands over pictures that exist."""

from __future__ import annotations

from pathlib import Path

import click

from evenedit.cli.base import OUT, STUDY, example, finish, folder_of, open_study, write_report


@click.command()
@click.option("--pairs", type=click.Path(path_type=Path), help="CSV of source, edited, prompt and the factors.")
@click.option("--sources", type=click.Path(path_type=Path), help="Folder of the sources; the CSV's own by default.")
@click.option("--edited", type=click.Path(path_type=Path), help="Without --pairs: the folder of the outputs …")
@click.option("--pattern", default="{prompt}_{source}.png", show_default=True, help="… and how their files are named.")
@click.option("--prompts", default="diagnostic", show_default=True, help="Prompt set whose ids {prompt} names.")
@click.option("--factors", metavar="NAMES", help="Columns to group by, with commas; race,gender,age when left out.")
@click.option("--editor", default="audited", show_default=True, help="What to call the editor.")
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
    prompts: str,
    factors: str | None,
    editor: str,
    out: Path,
) -> None:
    """Audit edited images that exist. They are named by a table of pairs, or by how their files are called."""
    from evenedit.core.errors import EvenEditError
    from evenedit.run.from_images import table_of
    from evenedit.study.audit import audit as audit_pairs

    names = None if factors is None else [name.strip() for name in factors.split(",") if name.strip()]
    if pairs is None:
        if edited is None or sources is None:
            raise EvenEditError("name a table with --pairs, or folders with --edited and --sources (and --pattern)")
        pairs, sources, edited = table_of(edited, pattern, sources, prompts, out, names), None, None
    study = audit_pairs(pairs, editor=editor, sources=sources, edited=edited, factors=names, out=out)
    write_report(study, out / "report")
    finish(study.summary(), "", f"Mend this, then: evenedit run {out} && evenedit report {out}")


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("edited", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--picture", type=click.Path(path_type=Path), help="Where to draw patches and change map.")
@click.option("--reference", type=click.Path(path_type=Path), help="Folder of portraits of the same group.")
@example("evenedit measure portrait.jpg edited.jpg --picture measured.png")
def measure(source: Path, edited: Path, as_json: bool, picture: Path | None, reference: Path | None) -> None:
    """Measure what one edit did to the pixels.

    Skin tone, how much changed and where, distance between the faces.
    """
    import json

    from evenedit.instruments.pair import measure as measure_pair
    from evenedit.instruments.pair import save_evidence

    measured = measure_pair(source, edited, reference=reference)
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
