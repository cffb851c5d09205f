"""Prolific: draft a study, follow its submissions, approve them, and queue those that failed for a decision.

Only the platform's public interface (v1) is used. The token comes from the environment and goes nowhere else.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import sqlalchemy as sa

from evenedit.config.study_file import SurveySection
from evenedit.core.errors import EvenEditError
from evenedit.storage.survey_schema import decisions, events, participants
from evenedit.storage.survey_store import note
from evenedit.survey.admin import ParticipantStatus, SurveyAdmin
from evenedit.survey.platforms import Prolific
from evenedit.survey.sessions import SurveyService
from evenedit.survey.visits import NotAllowedError, VisitEnding

TOKEN = "PROLIFIC_TOKEN"
TITLE = "Compare edited portraits"
DESCRIPTION = "Look at portraits and edited versions of them, and answer questions."
"""Title and description of a draft; staff can change them on Prolific before publishing."""
SECRET = "PROLIFIC_WEBHOOK_SECRET"
FRESH = 300.0
"""Seconds: an older webhook is a replay."""
TRIES = 5
WAIT = 1.0
"""Seconds before the first retry; doubled each time unless the platform says how long."""
FAILED = 2
"""The platform allows a rejection only after this many failed explicit-instruction checks (in 5 minutes or more)."""
SHORTEST = 100
"""Characters of explanation that the platform requires with a rejection."""
CATEGORY = "FAILED_CHECK"
AWAITING, RETURNED, TIMED_OUT = "AWAITING REVIEW", "RETURNED", "TIMED-OUT"
_CODES: dict[VisitEnding, tuple[str, dict[str, str]]] = {
    VisitEnding.COMPLETED: ("COMPLETED", {"action": "MANUALLY_REVIEW"}),
    VisitEnding.FAILED_CHECKS: ("FAILED_ATTENTION_CHECK", {"action": "MANUALLY_REVIEW"}),
    VisitEnding.NO_CONSENT: ("NO_CONSENT", {"action": "REQUEST_RETURN", "return_reason": "You did not give consent"}),
    VisitEnding.NO_SLOT: ("OTHER", {"action": "REQUEST_RETURN", "return_reason": "All places were taken"}),
    VisitEnding.SCREENED_OUT: (
        "OTHER",
        {"action": "REQUEST_RETURN", "return_reason": "The comprehension check was failed"},
    ),
    VisitEnding.WITHDRAWN: ("OTHER", {"action": "REQUEST_RETURN", "return_reason": "Withdrew consent"}),
}
"""What Prolific does with each ending's code. Nobody is paid or rejected by a code alone."""


@dataclass(frozen=True, slots=True)
class Submission:
    """One participant's submission, as the platform has it."""

    id: str
    participant: str
    status: str
    code: str


class ProlificAPI:
    """The calls of Prolific's interface that the survey needs."""

    def __init__(self, base: str, token: str | None = None) -> None:
        token = token or os.environ.get(TOKEN)
        if not token:
            raise EvenEditError(f"Prolific needs an API token. Try: export {TOKEN}=…")
        self._client = httpx.Client(base_url=base, headers={"Authorization": f"Token {token}"}, timeout=30)

    def create(self, study: Mapping[str, Any]) -> str:
        """Draft a study and return its id. Staff publish it on the platform's own page."""
        return str(self._call("POST", "studies/", study, retry=False)["id"])

    def submissions(self, study: str) -> list[Submission]:
        """Return all submissions of a study."""
        rows: list[Submission] = []
        page: str | None = f"studies/{study}/submissions/"
        while page:
            answer = self._call("GET", page)
            rows += [
                Submission(str(r["id"]), str(r["participant_id"]), str(r["status"]), str(r.get("study_code") or ""))
                for r in answer["results"]
            ]
            page = ((answer.get("_links") or {}).get("next") or {}).get("href")
        return rows

    def approve(self, submission: str) -> None:
        """Approve a submission, which pays the participant."""
        self._call("POST", f"submissions/{submission}/transition/", {"action": "APPROVE"})

    def reject(self, submission: str, message: str) -> None:
        """Reject a submission, without pay. Call it through `Rejections`, which checks the rules."""
        body = {"action": "REJECT", "message": message, "rejection_category": CATEGORY}
        self._call("POST", f"submissions/{submission}/transition/", body)

    def request_return(self, submission: str, reasons: Sequence[str]) -> None:
        """Ask the participant to return the submission."""
        self._call("POST", f"submissions/{submission}/request-return/", {"request_return_reasons": list(reasons)})

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, retry: bool = True) -> Any:
        """Make a call. If the platform is busy or does not answer, retry unless `retry` is False."""
        wait = WAIT
        for attempt in range(TRIES):
            last = attempt == TRIES - 1 or not retry
            try:
                answer = self._client.request(method, path, json=body)
            except httpx.HTTPError as error:
                if last:
                    raise EvenEditError(f"Prolific does not answer: {error}") from None
            else:
                if answer.is_success:
                    return answer.json() if answer.content else {}
                if last or (answer.status_code != 429 and answer.status_code < 500):
                    raise EvenEditError(f"Prolific refused {method} {path}: {answer.status_code} {_reason(answer)}")
                wait = float(answer.headers.get("retry-after", wait))
            time.sleep(min(wait, 60))
            wait *= 2
        raise AssertionError


