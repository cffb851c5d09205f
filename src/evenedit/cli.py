"""Commands only: parse, call, print. Heavy imports wait until a command needs them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenedit import __version__

if TYPE_CHECKING:
    from evenedit.pipeline import Pipeline

STUDY = click.argument("study", type=click.Path(path_type=Path), default=Path())
OUT = click.option("--out", type=click.Path(path_type=Path), help="Folder to write to.")


def main() -> None:
    """Run the command line; what the user can mend is one message and exit code 2."""
    from evenedit.records import UserError

    try:
        commands.main(standalone_mode=False)
    except UserError as error:
        for line in error.problems:
            click.echo(f"evenedit: {line}", err=True)
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except (KeyboardInterrupt, click.Abort):
        click.echo("\nevenedit: stopped; what was finished is stored. The same command goes on from here.", err=True)
        sys.exit(130)


def example(text: str) -> Callable[[Any], Any]:
    """Show an example at the end of a command's help."""

    def add(function: Any) -> Any:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        call.__doc__ = f"{function.__doc__}\n\n\b\nExample:\n  " + text.replace("\n", "\n  ")
        return call

    return add


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="evenedit")
def commands() -> None:
    """EvenEdit shows whether an image editor treats every face the same.

    Begin with: evenedit demo
    """


@commands.command()
@OUT
@click.option("--seed", default=1, show_default=True, help="Draws other people and other edits.")
@example("evenedit demo --out demo")
def demo(out: Path | None, seed: int) -> None:
    """Audit four simulated editors on drawn portraits, offline, and write the report."""
    from evenedit import templates

    folder = out or Path("demo")
    if not (folder / "study.toml").exists():
        templates.write("demo", folder, seed=seed)
    pipeline = _open(folder)
    pipeline.run()
    _report(pipeline, folder / "report")


@commands.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--template",
    type=click.Choice(["small", "demo", "published"]),
    default="small",
    show_default=True,
    help="What the study begins as.",
)
@example("evenedit new my-study --template published")
def new(folder: Path, template: str) -> None:
    """Begin a study: a folder with a commented study.toml."""
    from evenedit import templates

    path = templates.write(template, folder)
    click.echo(f"{path}\nEdit it, then: evenedit plan {folder}")


@commands.command()
@STUDY
@click.option("--probe", type=click.IntRange(min=1), help="First make this many edits per editor, to time them.")
@click.option("--prices", type=click.Path(path_type=Path), help="Your own price file (TOML).")
@example("evenedit plan my-study --probe 2")
def plan(study: Path, probe: int | None, prices: Path | None) -> None:
    """Show what a run would do: edits, calls, hours, disk, memory, money."""
    from evenedit import plan as planning

    pipeline = _open(study)
    if probe:
        planning.probe(pipeline, probe)
    made = planning.make_plan(pipeline, prices)
    click.echo(f"{made.sources} portraits, {made.prompts} diagnostic prompts, {made.edits:,} edits\n")
    click.echo(
        f"{'experiment':12}{'condition':11}{'editor':28}{'edits':>7}{'done':>7}{'time left':>14}{'US$ left':>12}"
    )
    for line in made.lines:
        left = "not timed" if line.seconds is None else _duration(line.seconds)
        cost = "not known" if line.usd is None else f"{line.usd:,.2f}"
        what = f"{line.experiment:12}{line.condition:11}{line.editor:28}"
        click.echo(f"{what}{line.edits:>7,}{line.done:>7,}{left:>14}{cost:>12}")
    click.echo(f"\njudge calls: {made.judge_calls:,} ({made.judge_calls_done:,} done)")
    if made.human_ratings:
        click.echo(f"ratings by people: {made.human_ratings:,}")
    disk = "not measured; try --probe 1" if made.disk is None else f"{made.disk / 1e9:.2f} GB"
    click.echo(f"disk for the pictures still to come: {disk}")
    click.echo(f"prices of {made.prices_of}; check them before you spend")
    for note in made.notes:
        click.echo(f"note: {note}")


@commands.command()
@STUDY
@click.option(
    "--max-calls", type=click.IntRange(min=0), help="Begin no more calls to judges and paid editors than this."
)
@click.option("--max-cost", type=click.FloatRange(min=0), help="Begin no call once this many US dollars are spent.")
@click.option("--prices", type=click.Path(path_type=Path), help="Your own price file (TOML).")
@example("evenedit run my-study --max-cost 20")
def run(study: Path, max_calls: int | None, max_cost: float | None, prices: Path | None) -> None:
    """Edit and rate all that is not there yet. Stop it with Ctrl-C, go on with the same command."""
    from evenedit.budget import Budget
    from evenedit.prices import Prices

    pipeline = _open(study)
    pipeline.budget, pipeline.prices = Budget(max_calls, max_cost), Prices.load(prices)
    pipeline.run()
    click.echo(f"done. Next: evenedit report {study}")


@commands.command()
@STUDY
@example("evenedit status my-study")
def status(study: Path) -> None:
    """Show how far a study is, and what went wrong."""
    from evenedit.status import describe

    for line in describe(_open(study)):
        click.echo(line)


@commands.command()
@STUDY
@OUT
@example("evenedit report my-study --out my-study/report")
def report(study: Path, out: Path | None) -> None:
    """Write the report of a study: one HTML page, tables, figures, results.json."""
    _report(_open(study), out or _folder(study) / "report")


