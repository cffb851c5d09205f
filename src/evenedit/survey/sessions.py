"""The survey service: it takes participants through the survey and stores every answer.

    arrive -> guide -> check -> consent -> (choose) -> task -> done

All calls are thread-safe and return only after what they acknowledge is on disk. Nothing returned to a page names a
group, an editor, a condition or a gold item: ids are opaque, so a participant may see all of it.

What happens in concurrent and unusual cases (each has its test):

- The same person again, in another tab or on another device: the same visit, the same task, the same answers. Where
  nobody signed the id in the link, a task is opened in another browser by its resume code only.
- Two tabs: both may save; for each question the answer with the highest sequence number stays. Submitting twice has
  the effect of submitting once; after that, saves are refused.
- A duplicate or an older answer that arrives late: nothing changes, and the number that is stored is returned.
- A slot expires `seat_minutes` after the last answer. Until somebody else takes it, its holder can go on. Once it is
  taken, the holder may still finish and gets the completed ending (the work was done), in another free slot of the
  task if there is one, else as an extra: kept and exported as such, but not counted, so no item has too many raters.
- A slot that was given back (returned on the platform, or released by an admin) and then finished: the same.
- Two or more failed instructed checks: the visit ends with failed_checks, the answers are kept but not counted, and the
  slot is open again.
- Withdrawal: the participant's row, answers and order are deleted and the slot is open again; the cookie is unknown
  from then on. Who comes back afterwards is a new participant.
- A preview (`survey.previews`): the same pages without a slot; it never counts and gets no code.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import numpy as np
import sqlalchemy as sa

from evenedit.config.study_file import StudyFile, SurveySection
from evenedit.core.errors import EvenEditError
from evenedit.core.records import ConditionKind, Question
from evenedit.storage.store import Store
from evenedit.storage.survey_schema import (
    OF_ONE_PERSON,
    PREVIEW,
    answers,
    displayed,
    items,
    log,
    participants,
    slots,
)
from evenedit.storage.survey_store import SurveyStore, note
from evenedit.survey import previews, retention
from evenedit.survey.allocation import lay_out
from evenedit.survey.consent import ConsentText, keep_consent
from evenedit.survey.participant_tasks import ParticipantTasks
from evenedit.survey.platforms import Arrivals
from evenedit.survey.questionnaire import PLATFORM, keep_decision, platform_questions
from evenedit.survey.questions import checks, heeded
from evenedit.survey.slots import Slots
from evenedit.survey.tasks import Material, order
from evenedit.survey.visits import (
    Arrival,
    Completion,
    IncompleteTaskError,
    NotAllowedError,
    ParticipantItem,
    ResumeCodeRequiredError,
    TaskCard,
    Visit,
    VisitEnding,
    VisitStage,
)

TRIES = 2
"""How often the comprehension check may be taken."""
LETTERS = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
LARGEST = 2**53
"""Sequence numbers and milliseconds stay below this, as in a browser."""


class SurveyService:
    """Everything the participants of one study can do."""

    def __init__(
        self,
        database: SurveyStore,
        section: SurveySection,
        file: StudyFile,
        store: Store,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.database = database
        self.section = section
        self.file = file
        self.clock = clock
        requests = {i: r for i, r in store.requests().items() if r.condition.kind is not ConditionKind.NULL_PAIR}
        material = Material(requests, store.edits())
        if database.writable:
            retention.enforce(database, section, clock(), file.rubric)
            lay_out(database, section, material, file, store)
        self.participant_tasks = ParticipantTasks(database, material, file, store)
        self.slots = Slots(section.seat_minutes, clock)
        self.arrivals = Arrivals(section.platform, database.key, clock)
        self._state, self._keep, self._stored = map(database.prepared, (_STATE, _keep(database.insert), _STORED))

    @classmethod
    def open(
        cls, file: StudyFile, store: Store, clock: Callable[[], float] = time.time, *, write: bool = True
    ) -> SurveyService:
        """Open a study's survey; the first time, draw the cases and lay out tasks and slots.

        With `write=False` it is read-only, and can be opened while a server runs.
        """
        section = file.sections.survey
        if section is None:
            raise EvenEditError("study.toml has no [survey]; add this table to collect ratings by people")
        database = SurveyStore(file.folder, file.sections.store.url, write=write)
        try:
            return cls(database, section, file, store, clock)
        except BaseException:
            database.close()
            raise

    def close(self) -> None:
        """Finish writing and let go of the database."""
        self.database.close()

    # -- stages --------------------------------------------------------------------------------------------

    def arrive(self, arrival: Arrival, token: str | None = None) -> Visit:
        """Begin or continue a visit; the same person comes back to the same visit, on any device.

        `token` is the browser's cookie, "" for none. If the platform has not signed the link, anybody may have written
        the id into it: without the visit's token a task is then not opened (ResumeCodeRequiredError), and a visit
        without a task gets a new token, so that two people who know an id never share a visit. None: no check.

        Without a free slot a new visit ends at once (no_seat) rather than after the guide; it opens again when the
        participant comes back and a slot has become free.
        """
        survey = arrival.survey or self.section.surveys[0]
        if survey not in self.section.surveys or retention.is_over(self.section, self.clock()):
            raise NotAllowedError("this survey is not open")
        if not arrival.participant or len(arrival.participant) > 200:
            raise NotAllowedError("the link lacks a participant id")

        def work(db: sa.Connection) -> Visit:
            same_person = sa.and_(
                participants.c.survey == survey,
                participants.c.platform == arrival.platform,
                participants.c.external == arrival.participant,
            )
            row = db.execute(sa.select(participants).where(same_person).with_for_update()).one_or_none()
            free = arrival.platform == PREVIEW or self.slots.free(db, survey) > 0
            if row is None:
                if arrival.platform == PREVIEW:
                    previews.make_room(db, self.clock())
                values = {
                    "survey": survey,
                    "platform": arrival.platform,
                    "external": arrival.participant,
                    "study": arrival.study,
                    "session": arrival.session,
                    "token": secrets.token_urlsafe(32),
                    "resume": _resume_code(),
                    "pseudonym": self.database.pseudonym(survey, arrival.platform, arrival.participant),
                    "stage": VisitStage.GUIDE if free else VisitStage.DONE,
                    "ending": None if free else VisitEnding.NO_SLOT,
                    "tries": 0,
                    "arrived": self.clock(),
                }
                row = db.execute(sa.insert(participants).values(values).returning(participants)).one()
                return _visit(row)
            if not arrival.signed and token is not None and token != row.token:
                if row.stage in (VisitStage.TASK, VisitStage.DONE) and row.ending != VisitEnding.NO_SLOT:
                    raise ResumeCodeRequiredError
                row = self._move(db, row.id, token=secrets.token_urlsafe(32))
            if row.ending == VisitEnding.NO_SLOT and free:
                stage = VisitStage.CONSENT if row.consented else VisitStage.GUIDE
                row = self._move(db, row.id, stage=stage, ending=None)
            return _visit(row)

        return self.database.write(work)

    def resume_code(self, token: str) -> str:
        """Return a code that resumes the visit on another device, without the platform's link."""
        row = self.database.row(sa.select(participants.c.resume).where(participants.c.token == token))
        return "" if row is None else str(row.resume)

    def resume(self, code: str) -> Visit | None:
        """Return the visit of a resume code; spaces, dashes and case are ignored."""
        plain = "".join(c for c in code.upper() if c.isalnum())
        tidy = "-".join(plain[i : i + 4] for i in range(0, len(plain), 4))
        return self._visit_where(participants.c.resume == tidy)

    def visit(self, token: str) -> Visit | None:
        """Return the visit of a cookie; None for an unknown cookie, or after withdrawal."""
        return self._visit_where(participants.c.token == token)

    def read_guide(self, token: str) -> Visit:
        """Move a visit from the guide to the comprehension check."""

        def work(db: sa.Connection, row: Any) -> Any:
            return self._move(db, row.id, stage=VisitStage.CHECK) if row.stage == VisitStage.GUIDE else row

        return self._step(token, work)

    def check_questions(self, survey: int) -> list[Question]:
        """Return the comprehension check of a survey, without its right answers."""
        return [check.question for check in checks(survey, self.file.rubric)]

    def check(self, token: str, answers: Mapping[str, int]) -> Visit:
        """Mark the comprehension check; one more try is allowed, then the visit ends screened out."""

        def work(db: sa.Connection, row: Any) -> Any:
            if row.stage != VisitStage.CHECK:
                return row
            after: dict[str, Any] = {}
            if all(answers.get(check.question.id) == check.right for check in checks(row.survey, self.file.rubric)):
                after = {"stage": VisitStage.CONSENT}
            elif row.tries + 1 == TRIES:
                after = {"stage": VisitStage.DONE, "ending": VisitEnding.SCREENED_OUT}
            return self._move(db, row.id, tries=row.tries + 1, **after)

        return self._step(token, work)

    def tries_left(self, token: str) -> int:
        """Return how often the comprehension check may still be taken."""
        row = self.database.row(sa.select(participants.c.tries).where(participants.c.token == token))
        return 0 if row is None else max(0, TRIES - int(row.tries))

    def consent(
        self,
        token: str,
        agreed: bool,
        text: ConsentText | None = None,
        *,
        profile: bool = False,
        sensitive: bool = False,
    ) -> Visit:
        """Record the decision with its time, and with the text that was shown; without consent the visit ends.

        With it the next free slot is assigned at once, unless the study has the published dashboard to choose from.
        `profile` and `sensitive`: they also agree to what the platform knows of them being used, ethnicity included.
        """

        def work(db: sa.Connection, row: Any) -> Any:
            if row.stage != VisitStage.CONSENT:
                return row
            if not agreed:
                return self._move(db, row.id, stage=VisitStage.DONE, ending=VisitEnding.NO_CONSENT)
            row = self._move(db, row.id, consented=self.clock(), stage=VisitStage.CHOOSE)
            if text is not None:
                keep_consent(db, self.database.insert, row.id, text, self.clock())
            if text is not None and platform_questions(self.section):
                decided = {"agreed": profile, "sensitive": sensitive}
                keep_decision(db, self.database.insert, row.id, PLATFORM, text, self.clock(), **decided)
            return row if self.section.dashboard else self._assign(db, row, None)

        return self._step(token, work)

    def tasks(self, survey: int = 0, *, preview: bool = False) -> list[TaskCard]:
        """Return the dashboard of the published design; by default of the first survey.

        To a preview every task is open.
        """
        survey = survey or self.section.surveys[0]
        free = sa.func.sum(sa.case((self.slots.is_free(), 1), else_=0))
        counts = sa.select(items.c.task, sa.func.count().label("items")).where(items.c.survey == survey)
        sizes = {row.task: row.items for row in self.database.rows(counts.group_by(items.c.task))}
        query = sa.select(slots.c.task, free.label("free")).where(slots.c.survey == survey).group_by(slots.c.task)
        return [
            TaskCard(row.task, sizes[row.task], preview or row.free > 0)
            for row in self.database.rows(query.order_by(slots.c.task))
        ]

    def claim(self, token: str, task: int | None = None) -> Visit:
        """Take a slot atomically: the next one, or one of the chosen task; without a free slot the visit ends.

        Claiming again changes nothing. A chosen task that was just filled is refused while another has a free slot.
        """

        def work(db: sa.Connection, row: Any) -> Any:
            if row.stage in (VisitStage.TASK, VisitStage.DONE):
                return row
            if row.stage != VisitStage.CHOOSE:
                raise NotAllowedError("please read the guide and decide about taking part first")
            return self._assign(db, row, task)

        return self._step(token, work)

    # -- the task ------------------------------------------------------------------------------------------

    def items(self, token: str) -> list[ParticipantItem]:
        """Return all items of the participant's task, in their order, with answers so far."""
        task = self.participant_tasks.of(token)
        saved: dict[int, dict[tuple[str, str], int]] = {}
        for row in self.database.rows(sa.select(answers).where(answers.c.participant == task.participant)):
            saved.setdefault(row.item, {})[row.slot, row.question] = row.value
        return [replace(page.public, answers=saved.get(page.item, {})) for page in task.pages]

    def sequence(self, token: str) -> int:
        """Return the highest stored sequence number of this participant; a page continues from it."""
        participant = sa.select(participants.c.id).where(participants.c.token == token).scalar_subquery()
        row = self.database.row(sa.select(sa.func.max(answers.c.sequence)).where(answers.c.participant == participant))
        return int(row[0] or 0) if row else 0

    def picture(self, token: str, picture: str) -> bytes | None:
        """Return a picture of the participant's task as JPEG without metadata; None for any other id."""
        return self.participant_tasks.picture(token, picture)

    def save(
        self, token: str, item: str, slot: str, question: str, value: int, sequence: int, milliseconds: int = 0
    ) -> int:
        """Keep one answer; returns the highest sequence number stored for it.

        `sequence` counts the participant's answers in the order they were given: a late duplicate or an older
        answer never replaces a newer one. `milliseconds`: how long the item had been on the screen, all looks at it
        together, when this was answered; the largest of an item is the time it took.
        """
        return self.saving(token, item, slot, question, value, sequence, milliseconds).result()

    def saving(
        self, token: str, item: str, slot: str, question: str, value: int, sequence: int, milliseconds: int = 0
    ) -> Future[int]:
        """Like `save`, without blocking: the future is done once the answer is on disk."""
        task = self.participant_tasks.of(token)
        page = task.by_id.get(item)
        known = page.questions.get((slot, question)) if page else None
        if page is None or known is None:
            raise NotAllowedError("this item is not part of your task")
        if type(value) is not int or not 1 <= value <= len(known.labels):
            raise NotAllowedError(f"an answer is a whole number from 1 to {len(known.labels)}")
        if not 0 <= sequence < LARGEST or not 0 <= milliseconds < LARGEST:
            raise NotAllowedError("this answer has an invalid sequence number")
        at = self.clock()
        row = {
            "participant": task.participant,
            "item": page.item,
            "slot": slot,
            "question": question,
            "value": value,
            "sequence": sequence,
            "milliseconds": milliseconds,
            "at": at,
        }

        def work(db: sa.Connection) -> int:
            state = self._state(db, {"token": token}).one_or_none()
            if state is None or state.stage != VisitStage.TASK:
                raise NotAllowedError("this task is submitted; its answers can no longer be changed")
            if state.platform != PREVIEW:
                self.slots.renew(db, state)
            stored = self._keep(db, row).scalar_one_or_none()
            if stored is None:  # what is stored is newer, or the same
                stored = self._stored(db, row).scalar_one()
            return int(stored)

        return self.database.later(work)

    def submit(self, token: str) -> Visit:
        """Finish the task; raises IncompleteTaskError while answers are missing. Submitting again changes nothing."""
        done = self.visit(token)
        if done is not None and done.stage is VisitStage.DONE:
            return done
        task = self.participant_tasks.of(token)

        def work(db: sa.Connection, row: Any) -> Any:
            if row.stage != VisitStage.TASK:
                return row
            query = sa.select(answers).where(answers.c.participant == row.id)
            saved = {(a.item, a.slot, a.question): a.value for a in db.execute(query)}
            missing = [
                page.public.number
                for page in task.pages
                if any((page.item, *question) not in saved for question in page.questions)
            ]
            if missing:
                raise IncompleteTaskError(missing)
            failed = sum(
                any(
                    saved[page.item, slot, column] != heeded(column, page.public.instructed or 0, self.file.rubric)
                    for slot, column in page.questions
                )
                for page in task.pages
                if page.public.instructed is not None
            )
            ending = VisitEnding.COMPLETED
            if failed >= self.section.exclude.instructed_failed:
                ending = VisitEnding.FAILED_CHECKS
                self.slots.leave(db, row.id)
            elif row.platform != PREVIEW:
                self.slots.keep(db, row.id, row.survey, row.task)
            return self._move(db, row.id, stage=VisitStage.DONE, ending=ending, submitted=self.clock())

        return self._step(token, work)

    def completion(self, token: str) -> Completion | None:
        """Code or redirect of a visit that has ended; a preview has neither."""
        row = self.database.row(sa.select(participants).where(participants.c.token == token))
        if row is None or row.ending is None:
            return None
        if row.platform == PREVIEW:
            return Completion(VisitEnding(row.ending), "", None)
        return self._completion(VisitEnding(row.ending), row.platform, row.external, row.study, row.session)

    def farewell(self, ending: VisitEnding) -> Completion:
        """Code or redirect of an ending whose visit no longer exists, such as after withdrawal."""
        return self._completion(ending, self.section.platform.kind, "", "", "")

    def withdraw(self, token: str) -> None:
        """Erase the participant's answers and platform id, and free the slot."""
        self.erase(participants.c.token == token, "participant")

    # -- internals -----------------------------------------------------------------------------------------

    def _step(self, token: str, work: Callable[[sa.Connection, Any], Any]) -> Visit:
        """Do a piece of work on a participant's row, and return the visit as it left it."""
        query = sa.select(participants).where(participants.c.token == token).with_for_update()

        def step(db: sa.Connection) -> Visit:
            row = db.execute(query).one_or_none()
            if row is None:
                raise NotAllowedError("your session has expired; please open the link again")
            return _visit(work(db, row))

        return self.database.write(step)

    def _visit_where(self, known: sa.ColumnElement[bool]) -> Visit | None:
        row = self.database.row(sa.select(participants).where(known))
        return None if row is None else _visit(row)

    def _move(self, db: sa.Connection, ident: int, **values: Any) -> Any:
        change = sa.update(participants).where(participants.c.id == ident).values(**values)
        return db.execute(change.returning(participants)).one()

    def _assign(self, db: sa.Connection, row: Any, task: int | None) -> Any:
        """Give a participant a slot and draw the order of items and outputs; without a free slot the visit ends."""
        if row.platform == PREVIEW:
            taken = previews.choose_task(db, row.survey, task)
        else:
            taken = self.slots.take(db, row.id, row.survey, task)
        if taken is None:
            if task is not None and self.slots.free(db, row.survey) > 0:
                raise NotAllowedError("that task has just been taken; please choose another")
            return self._move(db, row.id, stage=VisitStage.DONE, ending=VisitEnding.NO_SLOT)
        query = sa.select(items).where(items.c.survey == row.survey, items.c.task == taken).order_by(items.c.id)
        pages = db.execute(query).all()
        rng = np.random.default_rng([self.file.sections.study.seed, row.survey, row.id])
        places = {number: place for place, number in enumerate(order([p.kind for p in pages], rng), 1)}
        db.execute(
            sa.insert(displayed),
            [
                {
                    "participant": row.id,
                    "item": page.id,
                    "place": places[number],
                    "swapped": len(page.outputs) == 2 and bool(rng.integers(2)),
                }
                for number, page in enumerate(pages)
            ],
        )
        return self._move(db, row.id, stage=VisitStage.TASK, task=taken, claimed=self.clock())

    def _completion(self, ending: VisitEnding, platform: str, participant: str, study: str, session: str) -> Completion:
        section = self.section.endings.get(ending.value)
        code = (section.code if section else "") or self.participant_tasks.opaque("code", ending.value)[:8].upper()
        redirect = section.redirect if section else ""
        if not redirect and platform == "prolific":
            redirect = "https://app.prolific.com/submissions/complete?cc={code}"
        filled = {"code": code, "participant": participant or "", "study": study, "session": session}
        for name, text in filled.items():
            redirect = redirect.replace("{" + name + "}", quote(text, safe=""))
        return Completion(ending, code, redirect or None)

    # -- staff ---------------------------------------------------------------------------------------------

    def erase(self, where: sa.ColumnElement[bool], actor: str) -> bool:
        """Delete a participant's row, answers and item order, and free the slot; the log keeps no id."""

        def work(db: sa.Connection) -> tuple[str] | None:
            row = db.execute(sa.select(participants).where(where).with_for_update()).one_or_none()
            if row is None:
                return None
            self.slots.leave(db, row.id)
            for table in OF_ONE_PERSON:
                db.execute(sa.delete(table).where(table.c.participant == row.id))
            db.execute(sa.delete(participants).where(participants.c.id == row.id))
            for line in db.execute(sa.select(log)).all():
                if line.detail.get("participant") == row.pseudonym:
                    forgotten = {**line.detail, "participant": "withdrawn"}
                    db.execute(sa.update(log).where(log.c.id == line.id).values(detail=forgotten))
            what = "deleted a preview" if row.platform == PREVIEW else "erased a participant"
            note(db, self.clock(), actor, what, {"survey": row.survey})
            return (str(row.token),)

        token = self.database.write(work)
        if token is None:
            return False
        self.participant_tasks.forget(*token)
        self.database.forget_erased()
        return True


