"""Commands about portraits: candidate pools, selection logs, finalised sets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenedit.cli.base import STUDY, CommandGroup, example

if TYPE_CHECKING:
    from evenedit.curation.pools import Pools
    from evenedit.curation.session import CurationSession


@click.group(cls=CommandGroup)
@example("evenedit sources pools --from fairface --padding 1.25 --out my-study/pools")
def sources() -> None:
    """Portraits: draw candidates, finalise a set, verify it."""


@sources.command()
@click.option(
    "--from", "source", required=True, type=click.Path(path_type=Path), help="FairFace, or a labelled folder."
)
@click.option("--padding", type=click.Choice(["0.25", "1.25"]), help="Padding of FairFace, if the folder has both.")
@click.option("--labels", help="Label CSV in that folder: file, race, gender, age.")
@click.option("--pools", "count", type=click.IntRange(min=1), help="How many; one per seed by default.")
@click.option("--seeds", help="One per pool, with commas; the published seven by default.")
@click.option("--screen/--no-screen", default=True, help="Check the candidates automatically, for sorting only.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder to write to.")
@example("evenedit sources pools --from fairface --padding 1.25 --pools 7 --out my-study/pools")
def pools(
    source: Path,
    padding: str | None,
    labels: str | None,
    count: int | None,
    seeds: str | None,
    screen: bool,
    out: Path,
) -> None:
    """Draw candidate pools from a dataset.

    One image per cell and pool, none twice, reproducible from the seeds.
    """
    from evenedit.curation.pools import make_pools

    chosen = _seeds(count, seeds)
    made = make_pools(source, out, seeds=chosen, padding=padding, labels=labels, screened=screen)
    facts = made.facts
    click.echo(
        f"{len(made.candidates)} candidates in {len(made.ids)} pools from {facts['images_in_the_grid']:,} images "
        f"({facts['images_outside_the_grid']:,} more have an age outside the grid)"
    )
    for what, why in (("unreadable", "missing or damaged"), ("repeated", "the same picture twice")):
        if facts[what]:
            names = ", ".join(facts[what][:10]) + (" …" if len(facts[what]) > 10 else "")
            click.echo(f"{len(facts[what])} skipped, {why}: {names}")
    for cell, number in facts["short_cells"].items():
        click.echo(f"{cell}: only {number} images for {len(made.ids)} pools")
    if screen:
        _print_rates(made)
    click.echo(f'\n{out}\nNext: [curation] pools = "{out.name}" in study.toml, then: evenedit serve {out.parent}')


@sources.command("import-log")
@click.argument("log", type=click.Path(path_type=Path))
@STUDY
@click.option("--reviewer", default="imported", show_default=True, help="The reviewer of actions that name none.")
@example("evenedit sources import-log selection_log.json my-study --reviewer authors")
def import_log(log: Path, study: Path, reviewer: str) -> None:
    """Import a selection log into a curation without actions.

    In the paper's format, or as `finalise` writes it.
    """
    session = _session(study)
    count = session.import_log(log, reviewer)
    state = session.state()
    chosen = sum(bool(cell.selected) for cell in state.values())
    click.echo(f"{count} actions; {chosen} of {len(state)} cells have a choice")
    _print_distribution(session.distribution(state))


@sources.command()
@STUDY
@click.option("--reviewer", default="command line", show_default=True, help="The reviewer who finalises, for the log.")
@example("evenedit sources finalise my-study")
def finalise(study: Path, reviewer: str) -> None:
    """Write the curated set.

    Every cell must be filled and every image meet all six criteria. The web app does the same.
    """
    session = _session(study)
    manifest = session.finalise(reviewer)
    _print_distribution(session.distribution(session.state()))
    click.echo(manifest)


@sources.command()
@click.argument("folder", type=click.Path(path_type=Path))
@example("evenedit sources verify my-study/portraits")
def verify(folder: Path) -> None:
    """Check a finalised set against its manifest.

    Every file's hash, size and cell, the pools, the log.
    """
    import hashlib

    from evenedit.curation import portraits

    manifest = portraits.verify(folder)
    _print_distribution(manifest["distribution"])
    sha256 = hashlib.sha256((folder / portraits.MANIFEST).read_bytes()).hexdigest()
    click.echo(f"{len(manifest['portraits'])} portraits are as finalised; sha256 of {portraits.MANIFEST}: {sha256}")


def _seeds(count: int | None, text: str | None) -> list[int]:
    from evenedit.core.errors import EvenEditError
    from evenedit.curation.pools import SEEDS

    try:
        seeds = list(SEEDS) if text is None else [int(part) for part in text.split(",")]
    except ValueError:
        raise EvenEditError(f"--seeds is '{text}'; it needs whole numbers with commas, e.g. 42,1000,1001") from None
    if count is None or len(seeds) == count:
        return seeds
    if text is None and count < len(seeds):
        return seeds[:count]
    raise EvenEditError(f"{count} pools need {count} seeds; there are {len(seeds)}. Try: --seeds with {count} numbers")


def _session(study: Path) -> CurationSession:
    from evenedit.config.study_file import StudyFile
    from evenedit.core.errors import EvenEditError
    from evenedit.curation.grid import Grid
    from evenedit.curation.session import CurationSession

    loaded = StudyFile.load(study)
    section = loaded.sections.curation
    if section is None:
        raise EvenEditError(f'{study} curates no portraits. Add to its study.toml: [curation] with pools = "pools"')
    folder = loaded.folder
    return CurationSession(
        folder, folder / section.pools, folder / section.out, section.faces_per_cell, Grid(loaded.factors)
    )


def _print_distribution(distribution: dict[str, int]) -> None:
    click.echo("pool   " + "".join(f"{pool:>6}" for pool in distribution))
    click.echo("count  " + "".join(f"{count:>6}" for count in distribution.values()))


def _print_rates(made: Pools) -> None:
    from evenedit.curation.screen import CHECKS, pass_rates

    click.echo("\nThe pre-screen orders candidates and removes none. Its pass rates in %, by the dataset's labels:")
    columns = (*CHECKS, "all")
    for table in pass_rates(made.candidates.values()):
        click.echo(f"{table.factor:16}{'n':>5}" + "".join(f"{name:>11}" for name in columns))
        for group in table.groups:
            shares = (f"{100 * group.passed[c] / group.n:11.0f}" if group.n else f"{'–':>11}" for c in columns)
            click.echo(f"{group.group:16}{group.n:>5}" + "".join(shares))
        click.echo(f"equal for all? p = {table.p:.3f}, {table.p_holm:.3f} after Holm")
