"""Commands that keep a study safe: back it up, restore it, move it to PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import click

from evenedit.cli.base import STUDY, example


@click.command()
@STUDY
@click.argument("file", type=click.Path(path_type=Path))
@example("evenedit backup my-study my-study-2026-11-17.tar")
def backup(study: Path, file: Path) -> None:
    """Back a study up to one verified file, while it is in use.

    With its databases, pictures and accounts: keep the file as you keep the study. Caches and reports are left out.
    """
    from evenedit.config.study_file import StudyFile
    from evenedit.study.backup import back_up

    click.echo(f"{file}: {back_up(StudyFile.load(study), file)}; read back and verified")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--to", "url", help="Another PostgreSQL database than study.toml names, for a trial: postgresql://…")
@example("evenedit restore my-study-2026-11-17.tar my-study-again")
def restore(file: Path, folder: Path, url: str | None) -> None:
    """Restore a study from a backup, into a new folder.

    Where its study file names a PostgreSQL database, the rows go there, or to the one of --to; it must hold no study.
    """
    from evenedit.study.backup import restore as bring_back

    click.echo(f"{folder}: {bring_back(file, folder, url)}")


@click.command()
@STUDY
@click.option("--to", "url", required=True, help="The PostgreSQL database, postgresql://…; it must hold no study.")
@example("evenedit move my-study --to postgresql://user:password@localhost/study")
def move(study: Path, url: str) -> None:
    """Move a study's databases from SQLite to PostgreSQL.

    The SQLite files are kept under another name. Pictures stay where they are.
    """
    from evenedit.config.study_file import StudyFile
    from evenedit.study.backup import move as carry

    for name, tables in carry(StudyFile.load(study), url).items():
        click.echo(f"{name}: {sum(tables.values()):,} rows moved and counted; the file is now {name}.moved")
    click.echo('add to study.toml before you go on: [store] url = "postgresql://…" (what you gave as --to)')
