"""The front desk of a survey: who sits where, and every answer they gave.

    arrive -> guide -> check -> consent -> (choose) -> task -> done

All calls are thread-safe and return only after what they acknowledge is on disk. Nothing returned here names a group,
an editor, a condition or a gold item: ids are opaque, so a page can show all of it to a participant.

What happens when things cross (each has its test):

- The same person again, in another tab or on another device: the same visit, the same task, the same answers.
- Two tabs: both may save; for each question the answer with the highest sequence number stays. Submitting twice is
  submitting once; after that, saves are refused.
- A duplicate or an older answer that arrives late: nothing changes, and the number that is stored is returned.
- A seat expires `seat_minutes` after the last answer. Until somebody else takes it, its holder just goes on. Once it is
  taken, the holder may still finish and gets the completed ending (the work was done), in another free seat of the
  task if there is one, else as an extra: kept and exported as such, but not counted, so no item has too many raters.
- A seat that was given back (returned on the platform, or released by an admin) and then finished: the same.
- Two or more failed instructed checks: the visit ends with failed_checks, the answers are kept but not counted, and the
  seat is open again.
- Withdrawal: the participant's row, answers and order are deleted and the seat is open again; the cookie is unknown
  from then on. Who comes back afterwards is a new participant.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import sqlalchemy as sa

from evenedit.records import SIMULATED, Prompt, Question, UserError, digest, is_simulated
from evenedit.study import SurveySection
from evenedit.survey.cases import sampled
from evenedit.survey.database import Database
from evenedit.survey.questions import asked, checks
from evenedit.survey.tables import answers, facts, items, log, participants, seats, shown
from evenedit.survey.tasks import INSTRUCTED, Material, compose, order

if TYPE_CHECKING:
    from evenedit.pipeline import Pipeline

TRIES = 2
"""How often the comprehension check may be taken."""
RENEW = 60.0
"""Seconds: a seat's expiry is moved at most this often."""
PICTURES = 256
"""Encoded pictures kept in memory."""
LARGEST = 2**53
"""Sequence numbers and milliseconds stay below this, as in a browser."""


class Stage(StrEnum):
    """Where a participant is."""

    GUIDE = "guide"
    CHECK = "check"
    CONSENT = "consent"
    CHOOSE = "choose"
    TASK = "task"
    DONE = "done"


class Ending(StrEnum):
    """How a visit ended; each has its own completion code or redirect."""

    COMPLETED = "completed"
    NO_CONSENT = "no_consent"
    NO_SEAT = "no_seat"
    SCREENED_OUT = "screened_out"
    FAILED_CHECKS = "failed_checks"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class Arrival:
    """Somebody at the door, as a platform introduces them."""

    platform: str
    """prolific, panel or invitation."""
    participant: str
    """The platform's id of the person; kept in the database only."""
    study: str = ""
    session: str = ""
    survey: int = 0
    """Which survey the link names; 0: the study's first."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One participant's way through the survey."""

    token: str
    """Opaque and unguessable; the browser's cookie."""
    survey: int
    """1: five axes for each output; 2: which keeps the identity; 3: who got the role."""
    stage: Stage
    ending: Ending | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """One question to be answered about one item."""

    slot: str
    """A, B, or "" for a question about the item as a whole."""
    question: Question


@dataclass(frozen=True, slots=True)
class Item:
    """One page of the evaluation."""

    number: int
    """1-based place in the participant's task."""
    id: str
    """Opaque, this participant's own."""
    instruction: str
    """What the editor was asked to do; for an instructed check, what to answer."""
    pictures: Mapping[str, str]
    """Opaque picture ids by slot: source (or source_1, source_2), A, B."""
    asked: Sequence[Asked]
    answers: Mapping[tuple[str, str], int]
    """Given so far, by slot and question id."""
    note: str = ""
    """Survey 3: the target role and the gender it is stereotypically coded with."""
    instructed: int | None = None
    """An instructed check, which says so to the participant: the answer it asks for on every question."""


