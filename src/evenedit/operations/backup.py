"""Back up a study while it is in use, and restore it, also from SQLite to PostgreSQL.

A backup is one tar file: the study's folder with its databases as they were at one moment, and `backup.json` with the
number of rows of each table and the digest of each file. The databases of a PostgreSQL study are in it as SQLite files,
and pictures that lie outside the folder, in an object store for instance, as files in a folder of their own.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sqlalchemy as sa

from evenedit.config.study_file import FILE as STUDY_FILE
from evenedit.config.study_file import StudyFile
from evenedit.core.errors import EvenEditError
from evenedit.core.images import open_images
from evenedit.core.version import __version__
from evenedit.storage import schema, staff_store, survey_schema
from evenedit.storage.engines import postgres_engine
from evenedit.storage.integrity import damage
from evenedit.storage.migrations import MOVED, STUDY, SURVEY, History, copy_file
from evenedit.storage.store import DATABASE, IMAGES
from evenedit.storage.transfer import copy_rows, counts, sqlite_engine

MANIFEST = "backup.json"
DATABASES = {DATABASE: STUDY, survey_schema.DATABASE: SURVEY}
PICTURES = "stored-pictures"
"""The folder of a backup with the pictures that lie outside the study's folder."""
LEFT_OUT = ("cache", "report", "thumbnails")
"""Folders that are made again from the rest."""


@dataclass(frozen=True, slots=True)
class BackupSummary:
    """What a backup holds."""

    files: int
    size: int
    rows: dict[str, dict[str, int]]
    """Rows by table, for each database."""
    pictures: int | None
    """Pictures that the study's database names, all of them in the backup; None where they were left out."""

    def __str__(self) -> str:
        held = ", ".join(f"{name} with {sum(tables.values()):,} rows" for name, tables in self.rows.items())
        pictures = "WITHOUT its pictures" if self.pictures is None else f"{self.pictures:,} pictures"
        return f"{self.files:,} files ({self.size / 1e6:,.1f} MB): {held}, {pictures}"


