"""Commands for a study: create, plan, run, watch, report, check."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenedit.cli.base import (
    EDITOR_NAMES,
    FORMATS,
    OUT,
    PICTURES,
    PRICES,
    STUDY,
    example,
    finish,
    folder_of,
    open_study,
    spending,
    write_report,
)

if TYPE_CHECKING:
    from evenedit.providers.budget import Budget
    from evenedit.providers.prices import Prices
    from evenedit.reporting.case_pages import Pictures


@click.command()
@OUT
@example("evenedit demo --out demo")
def demo(out: Path | None) -> None:
    """Audit four simulated editors on drawn portraits, offline.

    Prints the path of the report. Simulated participants answer the survey through the pages of a local server.
    """
    from evenedit.config import templates
    from evenedit.core.log import log
    from evenedit.web.rehearsal import Server, rehearse

    folder = out or Path("demo")
    if not (folder / "study.toml").exists():
        templates.write("demo", folder)
    loaded = open_study(folder)
    with Server() as server:  # it starts while pictures are made
        summary = loaded.run()
        log.info(rehearse(loaded, server))
    write_report(loaded, folder / "report")
    finish(
        summary,
        f"Open the report:  {folder / 'report' / 'report.html'}\n"
        f"Open the app:     evenedit serve {folder}   and then http://127.0.0.1:8000/\n"
        "Take part:        on the app's first page, 'Start a preview' (all places of the study are taken; a preview "
        "never counts)\n"
        "See it as staff:  http://127.0.0.1:8000/admin, with the password that 'evenedit serve' prints",
        f"Rerun the command to resume: evenedit demo --out {folder}",
    )


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--template",
    type=click.Choice(["small", "demo", "published", "paper", "curated", "monk", "open"]),
    default="small",
    show_default=True,
    help="Study file to start from.",
)
@click.option(
    "--from-authors",
    "authors",
    type=click.Path(path_type=Path),
    help="Import this folder of the authors' files instead.",
)
@EDITOR_NAMES
@example(
    "evenedit new my-study --template published\n"
    "evenedit new my-study --from-authors their-files --editor flux=flux2-dev"
)
def new(folder: Path, template: str, authors: Path | None, editors: dict[str, str]) -> None:
    """Create a study: a folder with a commented study.toml.

    With --from-authors, files of the paper's authors are recognised by their columns: the judges' table (model,
    version, five scores), people's ratings (also rater), the selection log with its candidate pools V1, V2 …, and
    portraits named after their cells.
    """
    if authors is not None:
        _import_authors(authors, folder, editors)
        return
    from evenedit.config import templates

    path = templates.write(template, folder)
    click.echo(f"{path}\nEdit it, then: evenedit plan {folder}")


def _import_authors(authors: Path, folder: Path, editors: dict[str, str]) -> None:
    from evenedit.interchange.authors import import_authors

    imported = import_authors(authors, folder, editors)
    click.echo(f"{imported.edits:,} edits")
    for judge, edits in imported.judges.items():
        click.echo(f"judge {judge}: {edits:,} edits scored")
    for people in imported.people:
        click.echo(f"{people.raters} people: {people.pages:,} pages rated, {people.answers:,} answers")
    if imported.pools:
        click.echo(f"portraits chosen from {', '.join(f'{pool} {n}' for pool, n in imported.pools.items())}")
    for note in imported.notes:
        click.echo(f"note: {note}")
    click.echo(f"{folder}\nNext: evenedit report {folder}")


def _memory(_context: click.Context, option: click.Parameter, text: str | None) -> tuple[float, float] | None:
    """Return the gigabytes of GPU and main memory in GPU[,MAIN]."""
    if text is None:
        return None
    try:
        sizes = [float(part) for part in text.split(",")]
    except ValueError:
        sizes = []
    if len(sizes) not in (1, 2) or min(sizes) < 1:
        raise click.BadParameter(f"'{text}' is not {option.metavar}, for example 24 or 24,64")
    return sizes[0], sizes[1] if len(sizes) == 2 else math.inf


@click.command()
@STUDY
@click.option(
    "--probe", type=click.IntRange(min=0), help="First time this many edits per editor and test the judges' endpoints."
)
@PRICES
@click.option(
    "--gpu-memory", metavar="GPU[,MAIN]", callback=_memory, help="Plan for a machine with this memory in GB instead."
)
@click.option("--power", is_flag=True, help="Also show what the design can detect, and the best design of a budget.")
@click.option("--edits", type=click.IntRange(min=1), help="Budget: edits by each editor [default: as in the study].")
@click.option("--money", type=click.FloatRange(0, min_open=True), help="Budget: US dollars.")
@click.option("--people", type=click.IntRange(min=1), help="Budget: participants of the survey, one task each.")
@click.option("--gap", type=click.FloatRange(0.01, 0.6), help="Difference between groups to detect, as a share.")
@click.option("--face-price", type=click.FloatRange(0), default=0.0, help="US dollars that a portrait costs.")
@example("evenedit plan my-study --probe 2\nevenedit plan my-study --edits 1680")
def plan(
    study: Path,
    probe: int | None,
    prices: Path | None,
    gpu_memory: tuple[float, float] | None,
    **power: Any,
) -> None:
    """Show what a run would do: edits, calls, hours, money, power.

    Also disk and memory. --edits, --money, --people and --gap imply --power; with --gap alone the best design is the
    smallest that detects it. --probe makes about fifteen short calls to each remote judge, and ends with exit code 1
    if a judge cannot be used; --probe 0 makes no edits.
    """
    from evenedit.operations import plan as planning
    from evenedit.operations.power import PowerOptions, with_power
    from evenedit.run.memory import Machine

    loaded = open_study(study)
    usable = True
    if probe is not None:
        from evenedit.cli.plugins import print_probe

        for rater in loaded.design.judges():
            usable &= print_probe(rater.id, rater.judge)
        if probe:
            planning.probe(loaded, probe)
    planned = planning.make_plan(loaded, prices, Machine(*gpu_memory) if gpu_memory else None)
    click.echo(with_power(planned, loaded, PowerOptions(**power), prices))
    if not usable:
        sys.exit(1)


@click.command()
@STUDY
@spending
@click.option("--batch", is_flag=True, help="Use batch jobs of the judges' providers where available: half the price.")
@click.option("--give-up", multiple=True, metavar="JOB", help="Stop waiting for this batch job and ask again.")
@click.option(
    "--stage",
    "stages",
    type=click.Choice(["edit", "measure", "rate"]),
    multiple=True,
    help="Do only this, so that machines can specialise; can be repeated.",
)
@example("evenedit run my-study --max-cost 20\nevenedit run my-study --batch")
def run(
    study: Path, budget: Budget, prices: Prices, batch: bool, give_up: tuple[str, ...], stages: tuple[str, ...]
) -> None:
    """Make and rate the edits that are missing. Stop with Ctrl-C; rerun to resume."""
    runner = open_study(study).runner(budget, prices)
    runner.batch, runner.give_up, runner.stages = batch, give_up, stages or runner.stages
    finish(runner.run(), f"done. Next: evenedit report {study}", f"Rerun the command to resume: evenedit run {study}")


@click.command()
@STUDY
@click.option("--watch", "watching", is_flag=True, help="Refresh every few seconds until the run is complete.")
@example("evenedit status my-study --watch")
def status(study: Path, watching: bool) -> None:
    """Show the progress of a study and its failures."""
    loaded = open_study(study)
    if not watching:
        click.echo(loaded.status())
        return
    from evenedit.operations.watch import watch

    for now, pace in watch(loaded):
        click.clear()
        click.echo(f"{now}\n{pace}")


@click.command()
@STUDY
@OUT
@PICTURES
@FORMATS
@example("evenedit report my-study\nevenedit report my-study --out to-share --pictures none --formats pdf")
def report(study: Path, out: Path | None, pictures: Pictures, formats: tuple[str, ...]) -> None:
    """Write a study's report: findings, cases, tables, figures."""
    write_report(open_study(study), out or folder_of(study) / "report", pictures, formats)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@click.option("--repair", is_flag=True, help="Make the safe repairs: file permissions, damaged pictures set aside.")
@example("evenedit doctor my-study\nevenedit doctor my-study/portraits")
def doctor(folder: Path | None, repair: bool) -> None:
    """Check this installation, a study, or a finalised set of portraits.

    FOLDER is a study (its databases and images are checked) or a finalised set (files, labels and log against its
    manifest).
    """
    from evenedit.core.errors import EvenEditError
    from evenedit.operations import doctor as checks

    loaded, results = None, []
    try:
        if folder is not None and checks.is_portrait_set(folder):
            results = list(checks.examine_portraits(folder))
        elif folder is not None:
            loaded = open_study(folder)
    except EvenEditError as error:
        results = [checks.HealthCheck(False, problem) for problem in error.problems]
    for repaired in checks.repair(loaded) if loaded and repair else ():
        click.echo(f"done {repaired}")
    healthy = True
    for result in (*checks.examine(loaded), *results):
        healthy &= result.good is not False
        click.echo(f"{'ok  ' if result.good else '–   ' if result.good is None else 'BAD '}{result.text}")
    if not healthy:
        sys.exit(2)
