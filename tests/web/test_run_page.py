"""A run can be followed in the web app: what is committed is on the page at the next look."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from conftest import open_study
from evenedit.providers.budget import Budget
from evenedit.study.live_run import LiveRun, RunLook
from evenedit.study.study import Study
from web_study import PASSWORD, app_of, serving


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """Edited, with ten of its ratings."""
    made = open_study(
        tmp_path, editors=[{"id": "simulated-even"}, {"id": "simulated-refusing", "settings": {"rate": 0.5}}]
    )
    made.runner(Budget(max_calls=10)).run()
    return made


@pytest.fixture
def staff(study: Study) -> Iterator[httpx.Client]:
    with serving(app_of(study)) as address, httpx.Client(base_url=address, follow_redirects=True) as client:
        client.post("/admin/login", data={"name": "admin", "password": PASSWORD}).raise_for_status()
        yield client


def test_the_page_shows_stages_reasons_and_interim_rates_and_follows_the_run(study: Study, staff: httpx.Client) -> None:
    first = staff.get("/run").text
    assert "edits by simulated-even" in first and "simulated policy: the request was declined" in first
    assert "no call to a service yet" in first.lower()
    before = LiveRun(study).now()
    assert before.without_rates == "The rates of what is rated so far are being computed."
    deadline = time.monotonic() + 30
    while "Interim." not in (text := staff.get("/run/state").text) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert "Interim." in text and "decide nothing by them" in text and "had the requested edit applied" in text
    study.run()
    text, after = staff.get("/run/state").text, LiveRun(study).now()
    assert "Interim." not in text and after.complete and not before.complete
    rated = [[s.done for s in look.stages if s.title.startswith("ratings")] for look in (before, after)]
    assert sum(rated[0]) == 10 and all(s.done == s.planned for s in after.stages)
    for stage in after.stages:
        assert f"{stage.title}</th>" in text and f'value="{stage.done}"' in text


def test_strangers_see_nothing_of_it(study: Study) -> None:
    with serving(app_of(study)) as address:
        for path in ("/run", "/run/state"):
            assert httpx.get(address + path).status_code in (303, 401, 403)


def test_a_study_that_has_not_begun_says_how_to_begin(tmp_path: Path) -> None:
    look = LiveRun(open_study(tmp_path)).now()
    assert not look.stages and not look.running


def test_it_says_why_there_are_no_rates(tmp_path: Path) -> None:
    unrated = open_study(tmp_path / "unrated")
    unrated.runner(Budget(max_calls=0)).run()
    assert LiveRun(unrated).now().without_rates == "Nothing is rated yet."
    two = {"stereotype": {"include": ["W-01"], "swapped": False}}
    other = open_study(tmp_path / "other", experiments=two)
    assert other.run().complete
    assert "has no rate of the diagnosis." in _settled(LiveRun(other)).without_rates


def _settled(live: LiveRun) -> RunLook:
    """What it shows once rates were looked for."""
    live.now()
    deadline = time.monotonic() + 30
    while not live._rated and time.monotonic() < deadline:
        time.sleep(0.1)
    return live.now()


def test_the_rates_so_far_are_those_of_the_report_where_all_is_rated(study: Study) -> None:
    study.run()
    live = LiveRun(study)
    deadline = time.monotonic() + 30
    while not (look := live.now()).rates and time.monotonic() < deadline:
        time.sleep(0.1)
    results = study.results()
    known = {(e.editor, e.value, e.n) for e in results.estimates if e.measure.startswith("rate.") and not e.group}
    assert look.rates and {(r.editor, r.value, r.n) for r in look.rates} <= known
