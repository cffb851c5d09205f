"""A bundle as a static site: read in a browser from disk, without a server."""

import json
import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from evenedit.bundle.publishing import PicturePolicy, publish
from evenedit.core.errors import EvenEditError


@pytest.fixture(scope="module")
def site(audit, tmp_path_factory):
    return publish(audit, tmp_path_factory.mktemp("site") / "site", contact="audit@example.org")


def test_every_edit_has_a_page_and_every_link_leads_somewhere(site):
    folder = site.page.parent
    assert site.cases == 16 and len(list((folder / "cases").glob("*.html"))) == 17
    for page in (site.page, folder / "takedown.html", *sorted((folder / "cases").glob("*.html"))[:4]):
        for address in re.findall(r'(?:href|src)="([^"#]+)', page.read_text()):
            if not address.startswith(("data:", "http")):
                assert (page.parent / address).exists(), f"{page.name}: {address}"
    assert "Disallow: /" in (folder / "robots.txt").read_text()
    assert "audit@example.org" in (folder / "takedown.html").read_text()
    assert "SIMULATED" in site.page.read_text()


def test_filters_and_case_pages_work_from_disk_on_a_phone_and_axe_is_content(site, chromium):
    page = chromium.new_page(viewport={"width": 390, "height": 800})
    page.goto((site.page.parent / "report/cases.html").as_uri())
    assert page.locator("#cases > li").count() == 16
    page.get_by_text("Filter", exact=True).click()
    page.get_by_label(re.compile("^Labelled race", re.IGNORECASE)).select_option("Black")
    page.wait_for_function("document.querySelectorAll('#cases > li').length === 8")
    expect(page).to_have_url(re.compile("race=Black"))
    page.locator("#cases summary").first.click()
    page.get_by_text("The page of this case").first.click()
    page.wait_for_url("**/cases/*.html")
    assert "Raw reply" in page.content() and page.locator(".shown img").count() == 2
    boxes = [picture.bounding_box() for picture in page.locator(".shown img").all()]
    assert boxes[0]["y"] == boxes[1]["y"], "source and output stand side by side"
    found = []
    case = f"cases/{next(p.name for p in (site.page.parent / 'cases').glob('*.html') if p.stem != 'index')}"
    for where in ("index.html", "takedown.html", "cases/index.html", "report/cases.html", case):
        page.goto((site.page.parent / where).as_uri())
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{where} is wider than a phone"
        found += [(where, v["id"]) for v in Axe().run(page).response["violations"]]
    page.close()
    assert found == []


def test_pictures_are_withheld_or_blurred_by_class(audit, tmp_path):
    made = publish(audit, tmp_path / "site", PicturePolicy(portraits="blur", outputs="withhold"))
    shown = publish(audit, tmp_path / "all")
    count = {place: len(list((tmp_path / place / "report/pictures").glob("*.webp"))) for place in ("site", "all")}
    assert 0 < count["site"] < count["all"]
    text = (tmp_path / "site/report/cases.html").read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert not any(data["outputs"]) and all(data["portraits"].values())
    assert 'img[alt^="Source portrait"]:not(:hover)' in text and ".photos img:not(:hover)" in text
    for path in (tmp_path / "site").rglob("*.html"):
        assert not re.search(r'<img[^>]*alt="Edit by', path.read_text()), path
    assert not list((tmp_path / "site/downloads").glob("*.zip")), "the bundle holds what is withheld"
    assert made.cases == shown.cases


def test_a_folder_that_is_not_empty_is_left_alone(audit, tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(EvenEditError, match="not empty"):
        publish(audit, tmp_path)
    assert [path.name for path in Path(tmp_path).iterdir()] == ["mine.txt"]
