"""Editors, judges and instruments given as Python objects, kept in the study's record to read it without them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evenedit.config.sections import EditorSection, InstrumentSection, JudgeSection
from evenedit.config.study_file import StudyFile
from evenedit.core import plugins
from evenedit.core.python_objects import KIND, resolve_method, revision_of, validate_objects
from evenedit.core.records import is_simulated
from evenedit.editors.python import PythonEditorAdapter
from evenedit.instruments import Instrument
from evenedit.instruments.reading import InstrumentSpec
from evenedit.judges.python import PythonJudgeAdapter
from evenedit.protocol import Rubric
from evenedit.ratings.instruments import recorded_questions
from evenedit.storage.store import Store

FACT = "given"
"""Where the record lies in the store."""


SECTIONS: Mapping[str, type[EditorSection | JudgeSection | InstrumentSection]] = {
    "editors": EditorSection,
    "judges": JudgeSection,
    "instruments": InstrumentSection,
}
"""What a row of each table of the record is."""


def with_python_plugins(file: StudyFile, store: Store) -> StudyFile:
    """Return the study file with the recorded Python editors and judges in place of those that never ran.

    An editor of study.toml that has made an edit stays, and so does a judge that has rated. Instruments are added.
    """
    record, update = _record(store), dict[str, Any]()
    used = {"editors": store.editors_used, "judges": store.raters_used}
    for table in record:
        objects = {row["id"]: SECTIONS[table].model_validate(row) for row in record[table]}
        stated = [one for one in getattr(file.sections, table) if one.id not in objects]
        ids = used[table]() if table in used else {one.id for one in stated}
        update[table] = [*(one for one in stated if one.id in ids), *objects.values()]
    return replace(file, sections=file.sections.model_copy(update=update))


def with_recorded_questions(file: StudyFile, store: Store) -> StudyFile:
    """Return the study file with the questions of instruments that are not installed, from what they read before."""
    present = plugins.installed("instruments")
    rows = recorded_questions(store, [i.id for i in file.sections.instruments if i.kind not in present])
    known = {spec.id for spec in file.rubric.specs}
    return replace(file, rubric=file.rubric.extended(row for row in rows if row.id not in known))


def record_plugins(
    file: StudyFile,
    store: Store,
    editors: Mapping[str, PythonEditorAdapter] | None,
    judges: Mapping[str, PythonJudgeAdapter] | None,
    instruments: Mapping[str, Instrument] | None,
) -> None:
    """Keep the ids and revisions of what was given; a new revision takes the place of the former one.

    Seeds and experiments of a section with the same id are kept. Where an editor that is not simulated is given without
    judges, simulated judges are left out: they can rate only what simulated editors made.
    """
    known = _record(store)
    settings: dict[str, dict[str, Any]] = {}
    if editors is not None:
        settings["editors"] = {ident: _settings_of(editor) for ident, editor in editors.items()}
        real = not all(map(is_simulated, editors))
        if judges is None and real and all(is_simulated(j.id) for j in file.sections.judges):
            known.setdefault("judges", [])
    if judges is not None:
        settings["judges"] = {ident: {"revision": judge.revision} for ident, judge in judges.items()}
    if instruments is not None:
        revisions = {ident: revision_of("instrument", ident, one) for ident, one in instruments.items()}
        settings["instruments"] = {ident: {"revision": revision} for ident, revision in revisions.items()}
    for table, objects in settings.items():
        stated = {one.id: one for one in getattr(file.sections, table)}
        rows = {row["id"]: row for row in known.get(table, [])}
        for ident, changed in objects.items():
            section = stated.get(ident) or SECTIONS[table](id=ident, kind=KIND)
            section = section.model_copy(update={"kind": KIND, "settings": changed})
            rows[ident] = section.model_dump(mode="json", exclude_none=True)
        known[table] = list(rows.values())
    store.set_fact(FACT, json.dumps(known))


def _settings_of(editor: PythonEditorAdapter) -> dict[str, Any]:
    batch = {"batch": editor.batch} if editor.batch > 1 else {}
    return {"revision": editor.revision, "max_images": editor.max_images, **batch}


def checked_instruments(objects: Mapping[str, Any] | None, rubric: Rubric) -> dict[str, Instrument] | None:
    """Return instruments that are Python objects by id; raise `EvenEditError` for what is none."""
    checked: dict[str, Instrument] | None = validate_objects("instrument", objects)
    for ident, instrument in (checked or {}).items():
        resolve_method("instrument", "read", ident, instrument)
        revision_of("instrument", ident, instrument)
        InstrumentSpec.of(instrument, ident, rubric)
    return checked


def _record(store: Store) -> dict[str, Any]:
    text = store.fact(FACT)
    return json.loads(text) if text else {}
