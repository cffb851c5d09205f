"""Which role may open which page: every route of the app, asked by everybody."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.routing import Route

from evenedit.cli import commands
from evenedit.core.errors import EvenEditError
from evenedit.web.auth import Accounts
from evenedit.web.roles import PAGES, Role, may_open
from evenedit.web.settings import ServerSettings
from tests.support.studies import open_study, write_study
from tests.support.web_study import PASSWORD, app_of, web_study

OWN = {"sec-fetch-site": "same-origin"}
DOCS = Path(__file__).parents[2] / "docs" / "web-app.md"
OPEN = ("/static", "/survey", "/admin/login", "/health", "/ready", "/openapi.json")
"""What anybody may open; participants are known by their visit there."""
EXPECTED = {
    "/admin": "owner researcher",
    "/admin/accounts": "owner",
    "/admin/accounts/role": "owner",
    "/admin/accounts/remove": "owner",
    "/admin/home": "owner researcher reviewer curator",
    "/admin/logout": "owner researcher reviewer curator",
    "/admin/monitor": "owner researcher",
    "/admin/people": "owner researcher",
    "/admin/reviewers": "owner researcher",
    "/admin/release": "owner researcher",
    "/admin/withdraw": "owner researcher",
    "/admin/previews/delete": "owner researcher",
    "/admin/export.zip": "owner researcher",
    "/admin/rejections": "owner researcher",
    "/gallery": "owner researcher",
    "/report": "owner researcher",
    "/run": "owner researcher",
    "/review": "owner researcher reviewer",
    "/curate": "owner researcher curator",
    "/pictures": "owner researcher reviewer curator",
}
"""The table of the documentation; a path stands for what is below it."""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    study = web_study(tmp_path_factory.mktemp("roles"), surveys=[1])
    for role in Role:
        Accounts(study.store).add(f"{role}-person", role, PASSWORD)
    return app_of(study, ServerSettings())


@pytest.fixture(scope="module")
def people(app: FastAPI) -> Iterator[dict[str, TestClient]]:
    with TestClient(app, follow_redirects=False, headers=OWN) as nobody:
        clients = {"nobody": nobody}
        for role in Role:
            client = TestClient(app, follow_redirects=False, headers=OWN)
            answer = client.post("/admin/login", data={"name": f"{role}-person", "password": PASSWORD})
            assert answer.status_code == 303
            clients[role.value] = client
        yield clients


def routes(app: FastAPI) -> list[tuple[str, str]]:
    """Every route for staff: its method and an address of it."""
    found = []
    routers = [part.original_router for part in app.routes if hasattr(part, "original_router")]
    included = [route for router in routers for route in router.routes]
    for route in (*app.routes, *included):
        path = getattr(route, "path", "")
        if isinstance(route, Route) and not any(path == known or path.startswith(known + "/") for known in OPEN):
            path = route.path.replace("{path:path}", "results.json").replace("{sha256}", "0" * 64)
            for name in ("{request_id}", "{ident}", "{number}", "{width}"):
                path = path.replace(name, "1")
            found += [(method, path) for method in sorted((route.methods or set()) - {"HEAD"}) if path != "/"]
    return found


def test_every_route_of_staff_answers_each_role_as_the_table_says(app: FastAPI, people: dict[str, TestClient]) -> None:
    asked = routes(app)
    assert len(asked) > 15
    for method, path in asked:
        if path == "/admin/logout":
            continue  # it would end the session
        known = max((known for known in EXPECTED if path == known or path.startswith(known + "/")), key=len)
        for who, client in people.items():
            status = client.request(method, path).status_code
            if who == "nobody":
                assert status == 401, (method, path)
            elif who in EXPECTED[known].split():
                assert status not in (401, 403) and status < 500, (who, method, path, status)
            else:
                assert status == 403, (who, method, path, status)


def test_a_page_that_is_not_listed_is_for_owners_alone() -> None:
    assert [role for role in Role if may_open(role, "/something-new")] == [Role.OWNER]
    assert [role for role in Role if may_open(role, "/administration")] == [Role.OWNER]


def test_the_documentation_has_the_table_of_the_code() -> None:
    lines = DOCS.read_text("utf-8").splitlines()
    for path, roles in PAGES.items():
        marks = " | ".join("yes" if role in roles else "–" for role in Role)
        assert f"| `{path}` | {marks} |" in lines, path


@pytest.mark.parametrize("role", list(Role))
def test_everybody_begins_where_their_work_is_and_sees_only_what_they_may_open(app: FastAPI, role: Role) -> None:
    with TestClient(app, follow_redirects=False, headers=OWN) as client:
        answer = client.post("/admin/login", data={"name": f"{role}-person", "password": PASSWORD})
        begins = {"reviewer": "/admin/home", "curator": "/admin/home"}.get(role, "/admin")
        assert answer.headers["location"] == begins, "this study has neither judges nor portraits to choose"
        home = client.get("/admin/home")
        assert home.headers.get("location", "/admin/home") == begins
        if begins == "/admin/home":
            assert f"Nothing to do here for a {role}" in home.text and "Sign out" in home.text
            closed = client.get("/admin/people", headers={"accept": "text/html"})
            assert closed.status_code == 403 and "Sign out" in closed.text, "no dead end"
        if role in (Role.OWNER, Role.RESEARCHER):
            page = client.get("/admin").text
            assert ("/admin/accounts" in page) is (role is Role.OWNER)


def test_owners_add_change_and_remove_accounts_on_a_page_and_it_is_logged(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    app = app_of(study)
    with TestClient(app, headers=OWN) as owner, TestClient(app, headers=OWN) as ada:
        owner.post("/admin/login", data={"name": "admin", "password": PASSWORD})
        form = {"name": "Ada", "role": "owner", "password": PASSWORD}
        assert owner.post("/admin/accounts", data=form).status_code == 200
        assert owner.post("/admin/accounts", data=form).status_code == 422, "twice"
        assert owner.post("/admin/accounts", data=form | {"name": "Bo", "password": "1234567890"}).status_code == 422
        owner.post("/admin/accounts", data=form | {"name": "Bo", "role": "researcher"})
        ada.post("/admin/login", data={"name": "ADA", "password": PASSWORD})
        refused = ada.post("/admin/accounts/role", data={"name": "ada", "role": "curator"})
        assert refused.status_code == 409 and "only owner" in refused.text
        assert ada.post("/admin/accounts/remove", data={"name": "ada", "sure": "yes"}).status_code == 409
        assert "Remove bo?" in ada.get("/admin/accounts/remove", params={"name": "bo"}).text
        assert ada.post("/admin/accounts/remove", data={"name": "bo"}).status_code == 422, "not in one click"
        assert ada.post("/admin/accounts/remove", data={"name": "bo", "sure": "yes"}).status_code == 200
        assert set(Accounts(study.store).all()) == {"ada"}
        log = app.state.log.path.read_text()
    assert all(text in log for text in ("added the account ada (owner)", "removed the account bo"))
    assert PASSWORD not in log


def test_the_command_line_manages_accounts(tmp_path: Path) -> None:
    write_study(tmp_path)

    def run(*words: str) -> str:
        result = CliRunner().invoke(commands, ["admin", *words[:1], str(tmp_path), *words[1:]], input="\n")
        if isinstance(result.exception, EvenEditError):
            return f"refused: {result.exception}"
        assert result.exit_code == 0, result.output
        return result.output

    assert "no accounts" in run()
    run("add", "ada", "--role", "owner", "--password", PASSWORD)
    run("add", "bo", "--password", PASSWORD)
    assert [line.split() for line in run().splitlines()] == [["ada", "owner"], ["bo", "reviewer"]]
    assert "already" in run("add", "bo", "--password", PASSWORD)
    assert run("add", "bo", "--replace", "--role", "curator") == "bo is now curator\n", "the password stays"
    assert "new password" in run("add", "bo", "--replace", "--password", f"{PASSWORD} 2")
    assert [line.split() for line in run().splitlines()][1] == ["bo", "curator"]
    assert "only owner" in run("remove", "ada")
    run("remove", "bo")
    assert "no account" in run("add", "bo", "--replace", "--password", PASSWORD)
    assert [line.split() for line in run().splitlines()] == [["ada", "owner"]]
    assert "removed the account bo" in (tmp_path / "staff-log.jsonl").read_text()
