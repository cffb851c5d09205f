"""What the commands share: arguments, examples in the help, opening a study."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from evenedit.study.study import Study

STUDY = click.argument("study", type=click.Path(path_type=Path), default=Path())
FACTORS = click.option(
    "--factors",
    callback=lambda _context, _option, value: tuple(filter(None, map(str.strip, value.split(",")))) if value else None,
    help="Columns to group by in place of race, gender and age, e.g. monk,headwear.",
)
OUT = click.option("--out", type=click.Path(path_type=Path), help="Folder to write to.")


def example(text: str) -> Callable[[Any], Any]:
    """Show an example at the end of a command's help."""

    def add(function: Any) -> Any:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        call.__doc__ = f"{function.__doc__}\n\n\b\nExample:\n  " + text.replace("\n", "\n  ")
        return call

    return add


def open_study(study: Path) -> Study:
    """The study of a folder or file."""
    from evenedit.study.study import Study

    return Study.load(study)


def write_report(loaded: Study, out: Path) -> None:
    """Write a study's report and print where it is."""
    from evenedit.study.results import report_study

    click.echo(report_study(loaded, out))


def folder_of(study: Path) -> Path:
    """The folder of a study named by its folder or its file."""
    return study.parent if study.suffix == ".toml" else study


def duration(seconds: float) -> str:
    """Seconds in words."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
