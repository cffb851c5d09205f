"""The gallery room in a real browser: by mouse, by keyboard, without scripts."""

import io
import re
from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI
from PIL import Image
from playwright.sync_api import Locator, Page, Route, expect

from evenedit.cases.search import Gallery
from tests.support.browser import assert_accessible
from tests.support.studies import open_study
from tests.support.web_study import PASSWORD, app_of, serving

PAGES = ("/gallery", "/gallery/races", "/gallery/mosaic")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    """Nearly 200 cases: four races, six prompts; some refused, some on which the judges disagree."""
    races = ["White", "Black", "Indian", "Latino"]
    loaded = open_study(
        tmp_path_factory.mktemp("room"),
        sources={"kind": "drawn", "settings": {"seed": 3, "size": 96, "only": {"race": races, "age": ["30s", "60s"]}}},
        prompts={"include": ["O-01", "O-02", "O-06", "V-01", "V-02", "V-05"]},
        experiments={"diagnosis": {}, "stereotype": {"include": ["W-01"]}},
        editors=[
            {"id": "simulated-lightening", "settings": {"rate": 0.8, "groups": {"race": ["Black"]}}},
            {"id": "simulated-refusing", "settings": {"rate": 0.4}, "experiments": ["diagnosis"]},
        ],
        judges=[
            {"id": "simulated-judge-a", "kind": "simulated", "settings": {"seed": 1, "error": 0.4}},
            {"id": "simulated-judge-b", "kind": "simulated", "settings": {"seed": 2, "error": 0.4}},
        ],
    )
    loaded.run()
    return app_of(loaded)


@pytest.fixture(scope="module")
def base(app: FastAPI) -> Iterator[str]:
    with serving(app) as address:
        yield address


@pytest.fixture(scope="module")
def gallery(app: FastAPI) -> Gallery:
    found: Gallery = app.state.gallery.now()
    return found


@pytest.fixture(scope="module")
def cookie(base: str) -> str:
    with httpx.Client(base_url=base, headers={"Origin": base}) as client:
        client.post("/admin/login", data={"name": "admin", "password": PASSWORD})
        return client.cookies["staff"]


@pytest.fixture
def staff(base: str, cookie: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=base, cookies={"staff": cookie}) as client:
        yield client


@pytest.fixture
def visit(chromium, base, cookie):
    """Open a page as a member of staff; anything a script trips over fails the test."""
    contexts, problems = [], []

    def go(path: str, **options) -> Page:
        context = chromium.new_context(base_url=base, reduced_motion="reduce", **options)
        context.add_cookies([{"name": "staff", "value": cookie, "url": base}])
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(path)
        return page

    yield go
    for context in contexts:
        context.close()
    assert problems == []


def box(page: Page, name: str, value: str) -> Locator:
    return page.locator(f"input[name={name}][value={value}]")


def count(page: Page) -> int:
    return int(page.locator(".count-line b").inner_text().replace(",", ""))


def matching(gallery: Gallery, *pairs: tuple[str, str]) -> list[str]:
    rows = gallery.search(gallery.wanted(pairs)).rows
    return [str(gallery.book.scores.edits["request_id"].iloc[int(row)]) for row in rows]


# -- by mouse ------------------------------------------------------------------------------------------------


def test_a_filter_applies_at_once_its_address_is_a_permalink_and_back_undoes_it(visit, gallery):
    page = visit("/gallery")
    assert count(page) == len(gallery) and page.locator(".tile").count() == 48
    box(page, "race", "Black").check()
    wanted = [("race", "Black"), ("outcome", "edited")]
    expect(page.locator(".count-line b")).to_have_text(str(len(matching(gallery, wanted[0]))))
    assert box(page, "race", "Black").is_checked(), "the filter is in force and keeps the focus"
    expect(box(page, "race", "Black")).to_be_focused()
    box(page, "outcome", "edited").check()
    expect(page.locator(".count-line b")).to_have_text(str(len(matching(gallery, *wanted))))
    expect(page).to_have_url(re.compile(r"/gallery\?outcome=edited&race=Black$"))
    again = visit(page.url)
    shown = [tile.get_attribute("data-case") for tile in again.locator(".tile").all()]
    assert shown == matching(gallery, *wanted)[:48]
    page.get_by_role("link", name="Outcome: edited").click()
    expect(page).to_have_url(re.compile(r"/gallery\?race=Black$"))
    page.go_back()
    expect(page).to_have_url(re.compile(r"outcome=edited&race=Black$"))
    expect(page.locator(".count-line b")).to_have_text(str(len(matching(gallery, *wanted))))


