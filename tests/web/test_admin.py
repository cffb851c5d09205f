"""What staff see and decide, and what participants read."""

import io
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import httpx
import pandas as pd
import pytest
from fastapi import FastAPI

from evenedit.protocol import QUESTIONS, ROLES
from evenedit.survey.admin import SurveyAdmin
from evenedit.survey.languages import OPTIONAL
from evenedit.survey.questions import APPROPRIATE, PREFERENCE, ROLE, checks
from tests.support.browser import barriers
from tests.support.web_study import PASSWORD, app_of, seated, serving, web_study


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    survey = {"instructed": 2, "languages": ["en"], "dashboard": True, "surveys": [1, 2], "raters_per_item": 6}
    return app_of(web_study(tmp_path_factory.mktemp("admin"), **survey))


@pytest.fixture(scope="module")
def base(app: FastAPI) -> Iterator[str]:
    with serving(app) as address:
        yield address


@pytest.fixture
def staff(base: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=base, headers={"Origin": base}, follow_redirects=True) as client:
        client.post("/admin/login", data={"name": "admin", "password": PASSWORD})
        yield client


def finish(client: httpx.Client, obey: bool = True) -> httpx.Response:
    """Take the first open task and answer everything, the instructed checks as asked or not."""
    count = 0
    for item in client.get("/survey/items").json()["items"]:
        asked = int(next(c for c in item["instruction"] if c.isdigit())) if item["instructed"] else 1
        for row in item["questions"]:
            for slot in row["slots"]:
                count += 1
                value = asked if obey else 1
                body = {"item": item["id"], "slot": slot, "question": row["id"], "value": value, "sequence": count}
                assert client.post("/survey/answers", json=body | {"milliseconds": 900 * count}).status_code == 200
    return client.post("/survey/submit")


def test_a_participant_picks_a_task_on_the_dashboard(base: str) -> None:
    with seated(base, "picker", stage="choose") as client:
        page = client.get("/survey/choose")
        assert page.text.count("Take this task") == 2
        assert client.post("/survey/choose", data={"task": "2"}).url.path == "/survey/task"
        assert client.get("/survey/choose").url.path == "/survey/task", "one task per person"


def test_staff_see_progress_care_and_decisions_and_take_the_ratings_home(
    base: str, app: FastAPI, staff: httpx.Client
) -> None:
    with seated(base, "careful", stage="choose") as careful, seated(base, "careless", stage="choose") as careless:
        for client in (careful, careless):
            client.post("/survey/choose", data={"task": "1"})
        assert finish(careful).json() == {"next": "/survey/done"}
        assert finish(careless, obey=False).json() == {"next": "/survey/done"}
        assert "A member of our team will check" in careless.get("/survey/done").text
    standing = {p.ending: p.pseudonym for p in SurveyAdmin(app.state.survey).people() if p.ending}
    people = staff.get("/admin/people").text
    assert all(pseudonym in people for pseudonym in standing.values())
    assert "careful" not in people and "careless" not in people, "the platform's ids are not shown"
    assert "failed 2 of 2 instructed checks" in people
    queue = staff.get("/admin/rejections").text
    assert standing["failed_checks"] in queue and standing["completed"] not in queue
    form = {"pseudonym": standing["failed_checks"], "decision": "reject", "message": "too short"}
    refused = staff.post("/admin/rejections", data=form)
    assert refused.status_code == 409 and "100 characters" in refused.text and "too short" in refused.text

    archive = zipfile.ZipFile(io.BytesIO(staff.get("/admin/export.zip").content))
    assert {"ratings.csv", "choices.csv", "quality.csv"} <= set(archive.namelist())
    ratings = pd.read_csv(archive.open("ratings.csv"))
    assert set(ratings["rater"]) >= set(standing.values())
    assert not any(b"careful" in archive.read(name) for name in archive.namelist())

    asked = staff.get("/admin/release", params={"pseudonym": standing["completed"]}).text
    assert "has completed the task" in asked and "no longer counted" in asked
    assert staff.post("/admin/release", data={"pseudonym": standing["completed"]}).status_code == 422, (
        "not in one click"
    )
    told = staff.post("/admin/release", data={"pseudonym": standing["completed"], "sure": "yes"})
    assert "the slot is free again" in told.text
    assert "Erase" in staff.get("/admin/withdraw", params={"pseudonym": standing["completed"]}).text
    staff.post("/admin/withdraw", data={"pseudonym": standing["completed"], "sure": "yes"})
    assert standing["completed"] not in staff.get("/admin/people").text
    assert staff.get("/admin/withdraw", params={"pseudonym": "person-x"}).status_code == 404
    assert staff.post("/admin/release", data={"pseudonym": "person-x", "sure": "yes"}).status_code == 404
    log = staff.get("/admin").text
    assert all(what in log for what in ("signed in", "exported the ratings", "released a slot"))
    assert all("SIMULATED" in page for page in (log, people, queue)), "the staff's rooms say whose data these are"


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_no_page_of_staff_or_participants_has_a_serious_barrier(
    base: str, app: FastAPI, chromium: Any, look: str
) -> None:
    with seated(base, f"waits-{look}", stage="choose") as careless:
        careless.post("/survey/choose", data={"task": "1"})
        finish(careless, obey=False)
    with seated(base, f"chooses-{look}", stage="choose") as chooser:
        token = chooser.cookies["visit"]
    somebody = next(p.pseudonym for p in SurveyAdmin(app.state.survey).people() if p.ending)
    shape = {"viewport": {"width": 390, "height": 844}} if look == "phone" else {}
    context = chromium.new_context(base_url=base, color_scheme="dark" if look == "dark" else "light", **shape)
    context.add_cookies([{"name": "visit", "value": token, "domain": "127.0.0.1", "path": "/survey"}])
    page = context.new_page()
    worst = []

    def look_at(path: str) -> None:
        page.goto(path)
        worst.extend(barriers(page))

    for path in ("/admin/login", "/nowhere", "/survey/choose", "/survey/withdraw"):
        look_at(path)
    page.goto("/admin/login")
    page.fill("input[name=name]", "admin")
    page.fill("input[type=password]", PASSWORD)
    page.press("input[type=password]", "Enter")
    page.wait_for_url("**/admin")
    for path in ("/admin", "/admin/people", "/admin/rejections", f"/admin/withdraw?pseudonym={somebody}"):
        look_at(path)
    context.close()
    assert worst == []