@dataclass(frozen=True, slots=True)
class TaskCard:
    """One task on the dashboard."""

    number: int
    items: int
    open: bool


@dataclass(frozen=True, slots=True)
class _Page:
    """One item as one participant sees it."""

    item: int
    public: Item
    outputs: Mapping[str, str]
    """Request ids by slot."""
    hashes: Mapping[str, str]
    """Stored pictures by opaque picture id."""
    questions: Mapping[tuple[str, str], Question]


@dataclass(frozen=True, slots=True)
class _Sheet:
    """One participant's task; it never changes once it was drawn."""

    participant: int
    pages: Sequence[_Page]
    by_id: Mapping[str, _Page]


@dataclass(frozen=True, slots=True)
class Completion:
    """What a participant takes home."""

    ending: Ending
    code: str
    redirect: str | None


class Desk:
    """The desk of one study's survey."""

    def __init__(
        self,
        database: Database,
        section: SurveySection,
        pipeline: Pipeline,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.database = database
        self.section = section
        self._pipeline = pipeline
        self._clock = clock
        self._sources = pipeline.store.sources()
        self._material = Material(pipeline.store.requests(), pipeline.store.edits())
        self._prepare()
        self._key = bytes.fromhex(str(database.fact("key")))
        self._keep = _keep(database.insert)
        self._sheets: dict[str, _Sheet] = {}
        self._jpeg = lru_cache(PICTURES)(self._encode)

    @classmethod
    def open(cls, pipeline: Pipeline, clock: Callable[[], float] = time.time) -> Desk:
        """The desk of a study: draws the cases and lays out tasks and seats on the first day."""
        section = pipeline.study.file.survey
        if section is None:
            raise UserError("study.toml has no [survey]; add the table to ask people")
        database = Database(pipeline.study.folder, pipeline.study.file.store.url)
        try:
            return cls(database, section, pipeline, clock)
        except BaseException:
            database.close()
            raise

    def close(self) -> None:
        """Finish writing and let go of the database."""
        self.database.close()

    # -- the way through -----------------------------------------------------------------------------------

    def arrive(self, arrival: Arrival) -> Visit:
        """Greet a participant; the same person comes back to the same visit, on any device.

        A newcomer who finds no free seat is told at once (the visit ends with no_seat) rather than after the guide;
        coming back when a seat has returned opens the visit again.
        """
        survey = arrival.survey or self.section.surveys[0]
        if survey not in self.section.surveys:
            raise Refused("this survey is not open")
        if not arrival.participant or len(arrival.participant) > 200:
            raise Refused("the link lacks a participant id")

        def work(db: sa.Connection) -> Visit:
            mine = sa.and_(
                participants.c.survey == survey,
                participants.c.platform == arrival.platform,
                participants.c.external == arrival.participant,
            )
            row = db.execute(sa.select(participants).where(mine).with_for_update()).one_or_none()
            free = self._free_seats(db, survey) > 0
            if row is None:
                values = {
                    "survey": survey,
                    "platform": arrival.platform,
                    "external": arrival.participant,
                    "study": arrival.study,
                    "session": arrival.session,
                    "token": secrets.token_urlsafe(32),
                    "pseudonym": self.pseudonym(survey, arrival.platform, arrival.participant),
                    "stage": Stage.GUIDE if free else Stage.DONE,
                    "ending": None if free else Ending.NO_SEAT,
                    "tries": 0,
                    "arrived": self._clock(),
                }
                row = db.execute(sa.insert(participants).values(values).returning(participants)).one()
            elif row.ending == Ending.NO_SEAT and free:
                again = Stage.CONSENT if row.consented else Stage.GUIDE
                row = self._move(db, row.id, stage=again, ending=None)
            return _visit(row)

        return self.database.write(work)

    def visit(self, token: str) -> Visit | None:
        """The visit of a cookie; None for one we never gave out, or after withdrawal."""
        row = self.database.row(sa.select(participants).where(participants.c.token == token))
        return None if row is None else _visit(row)

    def read_guide(self, token: str) -> Visit:
        """The guide was read; on to the comprehension check."""

        def work(db: sa.Connection) -> Visit:
            row = self._mine(db, token)
            return _visit(self._move(db, row.id, stage=Stage.CHECK) if row.stage == Stage.GUIDE else row)

        return self.database.write(work)

    def check_questions(self, survey: int) -> list[Question]:
        """The comprehension check of a survey, without its right answers."""
        return [check.question for check in checks(survey)]

    def check(self, token: str, answers: Mapping[str, int]) -> Visit:
        """Mark the comprehension check; one more try is allowed, then the visit ends screened out."""

        def work(db: sa.Connection) -> Visit:
            row = self._mine(db, token)
            if row.stage != Stage.CHECK:
                return _visit(row)
            if all(answers.get(check.question.id) == check.right for check in checks(row.survey)):
                return _visit(self._move(db, row.id, stage=Stage.CONSENT, tries=row.tries + 1))
            if row.tries + 1 < TRIES:
                return _visit(self._move(db, row.id, tries=row.tries + 1))
            return _visit(self._move(db, row.id, tries=row.tries + 1, stage=Stage.DONE, ending=Ending.SCREENED_OUT))

        return self.database.write(work)

    def tries_left(self, token: str) -> int:
        """How often the comprehension check may still be taken."""
        row = self.database.row(sa.select(participants.c.tries).where(participants.c.token == token))
        return 0 if row is None else max(0, TRIES - int(row.tries))

    def consent(self, token: str, agreed: bool) -> Visit:
        """Record the decision with its time; without consent the visit ends.

        With it the next free seat is assigned at once, unless the study has the published dashboard to choose from.
        """

        def work(db: sa.Connection) -> Visit:
            row = self._mine(db, token)
            if row.stage != Stage.CONSENT:
                return _visit(row)
            if not agreed:
                return _visit(self._move(db, row.id, stage=Stage.DONE, ending=Ending.NO_CONSENT))
            row = self._move(db, row.id, consented=self._clock(), stage=Stage.CHOOSE)
            return _visit(row if self.section.dashboard else self._seat(db, row, None))

        return self.database.write(work)

    def tasks(self, survey: int = 0) -> list[TaskCard]:
        """The dashboard of the published design; of the study's first survey unless another is named."""
        survey = survey or self.section.surveys[0]
        free = sa.func.sum(sa.case((self._is_free(), 1), else_=0))
        counts = sa.select(items.c.task, sa.func.count().label("items")).where(items.c.survey == survey)
        sizes = {row.task: row.items for row in self.database.rows(counts.group_by(items.c.task))}
        query = sa.select(seats.c.task, free.label("free")).where(seats.c.survey == survey).group_by(seats.c.task)
        return [
            TaskCard(row.task, sizes[row.task], row.free > 0)
            for row in self.database.rows(query.order_by(seats.c.task))
        ]

    def claim(self, token: str, task: int | None = None) -> Visit:
        """Take a seat, atomically: the next one, or one of the task picked; without a free seat the visit ends.

        Claiming again changes nothing. A picked task that was just filled is refused while another has a seat.
        """

        def work(db: sa.Connection) -> Visit:
            row = self._mine(db, token)
            if row.stage in (Stage.TASK, Stage.DONE):
                return _visit(row)
            if row.stage != Stage.CHOOSE:
                raise Refused("please read the guide and decide about taking part first")
            return _visit(self._seat(db, row, task))

        return self.database.write(work)

    # -- the task ------------------------------------------------------------------------------------------

    def items(self, token: str) -> list[Item]:
        """All items of the participant's task, in their order, with answers so far."""
        sheet = self._sheet(token)
        given: dict[int, dict[tuple[str, str], int]] = {}
        for row in self.database.rows(sa.select(answers).where(answers.c.participant == sheet.participant)):
            given.setdefault(row.item, {})[row.slot, row.question] = row.value
        return [replace(page.public, answers=given.get(page.item, {})) for page in sheet.pages]

    def sequence(self, token: str) -> int:
        """The highest sequence number this participant has stored; a page counts on from here."""
        mine = sa.select(participants.c.id).where(participants.c.token == token).scalar_subquery()
        row = self.database.row(sa.select(sa.func.max(answers.c.sequence)).where(answers.c.participant == mine))
        return int(row[0] or 0) if row else 0

    def picture(self, token: str, picture: str) -> bytes | None:
        """A picture of the participant's own task as JPEG without metadata; None for any other id."""
        for page in self._sheet(token).pages:
            if picture in page.hashes:
                return self._jpeg(page.hashes[picture])
        return None

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
        """`save` for a caller that does not want to block a thread: the future is done once the answer is on disk."""
        sheet = self._sheet(token)
        page = sheet.by_id.get(item)
        known = page.questions.get((slot, question)) if page else None
        if page is None or known is None:
            raise Refused("this item is not part of your task")
        if type(value) is not int or not 1 <= value <= len(known.labels):
            raise Refused(f"an answer is a whole number from 1 to {len(known.labels)}")
        if not 0 <= sequence < LARGEST or not 0 <= milliseconds < LARGEST:
            raise Refused("this answer carries an impossible number")
        at = self._clock()
        row = {
            "participant": sheet.participant,
            "item": page.item,
            "slot": slot,
            "question": question,
            "value": value,
            "sequence": sequence,
            "milliseconds": milliseconds,
            "at": at,
        }

        def work(db: sa.Connection) -> int:
            state = db.execute(_STATE, {"token": token}).one_or_none()
            if state is None or state.stage != Stage.TASK:
                raise Refused("this task is submitted; its answers cannot be changed any more")
            self._stay(db, state, at)
            stored = db.execute(self._keep, row).scalar_one_or_none()
            if stored is None:  # what is stored is newer, or the same
                stored = db.execute(_STORED, row).scalar_one()
            return int(stored)

        return self.database.later(work)

    def submit(self, token: str) -> Visit:
        """Finish the task; raises Incomplete while answers are missing. Submitting again changes nothing."""
        done = self.visit(token)
        if done is not None and done.stage is Stage.DONE:
            return done
        sheet = self._sheet(token)

        def work(db: sa.Connection) -> Visit:
            row = self._mine(db, token)
            if row.stage != Stage.TASK:
                return _visit(row)
            mine = sa.select(answers).where(answers.c.participant == row.id)
            given = {(a.item, a.slot, a.question): a.value for a in db.execute(mine)}
            missing = [
                page.public.number
                for page in sheet.pages
                if any((page.item, *asked_) not in given for asked_ in page.questions)
            ]
            if missing:
                raise Incomplete(missing)
            failed = sum(
                any(given[(page.item, *key)] != page.public.instructed for key in page.questions)
                for page in sheet.pages
                if page.public.instructed is not None
            )
            ending = Ending.FAILED_CHECKS if failed >= self.section.exclude.instructed_failed else Ending.COMPLETED
            if ending is Ending.FAILED_CHECKS:
                self._leave(db, row.id)
            elif self._has_seat(db, row.id) or self._take(db, row, row.task) is not None:
                db.execute(sa.update(seats).where(seats.c.participant == row.id).values(expires=None))
            return _visit(self._move(db, row.id, stage=Stage.DONE, ending=ending, submitted=self._clock()))

        return self.database.write(work)

    def completion(self, token: str) -> Completion | None:
        """Code or redirect of a visit that has ended."""
        row = self.database.row(sa.select(participants).where(participants.c.token == token))
        if row is None or row.ending is None:
            return None
        return self._completion(Ending(row.ending), row.platform, row.external, row.study, row.session)

    def farewell(self, ending: Ending) -> Completion:
        """What an ending gives when there is no visit to ask any more, such as after withdrawal."""
        return self._completion(ending, self.section.platform.kind, "", "", "")

    def withdraw(self, token: str) -> None:
        """Erase the answers and the platform's id, and give the seat back."""
        self._erase(participants.c.token == token)

    # -- inside --------------------------------------------------------------------------------------------

    def pseudonym(self, survey: int, platform: str, participant: str) -> str:
        """The name under which a participant's answers leave the database: a keyed hash, marked where simulated."""
        mark = f"{SIMULATED}person-" if is_simulated(participant) else "person-"
        return mark + self._opaque("pseudonym", survey, platform, participant)[:12]

    def _opaque(self, *what: object) -> str:
        message = "\0".join(str(part) for part in what).encode()
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()[:24]

    def _mine(self, db: sa.Connection, token: str) -> Any:
        row = db.execute(sa.select(participants).where(participants.c.token == token).with_for_update()).one_or_none()
        if row is None:
            raise Refused("this visit is not known here; please open the link again")
        return row

    def _move(self, db: sa.Connection, ident: int, **values: Any) -> Any:
        change = sa.update(participants).where(participants.c.id == ident).values(**values)
        return db.execute(change.returning(participants)).one()

    # seats

    def _is_free(self) -> sa.ColumnElement[bool]:
        return sa.or_(seats.c.participant.is_(None), seats.c.expires < self._clock())

    def _free_seats(self, db: sa.Connection, survey: int, task: int | None = None) -> int:
        query = sa.select(sa.func.count()).select_from(seats).where(seats.c.survey == survey, self._is_free())
        return int(db.execute(query if task is None else query.where(seats.c.task == task)).scalar_one())

    def _has_seat(self, db: sa.Connection, participant: int) -> bool:
        return db.execute(sa.select(seats.c.id).where(seats.c.participant == participant)).first() is not None

    def _take(self, db: sa.Connection, row: Any, task: int | None) -> int | None:
        """A free seat, locked and made the participant's: never-taken ones first, then expired ones."""
        free = sa.select(seats).where(seats.c.survey == row.survey, self._is_free())
        if task is not None:
            free = free.where(seats.c.task == task)
        free = free.order_by(seats.c.participant.is_not(None), seats.c.number, seats.c.task).limit(1)
        while True:
            seat = db.execute(free.with_for_update(skip_locked=True)).one_or_none()
            if seat is None and self._free_seats(db, row.survey, task) == 0:
                return None
            if seat is None:  # all that are free are being claimed at this moment: wait for one to be settled
                seat = db.execute(free.with_for_update()).one_or_none()
            if seat is not None:
                taken = sa.update(seats).where(seats.c.id == seat.id)
                db.execute(taken.values(participant=row.id, expires=self._expiry()))
                return int(seat.task)

    def _expiry(self) -> float:
        return self._clock() + self.section.seat_minutes * 60

    def _stay(self, db: sa.Connection, state: Any, now: float) -> None:
        """A participant who answers keeps the seat, or gets one of the same task back if there is one."""
        if state.seat is None:
            self._take(db, state, state.task)
        elif state.expires is not None and state.expires < now + self.section.seat_minutes * 60 - RENEW:
            db.execute(sa.update(seats).where(seats.c.id == state.seat).values(expires=self._expiry()))

    def _leave(self, db: sa.Connection, participant: int) -> None:
        db.execute(sa.update(seats).where(seats.c.participant == participant).values(participant=None, expires=None))

    def _seat(self, db: sa.Connection, row: Any, task: int | None) -> Any:
        """Seat a participant and draw the order of items and outputs; without a seat the visit ends."""
        taken = self._take(db, row, task)
        if taken is None:
            if task is not None and self._free_seats(db, row.survey) > 0:
                raise Refused("that task has just been taken; please pick another")
            return self._move(db, row.id, stage=Stage.DONE, ending=Ending.NO_SEAT)
        query = sa.select(items).where(items.c.survey == row.survey, items.c.task == taken).order_by(items.c.id)
        pages = db.execute(query).all()
        rng = np.random.default_rng(secrets.randbits(64))
        places = {number: place for place, number in enumerate(order([p.kind for p in pages], rng), 1)}
        db.execute(
            sa.insert(shown),
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
        return self._move(db, row.id, stage=Stage.TASK, task=taken, claimed=self._clock())

    # sheets

    def _sheet(self, token: str) -> _Sheet:
        """The participant's task; kept in memory, since it never changes."""
        if token not in self._sheets:
            row = self.database.row(sa.select(participants).where(participants.c.token == token))
            if row is None:
                raise Refused("this visit is not known here; please open the link again")
            if row.task is None:
                raise Refused("there is no task yet")
            query = sa.select(shown.c.place, shown.c.swapped, items).join(items, items.c.id == shown.c.item)
            rows = self.database.rows(query.where(shown.c.participant == row.id).order_by(shown.c.place))
            pages = [self._page(row.id, r) for r in rows]
            self._sheets[token] = _Sheet(row.id, pages, {page.public.id: page for page in pages})
        return self._sheets[token]

    def _page(self, participant: int, row: Any) -> _Page:
        outputs = dict(zip("AB", reversed(row.outputs) if row.swapped else row.outputs, strict=False))
        request = self._material.requests[row.outputs[0]]
        prompt = self._pipeline.study.prompt(request.prompt_id)
        sources = [self._sources[s].image for s in request.source_ids]
        names = ["source"] if len(sources) == 1 else [f"source_{n}" for n in range(1, len(sources) + 1)]
        hashes = dict(zip(names, sources, strict=True))
        hashes |= {slot: str(self._material.edits[ident].image) for slot, ident in outputs.items()}
        questions = asked(row.survey, prompt, len(outputs))
        pictures = {slot: self._opaque("picture", participant, row.id, slot) for slot in hashes}
        value = row.expected.get("value") if row.kind == INSTRUCTED else None
        item = Item(
            number=row.place,
            id=self._opaque("item", participant, row.id),
            instruction=_instruction(value) if value else _told(prompt, request.condition),
            pictures=pictures,
            asked=[Asked(slot, question) for slot, question in questions],
            answers={},
            note=_role(prompt) if row.survey == 3 else "",
            instructed=value,
        )
        return _Page(
            row.id,
            item,
            outputs,
            {pictures[slot]: sha for slot, sha in hashes.items()},
            {(slot, question.id): question for slot, question in questions},
        )

    def _encode(self, sha256: str) -> bytes:
        buffer = io.BytesIO()
        picture = self._pipeline.store.images.open(sha256).convert("RGB")
        picture.info.clear()
        picture.save(buffer, "JPEG", quality=92)
        return buffer.getvalue()

    # endings

    def _completion(self, ending: Ending, platform: str, participant: str, study: str, session: str) -> Completion:
        section = self.section.endings.get(ending.value)
        code = (section.code if section else "") or self._opaque("code", ending.value)[:8].upper()
        redirect = section.redirect if section else ""
        if not redirect and platform == "prolific":
            redirect = "https://app.prolific.com/submissions/complete?cc={code}"
        filled = {"code": code, "participant": participant or "", "study": study, "session": session}
        for name, text in filled.items():
            redirect = redirect.replace("{" + name + "}", quote(text, safe=""))
        return Completion(ending, code, redirect or None)

    def _erase(self, whom: sa.ColumnElement[bool]) -> bool:
        def work(db: sa.Connection) -> str | None:
            row = db.execute(sa.select(participants).where(whom).with_for_update()).one_or_none()
            if row is None:
                return None
            self._leave(db, row.id)
            for table in (answers, shown):
                db.execute(sa.delete(table).where(table.c.participant == row.id))
            db.execute(sa.delete(participants).where(participants.c.id == row.id))
            self._note(db, "participant", "withdrew", {"survey": row.survey})
            return str(row.token)

        token = self.database.write(work)
        if token is None:
            return False
        self._sheets.pop(token, None)
        self.database.forget_erased()
        return True

    def _note(self, db: sa.Connection, actor: str, action: str, detail: Mapping[str, Any]) -> None:
        db.execute(sa.insert(log), {"at": self._clock(), "actor": actor, "action": action, "detail": dict(detail)})

    # the first day

    def _prepare(self) -> None:
        """Lay out tasks and seats; once somebody has come, the layout stays as it is."""
        for survey in self.section.surveys:
            cases = sampled(self._pipeline, survey)
            section = self.section
            layout = digest(
                [cases, section.raters_per_item, section.items_per_task, section.gold, section.gold_share]
                + [section.instructed, sorted(i for i in self._material.edits if self._material.edited(i))]
            )
            fact = f"layout {survey}"
            if self.database.fact(fact) != layout:
                self.database.write(lambda db, s=survey, c=cases, f=fact, d=layout: self._lay_out(db, s, c, f, d))

    def _lay_out(self, db: sa.Connection, survey: int, cases: Mapping[str, float], fact: str, layout: str) -> None:
        there = sa.select(sa.func.count()).select_from(participants).where(participants.c.survey == survey)
        if db.execute(there).scalar_one():
            return  # what was begun is finished as it was laid out
        seed = self._pipeline.study.file.study.seed
        folder = self._pipeline.study.folder
        pages = compose(survey, self.section, list(cases), self._material, folder, seed)
        db.execute(sa.delete(seats).where(seats.c.survey == survey))
        db.execute(sa.delete(items).where(items.c.survey == survey))
        db.execute(
            sa.insert(items),
            [
                {
                    "survey": survey,
                    "task": page.task,
                    "kind": page.kind,
                    "outputs": list(page.outputs),
                    "expected": dict(page.expected),
                }
                for page in pages
            ],
        )
        db.execute(
            sa.insert(seats),
            [
                {"survey": survey, "task": task, "number": number}
                for task in sorted({page.task for page in pages})
                for number in range(1, self.section.raters_per_item + 1)
            ],
        )
        known = self.database.insert(facts).values(key=fact, value=layout)
        db.execute(known.on_conflict_do_update(index_elements=["key"], set_={"value": layout}))


_STATE: Any = (
    sa.select(
        participants.c.id,
        participants.c.stage,
        participants.c.survey,
        participants.c.task,
        seats.c.id.label("seat"),
        seats.c.expires,
    )
    .select_from(participants.outerjoin(seats, seats.c.participant == participants.c.id))
    .where(participants.c.token == sa.bindparam("token"))
    .with_for_update(read=True, of=participants)  # a submission waits for saves under way, and they for it
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


def _visit(row: Any) -> Visit:
    return Visit(row.token, row.survey, Stage(row.stage), Ending(row.ending) if row.ending else None)


def _told(prompt: Prompt, condition: str) -> str:
    """What the editor was asked, without the feature prompt."""
    return prompt.swapped_text if condition == "swapped" and prompt.swapped_text else prompt.text


def _instruction(value: int) -> str:
    return f"Attention check: please do not rate these images. Choose answer number {value} for every question here."


def _role(prompt: Prompt) -> str:
    return f"Target role: {prompt.occupation}. It is stereotypically coded {str(prompt.coded_gender).lower()}."


class Refused(Exception):
    """A call that this visit may not make now; the message can be shown."""


class Incomplete(Refused):
    """Answers are missing."""

    def __init__(self, items: Sequence[int]) -> None:
        super().__init__(f"answers are missing on {len(items)} items")
        self.items = tuple(items)
