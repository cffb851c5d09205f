"""Commands over several editors or studies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenedit.cli.base import example

if TYPE_CHECKING:
    from evenedit.study.compare import Side


@click.command()
@click.argument("first")
@click.argument("second")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("compare"), show_default=True, help="Folder to write to."
)
@example("evenedit compare v1 v2 --out compare\nevenedit compare study:editor-a study:editor-b")
def compare(first: str, second: str, out: Path) -> None:
    """Compare two editors, or two versions of one.

    On the same portraits and prompts, regressions first. FIRST and SECOND are studies, or results (results.json or its
    folder) with ratings.parquet beside them; FOLDER:EDITOR where there are several editors. Pictures are shown where
    both are studies.
    """
    from evenedit.study.compare import compare as write

    page = write(_side(first), _side(second), out)
    click.echo(page)


def _side(text: str) -> Side:
    from evenedit.study.compare import Side

    if Path(text).exists():
        return Side.load(Path(text), None)
    folder, _, editor = text.rpartition(":")
    return Side.load(Path(folder or text), editor if folder else None)


@click.command()
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("leaderboard"), show_default=True, help="Folder to write to."
)
@example("evenedit leaderboard flux-study qwen-study/report/results.json --out leaderboard")
def leaderboard(results: tuple[Path, ...], out: Path) -> None:
    """Put the editors of several studies into one table.

    Ordered by the worst shift or gap that was found about each.

    RESULTS are files named results.json, folders of reports or analyses, or studies.
    """
    from evenedit.study.leaderboard import write_leaderboard
    from evenedit.study.load_results import load_results

    click.echo(write_leaderboard([load_results(path) for path in results], out))
