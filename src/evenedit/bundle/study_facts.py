"""What a bundle says about its study: the study file without secrets and folders, licences, consent, environment."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Any

import sqlalchemy as sa

from evenedit.core.errors import EvenEditError
from evenedit.core.provenance import provenance
from evenedit.storage.survey_schema import log as survey_log
from evenedit.storage.survey_store import SurveyStore
from evenedit.study.study import Study
from evenedit.survey.answers import exists, people_frame
from evenedit.survey.consent import versions

LICENCES = "licences.json"
DRAWN = "drawn"
"""The kind of source that pictures nobody."""
DRAWN_LICENCE = "Apache-2.0"
"""Of portraits that EvenEdit draws itself."""
LEFT_OUT = {"store", "executor", "cache"}
"""Tables of the study file that say where and how it ran, and may hold passwords."""


def study_tables(study: Study) -> dict[str, Any]:
    """The tables of study.toml without where it ran, without folders of a machine and without addresses of staff."""
    body = study.file.sections.model_dump(mode="json", exclude_none=True, exclude=LEFT_OUT)
    plain: dict[str, Any] = bared(body)
    return plain


def bared(value: Any) -> Any:
    """The same with the last part alone of every path that begins at the root of a machine."""
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


def study_provenance(study: Study) -> dict[str, Any]:
    """Where the results come from; the time is that of the last run, so that the same study gives the same bundle."""
    runs = study.store.runs()
    if not runs:
        raise EvenEditError(f"nothing is edited yet. Try: evenedit run {study.folder}")
    facts = provenance(study=study.file.hash, first_run=runs[0]["started"], runs=len(runs))
    return facts | {"time": runs[-1]["finished"] or runs[-1]["started"], "command": "evenedit bundle"}


def run_facts(study: Study) -> list[dict[str, Any]]:
    """Every run with its environment, without the command line, which may name folders."""
    return [
        {
            "run": row["id"],
            "started": row["started"],
            "finished": row["finished"],
            "provenance": {name: value for name, value in row["provenance"].items() if name != "command"},
        }
        for row in study.store.runs()
    ]


def licence_of(study: Study) -> str:
    """The licence of the portraits; empty where the study says none."""
    section = study.file.sections.sources
    return section.licence or (DRAWN_LICENCE if section.kind == DRAWN else "")


def may_show_pictures(study: Study) -> bool:
    """Whether the study allows its pictures in a bundle: drawn ones show nobody."""
    section = study.file.sections.sources
    return section.kind == DRAWN or (section.publish and bool(section.licence))


def refuse_unlicensed(study: Study) -> None:
    """Refuse pictures that the study does not allow to be published."""
    if not may_show_pictures(study):
        raise EvenEditError(
            "the study does not say that its pictures may be published; add to [sources] of study.toml: "
            'licence = "…" and publish = true, or leave the pictures out with --pictures none (digests are always in)'
        )


def refuse_unconsented(study: Study, today: date) -> None:
    """Refuse real people's answers unless their consent named a day for it, and the day has come."""
    section = study.file.sections.survey
    if section is None or section.simulated_people:
        return
    day = section.ethics.published_from
    leave = "or leave their answers out with --people none"
    if not day:
        raise EvenEditError(
            "people answered this study, and its consent does not say from when on answers may be published; where it "
            f'did, add to [survey.ethics] of study.toml: published_from = "YYYY-MM-DD", {leave}'
        )
    if today.isoformat() < day:
        raise EvenEditError(f"people's answers may be published from {day} on (survey.ethics.published_from); {leave}")


def licence_facts(study: Study, pictures: str, *, people: bool) -> dict[str, Any]:
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
        "personal": "people and reviewers stand under new names; no free text, times, ids or demographics of theirs",
    }


def consent_facts(study: Study) -> dict[str, Any]:
    """How people consented, and how many were excluded or have withdrawn; empty without a survey."""
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
