"""The review room: by HTTP and in a real browser, by keyboard only, by two reviewers at once."""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from evenedit.cases.review_queue import ReviewQueue
from evenedit.web.audit_log import AuditLog
from tests.support.browser import assert_accessible
from tests.support.reviewing import CARELESS, settle
from tests.support.studies import open_study
from tests.support.web_study import PASSWORD, app_of, serving

OWN = {"sec-fetch-site": "same-origin", "accept": "text/html"}


@pytest.fixture(scope="module")
def rated(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("rated")
    open_study(folder, **CARELESS).run()
    return folder


@pytest.fixture
def site(rated, tmp_path):
    """The app over a fresh copy of the study, with its queue."""
    contexts = []

    def opened(**ensemble) -> tuple[str, ReviewQueue]:
        folder = tmp_path / "study"
        shutil.copytree(rated, folder)
        loaded = open_study(folder, **CARELESS, ensemble=ensemble)
        running = serving(app_of(loaded))
        contexts.append((running, loaded))
        return running.__enter__(), ReviewQueue(loaded)

    yield opened
    for running, loaded in contexts:
        running.__exit__(None, None, None)
        loaded.store.close()


@pytest.fixture
def staff() -> Iterator[Callable[[str], httpx.Client]]:
    """Sign in as staff, any number of times."""
    with ExitStack() as clients:

        def sign_in(base: str, name: str = "admin") -> httpx.Client:
            client = httpx.Client(
                base_url=base, headers=OWN | {"accept": "text/html"}, follow_redirects=True, timeout=30
            )
            clients.enter_context(client)
            client.post("/admin/login", data={"name": name, "password": PASSWORD})
            return client

        yield sign_in


@pytest.fixture
def reviewer(staff):
    """Somebody who has an account of their own and has signed in."""

    def named(base: str, name: str) -> httpx.Client:
        add_account(staff(base), name)
        client = staff(base, name)
        assert "Reviewing as" in client.get("/review").text
        return client

    return named


def add_account(owner: httpx.Client, name: str, role: str = "researcher") -> None:
    form = {"name": name, "role": role, "password": PASSWORD}
    assert owner.post("/admin/accounts", data=form).status_code == 200


def version(page: str) -> str:
    return re.search(r'name="version" value="(\w+)"', page)[1]


# -- by HTTP -------------------------------------------------------------------------------------------------


def test_nobody_enters_who_has_not_signed_in_and_no_other_site_can_settle(site, reviewer):
    base, queue = site()
    ident = next(iter(queue.cases))
    for path in ("/review", "/review/next", f"/review/case/{ident}", "/review/agreement"):
        assert httpx.get(base + path).status_code == 401
    for path in (f"/review/case/{ident}", "/review/undo"):
        assert httpx.post(base + path, data={}).status_code == 401
    ada = reviewer(base, "Ada")
    case = ada.get(f"/review/case/{ident}").text
    form = {"version": version(case), **dict.fromkeys(queue.form(ident, "review:ada").needed, "3")}
    for foreign in ({"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "", "origin": "https://elsewhere.example"}):
        assert ada.post(f"/review/case/{ident}", data=form, headers=foreign).status_code == 403
    assert queue.reviews.history() == []


def test_one_sign_in_is_one_reviewer_and_a_misleading_name_gets_no_account(site, staff, reviewer):
    base, queue = site()
    owner = staff(base)
    assert "Reviewing as <b>admin</b>" in owner.get("/review").text
    refused = owner.post("/admin/accounts", data={"name": "simulated-ada", "role": "reviewer", "password": PASSWORD})
    assert refused.status_code == 422 and "a reviewer is a person" in refused.text
    sujin = reviewer(base, "수진")
    assert "Reviewing as <b>수진</b>" in sujin.get("/review").text
    sujin.cookies.set("reviewer", "somebody-else", path="/review")
    assert sujin.post("/review/name", data={"name": "somebody-else"}).status_code in (404, 405)
    ident = next(iter(queue.cases))
    form = {"version": version(sujin.get(f"/review/case/{ident}").text)}
    form |= dict.fromkeys(queue.form(ident, "review:수진").needed, "3")
    assert sujin.post(f"/review/case/{ident}", data=form).status_code == 200
    assert [r.rater for r in queue.reviews.history()] == ["review:수진"]


def test_a_case_tells_no_label_no_editor_and_no_condition_before_it_is_settled(site, reviewer):
    base, queue = site()
    ada = reviewer(base, "Ada")
    store = queue.study.store
    secrets = [*store.sources(), *(e.id for e in queue.study.file.sections.editors), "baseline", "diagnosis", "O-01"]
    secrets += [label for s in store.sources().values() for label in s.attributes.values()]
    for ident in queue.cases:
        shown = ada.get(f"/review/case/{ident}").text
        words = re.sub(r"<[^>]*>", " ", shown)
        assert not [secret for secret in secrets if re.search(rf"\b{re.escape(secret)}\b", words)]
        assert "SIMULATED" in words and "simulated-judge-1" in words
        assert " checked" not in shown, "prefilled with nothing"
        assert ada.get(re.search(r'src="(/pictures/\w+)"', shown)[1]).headers["content-type"] == "image/png"


def test_settling_leads_to_the_next_case_and_is_logged_and_can_be_undone(site, reviewer):
    base, queue = site()
    ada = reviewer(base, "Ada")
    first, second = list(queue.cases)[:2]
    case = ada.get("/review/next")
    assert case.url.path == f"/review/case/{first}"
    form = dict.fromkeys(queue.cases[first].disputed, "2") | {
        "version": version(case.text),
        "note": "plain <b>to</b> see",
    }
    after = ada.post(f"/review/case/{first}", data=form)
    assert after.url.path == f"/review/case/{second}" and f"/gallery/case/{first}" in after.text
    (done,) = queue.reviews.history()
    assert done.rater == "review:ada" and done.answers == dict.fromkeys(queue.cases[first].disputed, 2)
    assert "plain &lt;b&gt;to&lt;/b&gt; see" in ada.get("/review").text
    undone = ada.post("/review/undo", data={"review": done.id})
    assert undone.url.path == f"/review/case/{first}" and queue.last("review:ada") is None
    assert ada.post("/review/undo", data={"review": done.id}).status_code == 409
    assert ada.post("/review/undo", data={"review": 99}).status_code == 404
    log = AuditLog(queue.study.store.folder).entries()
    assert [(e["action"], e["case"], e["reviewer"]) for e in log[:2]] == [
        ("undid a review", first, "review:ada"),
        ("settled a case", first, "review:ada"),
    ]
    assert log[1]["answers"] == done.answers and log[1]["note"] == "plain <b>to</b> see"


def test_what_is_missing_is_told_and_what_was_chosen_is_kept(site, reviewer):
    base, queue = site()
    ada = reviewer(base, "Ada")
    ident = next(i for i, c in queue.cases.items() if c.disputed and "race_drift" not in c.disputed)
    form = {"version": version(ada.get(f"/review/case/{ident}").text), "race_drift": "4", "note": "half done"}
    answer = ada.post(f"/review/case/{ident}", data=form)
    assert answer.status_code == 422 and "Please settle: " in answer.text
    assert re.search(r'name="race_drift" value="4" checked', answer.text) and "half done" in answer.text
    assert ada.post(f"/review/case/{ident}", data=form | {"race_drift": "9", "fame": "1"}).status_code == 422
    assert ada.post("/review/case/unknown", data=form).status_code == 404
    assert ada.get("/review/case/unknown").status_code == 404
    assert queue.reviews.history() == []


def test_two_reviewers_on_one_case_nothing_is_overwritten_silently(site, reviewer):
    base, queue = site()
    ada, bo = reviewer(base, "Ada"), reviewer(base, "Bo")
    ident = next(iter(queue.cases))
    form = dict.fromkeys(queue.cases[ident].disputed, "2") | {"version": version(ada.get(f"/review/case/{ident}").text)}
    assert bo.get("/review/next").url.path != f"/review/case/{ident}", "Ada looks at it, Bo is offered another"
    late = dict.fromkeys(queue.cases[ident].disputed, "5") | {"version": version(bo.get(f"/review/case/{ident}").text)}
    assert ada.post(f"/review/case/{ident}", data=form).status_code == 200
    told = bo.post(f"/review/case/{ident}", data=late | {"note": "mine"})
    assert told.status_code == 409 and "Ada settled this case before you" in told.text and "Note: mine" in told.text
    again = ada.post(f"/review/case/{ident}", data=form)
    assert again.status_code == 409 and "You have settled this case already" in again.text
    assert [(r.rater, set(r.answers.values())) for r in queue.reviews.history()] == [("review:ada", {2})]


def test_the_second_of_two_reviewers_sees_nothing_of_the_first_and_agreement_is_shown_after(site, reviewer):
    base, queue = site(reviewers=2)
    ident = next(i for i, c in queue.cases.items() if "race_drift" in c.questions)
    settle(queue, "review:ada", ident, note="a telling note", race_drift=1)
    bo = reviewer(base, "Bo")
    for page in (bo.get("/review").text, bo.get(f"/review/case/{ident}").text, bo.get("/review/agreement").text):
        assert "a telling note" not in page and "ada" not in page.lower()
    assert "No case has two reviews yet" in bo.get("/review/agreement").text
    settle(queue, "review:bo", ident, race_drift=4)
    assert "1 case waits for a third review" in bo.get("/review/agreement").text
    third = reviewer(base, "Cy").get(f"/review/case/{ident}").text
    assert "third review" in third and re.findall(r'data-question="(\w+)"', third) == ["race_drift"]
    assert "a telling note" not in third


def test_a_study_without_judges_has_no_review_room(tmp_path):
    loaded = open_study(tmp_path, judges=[])
    loaded.run()
    assert "/review" not in app_of(loaded).state.navigation
    loaded.store.close()


# -- in a browser --------------------------------------------------------------------------------------------


def enter(page: Page, base: str, name: str) -> None:
    """Sign in with an account of one's own, by keyboard."""
    with httpx.Client(base_url=base, headers=OWN, follow_redirects=True) as owner:
        owner.post("/admin/login", data={"name": "admin", "password": PASSWORD})
        add_account(owner, name)
    page.goto(f"{base}/review")
    page.locator("input[name=name]").fill(name)
    page.locator("input[name=password]").focus()
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_selector("#begin")


def ready(page: Page) -> None:
    """The script is at work once it has put the focus on a question."""
    page.wait_for_selector("fieldset.current input:focus")


def test_a_case_is_reviewed_with_the_keyboard_alone(site, chromium):
    base, queue = site()
    context = chromium.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(60_000)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    enter(page, base, "Ada")
    while not page.evaluate("document.activeElement.id === 'begin'"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    ready(page)
    ident = page.url.rsplit("/", 1)[1].split("?")[0]
    case = queue.cases[ident]
    expect(page.locator(":focus"), "the disputed question has the focus").to_have_attribute("name", case.disputed[0])
    page.keyboard.press("Enter")
    assert page.url.split("?")[0].endswith(ident) and queue.reviews.history() == [], "a disputed question was left open"
    page.keyboard.press("z")
    expect(page.locator("#pictures")).to_have_class(re.compile("zoomed"))
    page.keyboard.press("z")
    wanted = {}
    for _ in case.questions:  # to the top, then down, one answer each
        page.keyboard.press("ArrowUp")
    for number, question in enumerate(case.questions):
        expect(page.locator(":focus")).to_have_attribute("name", question)
        wanted[question] = 1 + number % 5
        page.keyboard.press(str(wanted[question]))
    page.keyboard.press("Enter")
    page.wait_for_selector("#saved")
    ready(page)
    (review,) = queue.reviews.history()
    assert review.answers == wanted and review.rater == "review:ada" and review.request_id == ident
    second = page.url
    page.keyboard.press("n")
    page.wait_for_url(lambda url: second.split("?")[0] not in url)
    page.goto(second)
    ready(page)
    page.keyboard.press("u")
    page.wait_for_url(f"**/review/case/{ident}")
    assert queue.last("review:ada") is None
    expect(page.locator("input:checked[type=radio]")).to_have_count(0)
    assert problems == []
    context.close()


@pytest.mark.parametrize("screen", ["light", "dark", "phone"])
def test_every_page_of_the_room_can_be_read_by_everybody(site, chromium, screen):
    base, queue = site(reviewers=2, review="settles")
    ident, other = [i for i, c in queue.cases.items() if "race_drift" in c.questions][:2]
    settle(queue, "review:bo", ident, note="clear", race_drift=1)
    settle(queue, "review:cy", ident, race_drift=5)
    settle(queue, "review:ada", other, race_drift=1)
    how = {
        "light": {"viewport": {"width": 1280, "height": 800}},
        "dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
        "phone": {"viewport": {"width": 390, "height": 780}, "is_mobile": True, "has_touch": True},
    }[screen]
    context = chromium.new_context(reduced_motion="reduce", **how)
    page = context.new_page()
    enter(page, base, "Ada")
    paths = ("/review", f"/review/case/{ident}", "/review/next", f"/review/case/{other}", "/review/agreement")
    for path in paths:
        page.goto(base + path)
        assert_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} is wider than the screen"
        assert page.locator("text=SIMULATED").count()
    context.close()
