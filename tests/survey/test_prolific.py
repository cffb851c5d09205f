"""Prolific through a local server that speaks its interface; panels and invitations; forged links stay outside."""

import base64
import hashlib
import hmac
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from evenedit.config.study_file import PlatformSection
from evenedit.core.errors import EvenEditError
from evenedit.survey import prolific
from evenedit.survey.admin import SurveyAdmin
from evenedit.survey.platforms import Arrivals, Invitations, PanelPlatform, Prolific
from evenedit.survey.prolific import ProlificAPI, Rejections, Webhooks, draft, sync
from evenedit.survey.sessions import SurveyService
from evenedit.survey.visits import Arrival, NotAllowedError, VisitEnding, VisitStage
from tests.support.surveys import Clock, answer, copy_study, make_study, open_service, seated

SECRET = "a-webhook-secret"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)


class StandIn(ThreadingHTTPServer):
    """As much of Prolific's interface as we use, with its rules: tokens, states, explanations of 100 characters."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.studies: dict[str, dict[str, Any]] = {}
        self.submissions: dict[str, dict[str, Any]] = {}
        self.calls: list[tuple[str, str, Any]] = []
        self.busy = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/api/v1"

    def submit(self, ident: str, participant: str, status: str, code: str = "") -> None:
        self.submissions[ident] = {"id": ident, "participant_id": participant, "status": status, "study_code": code}


class _Handler(BaseHTTPRequestHandler):
    server: StandIn

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}"))

    def _answer(self, body: Any) -> None:
        status, reply = self._reply(self.path.removeprefix("/api/v1/").strip("/").split("/"), body)
        self.server.calls.append((self.command, self.path, body))
        content = json.dumps(reply).encode()
        self.send_response(status)
        if status == 429:
            self.send_header("retry-after", "0")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _reply(self, parts: list[str], body: Any) -> tuple[int, Any]:
        if parts == [".well-known", "study", "jwks.json"]:
            numbers = KEY.public_key().public_numbers()
            return 200, {
                "keys": [{"kid": "k1", "kty": "RSA", "alg": "RS256", "n": _b64(numbers.n), "e": _b64(numbers.e)}]
            }
        if self.headers.get("authorization") != "Token good":
            return 401, {"error": {"title": "Unauthorized", "detail": "No valid token was provided"}}
        if self.server.busy:
            self.server.busy -= 1
            return 429, {"error": {"title": "Too many requests"}}
        if parts == ["studies"]:
            self.server.studies["study-1"] = body
            return 201, {"id": "study-1", "status": "UNPUBLISHED", **body}
        if parts[0] == "studies" and parts[2] == "submissions":
            return 200, {"results": list(self.server.submissions.values()), "_links": {"next": {"href": None}}}
        submission = self.server.submissions.get(parts[1])
        if submission is None:
            return 404, {"error": {"title": "Not found", "detail": "no such submission"}}
        if parts[2] == "request-return":
            submission["return_requested"] = "2026-01-01T00:00:00Z"
            return 200, submission
        if submission["status"] != "AWAITING REVIEW":
            return 400, {"error": {"title": "Bad request", "detail": "not awaiting review"}}
        if body["action"] == "REJECT" and (len(body["message"]) < 100 or body["rejection_category"] != "FAILED_CHECK"):
            return 400, {"error": {"title": "Bad request", "detail": "message"}}
        submission["status"] = {"APPROVE": "APPROVED", "REJECT": "REJECTED"}[body["action"]]
        return 200, submission


def _b64(value: int | bytes) -> str:
    raw = value if isinstance(value, bytes) else value.to_bytes((value.bit_length() + 7) // 8, "big")
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@pytest.fixture
def server():
    stand_in = StandIn()
    yield stand_in
    stand_in.shutdown()
    stand_in.server_close()


@pytest.fixture
def api(server, monkeypatch) -> ProlificAPI:
    monkeypatch.setenv(prolific.TOKEN, "good")
    monkeypatch.setattr(prolific, "WAIT", 0.01)
    return ProlificAPI(server.api)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_study(tmp_path_factory.mktemp("made"))


@pytest.fixture
def service(made, tmp_path, server):
    platform = {"kind": "prolific", "api": server.api}
    survey = {"surveys": [1], "platform": platform, "pay": {"per_task": 6.5, "minutes_per_task": 30.0}}
    opened = open_service(copy_study(made, tmp_path, **survey), None, Clock())
    yield opened
    opened.close()


def come(service: SurveyService, name: str, session: str, **how: Any) -> str:
    """Take part by Prolific's link; `how` is passed to `answer`, and nobody submits without it."""
    query = {"PROLIFIC_PID": name, "STUDY_ID": "study-1", "SESSION_ID": session}
    visit = service.arrive(service.arrivals.arrive(query))
    token = seated_by(service, visit.token)
    if how:
        answer(service, token, **how)
        service.submit(token)
    return service.database.pseudonym(1, "prolific", name)


