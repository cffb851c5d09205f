"""Commands over a study: begin, plan, run, look, report."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from evenedit.cli.base import OUT, STUDY, duration, example, folder_of, open_study, write_report


@click.command()
@OUT
@click.option("--seed", default=1, show_default=True, help="Draws other people and other edits.")
@example("evenedit demo --out demo")
def demo(out: Path | None, seed: int) -> None:
    """Audit four simulated editors on drawn portraits, offline, and write the report.

    Simulated people take part in the survey through the pages of a server on this machine.
    """
    from evenedit.config import templates
    from evenedit.core.log import log
    from evenedit.web.rehearsal import rehearse

    folder = out or Path("demo")
    if not (folder / "study.toml").exists():
        templates.write("demo", folder, seed=seed)
    loaded = open_study(folder)
    loaded.run()
    log.info(rehearse(loaded))
    write_report(loaded, folder / "report")
    click.echo(
        f"Open the report:  {folder / 'report' / 'report.html'}\n"
        f"Open the app:     evenedit serve {folder}   and then http://127.0.0.1:8000/\n"
        "Take part:        on the app's first page, 'Start a preview' (the study's own places are taken; a preview "
        "never counts)\n"
        "See it as staff:  http://127.0.0.1:8000/admin, with the password that 'evenedit serve' prints"
    )


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--template",
    type=click.Choice(["small", "demo", "published", "curated", "monk"]),
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
@click.option("--power", is_flag=True, help="Also simulate how large a gap the design can show (some seconds).")
@example("evenedit plan my-study --probe 2 --power")
def plan(study: Path, probe: int | None, prices: Path | None, power: bool) -> None:
    """Show what a run would do: edits, calls, hours, disk, memory, money, power."""
    from evenedit.study import plan as planning

    loaded = open_study(study)
    if probe:
        planning.probe(loaded, probe)
    made = planning.make_plan(loaded, prices)
    click.echo(f"{made.sources} portraits, {made.prompts} diagnostic prompts, {made.edits:,} edits\n")
    click.echo(
        f"{'experiment':12}{'condition':11}{'editor':28}{'edits':>7}{'done':>7}{'time left':>14}{'US$ left':>12}"
    )
    for line in made.lines:
        left = "not timed" if line.seconds is None else duration(line.seconds)
        cost = "not known" if line.usd is None else f"{line.usd:,.2f}"
        what = f"{line.experiment:12}{line.condition:11}{line.editor:28}"
        click.echo(f"{what}{line.edits:>7,}{line.done:>7,}{left:>14}{cost:>12}")
    click.echo(f"\njudge calls: {made.judge_calls:,} ({made.judge_calls_done:,} done)")
    if made.judges:
        click.echo(f"{'judge':40}{'calls left':>11}{'tokens of a call: in, out':>38}{'US$ now':>11}{'US$ batch':>11}")
    for judge in made.judges:
        tokens = "none"
        if judge.tokens:
            tokens = f"{judge.tokens[0]:,.0f}, {judge.tokens[1]:,.0f} {'measured' if judge.measured else 'ASSUMED'}"
        now = "not known" if judge.usd is None else f"{judge.usd:,.2f}"
        batch = "–" if not judge.batch else "not known" if judge.usd_batch is None else f"{judge.usd_batch:,.2f}"
        click.echo(f"{judge.judge:40}{judge.calls:>11,}{tokens:>38}{now:>11}{batch:>11}")
    if made.human_ratings:
        click.echo(f"ratings by people: {made.human_ratings:,}")
    disk = "not measured; try --probe 1" if made.disk is None else f"{made.disk / 1e9:.2f} GB"
    click.echo(f"disk for the pictures still to come: {disk}")
    click.echo(f"prices of {made.prices_of}; check them before you spend")
    for note in made.notes:
        click.echo(f"note: {note}")
    if power:
        from evenedit.stats.disparity.power import describe

        design = planning.design_of(loaded)
        if design is None:
            click.echo("power: there is no diagnosis with two groups or more to compare")
        else:
            click.echo("\n" + "\n".join(describe(*planning.simulate_power(design))))


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
    runner.run()
    click.echo(f"done. Next: evenedit report {study}")


@click.command()
@STUDY
@example("evenedit status my-study")
def status(study: Path) -> None:
    """Show how far a study is, and what went wrong."""
    from evenedit.study.status import describe

    for line in describe(open_study(study)):
        click.echo(line)


@click.command()
@STUDY
@OUT
@example("evenedit report my-study --out my-study/report")
def report(study: Path, out: Path | None) -> None:
    """Write the report of a study: one HTML page, tables, figures, results.json."""
    write_report(open_study(study), out or folder_of(study) / "report")


@click.command()
@click.argument("study", type=click.Path(path_type=Path), required=False)
@example("evenedit doctor my-study")
def doctor(study: Path | None) -> None:
    """Check this installation, and a study's database and images."""
    from evenedit.study.doctor import examine

    healthy = True
    for finding in examine(open_study(study) if study else None):
        healthy &= finding.good
        click.echo(f"{'ok  ' if finding.good else 'BAD '}{finding.text}")
    if not healthy:
        sys.exit(2)
