"""Draw portraits and simulated edits of them as plain files: `python scripts/draw_pictures.py FOLDER`."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from PIL.Image import Image

from evenedit.core import plugins
from evenedit.core.errors import EvenEditError
from evenedit.protocol import load_prompts
from evenedit.simulation.portraits.drawn import Drawn

GROUPS = {"race": ["White", "Black"], "age": ["20s", "70plus"]}


def draw_pictures(folder: Path, *, editor: str, prompts: Sequence[str], seed: int, size: int) -> Path:
    """Write portraits/ with labels.csv, edited/ and the table edits.csv into a new folder; return the table's path."""
    if folder.exists():
        raise EvenEditError(f"{folder} exists already; name a folder that does not")
    if editor not in plugins.installed("editors") or not plugins.is_simulated("editors", editor):
        raise EvenEditError(f"'{editor}' is no simulated editor. Try: simulated-lightening")
    simulated = plugins.build("editors", editor, {})
    selected = load_prompts("diagnostic").resolve_all(prompts).values()
    pairs: list[dict[str, str]] = []
    labelled: list[dict[str, str]] = []
    for name, labels, _, portrait in Drawn(seed=seed, size=size, only=GROUPS).portraits():
        source = _save(portrait, folder, f"portraits/{name}.png")
        labelled.append({"file": f"{name}.png", **labels})
        for prompt in selected:
            edited = simulated.edit([portrait], prompt.text, seed)
            if isinstance(edited, Image):
                saved = _save(edited, folder, f"edited/{prompt.id}_{name}.png")
                pairs.append({"source": source, "edited": saved, "prompt": prompt.text, **labels})
    _write(folder / "portraits" / "labels.csv", labelled)
    return _write(folder / "edits.csv", pairs)


def _write(path: Path, rows: Sequence[Mapping[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else ())
        writer.writeheader()
        writer.writerows(rows)
    return path


def _save(picture: Image, folder: Path, name: str) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path)
    return name


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--editor", default="simulated-lightening", show_default=True, help="Simulated editor.")
@click.option("--prompt", "prompts", multiple=True, default=("O-01", "V-02"), help="Prompt id; may be repeated.")
@click.option("--seed", default=1, show_default=True, help="Seed of the portraits and edits.")
@click.option("--size", default=256, show_default=True, type=click.IntRange(min=64), help="Width and height in pixels.")
def main(folder: Path, editor: str, prompts: tuple[str, ...], seed: int, size: int) -> None:
    """Draw eight portraits and simulated edits of them, to try an audit on.

    Writes portraits/ with labels.csv, SIMULATED edits in edited/, and edits.csv, the table of pairs.
    """
    try:
        click.echo(draw_pictures(folder, editor=editor, prompts=prompts, seed=seed, size=size))
    except EvenEditError as error:
        raise click.ClickException(str(error)) from None


if __name__ == "__main__":
    main()
