"""What a run needs, checked before its first edit: extras, keys, models, settings, memory, disk and write access."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import mean
from typing import Any

import sqlalchemy as sa

from evenedit.config.study_file import EditorSection, StudyFile
from evenedit.core import plugins
from evenedit.core.errors import EvenEditError, Failed
from evenedit.core.python_objects import KIND
from evenedit.core.records import Request
from evenedit.judges.raters import JudgeRater
from evenedit.run.executors.processes import visible_gpus
from evenedit.run.memory import Machine, memory_note
from evenedit.storage.store import Store

SIZED = 16
"""Pictures whose size is looked up to estimate that of the others."""
LEAST_DISK = 1e8
"""Bytes that must be free where the size of a picture is not known yet."""


def preflight(
    file: StudyFile, store: Store, editors: Mapping[str, Sequence[str]], raters: Sequence[JudgeRater], edits: int
) -> list[str]:
    """Return what would stop a run that makes so many edits, with these judges.

    `editors` are the instructions of each editor with work to do, by its id.
    """
    problems = [*_access(file, store), *_disk(file, store, edits)] if edits else []
    for section in file.sections.editors:
        if section.id in editors and section.plugin != KIND:
            problems += [f"editor '{section.id}' {need}" for need in _editor(file, section, editors[section.id])]
    for rater in raters:
        problems += [f"judge '{rater.id}' cannot be used: {need}" for need in needs(rater.judge)]
    mitigation = file.sections.experiments.mitigation
    for plugged in mitigation.extractors if mitigation else ():
        extractor = plugins.build("extractors", plugged.kind, plugged.settings)
        problems += [f"extractor '{plugged.kind}' cannot be used: {need}" for need in needs(extractor)]
    return list(dict.fromkeys(problems))


def instructions_of(requests: Sequence[Request]) -> dict[str, list[str]]:
    """Return the distinct instructions of each editor, by its id."""
    instructions: dict[str, dict[str, None]] = {}
    for request in requests:
        instructions.setdefault(request.editor, {})[request.instruction] = None
    return {editor: list(texts) for editor, texts in instructions.items()}


def remarks(file: StudyFile, editors: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield what local editors do to sources and instructions without an error."""
    for section in file.sections.editors:
        if section.id in editors and section.plugin != KIND and plugins.declares("editors", section.plugin, "notes"):
            with suppress(EvenEditError):  # a problem of the settings
                editor = plugins.build("editors", section.plugin, file.located(section.settings))
                yield from (f"{section.id} {note}" for note in editor.notes(editors[section.id]))


def needs(plugin: Any, *known: Any) -> list[str]:
    """Return what a plug-in lacks here, and if it lacks nothing, what its own `check` of its settings refuses."""
    missing = list(plugin.missing()) if callable(getattr(plugin, "missing", None)) else []
    if not missing and hasattr(plugin, "check"):
        try:
            plugin.check(*known)
        except Failed:  # its service does not answer now, which says nothing about the settings
            return []
        except EvenEditError as error:
            return list(error.problems)
    return missing


def machine_for(file: StudyFile, section: EditorSection, machine: Machine) -> Machine:
    """Return the share of a machine's memory that each process of an editor has."""
    executor = file.sections.executor
    processes = executor.processes or (machine.gpus // section.gpus if plugins.needs_gpu(section.plugin) else 1)
    return machine.shared_by(processes)


def picture_size(store: Store) -> float | None:
    """Return the average bytes of some stored outputs; None before the first."""
    sizes = [store.images.size(sha256) for sha256 in store.images.present(store.pictures(SIZED))]
    return mean(sizes) if sizes else None


def _editor(file: StudyFile, section: EditorSection, instructions: Sequence[str]) -> Iterator[str]:
    if not plugins.is_built_in("editors", section.plugin):
        return  # others may hang or break their process: they are built where they edit
    settings = file.located(section.settings)
    try:
        editor = plugins.build("editors", section.plugin, settings)
    except EvenEditError as error:
        yield f"cannot be used: {error}"
        return
    local = plugins.needs_gpu(section.plugin)
    if section.gpus > 1 and file.sections.executor.kind != "ray" and len(visible_gpus()) < section.gpus:
        yield f"asks for {section.gpus} GPUs, and {len(visible_gpus())} are visible"
    missing = needs(editor, instructions) if local else needs(editor)
    yield from (f"cannot be used: {need}" for need in missing)
    machine = Machine.current()
    if local and not missing and machine.gpu is not None and file.sections.executor.kind != "ray":
        share = machine_for(file, section, machine)
        note = memory_note(section.plugin, settings, share, len(set(instructions)))
        if note and not note[0]:
            yield note[1]


def _access(file: StudyFile, store: Store) -> Iterator[str]:
    for folder in (file.folder, store.images.folder):
        if folder.is_dir() and not os.access(folder, os.W_OK):
            yield f"folder {folder} cannot be written"
    try:
        store.try_writing()
    except sa.exc.DBAPIError as error:
        yield f"the study's database cannot be written: {str(error.orig).splitlines()[0]}"


def _disk(file: StudyFile, store: Store, edits: int) -> Iterator[str]:
    where = file.sections.store.images or ""
    if "://" in where:
        return
    each = picture_size(store)
    needed, free = each * edits if each else LEAST_DISK, shutil.disk_usage(Path(where) if where else file.folder).free
    if free < needed:
        yield f"{edits:,} pictures need {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free on their disk"
