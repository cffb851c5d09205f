"""Commands about the judges: who they are, what moves their scores, whether they changed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenedit.cli.base import INCOMPLETE, OUT, STUDY, CommandGroup, example, folder_of, open_study

if TYPE_CHECKING:
    from evenedit.results.judge_checks import AnchorCheck
    from evenedit.run.runner import Runner
    from evenedit.study.study import Study

JUDGE = click.option("--judge", "names", multiple=True, help="Only this judge of the study; can be given again.")


def budgeted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that limit what a command may spend."""
    for option in (
        click.option("--prices", type=click.Path(path_type=Path), help="Your own price file (TOML)."),
        click.option(
            "--max-cost", type=click.FloatRange(min=0), help="Begin no call once this many US dollars are spent."
        ),
        click.option("--max-calls", type=click.IntRange(min=0), help="Begin no more calls than this."),
    ):
        function = option(function)
    return function


def runner_of(study: Study, max_calls: int | None, max_cost: float | None, prices: Path | None) -> Runner:
    """What asks the judges of a study, with what it may spend."""
    from evenedit.providers.budget import Budget
    from evenedit.providers.prices import Prices

    return study.runner(Budget(max_calls, max_cost), Prices.load(prices))


@click.group(cls=CommandGroup)
def judges() -> None:
    """Look at the judges: what moves them, whether one changed.

    \b
    Example:
      evenedit judges check my-study
    """


@judges.command("list")
@click.argument("study", type=click.Path(path_type=Path), required=False)
@example("evenedit judges list my-study")
def list_judges(study: Path | None) -> None:
    """List the installed kinds of judges, or a study's judges.

    A study's come with the models that answered.
    """
    from evenedit.core import plugins

    if study is None:
        for kind, point in sorted(plugins.installed("judges").items()):
            click.echo(f"{kind:24}{point.value}")
        return
    loaded = open_study(study)
    for section, rater in zip(loaded.file.sections.judges, loaded.design.judges(), strict=True):
        answered = len(loaded.store.answered(rater.id, rater.revision))
        models = ", ".join(loaded.store.models(rater.id, rater.revision)) or "no model reported"
        note = "given the labels" if rater.sees_labels else "blind"
        click.echo(f"{rater.id:28}{section.kind:12}{note:17}{answered:>7,} answers  {models}")


@judges.command("probe")
@click.argument("study", type=click.Path(path_type=Path), required=False)
@JUDGE
@click.option("--model", help="Without a study: the model to try.")
@click.option("--server", type=click.Choice(["vllm", "ollama", "lmstudio", "sglang"]), help="A server of your own.")
@click.option("--base-url", help="Where the endpoint is, if not where its server listens by itself.")
@click.option("--api-key-env", help="The variable that holds the key; none is sent to a server of your own.")
@example("evenedit judges probe --server ollama --model qwen3-vl:8b\nevenedit judges probe my-study")
def probe_judges(
    study: Path | None,
    names: tuple[str, ...],
    model: str | None,
    server: str | None,
    base_url: str | None,
    api_key_env: str | None,
) -> None:
    """Try what an endpoint can do: schemas, pictures, fields.

    Ends with one whole question of the rubric about two plain pictures: some fifteen short calls in all. Exit code 1
    where a judge could not be used as it is set.
    """
    from evenedit.core import plugins
    from evenedit.core.errors import EvenEditError
    from evenedit.judges.base import RemoteJudge
    from evenedit.judges.probe import probe
    from evenedit.study.judge_checks import judges_of

    if study is None:
        if model is None:
            raise EvenEditError("name a study, or a model: evenedit judges probe --server ollama --model NAME")
        given = {"model": model, "server": server, "base_url": base_url, "api_key_env": api_key_env}
        settings = {name: value for name, value in given.items() if value is not None}
        chosen = [(model, plugins.build("judges", "openai", settings))]
    else:
        chosen = [(rater.id, rater.judge) for rater in judges_of(open_study(study), names)]
    usable = True
    for name, judge in chosen:
        click.echo(name)
        if not isinstance(judge, RemoteJudge):
            click.echo("     is no model at an endpoint; there is nothing to try")
            continue
        for finding in probe(judge):
            usable &= finding.good is not False
            mark = "ok  " if finding.good else "–   " if finding.good is None else "BAD "
            click.echo(f"{mark} {finding.what:20}{finding.note}")
    if not usable:
        sys.exit(1)