_STATE: Any = (
    sa.select(
        participants.c.id,
        participants.c.platform,
        participants.c.stage,
        participants.c.survey,
        participants.c.task,
        slots.c.id.label("slot_id"),
        slots.c.expires,
    )
    .select_from(participants.outerjoin(slots, slots.c.participant == participants.c.id))
    .where(participants.c.token == sa.bindparam("token"))
    .with_for_update(read=True, of=participants)  # saves under way and a submission wait for each other
)
_STORED: Any = sa.select(answers.c.sequence).where(
    *(answers.c[name] == sa.bindparam(name) for name in ("participant", "item", "slot", "question"))
)


def _keep(insert: Any) -> Any:
    """Store an answer unless a newer one is there."""
    statement = insert(answers)
    newer = {name: statement.excluded[name] for name in ("value", "sequence", "milliseconds", "at")}
    return statement.on_conflict_do_update(
        index_elements=["participant", "item", "slot", "question"],
        set_=newer,
        where=answers.c.sequence < statement.excluded.sequence,
    ).returning(answers.c.sequence)


def _resume_code() -> str:
    """Sixteen letters and digits that cannot be mistaken for one another: 80 bits."""
    return "-".join("".join(secrets.choice(LETTERS) for _ in range(4)) for _ in range(4))


def _visit(row: Any) -> Visit:
    ending = VisitEnding(row.ending) if row.ending else None
    return Visit(row.token, row.survey, VisitStage(row.stage), ending, row.platform == PREVIEW)
