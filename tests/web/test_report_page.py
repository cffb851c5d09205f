"""The report in a real browser, from disk and from the app: from any number to its pictures in one click."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from evenedit.api.study import Study
from evenedit.cases.casebook import Casebook
from evenedit.cases.search import Gallery
from evenedit.report.pages.report import write_report
from evenedit.reporting.case_pages import ReportCases
from tests.support.browser import assert_accessible
from tests.support.web_study import PASSWORD, app_of, serving

DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
PAGES = ("report.html", "appendix.html", "cases.html", "findings/1.html")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Two editors, one of which lightens the skin of some; measured, judged, mitigated and given two portraits."""
    ages = ["20s", "40s", "60s"]
    made = Study.new(
        tmp_path_factory.mktemp("report") / "study",
        template="small",
        sources={
            "kind": "drawn",
            "settings": {"seed": 3, "size": 96, "only": {"race": ["White", "Black"], "age": ages}},
        },
        prompts={"include": ["O-01", "V-02"]},
        experiments={
            "diagnosis": {},
            "mitigation": {"cases": 8, "extractor": {"kind": "simulated"}},
            "stereotype": {"include": ["W-01", "W-26"]},
        },
        editors=[
            {"id": "simulated-lightening", "settings": {"rate": 1.0, "groups": {"race": ["Black"]}}},
            {"id": "simulated-refusing", "settings": {"rate": 0.3}, "experiments": ["diagnosis"]},
        ],
        judges=[{"id": f"simulated-judge-{n}", "kind": "simulated"} for n in "ab"],
        statistics={"draws": 100, "permutations": 99},
    )
    made.run()
    made.report(pictures="full")
    return made


