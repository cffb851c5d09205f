"""Output that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from evenedit.results.results import Results


MOST = 5
"""Findings that are printed at the end of a report."""


def announce(results: Results) -> None:
    """Print the worst findings to standard error; standard output is for the path of the report."""
    from evenedit.report.text.findings import numbered

    for line in numbered(results.findings, MOST):
        click.echo(line, err=True)
    if results.findings:
        click.echo("", err=True)