@judges.command()
@STUDY
@click.option("--sample", type=click.IntRange(min=2), help="Edits to ask about; 168 or all when left out.")
@JUDGE
@OUT
@budgeted
@example("evenedit judges check my-study --sample 84 --max-cost 5")
def check(
    study: Path,
    sample: int | None,
    names: tuple[str, ...],
    out: Path | None,
    max_calls: int | None,
    max_cost: float | None,
    prices: Path | None,
) -> None:
    """Rate a sample again, asked in other ways.

    Repeated, labels shown, order turned, without colour. Writes how far each moves the scores, by group. Stop it with
    Ctrl-C, go on with the same command.
    """
    from evenedit.report.pages.judge_check import write_check
    from evenedit.study import judge_checks as judge_check

    loaded = open_study(study)
    runner = runner_of(loaded, max_calls, max_cost, prices)
    plan = judge_check.make_plan(loaded, sample, names)
    click.echo(f"{len(plan.requests):,} edits, each judge asked in {len(judge_check.VARIANTS)} ways:\n")
    click.echo(f"{'judge':28}{'asked':26}{'calls':>8}{'done':>8}{'left':>8}")
    for judge in plan.judges:
        for variant in judge_check.VARIANTS:
            done = plan.done[judge.id, variant.id]
            calls = len(plan.requests)
            click.echo(f"{judge.id:28}{variant.title:26}{calls:>8,}{done:>8,}{calls - done:>8,}")
    click.echo(f"{'in all':54}{plan.calls:>8,}{plan.calls - plan.left:>8,}{plan.left:>8,}\n")
    stopped = judge_check.ask(runner, plan) if plan.left else []
    found = judge_check.evaluate(loaded, judge_check.make_plan(loaded, sample, names))
    file, folder = loaded.file, out or folder_of(study) / judge_check.NAME
    page = write_check(found, folder, title=file.sections.study.title, factors=file.factors)
    click.echo(page)
    if found.waiting:
        for stop in stopped:
            click.echo(stop)
        click.echo(f"not complete: {found.waiting:,} calls are still to be made; the same command goes on")
        sys.exit(INCOMPLETE)


@judges.command()
@STUDY
@click.option("--freeze", "freezing", is_flag=True, help="Choose a set, or add this study's judges to the one there.")
@click.option("--set", "folder", type=click.Path(path_type=Path), help="Folder of the set; STUDY/anchors by default.")
@click.option("--size", type=click.IntRange(min=6), default=24, show_default=True, help="Edits of a new set.")
@click.option("--repeats", type=click.IntRange(min=2), default=2, show_default=True, help="Times each is asked.")
@JUDGE
@budgeted
@example("evenedit judges anchors my-study --freeze\nevenedit judges anchors my-study    # exit code 1: moved")
def anchors(
    study: Path,
    freezing: bool,
    folder: Path | None,
    size: int,
    repeats: int,
    names: tuple[str, ...],
    max_calls: int | None,
    max_cost: float | None,
    prices: Path | None,
) -> None:
    """Freeze some of the judges' answers; ask again later.

    A small set of edits tells whether they still answer so. Exit code 0: no change seen. 1: answers moved, or the
    provider reports another model.
    """
    from evenedit.core.errors import EvenEditError, Unfinished
    from evenedit.study import anchors as anchoring
    from evenedit.study.judge_checks import judges_of

    loaded = open_study(study)
    runner = runner_of(loaded, max_calls, max_cost, prices)
    place = folder or folder_of(study) / anchoring.FOLDER
    chosen = judges_of(loaded, names)
    found = anchoring.freeze(loaded, place, size, repeats) if freezing else anchoring.AnchorSet(place)
    round_number = anchoring.FROZEN
    if not freezing:
        ready = [j for j in chosen if not found.left([j], anchoring.FROZEN)]
        for judge in (j for j in chosen if j not in ready):
            click.echo(f"{judge.id}: not frozen with these settings and this prompt. Try: --freeze")
        if not ready:
            raise EvenEditError(f"no judge of the study has frozen answers in {place}. Try: --freeze")
        chosen, round_number = ready, found.current_round(ready)
    left = len(found.left(chosen, round_number))
    total = len(chosen) * len(found.anchors) * found.repeats
    size = len(found.anchors)
    click.echo(f"{size} anchors x {found.repeats} repeats x {len(chosen)} judges = {total:,} calls, {left:,} left")
    anchoring.ask(runner, found, chosen, round_number)
    waiting = len(found.left(chosen, round_number))
    if waiting:
        raise Unfinished(f"not complete: {waiting:,} calls are still to be made; the same command goes on")
    if freezing:
        click.echo(f"frozen in {place}. Later: evenedit judges anchors {study}")
        return
    _print_changes(anchoring.compare(loaded, found, chosen, round_number))


def _print_changes(found: AnchorCheck) -> None:
    """Print what moved; exit code 1 where something did."""
    if found.simulated:
        click.echo("SIMULATED: " + ", ".join(found.simulated))
    click.echo(f"frozen {found.frozen}; {found.method}\n")
    columns = ("then", "now", "shift", "noise", "p, Holm", "could see")
    click.echo(f"{'judge':28}{'question':16}{'n':>4}" + "".join(f"{c:>11}" for c in columns))
    for d in found.drifts:
        if d.n:
            numbers = [d.before, d.after, d.shift, d.noise, d.p_holm, d.least]
            shown = "".join(f"{'–' if x is None else f'{x:.3f}':>11}" for x in numbers)
            click.echo(f"{d.judge:28}{d.question:16}{d.n:>4}{shown}{'  MOVED' if d.moved else ''}")
    for m in found.models:
        then, now = (", ".join(models) or "not reported" for models in (m.before, m.after))
        note = "  ANOTHER MODEL" if m.changed else ""
        click.echo(f"model of {m.judge}: {then}" + (f" -> {now}{note}" if then != now else ""))
    if found.moved:
        click.echo("\nmoved: these judges no longer answer as they did when the set was frozen")
        sys.exit(1)
    click.echo("\nno change seen; 'could see' is the mean shift that would have been seen with 80 % probability")
