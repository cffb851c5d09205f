"""What an attacker tries against a server, on SQLite and on PostgreSQL; each of these once worked."""

import json
import os
import sqlite3
import stat
import threading
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from evenedit.core.errors import EvenEditError
from evenedit.storage.survey_store import SurveyStore
from evenedit.survey.platforms import PANEL_SECRET, panel_signature
from evenedit.survey.visits import Arrival
from evenedit.web.app import create_app
from evenedit.web.auth import Accounts
from evenedit.web.roles import Role
from evenedit.web.settings import ServerSettings
from evenedit.web.throttle import Limit
from tests.support.studies import open_study
from tests.support.web_study import PASSWORD, app_of, link, seated, serving, web_study

OWN = {"sec-fetch-site": "same-origin"}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, FastAPI]]:
    url = None
    if request.param == "postgresql":
        server = request.getfixturevalue("postgres")
        server.psql("DROP SCHEMA public CASCADE; CREATE SCHEMA public;")
        url = str(server.get_uri())
    study = web_study(tmp_path_factory.mktemp("attacked"), url)
    app = app_of(study)
    with serving(app) as base:
        yield base, app
    study.store.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def plain(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TestClient]:
    """The app of a study without a survey, nobody signed in."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    study = open_study(tmp_path, **({"store": {"url": url}} if url else {}))
    with TestClient(
        create_app(study, ServerSettings(password=PASSWORD)), follow_redirects=False, headers=OWN
    ) as client:
        yield client


def sign_in(client: httpx.Client, name: str = "admin", password: str = PASSWORD) -> httpx.Response:
    return client.post("/admin/login", data={"name": name, "password": password})


def test_no_name_and_no_torn_line_breaks_the_log(site: tuple[str, FastAPI]) -> None:
    base, app = site
    with httpx.Client(base_url=base, headers=OWN) as client:
        for name in ("a\u2028b", "a\u2029b", "a\x85b", "a\nb", "\x00", "\ud7ff"):
            assert sign_in(client, name, "no").status_code in (401, 429)
        with app.state.log.path.open("ab") as log:
            log.write(b'{"time": "2026-01-01T00:00:00", "na')
        app.state.log.note("somebody", "did something after the crash")
    latest, torn = app.state.log.entries(2)
    assert latest["action"] == "did something after the crash" and "cannot be read" in torn["action"]
    token, _ = app.state.authentication.sign_in("admin", PASSWORD, "192.0.2.9")
    assert httpx.get(f"{base}/admin", cookies={"staff": token}).status_code == 200
    assert stat.S_IMODE(app.state.log.path.stat().st_mode) == 0o600


def test_a_platform_id_opens_nobodys_task_and_erases_nothing(site: tuple[str, FastAPI]) -> None:
    base, _ = site
    with seated(base, "victim-of-a-link") as victim:
        items = victim.get("/survey/items").json()["items"]
        row = items[0]["questions"][0]
        body = {"item": items[0]["id"], "slot": row["slots"][0], "question": row["id"], "value": 1, "sequence": 1}
        assert victim.post("/survey/answers", json=body).json() == {"stored": 1}
        with httpx.Client(base_url=base, follow_redirects=True) as thief:
            shown = thief.get(link(base, "victim-of-a-link"), headers={"accept": "text/html"})
            assert shown.status_code == 409 and "another browser" in shown.text and "visit" not in thief.cookies
            assert thief.get("/survey/items").status_code == 401
            assert thief.post("/survey/withdraw", data={"sure": "yes"}).status_code == 401
        again = victim.get(link(base, "victim-of-a-link"))
        assert again.url.path == "/survey/task", "the participant's own browser goes on"
        code = next(part for part in again.text.split("<") if "code" in part and part.count("-") >= 3)
        with httpx.Client(base_url=base, follow_redirects=True) as device:
            resume = next(word for word in code.replace(">", " ").split() if word.count("-") == 3)
            assert device.post("/survey/resume", data={"code": resume}).url.path == "/survey/task"
        assert victim.get("/survey/items").json()["items"][0]["answers"], "nothing was erased"


def test_a_character_that_a_database_cannot_hold_is_refused_and_breaks_nothing(site: tuple[str, FastAPI]) -> None:
    base, app = site
    token, _ = app.state.authentication.sign_in("admin", PASSWORD, "192.0.2.10")
    with httpx.Client(base_url=base, headers=OWN, cookies={"staff": token}) as staff:
        for path in ("release", "withdraw"):
            answer = staff.post(f"/admin/{path}", data={"pseudonym": "a\x00b", "sure": "yes"})
            assert answer.status_code in (404, 422), path
    with httpx.Client(base_url=base, headers=OWN) as somebody:
        assert somebody.get("/survey?PROLIFIC_PID=a%00b&STUDY_ID=s&SESSION_ID=x").status_code < 500
        assert somebody.post("/survey/removal", data={"about": "a\x00b"}).status_code < 500


def test_two_who_know_an_id_never_share_a_visit(site: tuple[str, FastAPI]) -> None:
    base, _ = site
    with seated(base, "shared-id", stage="consent") as first, httpx.Client(base_url=base) as second:
        second.get(link(base, "shared-id"))
        assert second.cookies["visit"] != first.cookies["visit"]
        assert first.post("/survey/consent", data={"decision": "decline"}).status_code == 401


def test_sixty_parallel_guesses_are_five(plain: TestClient) -> None:
    auth = plain.app.state.authentication  # type: ignore[attr-defined]

    def guess(number: int) -> int:
        try:
            auth.sign_in("admin", f"guess {number}", "192.0.2.1")
        except Exception as problem:
            return int(problem.status_code)  # type: ignore[attr-defined]
        return 200

    with ThreadPoolExecutor(60) as pool:
        outcomes = list(pool.map(guess, range(60)))
    assert sorted(outcomes) == [401] * 5 + [429] * 55
    assert auth.sign_in("admin", PASSWORD, "192.0.2.2")[1] is Role.OWNER, "others can still sign in"


def test_guesses_without_end_do_not_fill_the_log(plain: TestClient) -> None:
    plain.app.state.log.note("ada", "did what must stay in sight")  # type: ignore[attr-defined]
    for number in range(60):
        sign_in(plain, f"somebody {number}", "no")
    actions = [entry["action"] for entry in plain.app.state.log.entries()]  # type: ignore[attr-defined]
    assert actions == ["sign-in blocked", *["sign-in failed"] * 5, "did what must stay in sight"]


def test_guesses_at_one_account_from_many_addresses_are_limited_and_at_others_not(plain: TestClient) -> None:
    auth = plain.app.state.authentication  # type: ignore[attr-defined]
    auth._by_account = Limit(3)
    outcomes = []
    for number in range(5):
        try:
            auth.sign_in("ADA", f"guess {number}", f"192.0.2.{number}")
        except Exception as problem:
            outcomes.append(problem.status_code)  # type: ignore[attr-defined]
    assert outcomes == [401] * 3 + [429] * 2
    assert auth.sign_in("admin", PASSWORD, "192.0.2.2")[1] is Role.OWNER


def test_wrong_resume_codes_of_many_lock_nobody_else_out(site: tuple[str, FastAPI]) -> None:
    base, app = site
    for number in range(100):
        app.state.codes.take(f"198.51.100.{number}")
    with httpx.Client(base_url=base) as client:
        assert client.post("/survey/resume", data={"code": "AAAA-BBBB-CCCC-DDDD"}).status_code == 404


def test_a_network_of_ipv6_is_one_address(plain: TestClient) -> None:
    with TestClient(plain.app, client=("2001:db8::1", 1), headers=OWN) as one:
        for _ in range(5):
            assert sign_in(one, password="wrong again").status_code == 401
    with TestClient(plain.app, client=("2001:db8::ffff:2", 1), headers=OWN) as neighbour:
        assert sign_in(neighbour).status_code == 429
    with TestClient(plain.app, client=("2001:db8:0:1::1", 1), headers=OWN) as elsewhere:
        assert sign_in(elsewhere).status_code != 429


def test_forged_tokens_fetch_the_keys_once(tmp_path: Path) -> None:
    fetched = []

    class Keys(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            fetched.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"keys": []}')

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Keys)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    api = f"http://127.0.0.1:{server.server_port}/api/v1"
    study = web_study(
        tmp_path, platform={"kind": "prolific", "signed": True, "origin": "https://s.example", "api": api}
    )
    with TestClient(app_of(study)) as client:
        for number in range(12):
            head = urlsafe_b64encode(json.dumps({"alg": "RS256", "kid": f"forged-{number}"}).encode())
            token = f"{head.decode().rstrip('=')}.e30.e30"
            query = {"PROLIFIC_PID": "p", "STUDY_ID": "s", "SESSION_ID": "x", "prolific_token": token}
            assert client.get("/survey", params=query).status_code == 403
    server.shutdown()
    server.server_close()
    assert len(fetched) == 1


def test_a_signed_panel_link_opens_its_visit_anywhere_and_an_unsigned_one_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PANEL_SECRET, "a secret of the panel and of ours")
    study = web_study(tmp_path, platform={"kind": "panel", "signed": True, "participant": "id"})
    good = panel_signature(Arrival("panel", "p1", "", "", 1), os.environ[PANEL_SECRET])
    with TestClient(app_of(study), follow_redirects=False) as client:
        for forged in ("", "0" * 64, str(good)[:-1]):
            query = {"id": "p1", "survey": "1", "signature": forged}
            assert client.get("/survey", params=query).status_code == 403
        assert client.get("/survey", params={"id": "p2", "survey": "1", "signature": good}).status_code == 403
        tokens = set()
        for _ in range(2):
            client.cookies.clear()
            answer = client.get("/survey", params={"id": "p1", "survey": "1", "signature": good})
            assert answer.status_code == 303
            tokens.add(client.cookies["visit"])
        assert len(tokens) == 1, "the same visit in another browser"


def test_a_cookie_is_of_no_use_after_signing_out_or_being_removed(plain: TestClient) -> None:
    sign_in(plain)
    stolen = plain.cookies["staff"]
    assert plain.post("/admin/logout").status_code == 303
    assert plain.get("/admin", headers={"Cookie": f"staff={stolen}"}).status_code == 401
    accounts = plain.app.state.authentication.accounts  # type: ignore[attr-defined]
    accounts.add("ada", Role.OWNER, PASSWORD)
    accounts.add("bo", Role.RESEARCHER, PASSWORD)
    sign_in(plain, "bo")
    assert plain.get("/admin").status_code == 200
    accounts.remove("bo")
    assert plain.get("/admin").status_code == 401


def test_secrets_stand_in_one_file_for_its_owner_and_not_in_what_is_passed_on(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    accounts = Accounts(study.store)
    accounts.add("ada", Role.REVIEWER, PASSWORD)
    assert {name: account.role for name, account in accounts.all().items()} == {"ada": "reviewer"}
    study.store.close()
    for path in tmp_path.iterdir():
        if path.is_file() and path.name != "secrets.db":
            assert b"argon2" not in path.read_bytes(), path.name
    assert stat.S_IMODE((tmp_path / "secrets.db").stat().st_mode) == 0o600


def test_a_session_in_the_file_cannot_be_used_as_a_cookie(plain: TestClient, tmp_path: Path) -> None:
    sign_in(plain)
    with sqlite3.connect(tmp_path / "secrets.db") as db:
        (stored,) = db.execute("SELECT token FROM sessions").fetchone()
    db.close()
    assert stored not in plain.cookies["staff"]
    plain.cookies.clear()
    assert plain.get("/admin", headers={"Cookie": f"staff={stored}"}).status_code == 401


def test_the_log_of_a_survey_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    SurveyStore(tmp_path).close()
    (tmp_path / "survey.db").chmod(0o644)
    for write in (False, True):
        survey = SurveyStore(tmp_path, write=write)
        survey.fact("key")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("survey.db*")}
        survey.close()
        assert set(modes.values()) == {0o600}, modes


def test_a_survey_file_of_zero_bytes_is_not_a_new_survey(tmp_path: Path) -> None:
    (tmp_path / "survey.db").touch()
    for write in (True, False):
        with pytest.raises(EvenEditError, match="empty \\(0 bytes\\)"):
            SurveyStore(tmp_path, write=write)
    assert (tmp_path / "survey.db").stat().st_size == 0


def test_another_name_of_the_host_is_refused_and_never_repeated(tmp_path: Path) -> None:
    setup = ServerSettings(password=PASSWORD, address="https://survey.example", hosts=frozenset({"survey.example"}))
    with TestClient(app_of(web_study(tmp_path), setup), base_url="http://survey.example", headers=OWN) as client:
        sign_in(client)
        shown = client.get("/admin")
        assert "https://survey.example/survey?preview=" in shown.text
        for host in ("evil.example", "survey.example.evil.example", "", "evil.example:80"):
            refused = client.get("/admin", headers={"Host": host})
            assert refused.status_code == 400 and "evil" not in refused.text
        assert client.get("/health", headers={"Host": "10.0.0.7"}).status_code == 200
        assert client.get("/survey", headers={"Host": "127.0.0.1:8000"}).status_code == 200, "outside production"


def test_health_and_readiness_tell_the_truth(tmp_path: Path) -> None:
    study = web_study(tmp_path)
    app = app_of(study)
    with TestClient(app) as client:
        assert client.get("/health").json() == {"status": "alive"}
        before = study.store.mark("survey.db")
        assert client.get("/ready").json() == {"status": "ready"}
        assert study.store.mark("survey.db") == before, "asking changes nothing"
        app.state.readiness._at = -10.0
        blocker = sqlite3.connect(tmp_path / "study.db")
        blocker.execute("BEGIN EXCLUSIVE")
        study.store._engine.dispose()
        answer = client.get("/ready")
        blocker.rollback()
        blocker.close()
        assert answer.status_code == 503 and answer.json()["problems"] == {"study": "cannot be written"}
        app.state.readiness._at = -10.0
        assert client.get("/ready").status_code == 200
        for move in (("survey.db", "elsewhere.db"), ("elsewhere.db", "survey.db")):
            (tmp_path / move[0]).rename(tmp_path / move[1])
            app.state.readiness._at = -10.0
            assert client.get("/ready").status_code == (503 if move[0] == "survey.db" else 200)
        app.state.survey.database._writer.close()
        app.state.readiness._at = -10.0
        assert client.get("/ready").json()["problems"] == {"survey": "cannot be written"}