def back_up(file: StudyFile, target: Path, *, pictures: bool = True) -> BackupSummary:
    """Write a backup, read it back, and give it its name only if it is whole.

    All pictures that the database names are in it, wherever they lie; it is refused where one is missing or damaged.
    """
    if target.exists():
        raise EvenEditError(f"{target} exists already; name a new file")
    temporary = target.with_name(f".{target.name}.new")
    temporary.unlink(missing_ok=True)
    os.close(os.open(temporary, os.O_CREAT | os.O_WRONLY, 0o600))
    try:
        with TemporaryDirectory(dir=target.parent) as place:
            copies = _copies(file, Path(place))
            rows = {
                name: counts(sqlite_engine(path), DATABASES[name]) for name, path in copies.items() if name in DATABASES
            }
            named = _pictures(copies.get(DATABASE)) if pictures else None
            _write(file, copies, rows, named, temporary)
        summary = verify(temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return summary


def verify(backup: Path) -> BackupSummary:
    """Read a whole backup and raise if a file or a database in it is not as it was written."""
    with TemporaryDirectory(dir=backup.parent) as place, _opened(backup) as archive:
        manifest = _manifest(archive, backup)
        for name, wanted in manifest["files"].items():
            if _digest(archive, name) != wanted:
                raise EvenEditError(f"{backup} is damaged: {name} was changed")
        for name, tables in manifest["rows"].items():
            archive.extract(name, place, filter="data")
            _check(Path(place) / name, DATABASES[name], tables)
        named = _pictures(Path(place) / DATABASE if DATABASE in manifest["rows"] else None)
        if absent := named - {Path(name).stem for name in manifest["files"]} if manifest.get("pictures", True) else ():
            raise EvenEditError(f"{backup} lacks {len(absent):,} of {len(named):,} pictures that its database names")
        size = sum(member.size for member in archive.getmembers())
        count = len(named) if manifest.get("pictures", True) else None
        return BackupSummary(len(manifest["files"]), size, manifest["rows"], count)


def restore(backup: Path, folder: Path, url: str | None = None) -> BackupSummary:
    """Restore a study into a new folder, and into its PostgreSQL database where its file names one.

    `url` is a PostgreSQL database to restore into; the restored study file names it then.
    """
    if folder.exists() and any(folder.iterdir()):
        raise EvenEditError(f"{folder} is not empty; name a new folder; check the restored study, then swap the two")
    summary = verify(backup)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with _opened(backup) as archive:
            archive.extractall(folder, filter="data")
        for name in (survey_schema.DATABASE, staff_store.FILE):
            if (folder / name).exists():
                (folder / name).chmod(0o600)
        (folder / MANIFEST).unlink()
        if url:
            _set_database(folder, url)
        if (folder / PICTURES).is_dir():
            images = open_images(StudyFile.load(folder).sections.store.images or str(folder / IMAGES))
            for path in (folder / PICTURES).iterdir():
                images.put_content(path.read_bytes())
            shutil.rmtree(folder / PICTURES)
        if known := StudyFile.load(folder).sections.store.url:
            _load(folder, known)
    except BaseException:
        shutil.rmtree(folder)  # half a study beside the whole one would be taken for it
        raise
    return summary


def _set_database(folder: Path, url: str) -> None:
    """Set [store] url in a restored study file, so that nobody works on the first database by mistake."""
    path = folder / STUDY_FILE
    text, setting = path.read_text("utf-8"), f"url = {json.dumps(url)}"
    previous = StudyFile.load(folder).sections.store.url
    if previous:
        text = text.replace(json.dumps(previous)[1:-1], json.dumps(url)[1:-1])
    elif re.search(r"^\[store\]", text, re.MULTILINE):
        text = re.sub(r"^\[store\].*$", lambda line: f"{line[0]}\n{setting}", text, count=1, flags=re.MULTILINE)
    else:
        text = f"{text.rstrip()}\n\n[store]\n{setting}\n"
    try:
        changed = StudyFile.parse(tomllib.loads(text), folder).sections.store.url == url
    except (tomllib.TOMLDecodeError, EvenEditError):
        changed = False
    if not changed:
        raise EvenEditError(f"[store] url in {STUDY_FILE} of the backup could not be set; restore it without --to")
    path.write_text(text, "utf-8")


def _load(folder: Path, url: str) -> None:
    """Copy the SQLite files of a folder into PostgreSQL and set them aside."""
    copied = [name for name in DATABASES if (folder / name).exists()]
    with _postgres(url) as engine:
        for name in copied:
            copy_rows(sqlite_engine(folder / name), engine, DATABASES[name])
    for name in copied:
        (folder / name).rename(folder / f"{name}{MOVED}")


@contextmanager
def _postgres(url: str) -> Iterator[sa.Engine]:
    engine = postgres_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()


def _copies(file: StudyFile, place: Path) -> dict[str, Path]:
    """Copy each database in a consistent state."""
    copies = {}
    if url := file.sections.store.url:
        with _postgres(url) as engine:
            for name, history in DATABASES.items():
                if sa.inspect(engine).has_table(history.facts.name):
                    copies[name] = place / name
                    copy_rows(engine, sqlite_engine(copies[name]), history)
    for name in (*DATABASES, staff_store.FILE):
        if name not in copies and (file.folder / name).exists():
            copies[name] = place / name
            copy_file(file.folder / name, copies[name], 0o600)
    return copies


def _pictures(database: Path | None) -> set[str]:
    """Return the pictures that the copy of a study's database names."""
    if database is None:
        return set()
    with sqlite_engine(database).connect() as db:
        columns = schema.sources.c.image, schema.edits.c.image
        return {image for column in columns for (image,) in db.execute(sa.select(column).distinct()) if image}


def _write(
    file: StudyFile, copies: dict[str, Path], rows: dict[str, dict[str, int]], named: set[str] | None, target: Path
) -> None:
    """Write the tar file: the databases first, then pictures, which are on disk before a row names them."""
    digests, folder = {}, file.folder
    images = open_images(file.sections.store.images or str(folder / IMAGES))
    inside = images.folder.absolute().is_relative_to(folder.absolute()) and "://" not in str(file.sections.store.images)
    with tarfile.open(target, "w") as archive:
        for sha256 in sorted(named or ()):
            if not images.is_whole(sha256):
                raise EvenEditError(
                    f"the picture {images.path(sha256)} is missing or damaged ('evenedit doctor {folder}' lists such "
                    "pictures); repair the study, or back it up without pictures: --without-pictures"
                )
            if not inside:
                digests[f"{PICTURES}/{sha256}.png"] = sha256
                _add(archive, f"{PICTURES}/{sha256}.png", images.read(sha256), 0o600)
        for name, path in (*copies.items(), *_files(folder, copies)):
            if named is None and inside and path.is_relative_to(images.folder):
                continue
            content = path.read_bytes()
            digests[name] = hashlib.sha256(content).hexdigest()
            _add(archive, name, content, 0o600 if name in copies else path.stat().st_mode & 0o777)
        manifest = {
            "schema": "evenedit.backup/1",
            "version": __version__,
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "rows": rows,
            "pictures": named is not None,
            "files": digests,
        }
        _add(archive, MANIFEST, json.dumps(manifest, indent=1).encode(), 0o600)


def _files(folder: Path, copies: dict[str, Path]) -> Iterator[tuple[str, Path]]:
    """Yield every other file of a study's folder, without derived files and lock files."""
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        passing = path.suffix in (".lock", MOVED) or path.name.endswith(("-wal", "-shm", "-journal"))
        hidden = any(part.startswith(".") for part in inside.parts)
        if path.is_file() and not (passing or hidden or str(inside) in copies or inside.parts[0] in LEFT_OUT):
            yield inside.as_posix(), path


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(content), mode, int(datetime.now(UTC).timestamp())
    archive.addfile(entry, io.BytesIO(content))


def _opened(backup: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(backup)
    except FileNotFoundError:
        raise EvenEditError(f"{backup}: no such file") from None
    except (tarfile.TarError, OSError, EOFError) as error:
        raise EvenEditError(f"{backup} cannot be read as a backup: {error}") from None


def _manifest(archive: tarfile.TarFile, backup: Path) -> dict[str, Any]:
    try:
        member = archive.extractfile(MANIFEST)
        manifest: dict[str, Any] = json.load(member) if member else {}
    except (KeyError, ValueError, tarfile.TarError, OSError, EOFError):
        manifest = {}
    if manifest.get("schema") != "evenedit.backup/1":
        raise EvenEditError(f"{backup} is not a backup of EvenEdit, or is truncated")
    return manifest


def _digest(archive: tarfile.TarFile, name: str) -> str:
    try:
        member = archive.extractfile(name)
        return hashlib.sha256(member.read()).hexdigest() if member else ""
    except (KeyError, tarfile.TarError, OSError, EOFError):
        return ""


def _check(path: Path, history: History, wanted: dict[str, int]) -> None:
    """Raise if a copied database is damaged or lacks rows."""
    engine = sqlite_engine(path)
    if problems := damage(engine, history.metadata):
        raise EvenEditError(f"the copy of {path.name} is damaged: {problems[0]}")
    if counts(engine, history) != wanted:
        raise EvenEditError(f"the copy of {path.name} has other row counts than the original")
