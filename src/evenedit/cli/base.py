"""Shared parts of the commands: arguments, examples in the help, opening a study."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from evenedit.api.study import Study
    from evenedit.reporting.case_pages import Pictures
    from evenedit.run.summary import RunSummary

INCOMPLETE = 4
"""Exit code when something failed, the budget is spent or a batch job is open."""

REMOVED = {
    "leaderboard": "evenedit compare STUDY STUDY STUDY … (three or more)",
    "cards": "evenedit export STUDY --cards",
    "import-authors": "evenedit new STUDY --from-authors FOLDER",
    "move": "evenedit backup STUDY FILE, then evenedit restore FILE FOLDER --to URL",
    "editors": "evenedit plugins (environment of an editor: evenedit plugins step1x --setup)",
    "instruments": "evenedit plugins (model of an instrument: evenedit plugins age --setup)",
    "models": "evenedit plugins --models",
    "dev pictures": "python scripts/draw_pictures.py FOLDER",
    "dev fake-provider": "python -m tests.support.provider",
    "admin list": "evenedit admin STUDY",
    "admin password": "evenedit admin add STUDY NAME --replace",
    "admin role": "evenedit admin add STUDY NAME --replace --role ROLE",
    "judges list": "evenedit plugins",
    "judges probe": "evenedit plan STUDY --probe 0 (without a study: evenedit plugins openai --probe --set model=NAME)",
    "sources import-log": "evenedit sources pools STUDY --import-log LOG",
    "sources verify": "evenedit doctor FOLDER",
    "survey participants": "evenedit survey status STUDY --participants",
    "survey release": "evenedit survey withdraw STUDY NAME --keep-answers",
    "survey prolific status": "evenedit survey prolific sync STUDY PROLIFIC_STUDY",
    "survey prolific decide": "evenedit survey prolific sync STUDY PROLIFIC_STUDY --decide NAME=approve",
    "survey prolific demographics": "evenedit survey import STUDY FILE --demographics",
}
"""Removed commands, with the command that replaces each. Delete this at the first release."""

STUDY = click.argument("study", type=click.Path(path_type=Path), default=Path())
FACTORS = click.option(
    "--factors",
    callback=lambda _context, _option, value: tuple(filter(None, map(str.strip, value.split(",")))) if value else None,
    help="Columns to group by instead of race, gender and age, e.g. monk,headwear.",
)
RESULTS = click.argument("results", type=click.Path(path_type=Path), default=Path())
PICTURES = click.option(
    "--pictures",
    type=click.Choice(["none", "thumbnails", "full"]),
    default="thumbnails",
    show_default=True,
    help="Pictures in the report: none, thumbnails, or thumbnails and full size.",
)
EDITOR_NAMES = click.option(
    "--editor",
    "editors",
    multiple=True,
    metavar="NAME=ID",
    callback=lambda _context, option, pairs: split_pairs(option, pairs),
    help="The editor called NAME in a file is the editor ID of the study.",
)
PRICES = click.option("--prices", type=click.Path(path_type=Path), help="Your own price file (TOML).")
FORMATS = click.option(
    "--formats",
    default="",
    metavar="pdf,png",
    callback=lambda _context, _option, value: _formats(value),
    help="Further formats of the figures: pdf, png or both. SVG is always written.",
)
OUT = click.option("--out", type=click.Path(path_type=Path), help="Folder to write to.")


class CommandGroup(click.Group):
    """A group of commands that shows its help in sections and names the replacement of a removed command."""

    sections: Mapping[str, Sequence[click.Command]] = {}
    """Commands by section title; a command without a section is listed under 'Commands'."""
    default: click.Command | None = None
    """Runs when the first argument is no command of the group, or when there is none."""

    def in_sections(self, sections: Mapping[str, Sequence[click.Command]]) -> None:
        """Add these commands, and list them by section."""
        self.sections = sections
        for command in (command for section in sections.values() for command in section):
            self.add_command(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections, each command with its complete first sentence."""
        placed = [command for section in self.sections.values() for command in section]
        others = [command for _, command in sorted(self.commands.items()) if command not in placed]
        width = max(len(command.name or "") for command in self.commands.values())
        for title, section in {**self.sections, "Commands": others}.items():
            rows = [((c.name or "").ljust(width), c.get_short_help_str(limit=1000)) for c in section if not c.hidden]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments; without any, run the default command instead of showing the help."""
        if self.default and not args:
            args = [self.default.name or ""]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names."""
        path = [part.command.name or "" for part in _ancestors(ctx)]
        for removed in (" ".join([*path, *args[:2]]), " ".join([*path, args[0]])):
            if removed in REMOVED:
                raise click.UsageError(f"'{removed}' is now: {REMOVED[removed]}")
        if self.default and args[0] not in self.commands:
            return self.default.name, self.default, args[args[0] == self.default.name :]
        return super().resolve_command(ctx, args)


