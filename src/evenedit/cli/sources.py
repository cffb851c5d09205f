"""Commands for portraits: candidate pools, selection logs, finalised sets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenedit.cli.base import STUDY, CommandGroup, example

if TYPE_CHECKING:
    from evenedit.config.sections import CurationSection
    from evenedit.config.study_file import StudyFile
    from evenedit.curation.pools import Pools
    from evenedit.curation.session import CurationSession

IMPORTED, COMMAND_LINE = "imported", "command line"
"""Reviewers in the log: of imported actions that name none, and of this command line."""


@click.group(cls=CommandGroup)
@example("evenedit sources pools my-study --from fairface --padding 1.25")
def sources() -> None:
    """Choose portraits: draw candidates, finalise a set."""


@sources.command()
@STUDY
@click.option("--from", "source", type=click.Path(path_type=Path), help="FairFace, or a labelled folder.")
@click.option("--padding", type=click.Choice(["0.25", "1.25"]), help="Padding of FairFace, if the folder has both.")
@click.option("--labels", help="Label CSV in that folder: file, race, gender, age.")
@click.option("--seeds", help="One per pool, separated by commas; default: the published seven.")
@click.option("--add", type=click.IntRange(min=1), help="Add so many pools to those that were drawn.")
@click.option("--screen/--no-screen", default=True, help="Check the candidates automatically, for sorting only.")
@click.option(
    "--import-log", "log", type=click.Path(path_type=Path), help="Import a selection log instead of drawing pools."
)
@example(
    "evenedit sources pools my-study --from fairface --padding 1.25\n"
    "evenedit sources pools my-study --add 2\n"
    "evenedit sources pools my-study --import-log selection_log.json"
)
def pools(
    study: Path,
    source: Path | None,
    padding: str | None,
    labels: str | None,
    seeds: str | None,
    add: int | None,
    screen: bool,
    log: Path | None,
) -> None:
    """Draw candidate pools into the folder that [curation] names.

    One image per cell and pool, without repetition, reproducible from the seeds. With --add, draw further pools from
    the same dataset; candidates and choices stay as they are. With --import-log, import a selection log in the paper's
    format or as `finalise` writes it; the curation must have no actions.
    """
    if (log is not None) == (source is not None or add is not None):
        raise click.UsageError("pass --from DATASET, --add NUMBER or --import-log FILE")
    if log is not None:
        _import_log(study, log)
        return
    from evenedit.curation.pools import Pools, further_seeds, make_pools

    file, section = _curation(study)
    earlier = Pools.read(file.folder / section.pools) if add else None
    numbers = further_seeds(earlier, add) if earlier and add and seeds is None else _seeds(seeds)
    drawn = make_pools(
        source or Path(earlier.facts["source"] if earlier else ""),
        file.folder / section.pools,
        seeds=numbers,
        padding=padding or (earlier.facts["padding"] if earlier else None),
        labels=labels,
        screened=screen,
        earlier=earlier,
    )
    facts = drawn.facts
    click.echo(
        f"{len(drawn.candidates)} candidates in {len(drawn.ids)} pools from {facts['images_in_the_grid']:,} images "
        f"({facts['images_outside_the_grid']:,} more have an age outside the grid)"
    )
    for kind, reason in (("unreadable", "missing or damaged"), ("repeated", "duplicate pictures")):
        if facts[kind]:
            names = ", ".join(facts[kind][:10]) + (" …" if len(facts[kind]) > 10 else "")
            click.echo(f"{len(facts[kind])} skipped, {reason}: {names}")
    for cell, number in facts["short_cells"].items():
        click.echo(f"{cell}: only {number} images for {len(drawn.ids)} pools")
    if screen:
        _print_rates(drawn)
    click.echo(f"\n{file.folder / section.pools}\nNext: evenedit serve {study}")


def _import_log(study: Path, log: Path) -> None:
    session = _session(study)
    count = session.import_log(log, IMPORTED)
    state = session.state()
    chosen = sum(bool(cell.selected) for cell in state.values())
    click.echo(f"{count} actions; {chosen} of {len(state)} cells have a choice")
    _print_distribution(session.distribution(state))


@sources.command()
@STUDY
@example("evenedit sources finalise my-study")
def finalise(study: Path) -> None:
    """Write the curated set, as the web app does.

    Every cell must be filled, and every image must meet all six criteria.
    """
    session = _session(study)
    manifest = session.finalise(COMMAND_LINE)
    _print_distribution(session.distribution(session.state()))
    click.echo(manifest)


@sources.command()
@STUDY
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder to write the versions to.")
@click.option("--tones", default="1,2,3,4,5,6,7,8,9,10", show_default=True, help="Monk tones, separated by commas.")
@click.option("--derivatives-allowed", is_flag=True, help="Confirm that licence and consent allow derived pictures.")
@example("evenedit sources recolour my-study --out twins --tones 5,6,7,8 --derivatives-allowed")
def recolour(study: Path, out: Path, tones: str, derivatives_allowed: bool) -> None:
    """Make versions of photographs with other tones of skin.

    They are for [sources] kind = "twins". Versions are pictures of real people as they never looked: they need the
    licence of the photographs and the consent of the people in them, stay within the study, and are never published.
    The skin instrument certifies each version; the others are not written.
    """
    from evenedit.core.errors import EvenEditError
    from evenedit.curation.recolour import STATEMENT, write_twins
    from evenedit.study.context import StudyContext

    numbers = _numbers(tones, "--tones", "5,6,7,8")
    if not set(numbers) <= set(range(1, 11)) or len(set(numbers)) < max(2, len(numbers)):
        raise EvenEditError(f"--tones is '{tones}'; expected at least two different Monk tones from 1 to 10")
    opened = StudyContext.load(study)
    licence = opened.file.sections.sources.licence
    if not (derivatives_allowed and licence):
        raise EvenEditError(
            'versions of photographs need the licence in [sources] of study.toml (licence = "…") and your '
            f'confirmation. If this is true, pass --derivatives-allowed: "{STATEMENT}"'
        )
    names = [factor.name for factor in opened.file.factors]
    summary = write_twins(opened.design.portraits(), out, sorted(numbers), names, licence)
    for tone in sorted(numbers):
        click.echo(f"Monk {tone:>2}: {summary.certified[tone]:>4} of {summary.bases} certified")
    for reason, count in summary.refused.most_common():
        click.echo(f"{count} refused: {reason}")
    click.echo(
        f"{summary.complete} of {summary.bases} portraits have every version; the others are left out of a study"
    )
    click.echo(f'\n{out}\nNext: in a new study, [sources] kind = "twins" and settings = {{ path = "…" }}')


def _seeds(text: str | None) -> list[int]:
    from evenedit.curation.pools import SEEDS

    return list(SEEDS) if text is None else _numbers(text, "--seeds", "42,1000,1001")


def _numbers(text: str, option: str, like: str) -> list[int]:
    from evenedit.core.errors import EvenEditError

    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise EvenEditError(f"{option} is '{text}'; expected integers with commas, e.g. {like}") from None


def _curation(study: Path) -> tuple[StudyFile, CurationSection]:
    """Return the study file with its [curation]."""
    from evenedit.config.study_file import StudyFile
    from evenedit.core.errors import EvenEditError

    file = StudyFile.load(study)
    if file.sections.curation is None:
        raise EvenEditError(f'{study} curates no portraits. Add to its study.toml: [curation] with pools = "pools"')
    return file, file.sections.curation


def _session(study: Path) -> CurationSession:
    from evenedit.curation.grid import Grid
    from evenedit.curation.session import CurationSession

    file, section = _curation(study)
    folder = file.folder
    return CurationSession(
        folder, folder / section.pools, folder / section.out, section.faces_per_cell, Grid(file.factors)
    )


def _print_distribution(distribution: dict[str, int]) -> None:
    click.echo("pool   " + "".join(f"{pool:>6}" for pool in distribution))
    click.echo("count  " + "".join(f"{count:>6}" for count in distribution.values()))


def _print_rates(drawn: Pools) -> None:
    from evenedit.curation.screen import CHECKS, pass_rates

    click.echo("\nThe pre-screen sorts candidates and removes none. Pass rates in %, by label of the dataset:")
    columns = (*CHECKS, "all")
    for table in pass_rates(drawn.candidates.values()):
        click.echo(f"{table.factor:16}{'n':>5}" + "".join(f"{name:>11}" for name in columns))
        for group in table.groups:
            shares = (f"{100 * group.passed[c] / group.n:11.0f}" if group.n else f"{'–':>11}" for c in columns)
            click.echo(f"{group.group:16}{group.n:>5}" + "".join(shares))
        click.echo(f"test of equal rates: p = {table.p:.3f}, {table.p_holm:.3f} after Holm")
