"""Command that compares editors or studies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenedit.cli.base import example

if TYPE_CHECKING:
    from evenedit.comparison.compare import Side


@click.command()
@click.argument("results", nargs=-1, required=True)
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("compare"), show_default=True, help="Folder to write to."
)
@example(
    "evenedit compare v1 v2 --out compare\n"
    "evenedit compare study:editor-a study:editor-b\n"
    "evenedit compare flux-study qwen-study step1x-study/report/results.json"
)
def compare(results: tuple[str, ...], out: Path) -> None:
    """Compare editors, or two versions of one.

    RESULTS are studies, files named results.json, or folders of reports or analyses.

    Two: a comparison on the same portraits and prompts, regressions first. The ratings must be next to the results.
    Write FOLDER:EDITOR if there are several editors. Pictures are included if both are studies.

    One, or three or more: a table of all their editors, ordered by the worst shift or gap of each.
    """
    if len(results) == 2:
        from evenedit.comparison.compare import compare as write_comparison

        click.echo(write_comparison(_side(results[0]), _side(results[1]), out))
        return
    from evenedit.api.load_results import load_results
    from evenedit.comparison.leaderboard import write_leaderboard

    click.echo(write_leaderboard([load_results(Path(path)) for path in results], out))


def _side(text: str) -> Side:
    from evenedit.comparison.compare import Side

    if Path(text).exists():
        return Side.load(Path(text), None)
    folder, _, editor = text.rpartition(":")
    return Side.load(Path(folder or text), editor if folder else None)
