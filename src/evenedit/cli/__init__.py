"""Commands only: parse, call, print. Heavy imports wait until a command needs them."""

from __future__ import annotations

import sys

import click

from evenedit.cli import (
    backup,
    bundle,
    compare,
    dev,
    editors,
    findings,
    gate,
    instruments,
    judges,
    models,
    pictures,
    serve,
    sources,
    studies,
    survey,
    tables,
)
from evenedit.cli.base import CommandGroup
from evenedit.core.version import __version__


def main() -> None:
    """Run the command line; what the user can mend is a message without a traceback."""
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
        click.echo("\nevenedit: stopped; what was finished is stored. The same command goes on from here.", err=True)
        sys.exit(130)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="evenedit")
def commands() -> None:
    """EvenEdit shows whether an image editor treats every face the same.

    Begin with: evenedit demo
    """


commands.in_sections(
    {
        "Start": (studies.demo, studies.new, pictures.audit, tables.analyze, tables.import_authors, pictures.measure),
        "A study": (
            *(studies.plan, studies.run, studies.status, studies.report),
            *(findings.findings, tables.export, serve.serve, studies.doctor),
            *(backup.backup, backup.restore, backup.move),
        ),
        "Hand over": (bundle.seal, bundle.bundle, bundle.verify, bundle.rescore, bundle.publish, bundle.withdraw),
        "People": (survey.survey, serve.admin),
        "Several editors": (gate.gate, compare.compare, compare.leaderboard, pictures.cards),
        "Parts": (sources.sources, editors.editors, judges.judges, instruments.instruments, models.models),
        "For developers": (dev.dev,),
    }
)
