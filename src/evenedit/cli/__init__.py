"""Parse arguments, call the Python interface and print."""

from __future__ import annotations

import sys

import click

from evenedit.cli import (
    backup,
    bundle,
    compare,
    findings,
    gate,
    judges,
    pictures,
    plugins,
    serve,
    sources,
    studies,
    survey,
    tables,
)
from evenedit.cli.base import CommandGroup
from evenedit.core.version import __version__


def main() -> None:
    """Run the command line; print errors that the user can fix without a traceback."""
    from evenedit.core.errors import EvenEditError

    try:
        commands.main(standalone_mode=False)
    except EvenEditError as error:
        for line in error.problems:
            click.echo(f"evenedit: {line}", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except (KeyboardInterrupt, click.Abort):
        click.echo("\nevenedit: stopped; finished work is stored. Rerun the command to resume.", err=True)
        sys.exit(130)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="evenedit")
def commands() -> None:
    """Audit image editors for demographic unfairness.

    Start with: evenedit demo
    """


commands.in_sections(
    {
        "Everyday": (
            *(studies.demo, studies.new, studies.plan, studies.run, studies.status, studies.report),
            *(findings.findings, pictures.audit, pictures.measure, serve.serve),
        ),
        "Hand over": (bundle.seal, bundle.bundle, bundle.verify, bundle.rescore, bundle.publish, bundle.withdraw),
        "Results": (tables.analyze, tables.export, gate.gate, compare.compare),
        "Survey": (survey.survey,),
        "Judges and portraits": (judges.judges, sources.sources),
        "Maintenance": (studies.doctor, backup.backup, backup.restore, serve.admin, plugins.plugins),
    }
)