@commands.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder to write to.")
@click.option("--preset", type=click.Choice(["default", "published"]), default="default", show_default=True)
@click.option("--missing", type=click.Choice(["exclude", "neutral-3"]), help="Edits that no judge scored.")
@click.option("--prompts", multiple=True, type=click.Path(path_type=Path), help="Your own prompt set (TOML).")
@example("evenedit analyze scores.csv verdicts.csv --preset published --out results")
def analyze(files: tuple[Path, ...], out: Path, preset: str, missing: str | None, prompts: tuple[Path, ...]) -> None:
    """Write the report of ratings that another pipeline made (CSV, one row per edit and judge)."""
    from dataclasses import replace

    from evenedit.imports import read_tables
    from evenedit.progress import say
    from evenedit.protocol import load_prompts
    from evenedit.provenance import provenance
    from evenedit.report import write_report
    from evenedit.stats import AnalysisRules, analyse

    say(f"reading {len(files)} files")
    table = read_tables(files, [load_prompts(str(p)) for p in prompts])
    say(f"analysing {len(table.edits):,} edits")
    rules = AnalysisRules.published() if preset == "published" else AnalysisRules.default()
    if missing:
        rules = replace(rules, missing=missing)
    results = analyse(table, rules, provenance(files=[p.name for p in files]))
    page = write_report(results, out, title=f"Analysis of {', '.join(p.name for p in files)}")
    click.echo(page)


@commands.command()
@click.option("--pairs", type=click.Path(path_type=Path), help="CSV of source, edited, prompt, race, gender, age.")
@click.option("--sources", type=click.Path(path_type=Path), help="Folder of the sources; the CSV's own by default.")
@click.option("--edited", type=click.Path(path_type=Path), help="Without --pairs: the folder of the outputs …")
@click.option("--pattern", default="{prompt}_{source}.png", show_default=True, help="… and how their files are named.")
@click.option("--prompts", default="diagnostic", show_default=True, help="Prompt set whose ids {prompt} names.")
@click.option("--editor", default="audited", show_default=True, help="What to call the editor.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Study folder to write to.")
@example("evenedit audit --pairs edits.csv --editor my-editor --out audit")
def audit(
    pairs: Path | None,
    sources: Path | None,
    edited: Path | None,
    pattern: str,
    prompts: str,
    editor: str,
    out: Path,
) -> None:
    """Go from edited images that exist to a report: from a table of pairs, or from how their files are named."""
    from evenedit.audit import begin, table_of
    from evenedit.records import UserError

    if not (out / "study.toml").exists():
        if pairs is None:
            if edited is None or sources is None:
                raise UserError("name a table with --pairs, or folders with --edited and --sources (and --pattern)")
            pairs, sources = table_of(edited, pattern, sources, prompts, out), None
        begin(pairs, out, editor=editor, sources=sources)
    pipeline = _open(out)
    pipeline.run()
    _report(pipeline, out / "report")


@commands.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("edited", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--picture", type=click.Path(path_type=Path), help="Where to draw patches and change map.")
@click.option("--reference", type=click.Path(path_type=Path), help="Folder of portraits of the same group.")
@example("evenedit measure portrait.jpg edited.jpg --picture measured.png")
def measure(source: Path, edited: Path, as_json: bool, picture: Path | None, reference: Path | None) -> None:
    """Measure what an edit did to the pixels: skin tone, how much changed and where, distance between the faces."""
    import json

    from evenedit.measuring import measure_files

    found = measure_files(source, edited, picture, reference)
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    for name, value in found.items():
        if name not in ("reasons", "notes"):
            click.echo(f"{name:24}{value if value is not None else '– ' + found['reasons'].get(name, '')}")
    for note in found.get("notes", ()):
        click.echo(f"note: {note}")


@commands.command()
@STUDY
@OUT
@example("evenedit export my-study --out my-study/export")
def export(study: Path, out: Path | None) -> None:
    """Write every rating as CSV, in the format that `evenedit analyze` reads."""
    from evenedit.exports import write_tables

    for path in write_tables(_open(study).table(), out or _folder(study) / "export"):
        click.echo(path)


@commands.command()
@click.argument("action", type=click.Choice(["list", "setup"]), default="list")
@click.argument("name", required=False)
@click.option("--run", "perform", is_flag=True, help="Perform the steps instead of printing them.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where its environment goes.")
@example("evenedit editors setup step1x")
def editors(action: str, name: str | None, perform: bool, folder: Path | None) -> None:
    """List the installed editors, or set up one that needs an environment of its own (step1x)."""
    from evenedit import plugins
    from evenedit.editors import step1x
    from evenedit.records import UserError

    if action == "list":
        for editor, point in sorted(plugins.installed("editors").items()):
            click.echo(f"{editor:24}{point.value}")
    elif name not in ("step1x", step1x.ID):
        raise UserError(f"'{name}' needs no environment of its own. Try: evenedit editors setup step1x")
    else:
        step1x.setup(folder, run=perform)


@commands.command()
@click.argument("study", type=click.Path(path_type=Path), required=False)
@example("evenedit doctor my-study")
def doctor(study: Path | None) -> None:
    """Check this installation, and a study's database and images."""
    from evenedit.doctor import examine

    healthy = True
    for finding in examine(_open(study) if study else None):
        healthy &= finding.good
        click.echo(f"{'ok  ' if finding.good else 'BAD '}{finding.text}")
    if not healthy:
        sys.exit(2)


def _open(study: Path) -> Pipeline:
    from evenedit.pipeline import Pipeline
    from evenedit.store import Store
    from evenedit.study import Study

    loaded = Study.load(study)
    return Pipeline(loaded, Store(loaded.folder, loaded.file.store.url, loaded.file.store.images))


def _report(pipeline: Pipeline, out: Path) -> None:
    from evenedit.analysis import report_study

    click.echo(report_study(pipeline, out))


def _folder(study: Path) -> Path:
    return study.parent if study.suffix == ".toml" else study


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
