"""What the web app refuses: forged and foreign ids, other sites, guesses, and whatever is too large or malformed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import schemathesis
from click.testing import CliRunner
from fastapi import FastAPI
from fastapi.testclient import TestClient
from filelock import FileLock
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error

from evenedit.cli import commands
from evenedit.core.errors import EvenEditError
from evenedit.curation.pools import make_pools
from evenedit.web import server
from evenedit.web.app import create_app
from evenedit.web.auth import Accounts
from evenedit.web.roles import Role, may_open
from evenedit.web.settings import ServerSettings, check_password, check_production
from tests.support.commands import Command
from tests.support.curating import draw_folder
from tests.support.reviewing import CARELESS
from tests.support.studies import open_study, write_study
from tests.support.web_study import PASSWORD, app_of, link, seated, serving, web_study

INJECTION = "x' OR '1'='1'; DROP TABLE survey_participants;--"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    url = None
    if request.param == "postgresql":
        server = request.getfixturevalue("postgres")
        server.psql("DROP SCHEMA public CASCADE; CREATE SCHEMA public;")
        url = str(server.get_uri())
    study = web_study(tmp_path_factory.mktemp("security"), url, questionnaire={})
    yield app_of(study)
    study.store.close()


@pytest.fixture(scope="module")
def base(app: FastAPI) -> Iterator[str]:
    with serving(app) as address:
        yield address


def answer_of(client: httpx.Client, **changes: Any) -> dict[str, Any]:
    """A good answer to the participant's first question, but for the changes."""
    item = client.get("/survey/items").json()["items"][0]
    row = item["questions"][0]
    good = {"item": item["id"], "slot": row["slots"][0], "question": row["id"], "value": 1, "sequence": 1}
    return good | changes


