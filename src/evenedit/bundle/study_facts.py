"""What a bundle says about its study: the study file without secrets and folders, licences, consent, environment."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Any

import sqlalchemy as sa

from evenedit.core.errors import EvenEditError
from evenedit.core.provenance import provenance
from evenedit.sources.twins import RECOLOURED
from evenedit.storage.survey_schema import log as survey_log
from evenedit.storage.survey_store import SurveyStore
from evenedit.study.context import StudyContext
from evenedit.survey.answers import exists, people_frame
from evenedit.survey.consent import versions

LICENCES = "licences.json"
DRAWN = "drawn"
"""The kind of source that pictures nobody."""
DRAWN_LICENCE = "Apache-2.0"
"""Of portraits that EvenEdit draws itself."""
LEFT_OUT = {"store", "executor", "cache"}
"""Tables of the study file that say where and how it ran, and may hold passwords."""


def study_tables(study: StudyContext) -> dict[str, Any]:
    """Return the tables of study.toml without the store, folders of a machine and addresses of staff."""
    body = study.file.sections.model_dump(mode="json", exclude_none=True, exclude=LEFT_OUT)
    plain: dict[str, Any] = bared(body)
    return plain


def bared(value: Any) -> Any:
    """Return a value in which absolute paths are reduced to their last part."""
    if isinstance(value, Mapping):
        return {key: bared(item) for key, item in value.items()}
    if isinstance(value, list):
        return [bared(item) for item in value]
    return _last_part(value) if isinstance(value, str) else value


def _last_part(text: str) -> str:
    path: PurePath
    for path in (PurePosixPath(text), PureWindowsPath(text)):
        if path.is_absolute() and len(path.parts) > 2 and " " not in text:
            return path.name
    return text


def study_provenance(study: StudyContext) -> dict[str, Any]:
    """Return the provenance of the results; its time is that of the last run, so equal studies give equal bundles."""
    runs = study.store.runs()
    if not runs:
        raise EvenEditError(f"nothing is edited yet. Try: evenedit run {study.folder}")
    facts = provenance(study=study.file.hash, first_run=runs[0]["started"], runs=len(runs))
    return facts | {"time": runs[-1]["finished"] or runs[-1]["started"], "command": "evenedit bundle"}


def run_facts(study: StudyContext) -> list[dict[str, Any]]:
    """Yield each run with its environment, without the command line, which may name folders."""
    return [
        {
            "run": row["id"],
            "started": row["started"],
            "finished": row["finished"],
            "provenance": {name: value for name, value in row["provenance"].items() if name != "command"},
        }
        for row in study.store.runs()
    ]


def licence_of(study: StudyContext) -> str:
    """Return the licence of the portraits; empty if the study states none."""
    section = study.file.sections.sources
    return section.licence or (DRAWN_LICENCE if section.kind == DRAWN else "")


def may_show_pictures(study: StudyContext) -> bool:
    """Return whether the study allows its pictures in a bundle: drawn ones always, recoloured photographs never."""
    section = study.file.sections.sources
    return section.kind == DRAWN or (section.publish and bool(section.licence) and not _recoloured(study))


def _recoloured(study: StudyContext) -> bool:
    return any(source.origin.startswith(RECOLOURED) for source in study.store.sources().values())


def refuse_unlicensed(study: StudyContext) -> None:
    """Refuse pictures that the study does not allow to be published."""
    if _recoloured(study):
        raise EvenEditError(
            "the portraits are recoloured photographs, which never leave the study: leave the pictures out with "
            "--pictures none (digests are always in)"
        )
    if not may_show_pictures(study):
        raise EvenEditError(
            "the study does not say that its pictures may be published; add to [sources] of study.toml: "
            'licence = "…" and publish = true, or leave the pictures out with --pictures none (digests are always in)'
        )


def refuse_unconsented(study: StudyContext, today: date) -> None:
    """Refuse real people's answers unless their consent named a day for it, and the day has come."""
    section = study.file.sections.survey
    if section is None or section.simulated_people:
        return
    day = section.ethics.published_from
    leave = "or leave their answers out with --people none"
    if not day:
        raise EvenEditError(
            "people answered this survey, and its consent states no date from which answers may be published; if it "
            f'did, add to [survey.ethics] of study.toml: published_from = "YYYY-MM-DD", {leave}'
        )
    if today.isoformat() < day:
        raise EvenEditError(f"people's answers may be published from {day} on (survey.ethics.published_from); {leave}")


def licence_facts(study: StudyContext, pictures: str, *, people: bool) -> dict[str, Any]:
    """Licence and consent in plain facts, for licences.json."""
    section = study.file.sections.sources
    return {
        "portraits": {
            "kind": section.kind,
            "licence": licence_of(study) or "not stated",
            "publish": may_show_pictures(study),
            "pictures_here": pictures,
        },
        "software": "Apache-2.0",
        "consent": consent_facts(study) if people else {"people": "their answers were left out of this bundle"},
        "personal": "people and reviewers have new pseudonyms; free text, times, ids and demographics are left out",
    }


def consent_facts(study: StudyContext) -> dict[str, Any]:
    """Return the forms of consent and the numbers of excluded and withdrawn people; empty without a survey."""
    file = study.file
    section, url = file.sections.survey, file.sections.store.url
    if section is None or not exists(file.folder, url):
        return {}
    database = SurveyStore(file.folder, url, write=False)
    try:
        frame, quality = people_frame(file, database)
        erased = sa.select(sa.func.count()).select_from(survey_log).where(survey_log.c.action == "erased a participant")
        withdrawn = int(database.rows(erased)[0][0])
        texts = [{"version": v.version, "language": v.language, "text": v.text} for v in versions(database) if v.people]
    finally:
        database.close()
    return {
        "people": "simulated" if section.simulated_people else "real",
        "answered": int(frame["rater"].nunique()),
        "excluded": sum(bool(one.excluded) for one in quality),
        "withdrawn": withdrawn,
        "published_from": section.ethics.published_from,
        "recall": "before this day a person's answers could be withdrawn; a published bundle cannot be recalled",
        "protocol": section.ethics.protocol,
        "texts": texts,
    }
