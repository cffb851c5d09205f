"""Commands that check the judges of a study: what moves their scores, whether they changed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenedit.cli.base import INCOMPLETE, STUDY, CommandGroup, example, folder_of, open_study, spending

if TYPE_CHECKING:
    from evenedit.providers.budget import Budget
    from evenedit.providers.prices import Prices
    from evenedit.results.judge_checks import AnchorCheck

JUDGE = click.option("--judge", "names", multiple=True, help="Only this judge of the study; can be repeated.")


@click.group(cls=CommandGroup)
@example("evenedit judges check my-study")
def judges() -> None:
    """Check the judges: what moves their scores, whether one changed."""


@judges.command()
@STUDY
@click.option("--sample", type=click.IntRange(min=2), help="Edits to rate again; default: 168, or all if fewer.")
@JUDGE
@spending
@example("evenedit judges check my-study --sample 84 --max-cost 5")
def check(study: Path, sample: int | None, names: tuple[str, ...], budget: Budget, prices: Prices) -> None:
    """Rate a sample again under varied conditions.

    Repeated, with labels, in reversed order, without colour. Writes to STUDY/judges-check how far each variant moves
    the scores, by group. Stop with Ctrl-C; rerun the command to resume.
    """
    from evenedit.operations import judge_checks
    from evenedit.report.pages.judge_check import write_check

    loaded = open_study(study)
    runner = loaded.runner(budget, prices)
    plan = judge_checks.make_plan(loaded, sample, names)
    click.echo(f"{len(plan.requests):,} edits, {len(judge_checks.VARIANTS)} variants per judge:\n")
    click.echo(f"{'judge':28}{'variant':26}{'calls':>8}{'done':>8}{'left':>8}")
    for judge in plan.judges:
        for variant in judge_checks.VARIANTS:
            done = plan.done[judge.id, variant.id]
            calls = len(plan.requests)
            click.echo(f"{judge.id:28}{variant.title:26}{calls:>8,}{done:>8,}{calls - done:>8,}")
    click.echo(f"{'total':54}{plan.calls:>8,}{plan.calls - plan.left:>8,}{plan.left:>8,}\n")
    stopped = judge_checks.ask(runner, plan) if plan.left else []
    result = judge_checks.evaluate(loaded, judge_checks.make_plan(loaded, sample, names))
    file, folder = loaded.file, folder_of(study) / judge_checks.NAME
    page = write_check(result, folder, title=file.sections.study.title, factors=file.factors, rubric=file.rubric)
    click.echo(page)
    if result.waiting:
        for stop in stopped:
            click.echo(stop)
        click.echo(f"not complete: {result.waiting:,} calls are missing. Rerun the command to resume")
        sys.exit(INCOMPLETE)


@judges.command()
@STUDY
@click.option("--freeze", "freezing", is_flag=True, help="Choose a set, or add this study's judges to an existing one.")
@click.option("--set", "folder", type=click.Path(path_type=Path), help="Folder of the set; default: STUDY/anchors.")
@click.option("--size", type=click.IntRange(min=6), default=24, show_default=True, help="Edits of a new set.")
@click.option("--repeats", type=click.IntRange(min=2), default=2, show_default=True, help="Ratings per edit and judge.")
@JUDGE
@spending
@example("evenedit judges anchors my-study --freeze\nevenedit judges anchors my-study    # exit code 1: moved")
def anchors(
    study: Path,
    freezing: bool,
    folder: Path | None,
    size: int,
    repeats: int,
    names: tuple[str, ...],
    budget: Budget,
    prices: Prices,
) -> None:
    """Freeze the judges' answers to a few edits; repeat them later.

    The repetition shows whether the judges still answer in the same way. Exit code 0: no change seen. 1: answers moved,
    or the provider reports another model.
    """
    from evenedit.core.errors import EvenEditError, IncompleteError
    from evenedit.operations import anchors as anchoring
    from evenedit.operations.judge_checks import judges_of

    loaded = open_study(study)
    runner = loaded.runner(budget, prices)
    place = folder or folder_of(study) / anchoring.FOLDER
    chosen = judges_of(loaded, names)
    anchor_set = anchoring.freeze(loaded, place, size, repeats) if freezing else anchoring.AnchorSet(place)
    round_number = anchoring.FROZEN
    if not freezing:
        ready = [j for j in chosen if not anchor_set.left([j], anchoring.FROZEN)]
        for judge in (j for j in chosen if j not in ready):
            click.echo(f"{judge.id}: not frozen with these settings and this prompt. Try: --freeze")
        if not ready:
            raise EvenEditError(f"no judge of the study has frozen answers in {place}. Try: --freeze")
        chosen, round_number = ready, anchor_set.current_round(ready)
    left = len(anchor_set.left(chosen, round_number))
    size, repeats = len(anchor_set.anchors), anchor_set.repeats
    total = len(chosen) * size * repeats
    click.echo(f"{size} anchors x {repeats} repeats x {len(chosen)} judges = {total:,} calls, {left:,} left")
    anchoring.ask(runner, anchor_set, chosen, round_number)
    waiting = len(anchor_set.left(chosen, round_number))
    if waiting:
        raise IncompleteError(f"not complete: {waiting:,} calls are missing. Rerun the command to resume")
    if freezing:
        click.echo(f"frozen in {place}. Later: evenedit judges anchors {study}")
        return
    _print_changes(anchoring.compare(loaded, anchor_set, chosen, round_number))


def _print_changes(check: AnchorCheck) -> None:
    """Print the changes; exit with code 1 if a judge moved."""
    if check.simulated:
        click.echo("SIMULATED: " + ", ".join(check.simulated))
    click.echo(f"frozen {check.frozen}; {check.method}\n")
    columns = ("then", "now", "shift", "noise", "p, Holm", "detectable")
    click.echo(f"{'judge':28}{'question':16}{'n':>4}" + "".join(f"{c:>11}" for c in columns))
    for d in check.drifts:
        if d.n:
            numbers = [d.before, d.after, d.shift, d.noise, d.p_holm, d.least]
            cells = "".join(f"{'–' if x is None else f'{x:.3f}':>11}" for x in numbers)
            click.echo(f"{d.judge:28}{d.question:16}{d.n:>4}{cells}{'  MOVED' if d.moved else ''}")
    for m in check.models:
        then, now = (", ".join(models) or "not reported" for models in (m.before, m.after))
        note = "  ANOTHER MODEL" if m.changed else ""
        click.echo(f"model of {m.judge}: {then}" + (f" -> {now}{note}" if then != now else ""))
    if check.moved:
        click.echo("\nmoved: these judges no longer answer as they did when the set was frozen")
        sys.exit(1)
    click.echo("\nno change seen; 'detectable' is the mean shift that is detected with a probability of 80 %")
