"""Commands over a study: begin, plan, run, look, report."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenedit.cli.base import OUT, PICTURES, STUDY, example, finish, folder_of, open_study, write_report

if TYPE_CHECKING:
    from evenedit.study.report_cases import Pictures


@click.command()
@OUT
@click.option("--seed", default=1, show_default=True, help="Draws other people and other edits.")
@example("evenedit demo --out demo")
def demo(out: Path | None, seed: int) -> None:
    """Audit four simulated editors on drawn portraits, offline.

    Ends with the path of the report. Simulated people take part in the survey through the pages of a server on this
    machine.
    """
    from evenedit.config import templates
    from evenedit.core.log import log
    from evenedit.web.rehearsal import Server, rehearse

    folder = out or Path("demo")
    if not (folder / "study.toml").exists():
        templates.write("demo", folder, seed=seed)
    loaded = open_study(folder)
    with Server() as server:  # it starts while pictures are made
        summary = loaded.run()
        log.info(rehearse(loaded, server))
    write_report(loaded, folder / "report")
    finish(
        summary,
        f"Open the report:  {folder / 'report' / 'report.html'}\n"
        f"Open the app:     evenedit serve {folder}   and then http://127.0.0.1:8000/\n"
        "Take part:        on the app's first page, 'Start a preview' (the study's own places are taken; a preview "
        "never counts)\n"
        "See it as staff:  http://127.0.0.1:8000/admin, with the password that 'evenedit serve' prints",
        f"The same command goes on: evenedit demo --out {folder}",
    )


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--template",
    type=click.Choice(["small", "demo", "published", "paper", "curated", "monk"]),
    default="small",
    show_default=True,
    help="What the study begins as.",
)
@example("evenedit new my-study --template published")
def new(folder: Path, template: str) -> None:
    """Begin a study: a folder with a commented study.toml."""
    from evenedit.config import templates

    path = templates.write(template, folder)
    click.echo(f"{path}\nEdit it, then: evenedit plan {folder}")


@click.command()
@STUDY
@click.option("--probe", type=click.IntRange(min=1), help="First make this many edits per editor, to time them.")
@click.option("--prices", type=click.Path(path_type=Path), help="Your own price file (TOML).")
@click.option("--gpu-memory", type=click.FloatRange(min=1), help="Plan for a GPU of this many GB, not the one here.")
@click.option(
    "--main-memory", type=click.FloatRange(min=1), help="With --gpu-memory: that machine's main memory in GB."
)
@click.option("--power", is_flag=True, help="Also simulate what the design can show, and what would do (some seconds).")
@click.option(
    "--effect",
    type=click.FloatRange(0.01, 0.6),
    default=0.15,
    show_default=True,
    help="With --power: the gap and shift to be found, as a share.",
)
@example("evenedit plan my-study --probe 2 --power")
def plan(
    study: Path,
    probe: int | None,
    prices: Path | None,
    gpu_memory: float | None,
    main_memory: float | None,
    power: bool,
    effect: float,
) -> None:
    """Show what a run would do: edits, calls, hours, money, power. Also disk and memory."""
    from evenedit.study import plan as planning
    from evenedit.study.memory import Machine

    loaded = open_study(study)
    if probe:
        planning.probe(loaded, probe)
    if main_memory and not gpu_memory:
        raise click.UsageError("--main-memory goes with --gpu-memory: the machine that is planned for has both")
    there = Machine(gpu_memory, main_memory or math.inf) if gpu_memory else None
    made = planning.make_plan(loaded, prices, there)
    click.echo(made)
    if power:
        from evenedit.stats.disparity.recommend import describe

        design = planning.design_of(loaded)
        if design is None:
            click.echo("power: there is no diagnosis with two groups or more to compare")
        else:
            click.echo("\n" + "\n".join(describe(planning.simulate_power(loaded, design, effect))))


@click.command()
@STUDY
@click.option(
    "--max-calls", type=click.IntRange(min=0), help="Begin no more calls to judges and paid editors than this."
)
@click.option("--max-cost", type=click.FloatRange(min=0), help="Begin no call once this many US dollars are spent.")
@click.option("--prices", type=click.Path(path_type=Path), help="Your own price file (TOML).")
@click.option("--batch", is_flag=True, help="Ask judges by batch job where their provider takes them: half the price.")
@click.option("--give-up", multiple=True, metavar="JOB", help="Wait no longer for this batch job; ask anew.")
@click.option("--no-cache", is_flag=True, help="Ask again even what the same judge was asked before.")
@example("evenedit run my-study --max-cost 20\nevenedit run my-study --batch")
def run(
    study: Path,
    max_calls: int | None,
    max_cost: float | None,
    prices: Path | None,
    batch: bool,
    give_up: tuple[str, ...],
    no_cache: bool,
) -> None:
    """Edit and rate all that is not there yet. Stop it with Ctrl-C, go on with the same command."""
    from evenedit.providers.budget import Budget
    from evenedit.providers.prices import Prices

    runner = open_study(study).runner(Budget(max_calls, max_cost), Prices.load(prices))
    runner.batch, runner.give_up = batch, give_up
    if no_cache:
        runner.cache = None
    finish(runner.run(), f"done. Next: evenedit report {study}", f"The same command goes on: evenedit run {study}")


@click.command()
@STUDY
@click.option("--watch", "watching", is_flag=True, help="Look again every few seconds, until the run is complete.")
@example("evenedit status my-study --watch")
def status(study: Path, watching: bool) -> None:
    """Show how far a study is, and what went wrong."""
    loaded = open_study(study)
    if not watching:
        click.echo(loaded.status())
        return
    from evenedit.study.watching import watch

    for now, pace in watch(loaded):
        click.clear()
        click.echo(f"{now}\n{pace}")


@click.command()
@STUDY
@OUT
@PICTURES
@example("evenedit report my-study\nevenedit report my-study --out to-share --pictures none")
def report(study: Path, out: Path | None, pictures: Pictures) -> None:
    """Write a study's report: findings, cases, tables, figures."""
    write_report(open_study(study), out or folder_of(study) / "report", pictures)


@click.command()
@click.argument("study", type=click.Path(path_type=Path), required=False)
@click.option("--repair", is_flag=True, help="Do what is safe: private files, damaged pictures set aside.")
@example("evenedit doctor my-study")
def doctor(study: Path | None, repair: bool) -> None:
    """Check this installation, and a study's databases and images."""
    from evenedit.core.errors import EvenEditError
    from evenedit.study.doctor import HealthCheck, examine
    from evenedit.study.doctor import repair as mend

    loaded, findings = None, []
    try:
        loaded = open_study(study) if study else None
    except EvenEditError as error:
        findings = [HealthCheck(False, problem) for problem in error.problems]
    for done in mend(loaded) if loaded and repair else ():
        click.echo(f"done {done}")
    healthy = True
    for finding in (*examine(loaded), *findings):
        healthy &= finding.good
        click.echo(f"{'ok  ' if finding.good else 'BAD '}{finding.text}")
    if not healthy:
        sys.exit(2)
