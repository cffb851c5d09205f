"""Editors and judges given as Python objects, kept in the study's record so that it can be read without them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evenedit.config.sections import EditorSection, JudgeSection
from evenedit.config.study_file import StudyFile
from evenedit.core.python_objects import KIND
from evenedit.core.records import is_simulated
from evenedit.editors.python import PythonEditorAdapter
from evenedit.judges.python import PythonJudgeAdapter
from evenedit.storage.store import Store

FACT = "given"
"""Where the record lies in the store."""


def with_python_plugins(file: StudyFile, store: Store) -> StudyFile:
    """Return the study file with the recorded Python editors and judges in place of those that never ran.

    An editor of study.toml that has made an edit stays, and so does a judge that has rated.
    """
    plugins = _record(store)
    if not plugins:
        return file
    sections, update = file.sections, dict[str, Any]()
    if "editors" in plugins:
        added = {e["id"]: EditorSection.model_validate(e) for e in plugins["editors"]}
        used = [e for e in sections.editors if e.id not in added and e.id in store.editors_used()]
        update["editors"] = [*used, *added.values()]
    if "judges" in plugins:
        judges = {j["id"]: JudgeSection.model_validate(j) for j in plugins["judges"]}
        used_judges = [j for j in sections.judges if j.id not in judges and j.id in store.raters_used()]
        update["judges"] = [*used_judges, *judges.values()]
    return replace(file, sections=sections.model_copy(update=update))


def record_plugins(
    file: StudyFile,
    store: Store,
    editors: Mapping[str, PythonEditorAdapter] | None,
    judges: Mapping[str, PythonJudgeAdapter] | None,
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
    store.set_fact(FACT, json.dumps(known))


def _record(store: Store) -> dict[str, Any]:
    text = store.fact(FACT)
    return json.loads(text) if text else {}
