"""What the commands share: arguments, examples in the help, opening a study."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from evenedit.run.summary import RunSummary
    from evenedit.study.report_cases import Pictures
    from evenedit.study.study import Study

INCOMPLETE = 4
"""Exit code where something failed, the budget is spent or a batch job is open."""

STUDY = click.argument("study", type=click.Path(path_type=Path), default=Path())
FACTORS = click.option(
    "--factors",
    callback=lambda _context, _option, value: tuple(filter(None, map(str.strip, value.split(",")))) if value else None,
    help="Columns to group by in place of race, gender and age, e.g. monk,headwear.",
)
RESULTS = click.argument("results", type=click.Path(path_type=Path), default=Path())
PICTURES = click.option(
    "--pictures",
    type=click.Choice(["none", "thumbnails", "full"]),
    default="thumbnails",
    show_default=True,
    help="Pictures in the report: none, small ones, or those in full size too.",
)
EDITOR_NAMES = click.option(
    "--editor",
    "editors",
    multiple=True,
    metavar="NAME=ID",
    callback=lambda _context, _option, pairs: dict(map(_name_and_id, pairs)),
    help="The name NAME in a file means the editor ID of the study.",
)
OUT = click.option("--out", type=click.Path(path_type=Path), help="Folder to write to.")


class CommandGroup(click.Group):
    """Commands whose help stands in sections, each command with its whole first sentence."""

    sections: Mapping[str, Sequence[click.Command]] = {}
    """By title; commands of no section stand under 'Commands'."""

    def in_sections(self, sections: Mapping[str, Sequence[click.Command]]) -> None:
        """Take these commands in, and show them by section."""
        self.sections = sections
        for command in (command for section in sections.values() for command in section):
            self.add_command(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections, with nothing cut short."""
        placed = [command for section in self.sections.values() for command in section]
        others = [command for _, command in sorted(self.commands.items()) if command not in placed]
        width = max(len(command.name or "") for command in self.commands.values())
        for title, section in {**self.sections, "Commands": others}.items():
            rows = [((c.name or "").ljust(width), c.get_short_help_str(limit=1000)) for c in section if not c.hidden]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def example(text: str) -> Callable[[Any], Any]:
    """Show an example at the end of a command's help."""

    def add(function: Any) -> Any:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        call.__doc__ = f"{cleandoc(function.__doc__)}\n\n\b\nExample:\n  " + text.replace("\n", "\n  ")
        return call

    return add


def _name_and_id(pair: str) -> tuple[str, str]:
    """The two parts of NAME=ID."""
    given, equals, meant = pair.partition("=")
    if not (given and equals and meant):
        raise click.UsageError(f"--editor {pair}: expected NAME=ID")
    return given, meant


def open_study(study: Path) -> Study:
    """The study of a folder or file."""
    from evenedit.study.study import Study

    return Study.load(study)


def write_report(loaded: Study, out: Path, pictures: Pictures = "thumbnails") -> None:
    """Write a study's report and print where it is."""
    from evenedit.cli.findings import announce
    from evenedit.study.load_results import load_results

    page = loaded.report(out, pictures)
    announce(load_results(out / "results.json"))
    click.echo(page)


def folder_of(study: Path) -> Path:
    """The folder of a study named by its folder or its file."""
    return study.parent if study.suffix == ".toml" else study


def finish(summary: RunSummary, done: str, again: str) -> None:
    """Say how a run ended; what is not complete ends with exit code 4."""
    if summary.complete:
        if done:
            click.echo(done)
        return
    click.echo(f"{summary}\n{again}")
    sys.exit(INCOMPLETE)
