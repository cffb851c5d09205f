"""Prolific's demographic export: what participants told the platform about themselves, for those who agreed to it.

A value is taken only from people who agreed on our consent page, ethnicity only from those who ticked its own box.
CONSENT_REVOKED (the person took back the consent that Prolific passes it on) deletes what was stored before;
DATA_EXPIRED (their answer to Prolific is too old) is missing with that reason.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from evenedit.config.study_file import SurveySection
from evenedit.core.errors import EvenEditError
from evenedit.protocol.questionnaire import ProfileQuestion
from evenedit.storage.survey_schema import participants, profiles
from evenedit.storage.survey_store import SurveyStore, note
from evenedit.survey.profiles import agreed
from evenedit.survey.questionnaire import PLATFORM, ProfileState, platform_questions

PERSON = ("Participant id", "participant_id")
"""What Prolific has called the column of a person's id."""
REVOKED, EXPIRED = "CONSENT_REVOKED", "DATA_EXPIRED"
_WITHOUT_VALUE = {
    REVOKED.lower(): ProfileState.REVOKED,
    EXPIRED.lower(): ProfileState.EXPIRED,
    "prefer not to say": ProfileState.WITHHELD,
    "rather not say": ProfileState.WITHHELD,
}
"""What Prolific writes in place of a value."""
LONGEST = 100


@dataclass(slots=True)
class ImportedProfiles:
    """What became of the rows of an export."""

    rows: int = 0
    people: int = 0
    """Participants of ours in it whose values were stored."""
    strangers: int = 0
    """Rows of people who never came here."""
    unasked: int = 0
    """Participants of ours who have not agreed to it."""
    without_sensitive: int = 0
    """Among those stored: whose ethnicity was left out, for want of its own consent."""
    revoked: int = 0
    """Participants of ours who took back their consent on Prolific, for some value or all."""
    expired: int = 0
    """Participants of ours of whom Prolific's own data have expired, some or all."""


def import_profiles(
    path: Path, database: SurveyStore, section: SurveySection, actor: str, *, consented: bool = False
) -> ImportedProfiles:
    """Store the values of an export; reading it again replaces them.

    `consented`: everybody in it agreed elsewhere to their values being used here, ethnicity included.
    """
    questions = platform_questions(section)
    if not questions:
        raise EvenEditError(
            "the study does not declare the use of Prolific's data, so nobody was asked for consent. "
            "Try: [survey.questionnaire] from_platform = true"
        )
    records = list(_records(path, questions))
    imported = ImportedProfiles(rows=len(records))
    may, may_sensitive = agreed(database, PLATFORM)
    now = time.time()

    def work(db: sa.Connection) -> None:
        people = [person for person, _ in records]
        query = sa.select(participants.c.id, participants.c.external).where(participants.c.external.in_(people))
        by_person: dict[str, list[int]] = {}
        for row in db.execute(query):
            by_person.setdefault(row.external, []).append(row.id)
        for person, record in records:
            imported.strangers += person not in by_person
            for participant in by_person.get(person, ()):
                keep(db, participant, record)

    def keep(db: sa.Connection, participant: int, record: Mapping[str, str]) -> None:
        """Replace what is stored of one participant by what the export says, as far as they agreed."""
        from_platform = sa.and_(profiles.c.participant == participant, profiles.c.origin == PLATFORM)
        db.execute(sa.delete(profiles).where(from_platform))
        imported.revoked += REVOKED in record.values()
        imported.expired += EXPIRED in record.values()
        if not consented and participant not in may:
            imported.unasked += 1
            return
        sensitive = consented or participant in may_sensitive
        imported.without_sensitive += not sensitive and any(q.sensitive for q in questions)
        rows = [
            {"participant": participant, "question": q.id, "origin": PLATFORM, "at": now, **stored}
            for q in questions
            if (sensitive or not q.sensitive) and (stored := _stored(record.get(q.prolific, ""), q))
        ]
        if rows:
            db.execute(sa.insert(profiles), rows)
        imported.people += any(row["value"] is not None for row in rows)

    database.write(work)
    database.forget_erased()
    detail = {"file": path.name, "rows": imported.rows, "people": imported.people}
    database.write(lambda db: note(db, now, actor, "imported demographics", detail))
    return imported


def _stored(value: str, question: ProfileQuestion) -> dict[str, Any] | None:
    """Return a value of the export as it is stored; None if it is empty."""
    if state := _WITHOUT_VALUE.get(value.lower()):
        return {"value": None, "state": state}
    if not value or (question.kind == "number" and not question.accepts(value)):
        return None
    return {"value": value[:LONGEST], "state": ProfileState.ANSWERED}


def _records(path: Path, questions: tuple[ProfileQuestion, ...]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of the export: the person's id, and the values by column."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            names = list(reader.fieldnames or ())
            person = next((name for name in PERSON if name in names), None)
            if person is None:
                raise EvenEditError(
                    f"{path} has no column '{PERSON[0]}', so it is not a demographic export of Prolific; it has: "
                    + (", ".join(names[:30]) or "nothing")
                )
            missing = [q.prolific for q in questions if q.prolific not in names]
            if len(missing) == len(questions):
                raise EvenEditError(f"{path} has none of the columns {', '.join(missing)}; export demographic data")
            for row in reader:
                record = {k.strip(): (v or "").strip() for k, v in row.items() if k is not None and isinstance(v, str)}
                if record.get(person):
                    yield record[person], record
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise EvenEditError(f"{path} cannot be read: {error}") from None