def draft(section: SurveySection, service: SurveyService, *, base: str, survey: int) -> dict[str, Any]:
    """Return the body of a draft study: link, a completion code for each ending, places, time and pay."""
    names = section.platform
    link = (
        f"{base.rstrip('/')}/survey?{names.participant}={{{{%PROLIFIC_PID%}}}}&{names.study}={{{{%STUDY_ID%}}}}"
        f"&{names.session}={{{{%SESSION_ID%}}}}&survey={survey}"
    )
    places = sum(task.slots for task in SurveyAdmin(service).progress() if task.survey == survey)
    if not section.pay.per_task:
        raise EvenEditError("[survey.pay] per_task is 0; set the pay of a task before creating a study on Prolific")
    return {
        "name": TITLE,
        "description": DESCRIPTION,
        "external_study_url": link,
        "is_external_study_url_secure": names.signed,
        "prolific_id_option": "url_parameters",
        "completion_codes": [
            {"code": service.farewell(ending).code, "code_type": kind, "actions": [action]}
            for ending, (kind, action) in _CODES.items()
        ],
        "total_available_places": places,
        "estimated_completion_time": round(section.pay.minutes_per_task),
        "reward": round(section.pay.per_task * 100),
        "device_compatibility": ["desktop", "tablet", "mobile"],
    }


@dataclass(frozen=True, slots=True)
class Synced:
    """The result of comparing the platform's submissions with the survey."""

    submissions: int
    released: int
    """Slots that were freed because the submission was returned or ran out of time."""
    payable: tuple[Submission, ...]
    """Awaiting review, completed here with the right code."""
    doubtful: tuple[Submission, ...]
    """Awaiting review, but not completed here, or with another code: staff must check them."""


def sync(service: SurveyService, api: ProlificAPI, study: str) -> Synced:
    """Compare the platform's submissions with the survey's; free the slots of returned and timed-out ones."""
    known = _by_platform_id(service)
    payable: list[Submission] = []
    doubtful: list[Submission] = []
    released = 0
    submissions = api.submissions(study)
    code = service.farewell(VisitEnding.COMPLETED).code
    for submission in submissions:
        person = known.get(submission.id) or known.get(submission.participant)
        if submission.status in (RETURNED, TIMED_OUT):
            if person and person.has_slot and not person.submitted:
                released += SurveyAdmin(service).release(person.pseudonym, "prolific")
        elif submission.status == AWAITING:
            fits = person is not None and person.ending is VisitEnding.COMPLETED and submission.code in ("", code)
            if not (person is not None and person.ending is VisitEnding.FAILED_CHECKS):
                (payable if fits else doubtful).append(submission)
    return Synced(len(submissions), released, tuple(payable), tuple(doubtful))


@dataclass(frozen=True, slots=True)
class Waiting:
    """A participant who failed the instructed checks and awaits a decision by staff."""

    pseudonym: str
    failed: int
    checks: int
    may_reject: bool
    """The platform's rules allow it: enough explicit-instruction checks were failed."""


