"""Checks of the installation and of a study's database and images."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from evenedit.config.study_file import FILE as STUDY_FILE
from evenedit.core import plugins
from evenedit.core.errors import EvenEditError
from evenedit.core.records import Outcome
from evenedit.core.version import __version__
from evenedit.curation import portraits
from evenedit.run.executors.processes import visible_gpus
from evenedit.run.memory import Machine, memory_note
from evenedit.storage import survey_schema
from evenedit.storage.file_systems import network_file_system
from evenedit.storage.staff_store import StaffStore
from evenedit.storage.store import Store
from evenedit.storage.survey_store import SurveyStore
from evenedit.study.context import StudyContext
from evenedit.survey.sample import stale

EXTRAS = {
    "postgres": "psycopg",
    "local": "diffusers",
    "api": "openai",
    "ray": "ray",
    "faces": "dlib",
    "parquet": "duckdb",
    "prolific": "cryptography",
    "sign": "cryptography",
}

PRIVATE = ("survey.db", "secrets.db", "staff-log.jsonl")
"""Files with ids, hashes or addresses, which only their owner should read."""


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """The result of one check."""

    good: bool | None
    """False if something must be fixed; None if something optional is not available."""
    text: str
    """The check and its result."""


def examine(study: StudyContext | None) -> Iterator[HealthCheck]:
    """Check the installation, then the study if there is one."""
    yield HealthCheck(sys.version_info >= (3, 11), f"Python {sys.version.split()[0]}, EvenEdit {__version__}")
    for extra, module in EXTRAS.items():
        ready = find_spec(module) is not None
        state = "installed" if ready else f"not installed: pip install 'evenedit[{extra}]' if you need it"
        yield HealthCheck(True if ready else None, f"extra '{extra}': {state}")
    for group in ("editors", "judges", "instruments", "sources", "extractors"):
        for name, point in plugins.installed(group).items():
            try:
                point.load()
            except Exception as error:
                yield HealthCheck(False, f"{group} '{name}' ({point.value}) does not load: {error}")
        yield HealthCheck(True, f"{group}: {', '.join(sorted(plugins.installed(group)))}")
    for name in plugins.installed("editors"):
        for need in _needs(name, {}):
            yield HealthCheck(None, f"editor '{name}' is not ready: {need}")
    if study is not None:
        yield from _study(study)


def is_portrait_set(folder: Path) -> bool:
    """Return True if a folder is a finalised set of portraits."""
    return (folder / portraits.MANIFEST).is_file() and not (folder / STUDY_FILE).exists()


def examine_portraits(folder: Path) -> Iterator[HealthCheck]:
    """Check a finalised set of portraits against its manifest."""
    manifest = portraits.verify(folder)
    counts = ", ".join(f"{pool} {count}" for pool, count in manifest["distribution"].items())
    yield HealthCheck(True, f"portraits by pool: {counts}")
    sha256 = hashlib.sha256((folder / portraits.MANIFEST).read_bytes()).hexdigest()
    yield HealthCheck(
        True, f"{len(manifest['portraits'])} portraits are as finalised; sha256 of {portraits.MANIFEST}: {sha256}"
    )


def repair(study: StudyContext) -> Iterator[str]:
    """Do what is safe, and say what was done: close private files to others, set damaged pictures aside.

    A picture that is set aside is made again by the next run; nothing is deleted.
    """
    for name in PRIVATE:
        path = study.file.folder / name
        if path.exists() and path.stat().st_mode & 0o077:
            path.chmod(0o600)
            yield f"{name} can be read by its owner only"
    if study.store.damage():
        return
    for sha in _damaged(study.store):
        path = study.store.images.path(sha)
        if path.exists():
            path.rename(path.with_name(f"{path.name}.damaged"))
            yield f"{path} was set aside as {path.name}.damaged"


def _needs(name: str, settings: Mapping[str, Any], instructions: int = 0) -> list[str]:
    """Return what an editor lacks on this machine; one that needs settings is checked only in its study."""
    if plugins.problems("editors", name, settings):
        return []
    try:
        editor = plugins.build("editors", name, settings)
    except Exception as error:
        return [f"it cannot be created ({type(error).__name__}: {error})"]
    needs = list(editor.missing()) if hasattr(editor, "missing") else []
    if not needs and plugins.needs_gpu(name):
        memory = memory_note(name, settings, Machine.current(), instructions)
        if not visible_gpus():
            needs.append(
                f"no GPU is visible, and an edit would take hours on a CPU; it {memory[1]}"
                if memory
                else "no GPU is visible"
            )
        elif memory and not memory[0]:
            needs.append(f"it {memory[1]}")
    return needs


def _study(study: StudyContext) -> Iterator[HealthCheck]:
    """Check a study: what it needs, its databases, its images."""
    yield from _plugins(study)
    damaged = study.store.damage()
    for problem in damaged:
        yield HealthCheck(False, f"the study's database is damaged: {problem}; restore it from a backup")
    yield from _survey(study)
    yield from _accounts(study)
    if not damaged:
        yield from _contents(study)


def _survey(study: StudyContext) -> Iterator[HealthCheck]:
    """Check the survey's database, if there is one, without changing anything."""
    section, url = study.file.sections.survey, study.file.sections.store.url
    if section is None or not (url or (study.file.folder / survey_schema.DATABASE).exists()):
        return
    try:
        with closing(SurveyStore(study.file.folder, url, write=False)) as database:
            damaged = database.damage()
            lacking = [] if damaged or study.store.damage() else _unknown_outputs(database, study.store)
    except EvenEditError as error:
        yield HealthCheck(False, str(error))
        return
    for problem in damaged:
        yield HealthCheck(False, f"the survey's database is damaged: {problem}; restore it from a backup")
    if lacking:
        yield HealthCheck(
            False,
            f"the survey shows {len(lacking)} outputs that the study does not have ({lacking[0]}): both databases must "
            "be of the same backup",
        )
    elif not damaged:
        yield HealthCheck(True, "the survey's database is intact")
    for survey in section.surveys:
        if message := stale(study.file, study.store, survey):
            yield HealthCheck(False, message)