def _ancestors(context: click.Context) -> list[click.Context]:
    """Return the contexts of the groups above a command, without the root."""
    return [*_ancestors(context.parent), context] if context.parent else []


def example(text: str) -> Callable[[Any], Any]:
    """Show an example at the end of a command's help."""

    def add(function: Any) -> Any:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        call.__doc__ = f"{cleandoc(function.__doc__)}\n\n\b\nExample:\n  " + text.replace("\n", "\n  ")
        return call

    return add


def spending(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that limit what a command may spend; the command gets a `budget` and `prices`."""

    @PRICES
    @click.option("--max-cost", type=click.FloatRange(min=0), help="Start no call once this many US dollars are spent.")
    @click.option("--max-calls", type=click.IntRange(min=0), help="Start at most this many calls to paid services.")
    @wraps(function)
    def call(*args: Any, max_calls: int | None, max_cost: float | None, prices: Path | None, **kwargs: Any) -> Any:
        from evenedit.providers.budget import Budget
        from evenedit.providers.prices import Prices

        return function(*args, budget=Budget(max_calls, max_cost), prices=Prices.load(prices), **kwargs)

    return call


def split_pairs(option: click.Parameter, pairs: Sequence[str]) -> dict[str, str]:
    """Return the values of an option KEY=VALUE by key."""
    split = [pair.partition("=") for pair in pairs]
    for pair, (key, _, value) in zip(pairs, split, strict=True):
        if not (key and value):
            raise click.UsageError(f"{option.opts[0]} {pair}: expected {option.metavar}")
    return {key: value for key, _, value in split}


def open_study(study: Path) -> Study:
    """Open the study of a folder or file."""
    from evenedit.api.study import Study

    return Study.load(study)


def _formats(names: str) -> tuple[str, ...]:
    """Return the formats of a list with commas."""
    formats = tuple(filter(None, map(str.strip, names.split(","))))
    if unknown := set(formats) - {"pdf", "png"}:
        raise click.BadParameter(f"unknown format '{min(unknown)}'; known: pdf, png")
    return formats


def write_report(loaded: Study, out: Path, pictures: Pictures = "thumbnails", formats: Sequence[str] = ()) -> None:
    """Write a study's report and print where it is."""
    from evenedit.api.load_results import load_results
    from evenedit.cli.output import announce

    page = loaded.report(out, pictures, formats)
    announce(load_results(out / "results.json"))
    click.echo(page)


def folder_of(study: Path) -> Path:
    """Return the folder of a study that is named by its folder or its file."""
    return study.parent if study.suffix == ".toml" else study


def finish(summary: RunSummary, done: str, resume: str) -> None:
    """Print how a run ended; exit with code 4 if it is not complete."""
    if summary.complete:
        if done:
            click.echo(done)
        return
    click.echo(f"{summary}\n{resume}")
    sys.exit(INCOMPLETE)