class Rejections:
    """The queue of participants who failed instructed checks. Nothing happens until a member of staff decides."""

    def __init__(self, service: SurveyService, api: ProlificAPI | None = None, study: str = "") -> None:
        self._service = service
        self._api = api
        self._study = study

    def waiting(self) -> list[Waiting]:
        """Return the participants who await a decision."""
        query = sa.select(participants.c.pseudonym).join(decisions, decisions.c.participant == participants.c.id)
        decided = {r.pseudonym for r in self._service.database.rows(query)}
        return [
            Waiting(
                person.pseudonym,
                person.quality.instructed_failed,
                person.quality.instructed_asked,
                person.quality.instructed_failed >= FAILED,
            )
            for person in SurveyAdmin(self._service).people()
            if person.ending is VisitEnding.FAILED_CHECKS
            and person.platform == Prolific.kind
            and person.quality is not None
            and person.pseudonym not in decided
        ]

    def decide(self, pseudonym: str, decision: str, actor: str, message: str = "") -> None:
        """Approve, reject, or ask for a return, in the name of a person; a rejection must meet the platform's rules."""
        case = next((w for w in self.waiting() if w.pseudonym == pseudonym), None)
        if case is None:
            raise EvenEditError(f"'{pseudonym}' does not await a decision")
        if decision not in ("approve", "reject", "return"):
            raise EvenEditError(f"'{decision}' is not a decision; use approve, reject or return")
        if not actor.strip():
            raise EvenEditError("a decision needs the name of the person who takes it")
        if decision == "reject" and not case.may_reject:
            raise EvenEditError(f"Prolific allows a rejection only after {FAILED} failed instructed checks")
        if decision == "reject" and len(message) < SHORTEST:
            raise EvenEditError(
                f"Prolific requires an explanation of {SHORTEST} characters or more; this one has {len(message)}"
            )
        if self._api is None:
            raise EvenEditError(f"Prolific needs an API token to act on this. Try: export {TOKEN}=…")
        submission = self._submission(pseudonym)
        if decision == "approve":
            self._api.approve(submission)
        elif decision == "reject":
            self._api.reject(submission, message)
        else:
            self._api.request_return(submission, [message or "Failed the attention checks"])
        self._service.database.write(lambda db: self._keep(db, pseudonym, decision, actor))

    def _submission(self, pseudonym: str) -> str:
        query = sa.select(participants.c.external, participants.c.session).where(participants.c.pseudonym == pseudonym)
        row = self._service.database.row(query)
        if row is None or self._api is None:
            raise EvenEditError(f"'{pseudonym}' is no longer known")
        for submission in self._api.submissions(self._study):
            matches = submission.id == row.session or (not row.session and submission.participant == row.external)
            if matches and submission.status == AWAITING:
                return submission.id
        raise EvenEditError(f"the submission of '{pseudonym}' no longer awaits review on Prolific")

    def _keep(self, db: sa.Connection, pseudonym: str, decision: str, actor: str) -> None:
        who = sa.select(participants.c.id).where(participants.c.pseudonym == pseudonym)
        row = {
            "participant": db.execute(who).scalar_one(),
            "decision": decision,
            "actor": actor,
            "at": self._service.clock(),
        }
        db.execute(sa.insert(decisions), row)
        note(db, self._service.clock(), actor, f"decided: {decision}", {"participant": pseudonym})


class Webhooks:
    """Prolific's webhook events: verified, and acted on once."""

    def __init__(self, service: SurveyService, secret: str | None = None) -> None:
        self._service = service
        self._secret = secret or os.environ.get(SECRET, "")

    def receive(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """Act on one event; returns False for a repeated one. Raises NotAllowedError unless it is recent and signed."""
        lowered = {name.lower(): value for name, value in headers.items()}
        sent = lowered.get("x-prolific-request-timestamp", "")
        digest = hmac.new(self._secret.encode(), sent.encode() + body, hashlib.sha256).digest()
        signature = lowered.get("x-prolific-request-signature", "")
        if not self._secret or not hmac.compare_digest(base64.b64encode(digest), signature.encode()):
            raise NotAllowedError("this message is not signed by Prolific")
        try:
            fresh = abs(self._service.clock() - float(sent)) <= FRESH
            event = json.loads(body)
            status, participant = str(event.get("status", "")), str(event.get("participant_id", ""))
            kind = str(event.get("event_type", ""))
        except (ValueError, AttributeError):
            raise NotAllowedError("this message cannot be read") from None
        if not fresh:
            raise NotAllowedError("this message is too old")
        ident = lowered.get("x-event-id") or hashlib.sha256(sent.encode() + body).hexdigest()

        def work(db: sa.Connection) -> bool:
            once = self._service.database.insert(events).values(id=ident, at=self._service.clock())
            if not db.execute(once.on_conflict_do_nothing()).rowcount:
                return False
            if kind == "submission.status.change" and status in (RETURNED, TIMED_OUT):
                self._free_slot(db, participant, status)
            return True

        return self._service.database.write(work)

    def _free_slot(self, db: sa.Connection, participant: str, status: str) -> None:
        query = sa.select(participants).where(
            participants.c.platform == Prolific.kind, participants.c.external == participant
        )
        for row in db.execute(query.with_for_update()).all():
            if row.submitted is None and self._service.slots.leave(db, row.id):
                note(
                    db,
                    self._service.clock(),
                    "prolific",
                    f"{status.lower()}: freed the slot",
                    {"participant": row.pseudonym},
                )


def _by_platform_id(service: SurveyService) -> dict[str, ParticipantStatus]:
    """Participants from Prolific by its ids: of the submission (the session of the link) and of the person."""
    people = {person.pseudonym: person for person in SurveyAdmin(service).people()}
    rows = service.database.rows(sa.select(participants).where(participants.c.platform == Prolific.kind))
    return {key: people[r.pseudonym] for r in rows for key in (r.external, r.session) if key}


def _reason(answer: httpx.Response) -> str:
    try:
        error = answer.json()["error"]
        return str(error.get("detail") or error.get("title") or error)[:300]
    except (ValueError, KeyError, TypeError, AttributeError):
        return answer.text[:300]
