"""The curation room in a real browser: by mouse, by keyboard, by two reviewers at once."""

from pathlib import Path

import pytest
from fastapi import HTTPException
from fastapi.testclient import TestClient
from playwright.sync_api import Page, expect

from evenedit.curation import portraits
from evenedit.curation.log import ActionKind, CellStatus
from evenedit.curation.pools import CELLS, make_pools
from evenedit.curation.session import CurationSession
from evenedit.web import auth as guard
from tests.support.browser import assert_accessible
from tests.support.curating import ALL_SIX, app_of, curated, draw_folder
from tests.support.studies import write_study
from tests.support.web_study import serving

CELL, NEXT = "White_Male_20s", "White_Male_30s"


@pytest.fixture(scope="module")
def pools(tmp_path_factory) -> Path:
    """Three screened pools of drawn faces."""
    folder = tmp_path_factory.mktemp("room")
    make_pools(draw_folder(folder / "data", 3, size=96), folder / "pools", seeds=[1, 2, 3])
    return folder / "pools"


@pytest.fixture
def study(tmp_path, pools) -> Path:
    return curated(tmp_path / "study", pools)


@pytest.fixture
def session(study, pools) -> CurationSession:
    return CurationSession(study, pools, study / "portraits")


@pytest.fixture
def url(study):
    with serving(app_of(study)) as address:
        yield address


