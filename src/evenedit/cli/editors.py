"""The command about installed editors."""

from __future__ import annotations

from pathlib import Path

import click

from evenedit.cli.base import example


@click.command()
@click.argument("action", type=click.Choice(["list", "setup"]), default="list")
@click.argument("name", required=False)
@click.option("--run", "perform", is_flag=True, help="Perform the steps instead of printing them.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where its environment goes.")
@example("evenedit editors setup step1x")
def editors(action: str, name: str | None, perform: bool, folder: Path | None) -> None:
    """List the installed editors, or set one up. Only step1x needs an environment of its own."""
    from evenedit.core import plugins
    from evenedit.core.errors import EvenEditError
    from evenedit.editors.local import step1x

    if action == "list":
        for editor, point in sorted(plugins.installed("editors").items()):
            click.echo(f"{editor:24}{point.value}")
    elif name not in ("step1x", step1x.ID):
        raise EvenEditError(f"'{name}' needs no environment of its own. Try: evenedit editors setup step1x")
    else:
        step1x.setup(folder, run=perform)
