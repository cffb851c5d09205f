"""Commands that back a study up and restore it."""

from __future__ import annotations

from pathlib import Path

import click

from evenedit.cli.base import STUDY, example


@click.command()
@STUDY
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--without-pictures", is_flag=True, help="Leave the pictures out; the backup then says so.")
@example("evenedit backup my-study my-study-2026-11-17.tar")
def backup(study: Path, file: Path, without_pictures: bool) -> None:
    """Back a study up to one verified file, while it is in use.

    The file holds databases, accounts and all pictures, also those in an object store or another folder: protect it as
    you protect the study. It holds no caches or reports.
    """
    from evenedit.config.study_file import StudyFile
    from evenedit.operations.backup import back_up

    summary = back_up(StudyFile.load(study), file, pictures=not without_pictures)
    click.echo(f"{file}: {summary}; read back and verified")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@click.option("--check", is_flag=True, help="Only read the backup in a temporary place: files, rows, pictures.")
@click.option(
    "--to", "url", help="An empty PostgreSQL database for the rows: postgresql://…; study.toml then names it."
)
@example(
    "evenedit restore my-study-2026-11-17.tar my-study-again\n"
    "evenedit restore my-study-2026-11-17.tar my-study-again --to postgresql://user:password@localhost/study"
)
def restore(file: Path, folder: Path | None, check: bool, url: str | None) -> None:
    """Restore a study from a backup into a new folder.

    If its study.toml names a PostgreSQL database, the rows go there. With --to they go to that database: this moves a
    study from SQLite to PostgreSQL, or to another database.
    """
    from evenedit.operations.backup import restore as restore_backup
    from evenedit.operations.backup import verify

    if check:
        click.echo(f"{file}: {verify(file)}; whole, nothing was restored")
        return
    if folder is None:
        raise click.UsageError("name a new folder for the study, or --check")
    click.echo(f"{folder}: {restore_backup(file, folder, url)}")
