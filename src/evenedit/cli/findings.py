"""Command that lists the findings of an audit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenedit.cli.base import RESULTS, example

if TYPE_CHECKING:
    from evenedit.results.results import Results

SIMULATED = "SIMULATED: these data say nothing about any real editor"


@click.command()
@RESULTS
@click.option("--id", "ident", metavar="N", help="Show one finding in full: its number in the list, or its id.")
@click.option("--editor", help="Only findings about this editor.")
@click.option(
    "--level", multiple=True, help="Only findings of this level: clear, clear_to_judges, suggestive, cannot_tell …"
)
@click.option(
    "--pack",
    type=click.Path(path_type=Path),
    help="With --id: write scripts that reproduce its cases into this folder.",
)
@example("evenedit findings my-study\nevenedit findings my-study --id 1 --pack reproduce-1")
def findings(results: Path, ident: str | None, editor: str | None, level: tuple[str, ...], pack: Path | None) -> None:
    """List the findings of an audit, worst first.

    With --id, show one finding in full: its evidence, its caveats, and with --pack how to reproduce it.

    RESULTS is a results.json, the folder of a report or analysis, or a study.
    """
    from evenedit.api.load_results import load_results
    from evenedit.core.errors import EvenEditError
    from evenedit.report.text.findings import described, headline

    loaded = load_results(results)
    if loaded.simulated:
        click.echo(SIMULATED)
    if ident is None:
        if pack is not None:
            raise EvenEditError("--pack needs one finding: --id N, its number in the list")
        chosen = [
            (at, f)
            for at, f in enumerate(loaded.findings, 1)
            if (editor is None or f.editor == editor) and (not level or f.level in level)
        ]
        for at, f in chosen:
            click.echo(f"{at}. {headline(f)}")
        if not chosen:
            click.echo(_empty_note(loaded))
        return
    at = _position(loaded, ident)
    click.echo("\n".join(described(loaded, loaded.findings[at])))
    if pack is not None:
        from evenedit.comparison.reproduction import write_pack

        click.echo(write_pack(results, loaded, loaded.findings[at], pack))


def _empty_note(results: Results) -> str:
    if results.findings:
        return "no finding matches; leave out --editor and --level to see all"
    return "these results have no findings"


def _position(results: Results, ident: str) -> int:
    """Return the index of a finding by its number or its id."""
    from evenedit.core.errors import EvenEditError

    ids = [f.id for f in results.findings]
    if ident in ids:
        return ids.index(ident)
    if ident.isdecimal() and 0 < int(ident) <= len(ids):
        return int(ident) - 1
    raise EvenEditError(f"there is no finding '{ident}'; use a number from 1 to {len(ids)}, or an id as --id prints it")