def seated_by(service: SurveyService, token: str) -> str:
    from evenedit.survey.questions import checks

    service.read_guide(token)
    service.check(token, {check.question.id: check.right for check in checks(1)})
    assert service.consent(token, True).stage is VisitStage.TASK
    return token


def test_a_draft_has_a_code_for_each_ending_and_places_for_every_seat(service, api, server):
    body = draft(service.section, service, base="https://x.example/", survey=1)
    assert api.create(body) == "study-1"
    sent = server.studies["study-1"]
    assert sent["total_available_places"] == 18 and sent["reward"] == 650 and sent["estimated_completion_time"] == 30
    assert sent["external_study_url"].startswith("https://x.example/survey?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID=")
    codes = [code["code"] for code in sent["completion_codes"]]
    assert len(set(codes)) == 6 and service.farewell(VisitEnding.COMPLETED).code in codes
    actions = {action["action"] for code in sent["completion_codes"] for action in code["actions"]}
    assert actions == {"MANUALLY_REVIEW", "REQUEST_RETURN"}, "no code pays or rejects by itself"


def test_without_pay_nobody_is_asked(made, tmp_path):
    opened = open_service(copy_study(made, tmp_path, surveys=[1]))
    with pytest.raises(EvenEditError, match="per_task is 0"):
        draft(opened.section, opened, base="https://x.example", survey=1)
    opened.close()


def test_submissions_are_matched_returned_seats_come_back_and_good_work_is_paid(service, api, server):
    good = service.farewell(VisitEnding.COMPLETED).code
    done = come(service, "p1", "s1", seconds=30.0)
    left = come(service, "p2", "s2")
    come(service, "p3", "s3", seconds=30.0)
    server.submit("s1", "p1", "AWAITING REVIEW", good)
    server.submit("s2", "p2", "RETURNED")
    server.submit("s3", "p3", "AWAITING REVIEW", "WRONG")
    server.submit("s4", "p4", "AWAITING REVIEW", good)
    found = sync(service, api, "study-1")
    assert [s.id for s in found.payable] == ["s1"]
    assert [s.id for s in found.doubtful] == ["s3", "s4"], "another code, and somebody who never came"
    assert (found.submissions, found.released) == (4, 1)
    standing = {person.pseudonym: person for person in SurveyAdmin(service).people()}
    assert standing[done].has_slot and not standing[left].has_slot
    api.approve("s1")
    assert server.submissions["s1"]["status"] == "APPROVED"
    assert sync(service, api, "study-1").released == 0


def test_busy_is_tried_again_and_a_refusal_is_told(service, api, server, monkeypatch):
    server.busy = 3
    assert api.submissions("study-1") == []
    with pytest.raises(EvenEditError, match=r"404 no such submission"):
        api.approve("nobody")
    with pytest.raises(EvenEditError, match=r"401 No valid token"):
        ProlificAPI(server.api, "bad").submissions("study-1")
    monkeypatch.delenv(prolific.TOKEN)
    with pytest.raises(EvenEditError, match="export PROLIFIC_TOKEN"):
        ProlificAPI(server.api)
    with pytest.raises(EvenEditError, match="does not answer"):
        ProlificAPI("http://127.0.0.1:1/api/v1", "good").submissions("study-1")


LONG = "You failed both of the attention checks, which said in plain words which answer to choose; see the page. " * 2


