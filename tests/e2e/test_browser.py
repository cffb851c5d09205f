"""A participant's way in a real browser: by keyboard, on a phone, offline and back, on another device."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Response, expect

from evenedit.survey.questions import checks
from evenedit.survey.sessions import SurveyService
from evenedit.survey.visits import VisitEnding, VisitStage
from tests.support.browser import assert_accessible
from tests.support.web_study import PASSWORD, app_of, link, seated, serving, web_study

DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 780}, "is_mobile": True, "has_touch": True}
DARK: dict[str, Any] = DESKTOP | {"color_scheme": "dark"}
SCREEN = {1: DESKTOP, 2: PHONE, 3: DARK}


@dataclass
class Site:
    base: str
    service: SurveyService
    browser: Browser
    forbidden: re.Pattern[str]

    def device(self, **how: Any) -> BrowserContext:
        context = self.browser.new_context(locale="en-GB", reduced_motion="reduce", **how)
        context.set_default_timeout(60_000)
        return context

    def at_task(self, survey: int, participant: str, **how: Any) -> tuple[BrowserContext, Page]:
        """A device whose owner already sits at a task."""
        with seated(self.base, participant, survey) as client:
            token = client.cookies["visit"]
        return self.on_device(token, **how)

    def on_device(self, token: str, **how: Any) -> tuple[BrowserContext, Page]:
        """A device that has the cookie of a visit, as after typing its resume code."""
        context = self.device(**how)
        context.add_cookies([{"name": "visit", "value": token, "domain": "127.0.0.1", "path": "/survey"}])
        page = context.new_page()
        self.open_task(page)
        return context, page

    def open_task(self, page: Page) -> None:
        page.goto(self.base + "/survey/task")
        page.wait_for_selector("#task:not([hidden])")


@pytest.fixture(scope="module")
def site(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    loaded = web_study(tmp_path_factory.mktemp("browser"))
    secrets = [e.id for e in loaded.file.sections.editors] + list(loaded.store.requests())
    secrets += [
        *loaded.store.sources(),
        *(p.id for p in loaded.file.prompts),
        *(p.id for p in loaded.file.wino),
    ]
    secrets += [str(e.image) for e in loaded.store.edits().values()]
    secrets += [s.image for s in loaded.store.sources().values()]
    secrets += ["White", "Black", "20s", "70plus", "baseline", "feature", "mitigat", "placebo", "diagnosis", "gold"]
    secrets += ["Occupation", "Vulnerability", "Authority", "lightening", "swapped", "request_id", "condition"]
    app = app_of(loaded)
    with serving(app) as base:
        yield Site(base, app.state.survey, chromium, re.compile("|".join(map(re.escape, secrets))))


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def tab_to(page: Page, selector: str) -> None:
    """Reach something by Tab alone."""
    for _ in range(60):
        if page.evaluate("s => document.activeElement?.matches(s)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab never reached {selector}")


def walk_to_task(page: Page, site: Site, survey: int, participant: str) -> None:
    """Arrive, read, answer the check and consent, with the keyboard only; every page is looked at by axe."""
    page.goto(site.base + "/survey")
    assert_accessible(page)
    page.goto(link(site.base, participant, survey))
    assert_accessible(page)
    tab_to(page, "form .primary")
    press(page, "Enter")
    page.wait_for_url("**/check")
    assert_accessible(page)
    for check in checks(survey):
        tab_to(page, f"input[name={check.question.id}]")
        press(page, "Space", *["ArrowDown"] * (check.right - 1))
    tab_to(page, "form .primary")
    press(page, "Enter")
    page.wait_for_url("**/consent")
    assert_accessible(page)
    for box in ("adult", "agreed"):
        tab_to(page, f"input[name={box}]")
        press(page, "Space")
    tab_to(page, "button[value=agree]")
    press(page, "Enter")
    page.wait_for_url("**/task")
    page.wait_for_selector("#task:not([hidden])")


def saved(page: Page) -> None:
    expect(page.locator("#state")).to_have_attribute("data-state", "saved")


def token_of(context: BrowserContext) -> str:
    return next(cookie["value"] for cookie in context.cookies() if cookie["name"] == "visit")


def planned(service: SurveyService, token: str) -> dict[tuple[str, str, str], int]:
    """What the participant will answer: a varied pattern, and what an instructed item asks for."""
    plan = {}
    for item in service.items(token):
        order = list(dict.fromkeys(asked.question.id for asked in item.questions))
        for asked in item.questions:
            varied = 1 + (item.number + 2 * order.index(asked.question.id) + (asked.slot == "B")) % 3
            plan[item.id, asked.slot, asked.question.id] = item.instructed or varied
    return plan


def given(service: SurveyService, token: str) -> dict[tuple[str, str, str], int]:
    return {(item.id, *key): value for item in service.items(token) for key, value in item.answers.items()}


def answer_item(
    page: Page, service: SurveyService, token: str, number: int, plan: dict[tuple[str, str, str], int]
) -> None:
    """Answer all rows of the item on screen with the number keys."""
    item = service.items(token)[number - 1]
    for row in page.locator(".group").all():
        question, _, slot = str(row.get_attribute("data-row")).partition("/")
        press(page, str(plan[item.id, slot, question]))


@pytest.mark.parametrize("survey", [1, 2, 3])
def test_a_session_by_keyboard_survives_reload_offline_and_another_device(site: Site, survey: int) -> None:
    device = site.device(**SCREEN[survey])
    page = device.new_page()
    walk_to_task(page, site, survey, f"walker-{survey}")
    token = token_of(device)
    plan = planned(site.service, token)
    assert_accessible(page)

    answer_item(page, site.service, token, 1, plan)
    saved(page)
    before = given(site.service, token)
    assert before == {key: value for key, value in plan.items() if key in before} and before
    page.reload()
    page.wait_for_selector("#task:not([hidden])")
    expect(page.locator("#done-count")).to_contain_text("1 of 3")
    expect(page.locator(".group input:checked")).to_have_count(len(before))
    code = page.locator("#resume-code").inner_text()

    other = site.device(**SCREEN[survey])  # the same person on another device, by the code shown under "Take a break"
    page = other.new_page()
    page.goto(site.base + "/survey")
    tab_to(page, "input[name=code]")
    page.keyboard.type(code.lower().replace("-", " "))
    press(page, "Enter")
    page.wait_for_url("**/task**")
    page.wait_for_selector("#task:not([hidden])")
    expect(page.locator("#item-title")).to_contain_text("2 of 3")
    expect(page.locator("#pictures img").first).to_have_attribute("src", re.compile("^blob:"))

    other.set_offline(True)
    answer_item(page, site.service, token, 2, plan)
    expect(page.locator("#state")).to_have_attribute("data-state", "offline")
    assert given(site.service, token) == before, "nothing arrives while offline"
    assert_accessible(page)
    press(page, "n")
    expect(page.locator("#item-title")).to_contain_text("3 of 3")
    answer_item(page, site.service, token, 3, plan)
    other.set_offline(False)
    saved(page)
    assert given(site.service, token) == plan, "the database holds exactly what was given"

    press(page, "p")
    first = page.locator(".group").first
    question, _, slot = str(first.get_attribute("data-row")).partition("/")
    changed = (site.service.items(token)[1].id, slot, question)
    if site.service.items(token)[1].instructed is None:
        plan[changed] = plan[changed] % 3 + 1
        press(page, "ArrowDown", str(plan[changed]))
        saved(page)
    tab_to(page, "#next")
    press(page, "Enter", "n")
    assert_accessible(page)
    tab_to(page, "#hand-in-yes")
    press(page, "Enter")
    page.wait_for_url("**/done")
    assert_accessible(page)
    assert given(site.service, token) == plan
    visit = site.service.visit(token)
    assert visit is not None and (visit.stage, visit.ending) == (VisitStage.DONE, VisitEnding.COMPLETED)
    page.reload()
    completion = site.service.completion(token)
    assert completion is not None
    expect(page.locator("#code")).to_have_text(completion.code)
    page.goto(site.base + "/survey/withdraw")
    assert_accessible(page)
    device.close()
    other.close()


@pytest.mark.parametrize("survey", [1, 2])  # survey 3 asks about gender and names it
def test_no_page_header_url_or_picture_reveals_a_group_model_or_condition(site: Site, survey: int) -> None:
    device = site.device()
    page = device.new_page()
    seen: list[Response] = []
    page.on("response", lambda response: seen.append(response))
    page.goto(link(site.base, f"looker-{survey}", survey))
    with seated(site.base, f"looker-{survey}", survey) as client:
        token = client.cookies["visit"]
    device.add_cookies([{"name": "visit", "value": token, "domain": "127.0.0.1", "path": "/survey"}])
    site.open_task(page)
    for number in (1, 2, 3):
        page.locator("#strip button").nth(number - 1).click()
        expect(page.locator("#item-title")).to_contain_text(f"{number} of 3")
        expect(page.locator("#pictures img")).to_have_count(3)
        expect(page.locator("#pictures img:not([src^='blob:'])")).to_have_count(0)
        assert not site.forbidden.search(page.content())
    shown = [r for r in seen if "/static/" not in r.url and r.url.startswith("http")]
    pictures = [r for r in shown if "/survey/pictures/" in r.url]
    assert len(pictures) == 9 and len({len(r.url) for r in pictures}) == 1, "picture addresses all look alike"
    for response in shown:
        text = response.url + json.dumps(response.all_headers())
        body = page.request.get(response.url).body()
        if response.headers.get("content-type") == "image/jpeg":
            assert _segments(body) <= {0xE0, 0xDB, 0xC0, 0xC4, 0xDA}, "only what a decoder needs: no EXIF, no comments"
        assert not site.forbidden.search(text + body.decode("latin-1")), response.url
        assert response.headers["cache-control"] == "no-store", response.url
    device.close()


def _segments(jpeg: bytes) -> set[int]:
    """The markers of a JPEG file up to its pixels."""
    found, at = set(), 2
    while at < len(jpeg) and jpeg[at] == 0xFF:
        found.add(jpeg[at + 1])
        if jpeg[at + 1] == 0xDA:
            break
        at += 2 + int.from_bytes(jpeg[at + 2 : at + 4])
    return found


def test_answers_are_saved_where_the_browser_forbids_storage(site: Site) -> None:
    device = site.device()
    device.add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw new Error('forbidden') }})")
    with seated(site.base, "no-storage", 2) as client:
        token = client.cookies["visit"]
    device.add_cookies([{"name": "visit", "value": token, "domain": "127.0.0.1", "path": "/survey"}])
    page = device.new_page()
    site.open_task(page)
    press(page, "1", "2")
    saved(page)
    assert sorted(given(site.service, token).values()) == [1, 2]
    device.close()


def test_two_tabs_keep_the_answer_given_last(site: Site) -> None:
    device, one = site.at_task(2, "two-tabs")
    two = device.new_page()
    site.open_task(two)
    item = site.service.items(token_of(device))[0]
    for page, key in ((one, "1"), (one, "2"), (two, "3")):
        page.bring_to_front()
        row = page.locator(".group").first
        row.locator("input").first.focus()
        press(page, key)
        saved(page)
    assert given(site.service, token_of(device))[item.id, "", item.questions[0].question.id] == 3
    device.close()


def test_of_two_devices_at_once_the_page_that_lost_shows_what_was_kept(site: Site) -> None:
    first, one = site.at_task(2, "two-devices")
    second, two = site.on_device(token_of(first))
    for key in ("1", "2", "3"):
        two.locator(".group").first.locator("input").first.focus()
        press(two, key)
        saved(two)
    one.locator(".group").first.locator("input").first.focus()
    press(one, "1")
    expect(one.locator("#trouble")).to_contain_text("answered on another device")
    expect(one.locator(".group").first.locator("input:checked")).to_have_value("3")
    assert set(given(site.service, token_of(first)).values()) == {3}
    one.locator(".group").first.locator("input").first.focus()
    press(one, "2")  # from here on it counts further than the other
    saved(one)
    assert set(given(site.service, token_of(first)).values()) == {2}
    first.close()
    second.close()


def test_keys_can_be_changed_and_switched_off(site: Site) -> None:
    device, page = site.at_task(2, "keys")
    zoomed = page.locator("#zoom")
    press(page, "z")
    expect(zoomed).to_have_attribute("aria-pressed", "true")
    origins = page.locator("#pictures img").evaluate_all(
        "all => all.map(i => i.style.transform + i.style.transformOrigin)"
    )
    assert len(origins) == 3 and len(set(origins)) == 1, "all pictures show the same place"
    press(page, "z")
    page.click("#open-keys")
    assert_accessible(page)
    page.locator("#key-buttons button", has_text="z").click()
    press(page, "x", "Escape", "x")
    expect(zoomed).to_have_attribute("aria-pressed", "true")
    page.click("#open-keys")
    page.locator("#keys-on").uncheck()
    press(page, "Escape", "3", "x")
    expect(zoomed).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".group input:checked")).to_have_count(0)
    press(page, "?")
    expect(page.locator("#help")).not_to_be_visible()
    device.close()


def test_a_korean_browser_reads_korean_and_can_switch(site: Site) -> None:
    context = site.browser.new_context(locale="ko-KR")
    page = context.new_page()
    page.goto(link(site.base, "korean"))
    assert page.evaluate("document.documentElement.lang") == "ko"
    expect(page.locator("h1")).to_have_text("진행 방법")
    expect(page.locator("body")).to_contain_text("원본과 비교해 피부 톤이 어떻게 달라졌습니까?")
    assert_accessible(page)
    page.click("nav.languages a[lang=en]")
    expect(page.locator("h1")).to_have_text("How it works")
    context.close()


@pytest.mark.parametrize("screen", [DESKTOP, DARK, PHONE], ids=["desktop", "dark", "phone"])
def test_staff_pages_are_accessible(site: Site, screen: dict[str, Any]) -> None:
    device = site.device(**screen)
    page = device.new_page()
    page.goto(site.base + "/admin/people")
    assert_accessible(page)
    page.fill("input[name=password]", PASSWORD)
    press(page, "Enter")
    page.wait_for_url(site.base + "/admin/people")
    assert_accessible(page)
    for path in ("/admin", "/admin/rejections"):
        page.goto(site.base + path)
        assert_accessible(page)
    device.close()


def test_a_participant_can_leave_and_everything_is_erased(site: Site) -> None:
    device, page = site.at_task(2, "leaver")
    token = token_of(device)
    press(page, "1", "2")
    saved(page)
    page.click("footer a")
    page.click("button[value=yes]")
    page.wait_for_url("**/withdrawn")
    assert_accessible(page)
    assert site.service.visit(token) is None
    assert not [cookie for cookie in device.cookies() if cookie["name"] == "visit"]
    device.close()