@pytest.fixture
def visit(chromium, url):
    """Open a page as a reviewer; anything a script trips over fails the test."""
    contexts, problems = [], []

    def go(path: str, reviewer: str = "Ada", **options) -> Page:
        context = chromium.new_context(base_url=url, extra_http_headers={"x-reviewer": reviewer}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(path)
        return page

    yield go
    for context in contexts:
        context.close()
    assert problems == []


def card(page: Page, pool: str):
    return page.locator(f".candidate[data-pool={pool}]")


# -- calls ---------------------------------------------------------------------------------------------------


def act(client: TestClient, reviewer: str, pool: str, seen: int = 0, **changes):
    body = {"action": "select", "cell": CELL, "pool": pool, "criteria": ALL_SIX, "note": "", "seen": seen}
    body |= {"token": f"token {reviewer} {pool} {seen}"} | changes
    return client.post("/curate/api/act", json=body, headers={"x-reviewer": reviewer})


def test_the_second_of_two_reviewers_is_told_who_came_first(study, session):
    client = TestClient(app_of(study))
    assert act(client, "Ada", "V1").status_code == 200
    late = act(client, "Bo", "V2")
    assert late.status_code == 409
    assert late.json()["message"].startswith("Ada selected V1 for White · Male · 20s before you.")
    assert late.json()["selected"] == ["V1"]
    assert [(a.reviewer, a.pool, a.in_force) for a in session.log.actions()] == [
        ("Ada", "V1", True),
        ("Bo", "V2", False),
    ]
    news = client.get("/curate/api/since/0", params={"cell": CELL}, headers={"x-reviewer": "Cy"}).json()
    assert [n["text"] for n in news["news"]] == ["Ada selected V1 for White · Male · 20s"]
    assert news["tiles"][CELL]["status"] == "done" and news["counts"] == {"done": 1, "open": 83}
    page = client.get("/curate/log").text
    assert "no effect: 1 was first" in page


def test_bad_calls_are_answered_with_words(study, session):
    client = TestClient(app_of(study))
    assert "no candidate of pool V8" in act(client, "Ada", "V8").json()["error"]["message"]
    assert "unknown criterion" in act(client, "Ada", "V1", criteria=["rich"]).json()["error"]["message"]
    assert act(client, "Ada", "V1", action="steal").status_code == 422
    assert act(client, "Ada", "V1", note="x" * 3000).status_code == 422
    assert client.post("/curate/api/undo", json={"action": 1, "cell": CELL, "token": "12345678"}).status_code == 422
    refused = client.post("/curate/api/finalise", json={"sure": True})
    assert refused.status_code == 409 and refused.json()["error"]["message"].count("no image chosen") == 84
    assert client.post("/curate/api/finalise", data={"sure": "true"}).status_code == 422, "no other site's form"
    assert client.get("/curate/cell/Green_Male_20s").status_code == 404
    assert client.get(f"/curate/image/{CELL}/V9").status_code == 404
    assert client.get("/curate/image/..%2f..%2fstudy.toml/V1").status_code == 404
    assert session.log.actions() == []


def test_every_door_of_the_room_asks_who_is_there(study):
    app = app_of(study)

    def nobody() -> str:
        raise HTTPException(401)

    app.dependency_overrides[guard.staff] = nobody
    client = TestClient(app)
    paths = ["", f"/cell/{CELL}", f"/image/{CELL}/V1", "/log", "/log.json", "/screen", "/finalise", "/api/since/0"]
    assert {client.get(f"/curate{path}").status_code for path in paths} == {401}
    calls = ["act", "undo", "finalise"]
    assert {client.post(f"/curate/api/{call}", json={}).status_code for call in calls} == {401}


def test_a_note_is_shown_as_text_and_never_run(study):
    client = TestClient(app_of(study))
    act(client, "Ada", "V1", note="<script>alert(1)</script>")
    for path in ("/curate/log", f"/curate/cell/{CELL}"):
        assert "<script>alert(1)" not in client.get(path).text


def test_there_is_no_room_without_curation_and_a_word_where_pools_are_missing(tmp_path, study):
    assert TestClient(app_of(write_study(tmp_path / "other"))).get("/curate").status_code == 404
    bare = TestClient(app_of(curated(tmp_path / "bare", tmp_path / "nowhere"))).get("/curate")
    assert bare.status_code == 503 and "evenedit sources pools" in bare.text


# -- the browser ---------------------------------------------------------------------------------------------


def test_a_cell_is_curated_by_mouse(visit, session):
    page = visit("/curate")
    page.locator(f"[data-cell={CELL}]").click()
    expect(page.locator("h1")).to_have_text("White · Male · 20s")
    expect(page.locator("#status")).to_have_text("open")
    second = card(page, "V2")
    second.get_by_label("Frontal face").check()
    expect(page.locator("#announcement")).to_have_text("Saved: assessed V2 for White · Male · 20s.")
    second.get_by_role("button", name="Tick all six").click()
    second.get_by_label("Note").fill("light from the left")
    second.get_by_role("button", name="Select V2").click()
    expect(page.locator("#status")).to_have_text("done")
    expect(second.locator(".chosen")).to_be_visible()
    state = session.state()[CELL]
    assert state.selected == ["V2"] and state.status(1) is CellStatus.DONE
    assert state.assessments["V2"].note == "light from the left"
    page.reload()
    expect(card(page, "V2").get_by_label("Note")).to_have_value("light from the left")
    expect(card(page, "V2").get_by_label("Upright posture")).to_be_checked()
    page.get_by_role("link", name="All cells").click()
    expect(page.locator(f"[data-cell={CELL}] .status")).to_have_text("done V2")
    page.get_by_role("link", name="open 83").click()
    expect(page.locator(".tile")).to_have_count(83)


def test_a_cell_is_curated_by_keyboard_and_undone(visit, session):
    page = visit(f"/curate/cell/{CELL}")
    for key in ("3", "f", "c", "l", "i", "n"):
        page.keyboard.press(key)
    expect(card(page, "V3").get_by_label("Neutral expression")).to_be_checked()
    page.keyboard.press("m")
    page.keyboard.type("sits well")  # letters in a note are letters
    page.keyboard.press("Escape")
    page.keyboard.press("s")
    expect(page.locator("#status")).to_have_text("criteria unmet")
    page.keyboard.press("u")
    expect(page.locator("#status")).to_have_text("done")
    page.keyboard.press("z")
    expect(page.locator("#status")).to_have_text("criteria unmet")
    page.keyboard.press("z")
    expect(page.locator("#status")).to_have_text("open")
    assert session.state()[CELL].selected == []
    page.keyboard.press("a")
    page.keyboard.press("s")
    expect(page.locator("#status")).to_have_text("done")
    assert session.state()[CELL].assessments["V3"].note == "sits well"
    page.keyboard.press("ArrowRight")
    expect(page.locator("h1")).to_have_text("White · Male · 30s")
    expect(page.locator("#status")).to_have_text("open")
    page.keyboard.press("g")
    expect(page.locator("h1")).to_have_text("Choose the portraits")
    page.wait_for_load_state()
    page.keyboard.press("o")
    expect(page.locator("h1")).to_have_text("White · Male · 30s")
    expect(page.locator("#status")).to_have_text("open")
    page.get_by_text("Keyboard", exact=True).click()
    page.get_by_label("Single-key shortcuts").uncheck()
    expect(page.get_by_label("Single-key shortcuts")).not_to_be_checked()
    page.keyboard.press("a")
    page.keyboard.press("ArrowRight")
    expect(page.locator("h1")).to_have_text("White · Male · 30s")
    assert session.state()[NEXT].assessments == {}, "shortcuts that are off do nothing"


def test_keys_move_over_the_grid(visit):
    page = visit("/curate", viewport={"width": 1280, "height": 900})
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(page.locator(":focus")).to_have_attribute("data-cell", "Black_Male_30s")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Black · Male · 30s")


def test_two_reviewers_in_one_cell_see_what_happens(visit, session):
    ada, bo = visit(f"/curate/cell/{CELL}", "Ada"), visit("about:blank", "Bo")
    bo.route("**/api/since/**", lambda route: route.abort())  # Bo's page does not look again
    bo.goto(f"/curate/cell/{CELL}")
    card(ada, "V1").get_by_role("button", name="Select V1").click()
    expect(ada.locator("#status")).to_have_text("criteria unmet")
    card(bo, "V2").get_by_role("button", name="Select V2").click()
    expect(bo.locator("#alert")).to_contain_text("Ada selected V1 for White · Male · 20s before you.")
    expect(card(bo, "V1").locator(".chosen")).to_be_visible()
    expect(card(bo, "V2").locator(".chosen")).to_be_hidden()
    assert len(session.log.actions()) == 2 and session.state()[CELL].selected == ["V1"]
    card(bo, "V2").get_by_role("button", name="Select V2").click()  # knowing it now
    expect(card(bo, "V2").locator(".chosen")).to_be_visible()
    expect(ada.locator("#alert")).to_contain_text("Bo selected V2")
    expect(card(ada, "V2").locator(".chosen")).to_be_visible()


def test_what_is_done_while_the_server_is_away_arrives_when_it_is_back(visit, session):
    page = visit(f"/curate/cell/{CELL}")
    page.context.set_offline(True)
    card(page, "V1").get_by_role("button", name="Tick all six").click()
    card(page, "V1").get_by_role("button", name="Select V1").click()
    expect(page.locator("#alert")).to_contain_text("Not saved yet")
    assert session.log.actions() == []
    page.context.set_offline(False)
    expect(page.locator("#status")).to_have_text("done")
    expect(page.locator("#alert")).to_be_hidden()
    assert [a.kind for a in session.log.actions()] == [ActionKind.ASSESS, ActionKind.SELECT]


def test_the_set_is_finalised_with_its_checks_and_summary(visit, session, study, monkeypatch):
    monkeypatch.setattr(portraits, "SIDE", 64)  # only to be quick
    for number, cell in enumerate(CELLS[1:]):
        session.act("Bo", ActionKind.SELECT, cell, f"V{1 + number % 3}", criteria=ALL_SIX)
    page = visit("/curate/finalise")
    button = page.get_by_role("button", name="Write 84 portraits")
    expect(button).to_be_disabled()
    page.get_by_role("link", name="White · Male · 20s").click()
    expect(page.locator("#status")).to_have_text("open")
    page.keyboard.press("1")
    page.keyboard.press("a")
    page.keyboard.press("s")
    expect(page.locator("#status")).to_have_text("done")
    page.get_by_role("link", name="Finalise").click()
    expect(page.locator("table.pools").first.locator("td")).to_have_text(["29", "28", "27", "84"])
    button.click()
    expect(page.locator("#finalised")).to_be_visible(timeout=60_000)
    manifest = portraits.verify(study / "portraits")
    assert manifest["distribution"] == {"V1": 29, "V2": 28, "V3": 27}
    assert session.log.actions()[-1].kind is ActionKind.FINALISE and session.log.actions()[-1].reviewer == "Ada"
    page.reload()
    expect(page.locator(".note-box")).to_contain_text("It equals the current choice.")
    session.undo(
        "Ada", next(a.id for a in session.log.actions() if a.reviewer == "Ada" and a.kind is ActionKind.SELECT)
    )
    page.reload()
    expect(page.locator(".note-box")).to_contain_text("The choice has changed since.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_can_be_used_by_everybody(visit, session, scheme, width):
    session.act("Ada", ActionKind.SELECT, CELL, "V1", criteria=ALL_SIX)
    session.act("Ada", ActionKind.SELECT, NEXT, "V1", criteria=ALL_SIX[:2], note="a long note " * 20)
    session.undo("Ada", 1)
    page = visit("/curate", color_scheme=scheme, viewport={"width": width, "height": 800})
    for path in (
        "/curate",
        f"/curate/cell/{NEXT}?sort=screen&state=unmet",
        "/curate/log",
        "/curate/screen",
        "/curate/finalise",
    ):
        page.goto(path)
        assert_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} is wider than the screen"


def test_sorting_by_the_pre_screen_shows_every_candidate(visit):
    page = visit(f"/curate/cell/{CELL}")
    drawn = page.locator(".candidate").evaluate_all("cards => cards.map(c => c.dataset.pool)")
    expect(card(page, "V1").locator(".screen")).to_contain_text("of 5")
    page.get_by_role("link", name="by pre-screen").click()
    page.wait_for_url("**sort=screen**")
    ordered = page.locator(".candidate").evaluate_all("cards => cards.map(c => c.dataset.pool)")
    assert drawn == ["V1", "V2", "V3"] and sorted(ordered) == drawn