def test_a_rejection_waits_for_a_person_and_for_the_platforms_rules(service, api, server):
    failed = come(service, "p1", "s1", heed=False)
    come(service, "p2", "s2", seconds=1.0)  # far too fast, but that is no reason to withhold pay
    server.submit("s1", "p1", "AWAITING REVIEW")
    server.submit("s2", "p2", "AWAITING REVIEW")
    queue = Rejections(service, api, "study-1")
    (case,) = queue.waiting()
    assert (case.pseudonym, case.failed, case.checks, case.may_reject) == (failed, 2, 2, True)
    assert sync(service, api, "study-1").payable[0].id == "s2", "who failed the checks is in the queue, not here"
    for wrong, message in (("reject", "too short"), ("reject", ""), ("delete", LONG)):
        with pytest.raises(EvenEditError):
            queue.decide(failed, wrong, "chris", message)
    with pytest.raises(EvenEditError, match="name of the person"):
        queue.decide(failed, "reject", " ", LONG)
    with pytest.raises(EvenEditError, match="does not await"):
        queue.decide(service.database.pseudonym(1, "prolific", "p2"), "reject", "chris", LONG)
    assert not [call for call in server.calls if call[0] == "POST"], "nothing has been sent so far"
    queue.decide(failed, "reject", "chris", LONG)
    assert server.submissions["s1"]["status"] == "REJECTED"
    assert queue.waiting() == []
    assert SurveyAdmin(service).log()[0]["actor"] == "chris"


def test_one_failed_check_is_never_enough_for_a_rejection(made, tmp_path, api, server):
    survey = {"surveys": [1], "platform": {"kind": "prolific", "api": server.api}, "exclude": {"instructed_failed": 1}}
    opened = open_service(copy_study(made, tmp_path, instructed=1, **survey))
    failed = come(opened, "p1", "s1", heed=False)
    queue = Rejections(opened, api, "study-1")
    assert not queue.waiting()[0].may_reject
    with pytest.raises(EvenEditError, match="only after 2"):
        queue.decide(failed, "reject", "chris", LONG)
    server.submit("s1", "p1", "AWAITING REVIEW")
    queue.decide(failed, "return", "chris")
    assert server.submissions["s1"]["return_requested"]
    opened.close()


def signed(
    service: SurveyService, event: dict[str, str], ident: str = "e1", secret: str = SECRET, at: float | None = None
):
    body = json.dumps(event).encode()
    sent = str(int(service.clock() if at is None else at))
    signature = base64.b64encode(hmac.new(secret.encode(), sent.encode() + body, hashlib.sha256).digest()).decode()
    headers = {"X-Prolific-Request-Signature": signature, "X-Prolific-Request-Timestamp": sent, "X-Event-ID": ident}
    return body, headers


def test_a_signed_webhook_gives_the_seat_back_once(service):
    name = come(service, "p1", "s1")
    hooks = Webhooks(service, SECRET)
    event = {
        "event_type": "submission.status.change",
        "status": "RETURNED",
        "participant_id": "p1",
        "resource_id": "s1",
    }
    body, headers = signed(service, event)
    assert hooks.receive(body, headers)
    assert not SurveyAdmin(service).people()[0].has_slot
    token = service.arrive(Arrival("prolific", "p1")).token
    answer(service, token)  # returned, and yet back at work: seated again
    assert SurveyAdmin(service).people()[0].has_slot
    assert not hooks.receive(body, headers), "the same event again does nothing"
    assert SurveyAdmin(service).people()[0].has_slot
    assert service.submit(token).ending is VisitEnding.COMPLETED and SurveyAdmin(service).people()[0].pseudonym == name


@pytest.mark.parametrize("what", ["secret", "body", "old", "missing", "no secret", "not json"])
def test_a_forged_or_stale_webhook_is_refused(service, what, monkeypatch):
    monkeypatch.delenv(prolific.SECRET, raising=False)
    come(service, "p1", "s1")
    event = {"event_type": "submission.status.change", "status": "RETURNED", "participant_id": "p1"}
    body, headers = signed(
        service,
        event,
        secret="guess" if what == "secret" else "" if what == "no secret" else SECRET,
        at=service.clock() - 3600 if what == "old" else None,
    )
    if what == "body":
        body = body.replace(b"p1", b"p2")
    if what == "missing":
        headers = {}
    if what == "not json":
        sent = headers["X-Prolific-Request-Timestamp"]
        body = b"{"
        digest = hmac.new(SECRET.encode(), sent.encode() + body, hashlib.sha256).digest()
        headers["X-Prolific-Request-Signature"] = base64.b64encode(digest).decode()
    with pytest.raises(NotAllowedError):
        Webhooks(service, None if what == "no secret" else SECRET).receive(body, headers)
    assert SurveyAdmin(service).people()[0].has_slot


