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


def with_python_plugins(file: StudyFile, store: Store) -> StudyFile:
    """Return the study file with the recorded Python editors and judges in place of those that never ran.

    An editor of study.toml that has made an edit stays, and so does a judge that has rated. Instruments are added.
    """
    record = _record(store)
    sections, update = file.sections, dict[str, Any]()
    if "editors" in record:
        added = {e["id"]: EditorSection.model_validate(e) for e in record["editors"]}
        used = [e for e in sections.editors if e.id not in added and e.id in store.editors_used()]
        update["editors"] = [*used, *added.values()]
    if "judges" in record:
        judges = {j["id"]: JudgeSection.model_validate(j) for j in record["judges"]}
        used_judges = [j for j in sections.judges if j.id not in judges and j.id in store.raters_used()]
        update["judges"] = [*used_judges, *judges.values()]
    if "instruments" in record:
        objects = {i["id"]: InstrumentSection.model_validate(i) for i in record["instruments"]}
        update["instruments"] = [*(i for i in sections.instruments if i.id not in objects), *objects.values()]
    return replace(file, sections=sections.model_copy(update=update))


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
    if editors is not None:
        written = {e.id: e for e in file.sections.editors}
        rows = {e["id"]: e for e in known.get("editors", [])}
        for ident, editor in editors.items():
            base = written.get(ident, EditorSection(id=ident))
            settings = {"revision": editor.revision, "max_images": editor.max_images}
            settings |= {"batch": editor.batch} if editor.batch > 1 else {}
            section = base.model_copy(update={"kind": KIND, "settings": settings})
            rows[ident] = section.model_dump(mode="json", exclude_none=True)
        known["editors"] = list(rows.values())
        real = not all(map(is_simulated, editors))
        if judges is None and real and all(is_simulated(j.id) for j in file.sections.judges):
            known.setdefault("judges", [])
    if judges is not None:
        stated = {j.id: j for j in file.sections.judges}
        raters = {j["id"]: j for j in known.get("judges", [])}
        for ident, judge in judges.items():
            base_judge = stated.get(ident, JudgeSection(id=ident, kind=KIND))
            section_of_judge = base_judge.model_copy(update={"kind": KIND, "settings": {"revision": judge.revision}})
            raters[ident] = section_of_judge.model_dump(mode="json", exclude_none=True)
        known["judges"] = list(raters.values())
    if instruments is not None:
        sections = {i.id: i for i in file.sections.instruments}
        recorded = {i["id"]: i for i in known.get("instruments", [])}
        for ident, instrument in instruments.items():
            base_section = sections.get(ident, InstrumentSection(id=ident, kind=KIND))
            revision = {"revision": revision_of("instrument", ident, instrument)}
            section_of_instrument = base_section.model_copy(update={"kind": KIND, "settings": revision})
            recorded[ident] = section_of_instrument.model_dump(mode="json", exclude_none=True)
        known["instruments"] = list(recorded.values())
    store.set_fact(FACT, json.dumps(known))


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
