"""Command that answers pass, fail or undecided."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from evenedit.cli.base import RESULTS, example


@click.command()
@RESULTS
@click.option("--rule", "rules", multiple=True, help="A limit; can be repeated.")
@click.option("--baseline", type=click.Path(path_type=Path), help="Previous results: fail on a clear regression.")
@click.option("--editor", "editors", multiple=True, help="Only this editor; can be repeated.")
@click.option(
    "--ignore-judges-only",
    is_flag=True,
    help="Findings that are clear to judges, but not checked by people, fail no rule; they are named.",
)
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
    ignore_judges_only: bool,
    junit_file: Path | None,
    markdown_file: Path | None,
) -> None:
    """Compare results with limits: pass, fail, undecided.

    Exit code 0 = pass, 1 = fail, 3 = undecided, 2 = an error, such as a rule without an estimate. RESULTS is a
    results.json, the folder of a report or analysis, or a study, which is recomputed only if it changed. A rule passes
    if the interval is within the limit, fails if the interval is outside it, and is undecided otherwise.
    """
    from evenedit.api.load_results import load_results
    from evenedit.core.images import write_whole
    from evenedit.gate.gate import EXIT, check, editors_of, junit, markdown, overall, parse_rule_for

    loaded = load_results(results)
    outcomes = []
    if rules or baseline is None:
        parsed = [parse_rule_for(text, loaded) for text in rules]
        outcomes += check(loaded, parsed, editors, ignore_judges_only=ignore_judges_only)
    if baseline is not None:
        from evenedit.gate.regression import regressions  # it needs the statistics, which load slowly

        outcomes += regressions(loaded, load_results(baseline), editors_of(loaded, editors))
    simulated = bool(loaded.simulated)
    if junit_file:
        write_whole(junit_file, junit(outcomes, simulated))
    if markdown_file:
        write_whole(markdown_file, markdown(outcomes, simulated, loaded.findings).encode())
    if simulated:
        click.echo("SIMULATED: these data say nothing about any real editor")
    for outcome in outcomes:
        click.echo(f"{outcome.answer.upper():10} {outcome.editor:24} {outcome.rule:40} {outcome.evidence}")
    answer = overall(outcomes)
    click.echo(f"\n{answer}")
    sys.exit(EXIT[answer])