def test_a_range_an_order_and_words_work_together_over_pages(visit, gallery):
    page = visit("/gallery?sort=drift")
    page.get_by_role("link", name="Next →").first.click()
    expect(page.locator(".pager").first).to_contain_text("page 2 of")
    page.get_by_label("Words in the prompt").fill("wheelchair")
    page.get_by_label("Words in the prompt").press("Enter")
    expect(page).to_have_url(re.compile(r"q=wheelchair&sort=drift$"))
    page.locator("#facet-numbers summary").click()
    page.get_by_role("group", name="Drift of the person").get_by_label("from").fill("1")
    page.get_by_role("button", name="Apply").first.click()
    expect(page).to_have_url(re.compile(r"drift\.min=1"))
    wanted = matching(gallery, ("q", "wheelchair"), ("drift.min", "1"), ("sort", "drift"))
    expect(page.locator(".count-line b")).to_have_text(str(len(wanted)))
    expect(page.locator(".tile")).to_have_count(len(wanted[:48]))
    assert [tile.get_attribute("data-case") for tile in page.locator(".tile").all()] == wanted[:48]


def test_a_case_shows_pictures_ratings_siblings_and_its_neighbours_in_the_filter(visit, gallery):
    wanted = matching(gallery, ("review", "yes"), ("experiment", "diagnosis"))
    assert len(wanted) > 2, "the study has disagreements to look at"
    page = visit("/gallery?review=yes&experiment=diagnosis")
    page.locator(".tile").first.click()
    expect(page).to_have_url(re.compile(rf"/gallery/case/{wanted[0]}\?experiment=diagnosis&review=yes"))
    case = gallery.book.open(wanted[0])
    expect(page.get_by_role("img", name=f"Source portrait {case.sources[0].id}")).to_be_visible()
    expect(page.get_by_role("img", name="Output of simulated-")).to_be_visible()
    change = page.get_by_role("img", name="Change map")
    change.scroll_into_view_if_needed()
    page.wait_for_function("image => image.complete && image.naturalWidth > 0", arg=change.element_handle())
    page.wait_for_load_state()
    assert page.locator("#disagreement").inner_text().count("simulated-judge") >= 2
    for opinion in case.opinions:
        said = page.locator(f"tr[data-rater={opinion.rater}]").inner_text()
        assert all(str(value) in said for value in opinion.values.values()) and "SIMULATED" in said
    siblings = page.locator(".siblings .tile")
    assert {s.get_attribute("href").rsplit("/")[-1] for s in siblings.all()} == {s.request_id for s in case.siblings}
    expect(page.locator(".case-nav")).to_contain_text(f"1 of {len(wanted)} in this filter")
    page.get_by_role("link", name="Next →").click()
    expect(page).to_have_url(re.compile(rf"/gallery/case/{wanted[1]}\?"))
    page.locator(".case-nav").get_by_role("link", name="All cases").click()
    expect(page.locator(".count-line b")).to_have_text(str(len(wanted)))


