"""A run can be followed in the web app: what is committed is on the page at the next look."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from evenedit.api.study import Study
from evenedit.operations import run_view as live_run
from evenedit.operations import throughput as pace
from evenedit.operations.run_view import RunSnapshot, RunView
from evenedit.providers.budget import Budget
from evenedit.simulation.editors import SimulatedEditor
from tests.support.studies import open_study
from tests.support.web_study import PASSWORD, app_of, serving


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
    before = RunView(study).now()
    assert before.without_rates == "Interim rates are being computed."
    deadline = time.monotonic() + 120
    while "Interim." not in (text := staff.get("/run/state").text) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert "Interim." in text and "decide nothing by them" in text and "had the requested edit applied" in text
    study.run()
    text, after = staff.get("/run/state").text, RunView(study).now()
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
    look = RunView(open_study(tmp_path)).now()
    assert not look.stages and not look.running


def test_it_says_why_there_are_no_rates(tmp_path: Path) -> None:
    unrated = open_study(tmp_path / "unrated")
    unrated.runner(Budget(max_calls=0)).run()
    assert RunView(unrated).now().without_rates == "Nothing is rated yet."
    two = {"stereotype": {"include": ["W-01"], "swapped": False}}
    other = open_study(tmp_path / "other", experiments=two)
    assert other.run().complete
    assert "no rate of the diagnosis." in _settled(RunView(other)).without_rates


def test_ratings_are_planned_for_edits_to_come_and_what_failed_is_not_left_to_this_run(tmp_path, monkeypatch) -> None:
    real = SimulatedEditor.edit

    def edit(self, images, instruction, seed):
        if "thirty years" in instruction:
            raise ValueError("no")
        return real(self, images, instruction, seed)

    made = open_study(tmp_path, executor={"retries": 0, "max_failures": 0})
    live = RunView(made)
    live.now()
    with monkeypatch.context() as patch:
        patch.setattr(SimulatedEditor, "edit", edit)
        made.runner(Budget(max_calls=1)).run()
    monkeypatch.setattr(live_run, "under_way", lambda _study: True)
    stages = {stage.title: stage for stage in live.now().stages}
    assert stages["edits by simulated-lightening"].failed == 8
    assert stages["edits by simulated-lightening"].pace == "", "the next run tries again what failed"
    ratings = [stage for title, stage in stages.items() if title.startswith("ratings")]
    assert [(stage.planned, stage.failed) for stage in ratings] == [(16, 0)] * 2
    assert sum(stage.done for stage in ratings) == 1
    assert "8 edits failed: ValueError: no" in live.now().reasons


def test_a_pace_is_taken_from_where_something_began(monkeypatch) -> None:
    clock = iter([0.0, 30.0, 60.0, 64.0])
    monkeypatch.setattr(pace.time, "monotonic", lambda: next(clock))
    going = pace.Throughput()
    for done in (0, 0, 0, 8):
        going.look(done)
    assert going.rate == 2.0


def _settled(live: RunView) -> RunSnapshot:
    """What it shows once rates were looked for."""
    live.now()
    deadline = time.monotonic() + 120
    while not live._rated and time.monotonic() < deadline:
        time.sleep(0.1)
    return live.now()


def test_the_rates_so_far_are_those_of_the_report_where_all_is_rated(study: Study) -> None:
    study.run()
    live = RunView(study)
    deadline = time.monotonic() + 120
    while not (look := live.now()).rates and time.monotonic() < deadline:
        time.sleep(0.1)
    results = study.results()
    known = {(e.editor, e.value, e.n) for e in results.estimates if e.measure.startswith("rate.") and not e.group}
    assert look.rates and {(r.editor, r.value, r.n) for r in look.rates} <= known