@pytest.fixture(scope="module")
def folder(study: Study) -> Path:
    return study.folder / "report"


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Open a page; an error of a script, and a style or script that its policy forbids, fail the test."""
    contexts, problems = [], []

    def go(address: str, size: dict[str, int] = DESKTOP, **options: Any) -> Page:
        cookie = options.pop("cookie", None)
        context = chromium.new_context(viewport=size, reduced_motion="reduce", **options)
        if cookie:
            context.add_cookies([{"name": "staff", "value": cookie, "url": address}])
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        page.goto(address)
        return page

    yield go
    for context in contexts:
        context.close()
    assert problems == []


def links(page: Page) -> set[str]:
    """Where the numbers, dots, bars and cards of a page lead."""
    return set(page.eval_on_selector_all("main a", "all => all.map((a) => a.getAttribute('href'))"))


# -- from disk -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_first_screen_has_the_worst_finding_with_its_pictures(visit, folder: Path, study: Study, size):
    page = visit((folder / "report.html").as_uri(), size)
    worst = study.results().findings[0]
    card = page.locator(".verdict").first
    assert worst.editor in card.inner_text() and worst.text in card.inner_text()
    for part in (card.locator("h3"), card.locator(".found li").first, card.locator(".pair img").nth(1)):
        place = part.bounding_box()
        assert place is not None and place["y"] + place["height"] <= size["height"]
    assert card.locator(".badge").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_every_link_of_every_page_leads_to_cases_or_to_a_file(visit, folder: Path):
    asked: set[str] = set()
    for name in ("report.html", "appendix.html"):
        for link in links(visit((folder / name).as_uri())):
            path, _, query = link.partition("#")
            assert not path or (folder / path).is_file(), link
            asked |= {query} if path == "cases.html" else set()
    assert len(asked) > 100
    page = visit((folder / "cases.html").as_uri())
    empty = page.evaluate(
        """(asked) => asked.filter((query) => {
            location.hash = query;
            dispatchEvent(new HashChangeEvent("hashchange"));
            return !document.querySelector(".tile");
        })""",
        sorted(asked),
    )
    assert empty == []


def test_a_number_a_dot_and_a_card_open_their_pictures_with_one_click(visit, folder: Path):
    for place in (
        "#table19 td a >> nth=0",
        "#figure4 a.tip >> nth=1",
        "#figure_gaps a.tip >> nth=0",
        ".found a:text('see cases')",
    ):
        page = visit((folder / "report.html").as_uri())
        page.locator(place).first.click(force=True)
        page.wait_for_url("**/cases.html#**")
        picture = page.locator(".tile img").nth(1)
        picture.scroll_into_view_if_needed()
        page.wait_for_function("document.querySelectorAll('.tile img')[1].naturalWidth > 0")


def test_a_rate_shows_the_edits_that_it_counts_and_all_that_it_is_over(visit, folder: Path, study: Study):
    rate = study.results().find("rate.skin_lighter", editor="simulated-lightening", group={"race": "Black"})
    assert rate is not None and rate.value
    page = visit((folder / "report.html").as_uri())
    dot = page.locator("#figure4 a.tip[aria-label^='simulated-lightening, Black']").first
    page.goto(f"{folder.as_uri()}/{dot.get_attribute('href')}")
    counted = round(rate.value * rate.n)
    expect(page.locator("#count")).to_have_text(re.compile(rf"^{counted} of the {rate.n} edits"))
    page.get_by_role("link", name="Show all edits it is over").click()
    expect(page.locator("#count")).to_have_text(re.compile(rf"^{rate.n} of "))


def test_figures_are_walked_by_keyboard_and_pictures_can_be_blurred(visit, folder: Path):
    page = visit((folder / "report.html").as_uri())
    page.locator("#figure4 a.tip").first.focus()
    before = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("ArrowRight")
    expect(page.locator(":focus")).not_to_have_attribute("aria-label", before)
    page.keyboard.press("Enter")
    page.wait_for_url("**/cases.html#**")
    page.get_by_role("button", name="Blur pictures").click()
    expect(page.locator(".tile img").first).to_have_css("filter", re.compile("blur"))
    page.goto((folder / "findings" / "1.html").as_uri())
    expect(page.locator(".pair img").first, "it is kept").to_have_css("filter", re.compile("blur"))


@pytest.mark.parametrize(
    ("size", "scheme", "names"),
    [(DESKTOP, "light", PAGES), (PHONE, "dark", ("report.html", "cases.html"))],
    ids=["desktop", "phone"],
)
def test_no_page_has_a_serious_barrier(visit, folder: Path, size, scheme, names):
    for name in names:
        page = visit((folder / name).as_uri(), size, color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], name
        assert_accessible(page)


def test_the_first_page_is_short_on_screen_and_on_paper(visit, folder: Path):
    page = visit((folder / "report.html").as_uri())
    assert page.evaluate("document.documentElement.scrollHeight") <= 9_000
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) <= 12


def test_what_is_wider_than_its_frame_says_so(visit, folder: Path):
    page = visit((folder / "appendix.html").as_uri(), PHONE)
    cut = page.locator(".frame.cut .cue")
    expect(cut.first).to_be_visible()


def test_a_report_without_pictures_shows_the_cases_in_words(visit, study: Study, tmp_path: Path):
    cases = ReportCases(Gallery(Casebook.read(study)), "none").bundle()
    out = write_report(study.results(), tmp_path, title="Bare", figures=dict, cases=cases).parent
    assert not (out / "pictures").exists()
    for name in PAGES:
        assert "<img" not in (out / name).read_text(), name
    page = visit((out / "cases.html").as_uri())
    assert page.locator(".tile").count() and not page.locator(".tile img").count()


def test_pictures_in_full_size_are_linked_and_those_of_an_earlier_report_go(visit, study: Study, tmp_path: Path):
    page = visit((study.folder / "report" / "cases.html").as_uri())
    page.locator(".tile .pair a").first.click()
    page.wait_for_url("**/pictures/full/*.png")
    (tmp_path / "pictures").mkdir()
    old = tmp_path / "pictures" / "gone.webp"
    old.write_bytes(b"")
    cases = ReportCases(Gallery(Casebook.read(study)), "thumbnails").bundle()
    write_report(study.results(), tmp_path, title="Small", figures=dict, cases=cases)
    assert not old.exists() and list((tmp_path / "pictures").glob("*.webp"))


# -- from the app --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def base(study: Study) -> Iterator[str]:
    with serving(app_of(study)) as address:
        yield address


@pytest.fixture(scope="module")
def cookie(base: str) -> str:
    with httpx.Client(base_url=base, headers={"Origin": base}) as client:
        client.post("/admin/login", data={"name": "admin", "password": PASSWORD})
        return client.cookies["staff"]


@pytest.fixture
def staff(base: str, cookie: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=base, cookies={"staff": cookie}, follow_redirects=True) as client:
        yield client


def test_in_the_app_every_number_leads_to_its_cases_in_the_gallery(visit, base: str, cookie: str, staff):
    page = visit(f"{base}/report", cookie=cookie)
    found = links(page) | links(visit(f"{base}/report/appendix.html", cookie=cookie))
    wanted = sorted(link for link in found if link.startswith("/gallery"))
    assert len(wanted) > 100
    for link in wanted[:: max(1, len(wanted) // 60)]:
        answer = staff.get(link)
        assert answer.status_code == 200 and "No case meets these filters" not in answer.text, link
    others = {link for link in found if not link.startswith(("/gallery", "#"))}
    assert {staff.get(link).status_code for link in others} == {200}, others
    page.locator("#figure4 a.tip >> nth=1").click(force=True)
    page.wait_for_url("**/gallery?**")
    expect(page.locator(".tile img").first).to_be_visible()


def test_the_pages_of_the_app_have_no_serious_barrier(visit, base: str, cookie: str):
    for path in ("/report", "/report/findings/1.html"):
        assert_accessible(visit(base + path, cookie=cookie))


def test_strangers_are_sent_to_sign_in_and_nothing_else_is_served(base: str, staff: httpx.Client):
    assert httpx.get(f"{base}/report", headers={"Accept": "text/html"}).headers["location"].startswith("/admin/login")
    assert httpx.get(f"{base}/report/files/results.json").status_code == 401
    assert staff.get("/report/files/results.json").json()["schema"] == "evenedit.results/3"
    for path in ("files/../study.toml", "files/tables/none.csv", "findings/999.html", "files/ratings.csv.gz"):
        assert staff.get(f"/report/{path}").status_code == 404, path


def test_the_report_follows_the_study_after_a_run(visit, tmp_path: Path):
    running = Study.new(
        tmp_path / "running",
        template="small",
        sources={"kind": "drawn", "settings": {"size": 64, "only": {"race": ["White", "Black"], "age": ["20s"]}}},
        prompts={"include": ["O-01"]},
        editors=[{"id": "simulated-lightening"}],
        judges=[{"id": "simulated-judge", "kind": "simulated"}],
        instruments=[],
        statistics={"draws": 100, "permutations": 99},
    )
    running.run(max_calls=1)
    with serving(app_of(running)) as base:
        with httpx.Client(base_url=base, headers={"Origin": base}) as client:
            client.post("/admin/login", data={"name": "admin", "password": PASSWORD})
            page = visit(f"{base}/run", cookie=client.cookies["staff"])
        held: list[Route] = []
        page.route("**/report/state", lambda route: held.append(route))  # it does not follow before it is looked at
        page.goto(f"{base}/report")
        expect(page.locator("#fresh")).to_contain_text("is being made")
        page.unroute("**/report/state")
        for route in held:
            route.continue_()
        expect(page.locator(".verdict")).to_be_visible(timeout=120_000)
        before = page.locator("#fresh").get_attribute("data-digest")
        running.run()
        page.reload()
        expect(page.locator("#fresh")).not_to_have_attribute("data-digest", str(before), timeout=240_000)
        page.close()  # before its server, for which it would ask in vain