def test_pictures_of_the_grid_are_small_and_loaded_when_they_come_into_sight(visit):
    asked: list[str] = []
    page = visit("about:blank", viewport={"width": 900, "height": 500})
    page.on("request", lambda request: asked.append(request.url) if "/pictures/" in request.url else None)
    page.goto("/gallery?outcome=edited&experiment=diagnosis")
    page.wait_for_load_state("networkidle")
    all_of_them = {picture.evaluate("image => image.src") for picture in page.locator(".tile img").all()}
    early = set(asked)
    assert early < all_of_them, "not all at once"
    assert all(re.search(r"/pictures/[0-9a-f]{64}/(160|320)$", url) for url in asked), "none in full size"
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    last = page.locator(".tile img.output").last
    page.wait_for_function("image => image.complete && image.naturalWidth > 0", arg=last.element_handle())
    assert set(asked) > early


# -- by keyboard ---------------------------------------------------------------------------------------------


def test_the_gallery_is_walked_filtered_and_read_by_keyboard(visit, gallery):
    page = visit("/gallery")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("/")
    expect(page.get_by_label("Words in the prompt")).to_be_focused()
    page.keyboard.type("black_female")
    page.keyboard.press("Enter")
    wanted = matching(gallery, ("q", "black_female"))
    expect(page.locator(".count-line b")).to_have_text(str(len(wanted)))
    page.keyboard.press("Escape")
    expect(page.locator(".tile").nth(0)).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("k")
    expect(page.locator(".tile").nth(1)).to_be_focused()
    page.keyboard.press("ArrowDown")
    across = page.locator(".tile").evaluate_all(
        "tiles => tiles.filter((t) => t.getBoundingClientRect().top === tiles[0].getBoundingClientRect().top).length"
    )
    expect(page.locator(".tile").nth(1 + across)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/gallery/case/{wanted[1 + across]}\?q=black_female"))
    expect(page.locator("#zoom")).to_be_visible()
    page.keyboard.press("z")
    expect(page.locator("#zoom")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile(rf"/gallery/case/{wanted[2 + across]}\?"))
    expect(page.locator("#zoom")).to_be_visible()  # the script is there
    page.keyboard.press("k")
    expect(page).to_have_url(re.compile(rf"/gallery/case/{wanted[1 + across]}\?"))
    expect(page.locator("#zoom")).to_be_visible()
    page.keyboard.press("g")
    expect(page.locator(".count-line b")).to_have_text(str(len(wanted)))


def test_a_key_at_the_moment_the_help_is_closed_is_not_lost(visit):
    page = visit("/gallery")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.evaluate(
        """() => {
            document.getElementById("help").close();
            document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "/", bubbles: true}));
        }"""
    )
    expect(page.get_by_label("Words in the prompt")).to_be_focused()


def test_what_is_typed_while_cases_are_on_their_way_is_kept(visit, gallery):
    page = visit("/gallery")
    held: list[Route] = []
    page.route("**/gallery?*", lambda route: held.append(route), times=1)
    with page.expect_request("**/gallery?*"):
        box(page, "race", "Black").check()
    words = page.get_by_label("Words in the prompt")
    words.press_sequentially("wheel")
    held[0].continue_()
    expect(page.locator(".count-line b")).to_have_text(str(len(matching(gallery, ("race", "Black")))))
    expect(words).to_have_value("wheel")
    expect(words).to_be_focused()
    expect(page).to_have_url(re.compile("race=Black$"))
    words.press_sequentially("chair")
    expect(words).to_have_value("wheelchair")
    page.keyboard.press("Tab")
    expect(page).to_have_url(re.compile("race=Black&q=wheelchair$"))


def test_single_keys_can_be_switched_off(visit):
    page = visit("/gallery")
    page.keyboard.press("?")
    page.get_by_label("Single-key shortcuts").uncheck()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("j")
    expect(page.locator(".tile").first).not_to_be_focused()
    page.reload()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_hidden()


# -- without scripts -----------------------------------------------------------------------------------------


def test_everything_works_without_scripts(visit, gallery):
    page = visit("/gallery", java_script_enabled=False)
    box(page, "race", "Indian").check()
    page.get_by_role("button", name="Apply").first.click()
    expect(page).to_have_url(re.compile(r"/gallery\?race=Indian$"))
    assert count(page) == len(matching(gallery, ("race", "Indian")))
    page.locator(".tile").first.click()
    expect(page.get_by_role("heading", name="Ratings", exact=True)).to_be_visible()


def test_a_permalink_survives_signing_in(chromium, base, gallery):
    page = chromium.new_page()
    page.goto(f"{base}/gallery?race=Black&drift.min=1")
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(f"{base}/gallery?race=Black&drift.min=1")
    assert count(page) == len(matching(gallery, ("race", "Black"), ("drift.min", "1")))
    page.close()


# -- panels --------------------------------------------------------------------------------------------------


def test_the_panels_are_chosen_by_a_form_and_come_as_pictures(visit, staff):
    page = visit("/gallery/races")
    page.get_by_label("Labelled gender").select_option("Female")
    page.get_by_label("Editor").select_option("simulated-lightening")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("labelled Female, 30s")
    expect(page.get_by_role("columnheader")).to_have_text(["White", "Black", "Indian", "Latino"])
    expect(page.locator(".note .sim")).to_have_count(1)
    picture = page.get_by_role("link", name="Download PNG").get_attribute("href")
    across = Image.open(io.BytesIO(staff.get(picture).content))
    assert across.format == "PNG" and across.width > 4 * 256
    mosaic = staff.get("/gallery/mosaic?source=Black_Male_60s&prompt=O-01").text
    assert mosaic.count("<tr>") == 2 and "Black_Male_60s" in mosaic
    assert Image.open(io.BytesIO(staff.get("/gallery/mosaic.png?source=Black_Male_60s").content)).format == "PNG"
    assert Image.open(io.BytesIO(staff.get("/gallery/sheet.png?race=Black").content)).format == "PNG"


# -- everybody -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_no_page_has_a_serious_barrier_and_every_page_says_simulated(visit, gallery, look):
    options = {"color_scheme": "dark"} if look == "dark" else {}
    options |= {"viewport": {"width": 390, "height": 844}} if look == "phone" else {}
    case = matching(gallery, ("review", "yes"))[0]
    refused = matching(gallery, ("outcome", "refused"))[0]
    page = visit("/gallery", **options)
    for path in (*PAGES, f"/gallery/case/{case}", f"/gallery/case/{refused}"):
        page.goto(path)
        assert "SIMULATED" in page.locator("header").inner_text()
        assert_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} is wider than the screen"


