"""What staff see and decide about a survey. Everybody is known by pseudonym here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from evenedit.core.errors import EvenEditError
from evenedit.storage.survey_schema import PREVIEW, answers, items, log, participants, slots
from evenedit.storage.survey_store import note
from evenedit.survey import answers as people
from evenedit.survey.quality import Quality
from evenedit.survey.sessions import SurveyService
from evenedit.survey.tasks import CASE, GOLD, INSTRUCTED
from evenedit.survey.visits import VisitEnding, VisitStage


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """The progress of one task."""

    survey: int
    task: int
    cases: int
    gold: int
    instructed: int
    """Its pages by kind."""
    slots: int
    done: int
    taken: int
    free: int
    """Its slots by state; an expired slot is free."""


@dataclass(frozen=True, slots=True)
class ParticipantStatus:
    """How far one participant is, and how carefully they answered."""

    pseudonym: str
    survey: int
    platform: str
    task: int | None
    stage: VisitStage
    ending: VisitEnding | None
    has_slot: bool
    """Whether they hold a slot of the task. Answers submitted without one are extra and not counted."""
    arrived: float
    consented: float | None
    claimed: float | None
    submitted: float | None
    answers: int
    quality: Quality | None
    """None before the first answer, and for a preview."""


_COPIED = ("pseudonym", "survey", "platform", "task", "arrived", "consented", "claimed", "submitted")


class SurveyAdmin:
    """Progress, participants and staff decisions of one survey."""

    def __init__(self, service: SurveyService) -> None:
        self._service = service
        self.database = service.database

    def progress(self) -> list[TaskProgress]:
        """Return all tasks with their pages and slots."""
        pages: dict[tuple[int, int], dict[str, int]] = {}
        query = sa.select(items.c.survey, items.c.task, items.c.kind, sa.func.count().label("count"))
        for r in self.database.rows(query.group_by(items.c.survey, items.c.task, items.c.kind)):
            pages.setdefault((r.survey, r.task), {})[r.kind] = r.count
        free = sa.case((self._service.slots.is_free(), 1), else_=0)
        done = sa.case((sa.and_(slots.c.participant.is_not(None), slots.c.expires.is_(None)), 1), else_=0)
        counts = sa.select(
            slots.c.survey,
            slots.c.task,
            sa.func.count().label("all"),
            sa.func.sum(free).label("free"),
            sa.func.sum(done).label("done"),
        ).group_by(slots.c.survey, slots.c.task)
        return [
            TaskProgress(
                r.survey,
                r.task,
                cases=pages[r.survey, r.task].get(CASE, 0),
                gold=pages[r.survey, r.task].get(GOLD, 0),
                instructed=pages[r.survey, r.task].get(INSTRUCTED, 0),
                slots=r.all,
                done=int(r.done),
                taken=r.all - int(r.done) - int(r.free),
                free=int(r.free),
            )
            for r in self.database.rows(counts.order_by(slots.c.survey, slots.c.task))
        ]

    def people(self) -> list[ParticipantStatus]:
        """Return all participants except previews, with the quality of their answers under the study's rules."""
        known = {
            q.rater: q
            for q in people.qualities(
                people.read(self.database, rubric=self._service.file.rubric), self._service.section
            )
        }
        return self._statuses(participants.c.platform != PREVIEW, known)

    def previews(self) -> list[ParticipantStatus]:
        """Return all previews."""
        return self._statuses(participants.c.platform == PREVIEW, {})

    def _statuses(self, which: sa.ColumnElement[bool], known: Mapping[str, Quality]) -> list[ParticipantStatus]:
        answered = (
            sa.select(answers.c.participant, sa.func.count().label("count")).group_by(answers.c.participant).subquery()
        )
        query = (
            sa.select(participants, slots.c.id.label("slot_id"), answered.c.count.label("given"))
            .select_from(participants)
            .outerjoin(slots, slots.c.participant == participants.c.id)
            .outerjoin(answered, answered.c.participant == participants.c.id)
            .where(which)
            .order_by(participants.c.id)
        )
        return [
            ParticipantStatus(
                **{name: r._mapping[name] for name in _COPIED},
                stage=VisitStage(r.stage),
                ending=VisitEnding(r.ending) if r.ending else None,
                has_slot=r.slot_id is not None,
                answers=r.given or 0,
                quality=known.get(r.pseudonym),
            )
            for r in self.database.rows(query)
        ]

    def taken_part(self, survey: int) -> int:
        """Return how many people have arrived for a survey, without previews."""
        arrivals = sa.and_(participants.c.survey == survey, participants.c.platform != PREVIEW)
        return int(self.database.rows(sa.select(sa.func.count()).select_from(participants).where(arrivals))[0][0])

    def endings(self) -> dict[str, int]:
        """Count visits by ending; "" for those in progress. Previews are not counted."""
        query = sa.select(participants.c.ending, sa.func.count().label("count")).group_by(participants.c.ending)
        return {r.ending or "": r.count for r in self.database.rows(query.where(participants.c.platform != PREVIEW))}

    def release(self, pseudonym: str, actor: str) -> bool:
        """Free a participant's slot; the answers are kept but no longer counted. Returns False if there was no slot.

        A participant who has not submitted yet may still finish, and is counted if a slot of the task is free then.
        """

        def work(db: sa.Connection) -> bool:
            row = self._row(db, pseudonym)
            left = self._service.slots.leave(db, row.id)
            note(db, self._service.clock(), actor, "released a slot", {"participant": pseudonym, "had one": left})
            return left

        return self.database.write(work)

    def withdraw(self, pseudonym: str, actor: str) -> None:
        """Erase the answers, item order and ids of a participant who asked for it, and free the slot."""
        if not self._service.erase(participants.c.pseudonym == pseudonym, actor):
            raise EvenEditError(f"no participant is called '{pseudonym}' here")

    def withdraw_external(self, platform: str, participant: str, actor: str) -> int:
        """Erase a person by their id on the platform, in every survey; returns the number of visits erased."""
        query = sa.select(participants.c.pseudonym).where(
            participants.c.platform == platform, participants.c.external == participant
        )
        pseudonyms = [r.pseudonym for r in self.database.rows(query)]
        for pseudonym in pseudonyms:
            self.withdraw(pseudonym, actor)
        return len(pseudonyms)

    def note(self, actor: str, action: str, detail: Mapping[str, Any] | None = None) -> None:
        """Add a line to the survey's log."""
        self.database.write(lambda db: note(db, self._service.clock(), actor, action, detail or {}))

    def log(self, limit: int = 200) -> list[dict[str, Any]]:
        """Return the last lines of the survey's log, newest first."""
        return [dict(r._mapping) for r in self.database.rows(sa.select(log).order_by(log.c.id.desc()).limit(limit))]

    def _row(self, db: sa.Connection, pseudonym: str) -> Any:
        query = sa.select(participants).where(participants.c.pseudonym == pseudonym)
        row = db.execute(query.with_for_update()).one_or_none()
        if row is None:
            raise EvenEditError(f"no participant is called '{pseudonym}' here")
        return row
