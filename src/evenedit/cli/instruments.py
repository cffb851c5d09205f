"""The command about installed instruments."""

from __future__ import annotations

from pathlib import Path

import click

from evenedit.cli.base import example


@click.command()
@click.argument("action", type=click.Choice(["list", "setup"]), default="list")
@click.option("--package", type=click.Path(path_type=Path), help="A package file at hand, in place of the registry.")
@click.option("--again", is_flag=True, help="Fetch even if the model is there.")
@example("evenedit instruments setup")
def instruments(action: str, package: Path | None, again: bool) -> None:
    """List the installed instruments, or fetch the model that reads age (28 MB)."""
    if action == "list":
        from evenedit.core import plugins

        for name, point in sorted(plugins.installed("instruments").items()):
            click.echo(f"{name:24}{point.value}")
        return
    from evenedit.instruments.model_setup import TERMS, setup

    click.echo(TERMS)
    click.echo(f"The model is in {setup(package, again=again)}")
