"""Pages in a real browser."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium")
expect.set_options(timeout=60_000)  # a busy machine is not a fault


@contextmanager
def launch() -> Iterator[Browser]:
    """Start Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def barriers(page: Page) -> list[tuple[str, str, list[str]]]:
    """Return the serious and critical accessibility problems of a page: address, rule and elements."""
    violations = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    worst = [v for v in violations if v["impact"] in ("serious", "critical")]
    return [(page.url, v["id"], [node["html"][:200] for node in v["nodes"]][:3]) for v in worst]


def assert_accessible(page: Page) -> None:
    """Fail where a page has a serious or critical accessibility problem."""
    worst = barriers(page)
    assert not worst, json.dumps(worst, indent=1)
