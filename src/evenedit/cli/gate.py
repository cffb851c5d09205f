"""The command that answers yes, no or undecided."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from evenedit.cli.base import RESULTS, example


@click.command()
@RESULTS
@click.option("--rule", "rules", multiple=True, help="A limit; may be given several times.")
@click.option("--baseline", type=click.Path(path_type=Path), help="Former results: fail on a clear regression.")
@click.option("--editor", "editors", multiple=True, help="Only this editor; all when absent.")
@click.option("--junit", "junit_file", type=click.Path(path_type=Path), help="Write a JUnit file.")
@click.option("--markdown", "markdown_file", type=click.Path(path_type=Path), help="Write a Markdown summary.")
@example(
    "evenedit gate my-study --rule 'gap.race_change.race <= 0.05' --rule 'rate.soft_erasure <= 0.1' --junit gate.xml\n"
    "evenedit gate my-study --rule 'shift.skin_tone <= 0.05' --rule 'no clear finding of kind gap'\n"
    "evenedit gate my-study --baseline last-release/results.json"
)
def gate(
    results: Path,
    rules: tuple[str, ...],
    baseline: Path | None,
    editors: tuple[str, ...],
    junit_file: Path | None,
    markdown_file: Path | None,
) -> None:
    """Hold results against limits: pass, fail, undecided.

    Exit code 0 = pass, 1 = fail, 3 = undecided, 2 = a mistake, such as a rule that no editor has an estimate for.
    RESULTS is a results.json, the folder of a report or analysis, or a study, which is computed anew only where
    something changed. A rule passes where its whole interval keeps the limit and fails where the whole interval breaks
    it; in between the data cannot tell, and the answer is undecided.
    """
    from evenedit.core.images import write_whole
    from evenedit.report.gate import EXIT, check, editors_of, junit, markdown, overall, parse_rule
    from evenedit.study.load_results import load_results

    loaded = load_results(results)
    outcomes = []
    if rules or baseline is None:
        outcomes += check(loaded, [parse_rule(text, loaded.factors) for text in rules], editors)
    if baseline is not None:
        from evenedit.report.regression import regressions  # it needs the statistics, which load slowly

        outcomes += regressions(loaded, load_results(baseline), editors_of(loaded, editors))
    simulated = bool(loaded.simulated)
    if junit_file:
        write_whole(junit_file, junit(outcomes, simulated))
    if markdown_file:
        write_whole(markdown_file, markdown(outcomes, simulated, loaded.findings).encode())
    if simulated:
        click.echo("SIMULATED: these data say nothing about any real editor")
    for one in outcomes:
        click.echo(f"{one.answer.upper():10} {one.editor:24} {one.rule:40} {one.evidence}")
    answer = overall(outcomes)
    click.echo(f"\n{answer}")
    sys.exit(EXIT[answer])
