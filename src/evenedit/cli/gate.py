"""The command that answers yes, no or undecided."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from evenedit.cli.base import STUDY, example, open_study


@click.command()
@STUDY
@click.option("--rule", "rules", multiple=True, required=True, help="A limit; may be given several times.")
@click.option("--editor", "editors", multiple=True, help="Only this editor; all when absent.")
@click.option("--junit", "junit_file", type=click.Path(path_type=Path), help="Write a JUnit file.")
@click.option("--markdown", "markdown_file", type=click.Path(path_type=Path), help="Write a Markdown summary.")
@example(
    "evenedit gate my-study --rule 'gap.race_change.race <= 0.05' --rule 'rate.soft_erasure <= 0.1' --junit gate.xml"
)
def gate(
    study: Path,
    rules: tuple[str, ...],
    editors: tuple[str, ...],
    junit_file: Path | None,
    markdown_file: Path | None,
) -> None:
    """Hold a study's results against limits: pass, fail, undecided.

    Exit code 0 = pass, 1 = fail, 3 = undecided. A rule passes where its whole interval keeps the limit and fails where
    the whole interval breaks it; in between the data cannot tell, and the answer is undecided.
    """
    from evenedit.core.images import write_whole
    from evenedit.report.gate import EXIT, Rule, check, junit, markdown, overall
    from evenedit.study.results import results_of

    loaded = open_study(study)
    parsed = [Rule.parse(text, loaded.file.factors) for text in rules]
    results = results_of(loaded, loaded.table())
    findings = check(results, parsed, editors)
    simulated = bool(results.simulated)
    if junit_file:
        write_whole(junit_file, junit(findings, simulated))
    if markdown_file:
        write_whole(markdown_file, markdown(findings, simulated).encode())
    if simulated:
        click.echo("SIMULATED: these data say nothing about any real editor")
    for f in findings:
        click.echo(f"{f.answer.upper():10} {f.editor:24} {f.rule:40} {f.evidence}")
    answer = overall(findings)
    click.echo(f"\n{answer}")
    sys.exit(EXIT[answer])
