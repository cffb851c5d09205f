"""What participants say about themselves: asked after the task, stored apart from it, erased with them or on request.

Nothing depends on it. Nobody is asked without agreeing first, ethnicity needs a consent of its own, and every question
can be left open or answered with "prefer not to say".
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from evenedit.config.study_file import SurveySection
from evenedit.protocol.questionnaire import ProfileQuestion, standard_questions
from evenedit.storage.survey_schema import participants, profile_consents, profiles
from evenedit.storage.survey_store import SurveyStore
from evenedit.survey.consent import ConsentText, keep_text
from evenedit.survey.visits import NotAllowedError, VisitEnding

WITHHELD = "prefer-not-to-say"
"""What the form sends for "prefer not to say"."""
ORIGIN = "questionnaire"
"""The origin of what participants told us themselves."""
PLATFORM = "platform"
"""The origin of what their platform told us."""


class ProfileState(StrEnum):
    """Why there is an answer, or none."""

    ANSWERED = "answered"
    WITHHELD = "withheld"
    """Prefers not to say."""
    REVOKED = "revoked"
    """Took back the consent that the platform passes it on."""
    EXPIRED = "expired"
    """The platform's answer was too old."""


def own_questions(section: SurveySection) -> tuple[ProfileQuestion, ...]:
    """Return the study's own questions."""
    sections = section.questionnaire.questions if section.questionnaire else []
    return tuple(
        ProfileQuestion(q.id, q.title, "choice", options=tuple(q.options), sensitive=q.sensitive) for q in sections
    )


def platform_questions(section: SurveySection) -> tuple[ProfileQuestion, ...]:
    """Return the questions that the platform's export answers."""
    wanted = section.questionnaire
    return tuple(standard_questions()[name] for name in wanted.ask) if wanted and wanted.from_platform else ()


def page_questions(section: SurveySection) -> tuple[ProfileQuestion, ...]:
    """Return the questions of the page after the task; empty if there is no such page."""
    wanted = section.questionnaire
    standard = [standard_questions()[name] for name in wanted.ask] if wanted and not wanted.from_platform else []
    return (*standard, *own_questions(section))


def all_questions(section: SurveySection) -> tuple[ProfileQuestion, ...]:
    """Return all questions of the study, in the order of tables."""
    return (*platform_questions(section), *page_questions(section))


def is_asked(database: SurveyStore, section: SurveySection, token: str) -> bool:
    """Return True if a participant has finished and has not yet decided whether to answer."""
    if not page_questions(section):
        return False
    row = database.row(_state(token))
    return row is not None and row.ending == VisitEnding.COMPLETED and row.at is None


def has_profile(database: SurveyStore, token: str) -> bool:
    """Return True if a profile of this person is stored, from them or from their platform."""
    participant = sa.select(participants.c.id).where(participants.c.token == token).scalar_subquery()
    return bool(database.rows(sa.select(profiles.c.question).where(profiles.c.participant == participant).limit(1)))


def unknown_answers(questions: tuple[ProfileQuestion, ...], values: Mapping[str, str]) -> list[ProfileQuestion]:
    """Return the questions with an invalid answer."""
    return [q for q in questions if (value := values.get(q.id, "")) not in ("", WITHHELD) and not q.accepts(value)]


def keep_profile(
    database: SurveyStore,
    section: SurveySection,
    token: str,
    values: Mapping[str, str],
    text: ConsentText,
    now: float,
    *,
    agreed: bool,
    sensitive: bool,
) -> None:
    """Store what somebody decided and, where they agreed, said; once. Without the second consent nothing sensitive."""
    rows = [
        {"question": q.id, "value": None if withheld else value, "origin": ORIGIN, "at": now}
        | {"state": ProfileState.WITHHELD if withheld else ProfileState.ANSWERED}
        for q in page_questions(section)
        if agreed and (sensitive or not q.sensitive) and (value := values.get(q.id, ""))
        if (withheld := value == WITHHELD) or q.accepts(value)
    ]

    def work(db: sa.Connection) -> None:
        row = db.execute(_state(token)).one_or_none()
        if row is None or row.ending != VisitEnding.COMPLETED:
            raise NotAllowedError("these questions come after the task")
        if row.at is not None:
            return  # decided before; sending the form again changes nothing
        keep_decision(db, database.insert, row.id, ORIGIN, text, now, agreed=agreed, sensitive=sensitive)
        if rows:
            db.execute(sa.insert(profiles), [{"participant": row.id, **line} for line in rows])

    database.write(work)


def keep_decision(
    db: sa.Connection,
    insert: Any,
    participant: int,
    origin: str,
    text: ConsentText,
    now: float,
    *,
    agreed: bool,
    sensitive: bool,
) -> None:
    """Store whether somebody agreed to being known better, and the words in which they were asked."""
    keep_text(db, insert, text, now)
    values = {"agreed": agreed, "sensitive": agreed and sensitive, "version": text.version, "at": now}
    statement = insert(profile_consents).values(participant=participant, origin=origin, **values)
    db.execute(statement.on_conflict_do_update(index_elements=["participant", "origin"], set_=values))


def erase_profile(database: SurveyStore, token: str, now: float) -> None:
    """Erase all that is known of somebody beside their answers; what they agreed to ends with it."""

    def work(db: sa.Connection) -> None:
        row = db.execute(_state(token)).one_or_none()
        if row is None:
            raise NotAllowedError("your session has expired; please open the link again")
        db.execute(sa.delete(profiles).where(profiles.c.participant == row.id))
        ended = sa.update(profile_consents).where(profile_consents.c.participant == row.id)
        db.execute(ended.values(agreed=False, sensitive=False, at=now))

    database.write(work)
    database.forget_erased()


def _state(token: str) -> Any:
    """Select the participant with the time of their decision about the questionnaire, NULL before it."""
    decisions = sa.and_(profile_consents.c.participant == participants.c.id, profile_consents.c.origin == ORIGIN)
    return (
        sa.select(participants.c.id, participants.c.ending, profile_consents.c.at)
        .select_from(participants.outerjoin(profile_consents, decisions))
        .where(participants.c.token == token)
    )
