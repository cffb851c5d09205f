"""What is submitted to a service is paid once: each leg is tried again by itself, in this run and in the next."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from evenedit.core.errors import EvenEditError
from evenedit.core.submissions import SubmissionState
from evenedit.operations.run_view import cost_so_far
from evenedit.providers.budget import Budget
from evenedit.run.summary import RunSummary
from evenedit.study.context import StudyContext
from tests.support.calls import KEY
from tests.support.services_wire import Services, serving
from tests.support.studies import open_study

EDITS = 16
HTML = b"<html>the gateway is tired</html>"
NAMES = {"bfl": "flux-kontext-pro", "fal": "fal-ai/flux-kontext/dev", "replicate": "owner/editor"}
POLLS = {"bfl": "/bfl/v1/get_result", "fal": "/status", "replicate": "/predictions/"}


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    for name in ("BFL_API_KEY", "FAL_KEY", "REPLICATE_API_TOKEN"):
        monkeypatch.setenv(name, KEY)
    with serving() as running:
        yield running


@pytest.fixture(params=sorted(NAMES))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def study(
    services: Services, folder: Path, kind: str = "bfl", *, max_failures: int = 5, url: str = "", **settings: Any
) -> StudyContext:
    own = {"base_url": f"{services.address}/{kind}", "model": NAMES.get(kind, ""), "every": 0.01, "attempts": 3}
    editors = [{"id": kind, "settings": own | {"timeout": 20} | settings}]
    executor = {"calls": 4, "max_failures": max_failures}
    store = {"store": {"url": url}} if url else {}
    return open_study(folder, editors=editors, judges=[], executor=executor, **store)


def run(loaded: StudyContext, **limits: Any) -> tuple[RunSummary, Budget]:
    """Run a study; return the summary and the budget with its counts."""
    budget = Budget(**limits)
    return loaded.runner(budget).run(), budget


def states(loaded: StudyContext) -> Counter[SubmissionState]:
    return Counter(submission.state for submission in loaded.store.submissions())


def once_each(part: str, answer: tuple[int, bytes, str]) -> Callable[[str, str], Any]:
    """This answer to the first request of each path that has this part."""
    met: set[str] = set()

    def trouble(method: str, path: str) -> Any:
        if method != "GET" or part not in path or path in met:
            return None
        met.add(path)
        return answer

    return trouble


def always(job: str, part: str, answer: tuple[int, bytes, str]) -> Callable[[str, str], Any]:
    """This answer to every request about one job whose path has this part."""
    return lambda method, path: (
        answer if method == "GET" and part in path and re.search(rf"{job}(\D|$)", path) else None
    )


def test_each_submission_is_a_row_with_its_job_and_its_price(services, tmp_path, kind):
    loaded = study(services, tmp_path, kind)
    summary, budget = run(loaded)
    assert summary.complete and summary.edited == EDITS
    rows = loaded.store.submissions()
    assert {row.request_id for row in rows} == set(loaded.store.edits()) and len(rows) == EDITS
    assert {row.job for row in rows} == set(services.jobs)
    assert {row.provider for row in rows} == {kind} and states(loaded) == {SubmissionState.ENDED: EDITS}
    assert budget.cost == pytest.approx(sum(row.price for row in rows)) and budget.calls == EDITS
    loaded.store.close()


@pytest.mark.parametrize(
    ("part", "answer"),
    [
        ("/picture/", (500, b"trouble", "text/plain")),
        ("/picture/", (200, b"half a picture", "image/png")),
        ("/picture/", (403, b"not yet", "text/plain")),
        ("poll", (200, HTML, "text/html")),
        ("poll", (502, HTML, "text/html")),
        ("poll", (404, b'{"detail": "Task not found"}', "application/json")),
    ],
)
def test_a_leg_that_fails_once_per_job_is_tried_again_alone(services, tmp_path, kind, part, answer):
    services.trouble = once_each(POLLS[kind] if part == "poll" else part, answer)
    loaded = study(services, tmp_path, kind)
    summary, budget = run(loaded, max_calls=EDITS)
    assert summary.complete and summary.edited == EDITS, str(summary)
    assert len(services.jobs) == len(services.posts()) == EDITS
    assert budget.calls == EDITS
    loaded.store.close()


def test_jobs_that_are_pending_are_followed_up_by_the_next_run(services, tmp_path, kind):
    services.mode = "never"
    loaded = study(services, tmp_path, kind, timeout=0.5, max_failures=0)
    summary, budget = run(loaded)
    assert summary.failed == EDITS and budget.calls == len(services.jobs) == EDITS
    assert states(loaded) == {SubmissionState.ACCEPTED: EDITS}
    assert f"  {EDITS} jobs are under way at {kind}: the next run follows them up" in loaded.status().lines
    services.mode, services.waits = "success", 0
    summary, budget = run(loaded, max_calls=1)
    assert summary.complete and budget.calls == 0, "nothing is paid to follow up what was paid"
    assert len(services.posts()) == EDITS
    loaded.store.close()


@pytest.mark.parametrize(
    ("part", "status"), [("poll", 404), ("poll", 403), ("/picture/", 403), ("/picture/", 404), ("/picture/", 410)]
)
def test_a_job_that_the_service_lost_is_one_failed_edit_and_is_submitted_again_by_the_next_run(
    services, tmp_path, kind, part, status
):
    where = POLLS[kind] if part == "poll" else part
    services.trouble = always("job-3", where, (status, b'{"detail": "gone"}', "application/json"))
    loaded = study(services, tmp_path, kind, attempts=2)
    summary, budget = run(loaded)
    assert (summary.edited, summary.failed, summary.stopped) == (EDITS - 1, 1, ()), str(summary)
    assert "the service has no result of this job" in next(iter(summary.reasons))
    assert budget.calls == len(services.jobs) == EDITS
    services.trouble = lambda *_: None
    summary, budget = run(loaded)
    assert summary.complete and budget.calls == 1 and len(services.jobs) == EDITS + 1
    assert states(loaded) == {SubmissionState.ENDED: EDITS, SubmissionState.LOST: 1}
    loaded.store.close()


def test_a_connection_that_drops_after_the_submission_costs_one_job_and_is_counted(services, tmp_path, kind):
    posts = count(1)
    services.trouble = lambda method, _: "drop" if method == "POST" and next(posts) in (3, 6) else None
    loaded = study(services, tmp_path, kind)
    summary, budget = run(loaded)
    assert summary.complete, str(summary)
    assert len(services.jobs) == budget.calls == EDITS + 2, "the service made two that nobody can ask for"
    assert cost_so_far(loaded).startswith(f"{EDITS + 2} calls to services")
    assert states(loaded) == {SubmissionState.ENDED: EDITS, SubmissionState.LOST: 2}
    loaded.store.close()


def test_a_service_that_knows_submissions_makes_each_once_although_connections_drop(services, tmp_path):
    posts = count(1)
    services.trouble = lambda method, _: "drop" if method == "POST" and not next(posts) % 3 else None
    settings = {
        "url": f"{services.address}/keyed",
        "headers": {"Idempotency-Key": "{submission}"},
        "body": {"p": "{instruction}", "image_url": "{image_url}"},
        "picture": "images.0.url",
        "attempts": 3,
    }
    loaded = open_study(
        tmp_path, editors=[{"id": "http", "settings": settings}], judges=[], executor={"calls": 1, "max_failures": 0}
    )
    summary, budget = run(loaded)
    assert summary.complete and len(services.posts()) > EDITS
    assert len(services.jobs) == budget.calls == EDITS
    assert states(loaded) == {SubmissionState.ENDED: EDITS}
    loaded.store.close()


def test_the_budget_is_never_exceeded_by_what_is_tried_again(services, tmp_path, kind):
    services.mode = "failed"
    loaded = study(services, tmp_path, kind)
    _, budget = run(loaded, max_calls=6)
    assert budget.calls == len(services.jobs) <= 6
    loaded.store.close()


def test_what_was_rejected_is_not_counted_and_one_request_that_is_wrong_stops_nothing(services, tmp_path, kind):
    posts = count(1)

    def trouble(method: str, _: str) -> tuple[int, bytes, str] | None:
        number = next(posts) if method == "POST" else 0
        if number == 1:
            return 422, b'{"detail": "this picture is too small"}', "application/json"
        return (429, b"{}", "application/json") if number in (4, 8) else None

    services.trouble = trouble
    loaded = study(services, tmp_path, kind, attempts=8)
    summary, budget = run(loaded)
    assert (summary.edited, summary.failed, summary.stopped) == (EDITS - 1, 1, ()), str(summary)
    assert "this picture is too small" in next(iter(summary.reasons))
    assert budget.calls == len(services.jobs) == EDITS - 1
    assert states(loaded)[SubmissionState.REJECTED] == 3
    loaded.store.close()


@pytest.mark.parametrize("status", [401, 404])
def test_what_is_certain_to_repeat_stops_the_editor(services, tmp_path, kind, status):
    services.trouble = lambda method, _: (status, b"{}", "application/json") if method == "POST" else None
    loaded = study(services, tmp_path, kind)
    with pytest.raises(EvenEditError, match="not accepted" if status == 401 else "was not found"):
        run(loaded)
    assert not services.jobs and states(loaded).keys() == {SubmissionState.REJECTED}
    loaded.store.close()


def interrupted(loaded: StudyContext) -> None:
    """Make the last runs look as a kill leaves them."""
    with loaded.store.begin() as db:
        db.exec_driver_sql("UPDATE runs SET finished = NULL")


def test_a_run_that_continues_one_that_was_killed_counts_what_that_one_submitted(services, tmp_path):
    loaded = study(services, tmp_path, timeout=0.5, max_failures=0)
    services.mode, services.waits = "never", 0
    run(loaded, max_calls=6)
    interrupted(loaded)
    services.mode = "success"
    summary, budget = run(loaded, max_calls=10)
    assert budget.calls == len(services.jobs) == 10
    assert summary.edited == 10 and summary.budget_spent
    summary, budget = run(loaded)
    assert summary.complete and len(services.jobs) == EDITS and budget.calls == EDITS - 10
    loaded.store.close()


def test_on_postgresql_it_counts_them_only_if_no_other_run_is_at_work(services, tmp_path, postgres_url):
    loaded, other = (
        study(services, tmp_path / name, timeout=0.5, max_failures=0, url=postgres_url) for name in ("one", "other")
    )
    services.mode, services.waits = "never", 0
    run(loaded, max_calls=6)
    interrupted(loaded)
    services.mode = "success"
    with other.store.running(60):
        summary, budget = run(loaded, max_calls=2)
    assert (summary.edited, budget.calls, len(services.jobs)) == (8, 2, 8)
    interrupted(loaded)
    summary, budget = run(loaded, max_calls=10)
    assert (summary.edited, budget.calls, len(services.jobs)) == (10, 10, 10)
    other.store.close()
    loaded.store.close()


def test_kills_between_submitting_and_polling_cost_nothing_twice(tmp_path):
    """A small version of `python -m validation submission_kills`, whose table is in docs/validation."""
    from validation.submission_kills import kill_submissions

    for killed in kill_submissions(tmp_path, 3, seed=5):
        assert not killed.wrong(), killed
