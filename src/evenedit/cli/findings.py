"""The command that lists what an audit found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenedit.cli.base import RESULTS, example

if TYPE_CHECKING:
    from evenedit.results.results import Results

MOST = 5
"""Findings that are printed at the end of a report."""
SIMULATED = "SIMULATED: these data say nothing about any real editor"


@click.command()
@RESULTS
@click.option("--id", "ident", metavar="N", help="One finding in full: its number in the list, or its id.")
@click.option("--editor", help="Only findings about this editor.")
@click.option("--level", multiple=True, help="Only findings of this level: clear, suggestive, cannot_tell …")
@click.option(
    "--pack", type=click.Path(path_type=Path), help="With --id: write what reproduces its cases into this folder."
)
@example("evenedit findings my-study\nevenedit findings my-study --id 1 --pack reproduce-1")
def findings(results: Path, ident: str | None, editor: str | None, level: tuple[str, ...], pack: Path | None) -> None:
    """List what an audit found, worst first.

    With --id one finding in full: what carries it, its caveats, and with --pack how to reproduce it.

    RESULTS is a results.json, the folder of a report or analysis, or a study.
    """
    from evenedit.core.errors import EvenEditError
    from evenedit.report.text.findings import described, headline
    from evenedit.study.load_results import load_results

    loaded = load_results(results)
    if loaded.simulated:
        click.echo(SIMULATED)
    if ident is None:
        if pack is not None:
            raise EvenEditError("--pack is for one finding; name it with --id N, its number in this list")
        chosen = [
            (at, f)
            for at, f in enumerate(loaded.findings, 1)
            if (editor is None or f.editor == editor) and (not level or f.level in level)
        ]
        for at, f in chosen:
            click.echo(f"{at}. {headline(f)}")
        if not chosen:
            click.echo(_nothing(loaded))
        return
    at = _position(loaded, ident)
    click.echo("\n".join(described(loaded, loaded.findings[at])))
    if pack is not None:
        from evenedit.study.reproduction import write_pack

        click.echo(write_pack(results, loaded, loaded.findings[at], pack))


def _nothing(results: Results) -> str:
    if results.findings:
        return "no finding is of this kind; leave --editor and --level out to see all"
    return "these results have no findings: an earlier release wrote them. Try: evenedit report STUDY"


def _position(results: Results, ident: str) -> int:
    """Where a finding stands, by its number or its id."""
    from evenedit.core.errors import EvenEditError

    ids = [f.id for f in results.findings]
    if ident in ids:
        return ids.index(ident)
    if ident.isdecimal() and 0 < int(ident) <= len(ids):
        return int(ident) - 1
    raise EvenEditError(
        f"there is no finding '{ident}'; give a number from 1 to {len(ids)}, or an id as --id prints it"
    )


def announce(results: Results) -> None:
    """Show the worst findings, beside the path that a command prints for other programs to read."""
    from evenedit.report.text.findings import numbered

    for line in numbered(results.findings, MOST):
        click.echo(line, err=True)
    if results.findings:
        click.echo("", err=True)