def _unknown_outputs(database: SurveyStore, store: Store) -> list[str]:
    """Return outputs on the survey's pages that are not edits of the study."""
    outputs = {output for row in database.rows(sa.select(survey_schema.items.c.outputs)) for output in row.outputs}
    return sorted(outputs - set(store.edits()))


def _accounts(study: StudyContext) -> Iterator[HealthCheck]:
    """Check the file of accounts, if there is one."""
    file = StaffStore(study.file.folder)
    if not file.path.exists():
        return
    try:
        known = file.checked()
    except EvenEditError as error:
        yield HealthCheck(False, str(error))
        return
    yield HealthCheck(True, f"{len(known)} staff accounts are readable")


def _plugins(study: StudyContext) -> Iterator[HealthCheck]:
    file = study.file
    requests = None
    try:
        requests = study.design.planned(study.design.preview_sources())
    except EvenEditError as error:
        yield HealthCheck(False, f"portraits: {error}")
    for section in file.sections.editors:
        known = len(file.prompts) + len(file.wino)
        if requests is not None:
            known = len({r.instruction for r in requests if r.editor == section.id})
        instructions = known if plugins.encodes_first(section.plugin) else 0
        settings = file.located(section.settings)
        needs = _needs(section.plugin, settings, instructions)
        yield from (HealthCheck(False, f"editor '{section.id}': {need}") for need in needs)
        if not needs and (memory := memory_note(section.plugin, settings, Machine.current(), instructions)):
            yield HealthCheck(True, f"editor '{section.id}' {memory[1]}")
    plugged = [("judges", j.id, j.kind, j.settings) for j in file.sections.judges]
    if file.sections.experiments.mitigation:
        extractors = file.sections.experiments.mitigation.extractors
        plugged += [("extractors", e.kind, e.kind, e.settings) for e in extractors]
    for group, ident, kind, settings in plugged:
        rater = plugins.build(group, kind, settings)
        for need in rater.missing() if callable(getattr(rater, "missing", None)) else ():
            yield HealthCheck(False, f"{group.removesuffix('s')} '{ident}': {need}")


def _contents(study: StudyContext) -> Iterator[HealthCheck]:
    file, store = study.file, study.store
    yield HealthCheck(True, f"study file is valid; the database is intact ({len(store.runs())} runs)")
    for table, count in store.dangling().items():
        yield HealthCheck(False, f"{count:,} rows of {table} belong to no request and are not counted")
    yield HealthCheck(os.access(file.folder, os.W_OK), f"folder {file.folder} can be written")
    network = None if file.sections.store.url else network_file_system(file.folder)
    if network:
        yield HealthCheck(
            True,
            f"the database is on a network file system ({network}): SQLite runs without its write-ahead log there, "
            'one run at a time. For several machines: [store] url = "postgresql://…"',
        )
    free = shutil.disk_usage(file.folder).free / 1e9
    yield HealthCheck(free > 1, f"{free:.0f} GB free on its disk")
    for name in PRIVATE:
        path = file.folder / name
        if path.exists() and path.stat().st_mode & 0o077:
            yield HealthCheck(False, f"{name} can be read by others: evenedit doctor --repair, or chmod 600")
    wanted = _images(store)
    damaged = _damaged(store)
    yield HealthCheck(not damaged, f"{len(wanted) - len(damaged):,} of {len(wanted):,} images are intact")
    for sha in damaged[:10]:
        path = store.images.path(sha)
        advice = "delete it and run again" if path.exists() else "run again"
        yield HealthCheck(
            False, f"image of {wanted[sha]} is {'damaged' if path.exists() else 'missing'}: {path}; {advice}"
        )


def _images(store: Store) -> dict[str, str]:
    """Return every picture of the study by hash, with the record it belongs to."""
    wanted = {s.image: s.id for s in store.sources().values() if s.image}
    return wanted | {e.image: i for i, e in store.edits().items() if e.outcome is Outcome.EDITED and e.image}


def _damaged(store: Store) -> list[str]:
    return [sha for sha in _images(store) if not store.images.is_whole(sha)]
