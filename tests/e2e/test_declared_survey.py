"""A participant answers a study's own questions by keyboard, in English and Korean, on a wide screen and on a phone."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from evenedit.api.study import Study
from evenedit.survey.questions import checks
from evenedit.survey.sessions import SurveyService
from evenedit.survey.visits import Arrival
from tests.support.browser import assert_accessible
from tests.support.studies import open_study
from tests.support.surveys import DECLARED
from tests.support.web_study import app_of, serving

DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 780}, "is_mobile": True, "has_touch": True}
QUESTIONS = [question for question in DECLARED if question["id"] in ("background", "added")]
WORDS = {
    "en-GB": ("Cannot tell", "None of these", "What did the edit add?", "Image A"),
    "ko-KR": ("판단할 수 없음", "해당 없음", "무엇이 추가되었습니까?", "이미지 A"),
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Pairs of outputs, asked for a choice of five options and a set of three, and for nothing else."""
    loaded = open_study(
        tmp_path_factory.mktemp("declared-pages"),
        study={
            "title": "Own",
            "without": ["edit_success", "skin_tone", "race_drift", "gender_drift", "age_drift"],
        },
        experiments={"diagnosis": {}, "mitigation": {"cases": 4, "extractor": {"kind": "simulated"}}},
        judges=[],
        questions=QUESTIONS,
        survey={"cases": 4, "population": "mitigation", "items_per_task": 2, "instructed": 1, "raters_per_item": 40},
    )
    loaded.run()
    return loaded


@pytest.fixture(scope="module")
def site(study: Study) -> Iterator[tuple[str, SurveyService]]:
    app = app_of(study)
    with serving(app) as base:
        yield base, app.state.survey


def at_task(service: SurveyService, name: str) -> str:
    token = service.arrive(Arrival("panel", name, survey=1)).token
    service.read_guide(token)
    service.check(token, {check.question.id: check.right for check in checks(1, service.file.rubric)})
    service.consent(token, True)
    return token


def given(service: SurveyService, token: str, item: int) -> dict[tuple[str, str], int]:
    return dict(service.items(token)[item].answers)


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("language", WORDS)
def test_a_choice_and_a_set_are_answered_by_keyboard(
    site: tuple[str, SurveyService], chromium: Browser, language: str, screen: dict[str, Any]
) -> None:
    base, service = site
    token = at_task(service, f"{language} {screen['viewport']['width']}")
    context = chromium.new_context(locale=language, reduced_motion="reduce", **screen)
    context.set_default_timeout(60_000)
    context.add_cookies([{"name": "visit", "value": token, "domain": "127.0.0.1", "path": "/survey"}])
    page = context.new_page()
    page.goto(base + "/survey/guide")
    assert_accessible(page)
    page.goto(base + "/survey/task")
    page.wait_for_selector("#task:not([hidden])")
    task = service.items(token)
    at = next(number for number, item in enumerate(task) if item.instructed is None)
    page.locator("#strip button").nth(at).click()
    cannot_tell, none, text, image = WORDS[language]
    body = page.locator("#questions")
    for words in (cannot_tell, none, text, image):
        expect(body).to_contain_text(words)
    assert_accessible(page)

    order = next(asked.order for asked in task[at].questions if asked.question.id == "background")
    shown = page.locator("[data-row='background/A'] input").evaluate_all("all => all.map(i => Number(i.value))")
    assert shown == list(order) and shown[-1] == 6, "shuffled, with cannot tell last"
    press(page, "2", "0")  # Image A: the second option that is shown; Image B: cannot tell
    press(page, "1", "3")  # the set of Image A: two of its options, and the focus stays
    press(page, "ArrowDown", "2", "2", "0")  # of Image B: one, not that one, none of these
    expect(page.locator("#state")).to_have_attribute("data-state", "saved")
    expected = {
        ("A", "background"): order[1],
        ("B", "background"): 6,
        ("A", "added.glasses"): 1,
        ("A", "added.hat"): 2,
        ("A", "added.jewellery"): 1,
        **{("B", f"added.{code}"): 2 for code in ("glasses", "hat", "jewellery")},
    }
    assert given(service, token, at) == expected
    expect(page.locator("#strip button").nth(at)).to_have_attribute("data-state", "complete")

    page.reload()
    page.wait_for_selector("#task:not([hidden])")
    page.locator("#strip button").nth(at).click()
    ticked = page.locator(".group input:checked").evaluate_all("all => all.map(i => [i.name, Number(i.value)])")
    assert ticked == [["background/A", order[1]], ["background/B", 6], ["added/A", 1], ["added/A", 3], ["added/B", 0]]
    page.locator("[data-row='added/B'] input[value='0']").focus()
    press(page, "0")
    expect(page.locator("[data-row='added/B']")).to_have_class("group open")
    expect(page.locator("#strip button").nth(at)).to_have_attribute("data-state", "partial")
    sizes = page.locator(".option").evaluate_all("all => all.map(o => o.getBoundingClientRect().height)")
    assert min(sizes) >= (44 if screen is PHONE else 40)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the page"
    page.locator("#open-help").click()
    keys = page.locator("#key-list dt").first.locator("kbd").all_inner_texts()
    assert keys == ["1", "2", "3", "4", "5", "0"]
    context.close()