def token_of(claims: dict[str, Any], key: Any = KEY, header: dict[str, str] | None = None) -> str:
    head = _b64(json.dumps(header or {"alg": "RS256", "kid": "k1", "typ": "JWT"}).encode())
    body = _b64(json.dumps(claims).encode())
    signature = key.sign(f"{head}.{body}".encode(), padding.PKCS1v15(), SHA256())
    return f"{head}.{body}.{_b64(signature)}"


QUERY = {"PROLIFIC_PID": "p1", "STUDY_ID": "st", "SESSION_ID": "s1"}


def claims(**changes: Any) -> dict[str, Any]:
    return {"aud": "https://x.example", "exp": time.time() + 60, "prolific": dict(QUERY)} | changes


def test_a_signed_link_gets_in_and_a_forged_one_does_not(server):
    section = PlatformSection(kind="prolific", signed=True, origin="https://x.example", api=server.api)
    platform = Prolific(section)
    good = token_of(claims())
    assert platform.arrive(QUERY | {"prolific_token": good}) == Arrival("prolific", "p1", "st", "s1", signed=True)
    none = _b64(b'{"alg":"none","kid":"k1"}') + "." + good.split(".")[1] + "."
    forged = {
        "missing": "",
        "garbage": "a.b.c",
        "unsigned": none,
        "another key": token_of(claims(), OTHER),
        "unknown key": token_of(claims(), KEY, {"alg": "RS256", "kid": "k9"}),
        "expired": token_of(claims(exp=time.time() - 1)),
        "another site": token_of(claims(aud="https://evil.example")),
        "another person": token_of(claims(prolific=QUERY | {"PROLIFIC_PID": "p2"})),
        "changed": good[:-6] + ("AAAAAA" if not good.endswith("AAAAAA") else "BBBBBB"),
    }
    for name, token in forged.items():
        with pytest.raises(NotAllowedError):
            platform.arrive(QUERY | {"prolific_token": token})
            pytest.fail(name)
    with pytest.raises(NotAllowedError):
        platform.arrive(QUERY | {"PROLIFIC_PID": "p2", "prolific_token": good})


def test_a_panel_names_its_own_parameters_and_redirects(made, tmp_path):
    section = PlatformSection(kind="panel", participant="pid", session="sid", study="project", study_ids=["P7"])
    panel = PanelPlatform(section)
    assert panel.arrive({"pid": "x-1", "project": "P7", "survey": "2"}) == Arrival("panel", "x-1", "P7", "", 2)
    for bad in ({}, {"pid": "", "project": "P7"}, {"pid": "x", "project": "P8"}, {"pid": "a b", "project": "P7"}):
        with pytest.raises(NotAllowedError):
            panel.arrive(bad)
    with pytest.raises(NotAllowedError):
        panel.arrive({"pid": "x", "project": "P7", "survey": "9"})
    endings = {"completed": {"code": "OK1", "redirect": "https://panel.example/done?c={code}&id={participant}"}}
    opened = open_service(copy_study(made, tmp_path, surveys=[1], endings=endings))
    token = seated(opened, "a&b=c").token
    answer(opened, token)
    opened.submit(token)
    assert opened.completion(token).redirect == "https://panel.example/done?c=OK1&id=a%26b%3Dc"
    opened.close()


def test_an_invitation_is_signed_and_cannot_be_made_up():
    invitations = Invitations(b"key")
    link = invitations.link("https://x.example/", "guest-001", 2)
    query = {"invite": link.split("invite=")[1]}
    assert invitations.arrive(query) == Arrival("invitation", "guest-001", survey=2, signed=True)
    for forged in (
        "",
        "guest-001",
        query["invite"].replace("001", "002"),
        query["invite"].replace("~2~", "~3~"),
        "a~b~c",
    ):
        with pytest.raises(NotAllowedError):
            invitations.arrive({"invite": forged})
    with pytest.raises(NotAllowedError):
        Invitations(b"other").arrive(query)
    reception = Arrivals(PlatformSection(), b"key")
    assert reception.arrive(query).participant == "guest-001"
    with pytest.raises(NotAllowedError, match="by invitation"):
        reception.arrive(QUERY)