def test_a_refused_edit_says_why(staff, gallery):
    refused = matching(gallery, ("outcome", "refused"))[0]
    text = staff.get(f"/gallery/case/{refused}").text
    assert gallery.book.open(refused).reason in text and "/gallery/change/" not in text
    assert staff.get(f"/gallery/change/{refused}").status_code == 404


def test_bad_addresses_are_told_and_strangers_sent_to_sign_in(base, staff, gallery):
    assert staff.get("/gallery?colour=red").status_code == 400
    assert "is not a filter" in staff.get("/gallery?colour=red", headers={"Accept": "text/html"}).text
    assert staff.get("/gallery?drift.min=x").status_code == 400
    assert staff.get("/gallery/case/unknown").status_code == 404
    assert staff.get("/gallery/case/..%2f..%2fstudy.toml").status_code == 404
    assert staff.get("/gallery/races?editor=nobody").status_code == 404
    assert staff.get("/gallery?page=99").headers["location"] == f"/gallery?page={-(-len(gallery) // 48)}"
    hostile = staff.get("/gallery", params={"editor": "<hr>", "q": "<script>alert(1)</script>"})
    assert "&lt;hr&gt;" in hostile.text and "<hr>" not in hostile.text and "<script>alert" not in hostile.text
    for path in (*PAGES, "/gallery/case/x", "/gallery/change/x", "/gallery/races.png", "/gallery/sheet.png"):
        assert httpx.get(base + path).status_code == 401