def test_endings_are_told_kindly_and_can_be_reloaded(base: str) -> None:
    with seated(base, "declines", stage="consent") as client:
        assert client.post("/survey/consent", data={"decision": "agree", "adult": "yes"}).status_code == 422
        answer = client.post("/survey/consent", data={"decision": "decline"})
        assert answer.url.path == "/survey/done" and "chose not to take part" in answer.text
        assert client.get("/survey").text == client.get("/survey/done").text == answer.text
    with seated(base, "guesses", stage="check") as client:
        wrong = {check.question.id: "2" for check in checks(1)}
        again = client.post("/survey/check", data=wrong)
        assert again.url.path == "/survey/check" and "one more try" in again.text
        assert client.get("/survey/guide").status_code == 200, "the guide can be read again"
        assert "cannot continue" in client.post("/survey/check", data=wrong).text


def test_a_wrong_resume_code_is_told_and_guessing_is_slowed_down(base: str) -> None:
    with httpx.Client(base_url=base) as client:
        for _ in range(20):
            assert client.post("/survey/resume", data={"code": "AAAA-BBBB-CCCC-DDDD"}).status_code == 404
        blocked = client.post("/survey/resume", data={"code": "AAAA-BBBB-CCCC-DDDD"})
        assert blocked.status_code == 429 and blocked.json()["error"]["type"] == "too_many"


def _flat(texts: dict[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Every text with its name, but for what a language may leave out."""
    for key, value in texts.items():
        if above or key not in OPTIONAL:
            yield from _flat(value, f"{above}{key}.") if isinstance(value, dict) else [(above + key, value)]


def test_every_language_says_everything() -> None:
    texts = {
        code: tomllib.loads(files("evenedit.survey").joinpath("languages", f"{code}.toml").read_text("utf-8"))
        for code in ("en", "ko")
    }
    english, korean = (dict(_flat(texts[c])) for c in ("en", "ko"))
    assert english.keys() == korean.keys()
    for key, text in english.items():
        fields = {piece.split("}")[0] for piece in text.split("{")[1:]}
        assert all("{" + name + "}" in korean[key] for name in fields), key


def test_every_question_people_get_has_a_korean_wording_with_as_many_answers() -> None:
    korean = tomllib.loads(files("evenedit.survey").joinpath("languages", "ko.toml").read_text("utf-8"))["questions"]
    asked = [q for q in QUESTIONS.values() if q.id not in (PREFERENCE.id, ROLE.id, ROLES.status)]
    asked += [PREFERENCE, APPROPRIATE, ROLE]  # asked of people in their own form
    asked += [check.question for survey in (1, 2, 3) for check in checks(survey)]
    for question in asked:
        assert len(korean[question.id]["labels"]) == len(question.labels), question.id
        assert korean[question.id]["title"] and korean[question.id]["text"]


def test_people_read_the_words_that_judges_read(base: str) -> None:
    with seated(base, "reader", stage="choose") as client:
        client.post("/survey/choose", data={"task": "1"})
        for item in client.get("/survey/items").json()["items"]:
            for row in item["questions"]:
                rubric = QUESTIONS[row["id"]]
                assert (row["title"], row["text"], tuple(row["labels"])) == (rubric.title, rubric.text, rubric.labels)