def told(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["type"]


def test_a_forged_visit_is_nobody(base: str) -> None:
    with seated(base, "victim") as client:
        good = answer_of(client)
    for forged in ("", "a" * 43, "../../etc/passwd", INJECTION.replace(";", "").replace(" ", "_"), "ß" * 20):
        header = {"Cookie": f"visit={forged}".encode()}
        assert told(httpx.get(base + "/survey/items", headers=header)) == (401, "no_visit")
        assert told(httpx.post(base + "/survey/answers", json=good, headers=header)) == (401, "no_visit")
        assert told(httpx.post(base + "/survey/submit", headers=header)) == (401, "no_visit")


def test_another_participants_items_and_pictures_are_out_of_reach(base: str) -> None:
    with seated(base, "one") as one, seated(base, "other") as other:
        theirs = other.get("/survey/items").json()["items"][0]
        assert told(one.post("/survey/answers", json=answer_of(one, item=theirs["id"]))) == (409, "conflict")
        assert one.get(f"/survey/pictures/{theirs['pictures'][0]['id']}").status_code == 404
        mine = {item["id"] for item in one.get("/survey/items").json()["items"]}
        assert theirs["id"] not in mine
        assert all(not item["answers"] for item in other.get("/survey/items").json()["items"])


def test_answers_replayed_after_handing_in_or_leaving_change_nothing(base: str, app: FastAPI) -> None:
    with seated(base, "replayer", survey=2) as client:
        kept = []
        for item in client.get("/survey/items").json()["items"]:
            for row in item["questions"]:
                value = 2 if item["instructed"] else 1
                body = {"item": item["id"], "slot": row["slots"][0], "question": row["id"], "value": value}
                kept.append(body | {"sequence": len(kept) + 1})
                assert client.post("/survey/answers", json=kept[-1]).json() == {"stored": len(kept)}
        assert client.post("/survey/answers", json=kept[0]).json() == {"stored": 1}, "a replay stores nothing new"
        client.post("/survey/submit")
        late = kept[0] | {"value": 3, "sequence": 99}
        assert told(client.post("/survey/answers", json=late)) == (409, "conflict")
        token = client.cookies["visit"]
        client.post("/survey/withdraw", data={"sure": "yes"})
        replay = {"Cookie": f"visit={token}"}
        assert told(httpx.post(base + "/survey/answers", json=late, headers=replay)) == (401, "no_visit")


def test_submitting_too_early_names_the_items(base: str) -> None:
    with seated(base, "early") as client:
        answer = client.post("/survey/submit")
        assert told(answer) == (409, "incomplete") and answer.json()["error"]["items"] == [1, 2, 3]


@pytest.mark.parametrize(
    "path",
    [
        "/static/../guard.py",
        "/static/..%2fguard.py",
        "/static/%2e%2e/%2e%2e/study.db",
        "/survey/pictures/..%2f..%2fstudy.db",
        "/survey/pictures/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/survey/example/..%2f..%2fsource.jpg",
        "/survey/language/..%2fen",
    ],
)
def test_no_path_leads_out(base: str, path: str) -> None:
    with seated(base, f"path-{uuid4().hex}") as client:
        raw = httpx.URL(base).copy_with(raw_path=path.encode())
        assert client.get(raw).status_code in (400, 404)


def test_requests_from_other_sites_are_refused(base: str) -> None:
    with seated(base, "csrf") as client:
        good = answer_of(client)
        for header in (
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Origin": base.replace("http://", "https://evil.")},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site", "Origin": base},
        ):
            assert told(client.post("/survey/answers", json=good, headers=header)) == (403, "forbidden")
            assert client.post("/survey/withdraw", data={"sure": "yes"}, headers=header).status_code == 403
            assert (
                client.post("/admin/login", data={"name": "admin", "password": PASSWORD}, headers=header).status_code
                == 403
            )
        assert client.post("/survey/answers", json=good, headers={"Origin": base}).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"item": "\\ud800"}',
        b"[" * 60_000,
        b'{"item": 1, "slot": "A", "question": "skin_tone", "value": "3", "sequence": 1}',
        json.dumps({"item": "x" * 101, "slot": "A", "question": "skin_tone", "value": 1, "sequence": 1}).encode(),
        json.dumps({"item": "x", "slot": "A", "question": "q", "value": 1e400, "sequence": 1}).encode(),
        json.dumps({"item": "x", "slot": "A", "question": "q", "value": 1, "sequence": 2**60}).encode(),
        json.dumps({"item": "x", "slot": "A", "question": "q", "value": 1, "sequence": 1, "more": 1}).encode(),
    ],
    ids=range(12),
)
def test_malformed_bodies_get_a_typed_answer(base: str, body: bytes) -> None:
    with seated(base, f"malformed-{uuid4().hex}") as client:
        answer = client.post("/survey/answers", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code in (400, 422) and answer.json()["error"]["type"] in ("bad_request", "invalid")


def test_oversized_bodies_are_refused_with_and_without_a_stated_length(base: str) -> None:
    big = b'{"item": "' + b"x" * 80_000 + b'"}'
    with seated(base, "big") as client:
        header = {"Content-Type": "application/json"}
        assert told(client.post("/survey/answers", content=big, headers=header)) == (413, "too_large")
        chunks = (big[i : i + 8000] for i in range(0, len(big), 8000))
        assert told(client.post("/survey/answers", content=chunks, headers=header)) == (413, "too_large")
        assert client.post("/survey/resume", data={"code": "x" * 200}).status_code == 422


def test_a_value_the_question_does_not_have_is_refused(base: str) -> None:
    with seated(base, "value") as client:
        assert told(client.post("/survey/answers", json=answer_of(client, value=6))) == (409, "conflict")
        assert told(client.post("/survey/answers", json=answer_of(client, value=0))) == (422, "invalid")
        assert told(client.post("/survey/answers", json=answer_of(client, question="race"))) == (409, "conflict")


def test_sql_stays_text(base: str, app: FastAPI) -> None:
    with httpx.Client(base_url=base) as client:
        assert client.get("/survey", params={"PROLIFIC_PID": INJECTION}).status_code == 403
        assert client.post("/survey/resume", data={"code": INJECTION}).status_code == 404
        assert client.post("/admin/login", data={"name": INJECTION, "password": INJECTION}).status_code == 401
    with seated(base, "sql") as client:
        answer = client.post("/survey/answers", json=answer_of(client, slot="A' --"))
        assert told(answer) == (409, "conflict")
        assert client.get("/survey/items").status_code == 200


def test_links_that_introduce_nobody_are_turned_away(base: str) -> None:
    for query in ({"PROLIFIC_PID": ""}, {"PROLIFIC_PID": "x" * 300}, {"other": "1"}, {"invite": "me~1~0000"}):
        assert told(httpx.get(base + "/survey", params=query)) == (403, "forbidden")
    assert told(httpx.get(link(base, "nobody", survey=7))) == (403, "forbidden")


def test_every_answer_carries_the_security_headers(base: str) -> None:
    with seated(base, "headers") as client:
        for path in ("/survey/task", "/survey/items", "/static/task.js", "/nothing", "/admin/login", "/survey/guide"):
            headers = client.get(path).headers
            policy = headers["content-security-policy"]
            assert "script-src 'self'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
            assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY"
            assert headers["referrer-policy"] == "same-origin"
            assert "server" not in headers or headers["server"] == "uvicorn"
            assert headers["cache-control"] == ("no-cache" if "/static/" in path else "no-store")


def test_our_own_failure_is_told_without_details(tmp_path: Path) -> None:
    app = create_app(_plain(tmp_path))

    @app.get("/broken")
    def broken() -> None:
        raise RuntimeError("the secret of the database")

    with TestClient(app, raise_server_exceptions=False) as client:
        answer = client.get("/broken")
        assert told(answer) == (500, "failure") and "secret" not in answer.text
        assert answer.headers["x-frame-options"] == "DENY"


# -- staff ----------------------------------------------------------------------------------------------------


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[TestClient]:
    """An app of its own, so that wrong guesses do not lock others out."""
    with TestClient(create_app(_plain(tmp_path), ServerSettings(password=PASSWORD)), follow_redirects=False) as client:
        yield client


def _plain(folder: Path) -> Any:
    from tests.support.studies import open_study

    return open_study(folder)


def sign_in(client: TestClient, password: str = PASSWORD) -> httpx.Response:
    return client.post("/admin/login", data={"name": "admin", "password": password})


def test_only_staff_enter_and_a_password_guesser_has_to_wait(fresh: TestClient) -> None:
    assert told(fresh.get("/admin"))[0] == 401
    page = fresh.get("/admin", headers={"Accept": "text/html"})
    assert page.status_code == 303 and page.headers["location"] == "/admin/login?next=/admin"
    for number in range(5):
        assert sign_in(fresh, f"guess {number}").status_code == 401
    blocked = sign_in(fresh)
    assert blocked.status_code == 429 and int(blocked.headers["retry-after"]) > 800
    log = [json.loads(line) for line in (fresh.app.state.log.path).read_text().splitlines()]  # type: ignore[attr-defined]
    assert [line["action"] for line in log] == ["sign-in failed"] * 5 + ["sign-in blocked"]
    assert PASSWORD not in json.dumps(log) and "guess" not in json.dumps(log)


def test_the_staff_cookie_is_signed_strict_and_unreadable_to_scripts(fresh: TestClient) -> None:
    answer = sign_in(fresh)
    cookie = answer.headers["set-cookie"]
    assert answer.status_code == 303 and "HttpOnly" in cookie and "SameSite=strict" in cookie
    assert fresh.get("/admin").status_code == 200
    good = fresh.cookies["staff"]
    for forged in (good[:-2] + "xx", good[1:], "admin", good.upper(), ""):
        fresh.cookies.clear()
        fresh.cookies.set("staff", forged)
        assert fresh.get("/admin").status_code == 401


def test_staff_forms_work_from_our_own_pages_only(fresh: TestClient) -> None:
    sign_in(fresh)
    assert told(fresh.post("/admin/logout")) == (403, "forbidden")
    assert told(fresh.post("/admin/logout", headers={"Origin": "https://evil.example"})) == (403, "forbidden")
    assert fresh.post("/admin/logout", headers={"Origin": "http://testserver"}).status_code == 303
    assert fresh.get("/admin").status_code == 401


def test_signing_in_never_leads_to_another_site(fresh: TestClient) -> None:
    for next in ("https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)"):
        answer = fresh.post("/admin/login", data={"name": "admin", "password": PASSWORD, "next": next})
        assert answer.headers["location"] == "/admin"


def test_a_new_password_ends_all_sessions(tmp_path: Path) -> None:
    study = _plain(tmp_path)
    Accounts(study.store).add("admin", Role.OWNER, "first of all words")
    with TestClient(create_app(study), follow_redirects=False) as client:
        sign_in(client, "first of all words")
        assert client.get("/admin").status_code == 200
        Accounts(study.store).set_password("admin", "second of all words")
        assert client.get("/admin").status_code == 401


def test_production_is_https_only_and_hides_its_description(tmp_path: Path) -> None:
    study = _plain(tmp_path)
    Accounts(study.store).add("admin", Role.OWNER, PASSWORD)
    app = create_app(study, ServerSettings(production=True, password="not taken here"))
    with TestClient(app, base_url="http://site.example") as client:
        assert told(client.get("/admin/login")) == (400, "https")
        assert client.get("/health").json() == {"status": "alive"}
    with TestClient(app, base_url="https://site.example", follow_redirects=False) as client:
        assert client.get("/openapi.json").status_code == 404
        assert "max-age" in client.get("/admin/login").headers["strict-transport-security"]
        assert sign_in(client, "not taken here").status_code == 401
        assert "Secure" in sign_in(client).headers["set-cookie"]


@pytest.mark.parametrize(
    "weak", ["short", "evenedit", "Password2026!", "aaaaaaaaaaaaaa", "administrator", "12345678901"]
)
def test_weak_passwords_are_refused(weak: str) -> None:
    with pytest.raises(EvenEditError):
        check_password(weak, "admin")


def test_a_long_password_of_several_words_is_accepted() -> None:
    check_password("seven grey herons 48", "admin")


def test_production_names_everything_that_is_missing(tmp_path: Path) -> None:
    file = web_study(tmp_path).file
    with pytest.raises(EvenEditError) as refused:
        check_production(file, None, "http://survey.example", has_accounts=False)
    wanted = ("--proxy", "--address", "staff account", "signed = true")
    first = refused.value.problems[:4]
    assert [word in text for word, text in zip(wanted, first, strict=True)] == [True] * 4


def test_the_commands_refuse_what_is_unsafe(evenedit_process: Command, tmp_path: Path) -> None:
    folder = write_study(tmp_path)
    refused = evenedit_process("serve", folder, "--production")
    assert refused.returncode == 2 and len(refused.stderr.splitlines()) == 3 and "Traceback" not in refused.stderr
    run = CliRunner().invoke
    weak = run(commands, ["admin", "add", str(folder), "ada", "--password", "secret"])
    assert isinstance(weak.exception, EvenEditError) and "10 or more" in str(weak.exception)
    assert run(commands, ["admin", "add", str(folder), "ada", "--password", PASSWORD]).exit_code == 0


def test_a_second_server_on_one_sqlite_study_is_turned_away(tmp_path: Path) -> None:
    study = _plain(tmp_path)
    with FileLock(tmp_path / server.LOCK), pytest.raises(EvenEditError, match="SQLite allows one process"):
        server.run(study, ServerSettings(), "127.0.0.1", 0, None)


def test_staff_can_work_before_there_is_anything_to_rate(tmp_path: Path) -> None:
    from tests.support.studies import open_study

    with TestClient(create_app(open_study(tmp_path, survey={"cases": 4}), ServerSettings(password=PASSWORD))) as client:
        sign_in(client)
        assert "The survey opens when there are edits to show" in client.get("/admin").text
        assert client.get("/survey").status_code == 404


# -- the whole interface ----------------------------------------------------------------------------------------


def test_no_request_the_description_allows_breaks_the_server(base: str) -> None:
    operations = list(schemathesis.openapi.from_url(f"{base}/openapi.json").get_all_operations())
    assert len(operations) > 20
    for number, operation in enumerate(operations):
        with seated(base, f"schema-{number}") as client:  # somebody new each time: the one before may have left
            _try_out(operation.ok(), {"visit": client.cookies["visit"]})


def test_no_request_of_an_owner_breaks_the_server(app: FastAPI, base: str) -> None:
    token, _ = app.state.authentication.sign_in("admin", PASSWORD, "192.0.2.77")
    operations = [found.ok() for found in schemathesis.openapi.from_url(f"{base}/openapi.json").get_all_operations()]
    staff = [one for one in operations if one.path.startswith("/admin/") and not one.path.endswith(("login", "logout"))]
    assert len(staff) > 12
    for operation in staff:
        _try_out(operation, {"staff": token}, 5)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, FastAPI]]:
    """A study that has every page of staff, all of them in its description, and an account of each role."""
    folder = tmp_path_factory.mktemp("whole")
    make_pools(draw_folder(folder / "data", 1, size=32), folder / "pools", seeds=[1])
    study = open_study(folder / "study", **CARELESS, curation={"pools": str(folder / "pools")})
    study.run()
    for role in Role:
        Accounts(study.store).add(f"{role}-person", role, PASSWORD)
    app = app_of(study, ServerSettings())
    for part in app.routes:
        router = getattr(part, "original_router", None)
        for route in router.routes if router else ():
            route.include_in_schema = True
    with serving(app) as base:
        yield base, app
    study.store.close()


@pytest.mark.parametrize("role", list(Role))
def test_no_request_of_any_role_breaks_the_server(whole: tuple[str, FastAPI], role: Role) -> None:
    base, app = whole
    token, _ = app.state.authentication.sign_in(f"{role}-person", PASSWORD, "192.0.2.77")
    known = [found.ok() for found in schemathesis.openapi.from_url(f"{base}/openapi.json").get_all_operations()]
    mine = [one for one in known if may_open(role, one.path) and not one.path.endswith(("login", "logout", "remove"))]
    assert len(mine) >= {Role.OWNER: 30, Role.RESEARCHER: 30, Role.REVIEWER: 7, Role.CURATOR: 8}[role]
    for operation in mine:
        _try_out(operation, {"staff": token}, 3)


def _try_out(operation: Any, cookies: dict[str, str], most: int = 10) -> None:
    own = {"sec-fetch-site": "same-origin"}

    @settings(
        max_examples=most, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True
    )
    @given(case=operation.as_strategy())
    def each(case: Any) -> None:
        case.call_and_validate(cookies=cookies, headers=own, checks=[not_a_server_error])

    each()
