"""Delete what identifies participants after the day that the consent page names. Answers stay, under pseudonyms.

The key of the pseudonyms is replaced as well: from then on nobody can find out whose pseudonym is whose. What
participants said about themselves goes too; of it stay the counts without small cells.
"""

from __future__ import annotations

import secrets
from datetime import UTC, date, datetime

import sqlalchemy as sa

from evenedit.config.study_file import SurveySection
from evenedit.protocol.rubric import Rubric
from evenedit.storage.survey_schema import events, facts, participants, profile_consents, profiles, removals
from evenedit.storage.survey_store import SurveyStore, note
from evenedit.survey import answers
from evenedit.survey.profiles import COUNTS_FACT, keep_counts

EVERY = 3600.0
"""Seconds between two looks of a running server at the date."""
ACTOR = "retention date"


def is_over(section: SurveySection, now: float) -> bool:
    """Return True if the last day on which ids are kept has passed (UTC)."""
    until = section.ethics.keep_until
    return bool(until) and datetime.fromtimestamp(now, UTC).date() > date.fromisoformat(until)


def enforce(database: SurveyStore, section: SurveySection, now: float, rubric: Rubric | None = None) -> int:
    """Delete the ids of everybody if the day has passed; returns of how many people."""
    if not is_over(section, now) or not (_any(database, participants, _identified()) or _any(database, profiles)):
        return 0
    frame = answers.read(database, rubric=rubric)
    counts = keep_counts(section, database, answers.counted_answers(frame, answers.qualities(frame, section)))

    def work(db: sa.Connection) -> int:
        anonymised = sa.update(participants).where(_identified())
        count = db.execute(anonymised.values(external=None, study="", session="", token=None, resume=None)).rowcount
        db.execute(sa.delete(events))
        db.execute(sa.delete(profiles))
        db.execute(sa.delete(profile_consents))
        if counts is not None:
            db.execute(sa.delete(facts).where(facts.c.key == COUNTS_FACT))
            db.execute(sa.insert(facts), {"key": COUNTS_FACT, "value": counts})
        db.execute(sa.update(removals).values(reply=""))
        db.execute(sa.update(facts).where(facts.c.key == "key").values(value=secrets.token_hex(32)))
        note(db, now, ACTOR, "deleted the ids of participants", {"people": count})
        return int(count)

    count = database.write(work)
    database.forget_erased()
    return count


def _any(database: SurveyStore, table: sa.Table, where: sa.ColumnElement[bool] | None = None) -> bool:
    query = sa.select(sa.literal(1)).select_from(table).limit(1)
    return bool(database.rows(query if where is None else query.where(where)))


def _identified() -> sa.ColumnElement[bool]:
    return sa.or_(
        participants.c.external.is_not(None), participants.c.token.is_not(None), participants.c.resume.is_not(None)
    )
