"""What staff follow while a survey runs, and what participants may say about themselves, through the real pages."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from evenedit.survey.profiles import MISSING
from tests.support.web_study import PASSWORD, app_of, seated, serving, web_study

OWN = {"id": "expert", "title": "Expert", "text": "Do you edit?", "options": ["Yes", "No"]}
ASKED: dict[str, Any] = {"questions": [OWN]}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, FastAPI]]:
    url = None
    if request.param == "postgresql":
        server = request.getfixturevalue("postgres")
        server.psql("DROP SCHEMA public CASCADE; CREATE SCHEMA public;")
        url = str(server.get_uri())
    pay = {"per_task": 1.0, "minutes_per_task": 5.0, "minimum_per_hour": 9.0}
    study = web_study(tmp_path_factory.mktemp("monitor"), url, surveys=[1], pay=pay, questionnaire=ASKED)
    app = app_of(study)
    with serving(app) as base:
        yield base, app
    study.store.close()


def hand_in(client: httpx.Client, value: int = 3) -> str:
    """Answer everything and hand in; returns where the participant is sent."""
    number = 0
    for item in client.get("/survey/items").json()["items"]:
        told = [int(c) for c in item["instruction"] if c.isdigit()] if item["instructed"] else [value]
        for question in item["questions"]:
            for slot in question["slots"]:
                number += 1
                chosen = told[0] if item["instructed"] or question["id"] == "skin_tone" else 1
                body = {"item": item["id"], "slot": slot, "question": question["id"], "value": chosen}
                answer = client.post("/survey/answers", json=body | {"sequence": number, "milliseconds": 200_000})
                assert answer.status_code == 200, answer.text
    return str(client.post("/survey/submit").json()["next"])


def test_the_whole_way_from_the_task_through_the_questions_to_the_monitor(site: tuple[str, FastAPI]) -> None:
    base, _ = site
    for number in range(6):
        with seated(base, f"p{number}") as client:
            assert hand_in(client, 2 + 2 * (number // 2 % 2)) == "/survey/about"
            page = client.get("/survey/about").text
            assert "Prefer not to say" in page and "Do you edit?" in page and "South Korea" in page
            form = {"decision": "send", "sex": "Female", "age": "33", "ethnicity": "Black", "country": "Kenya"}
            assert client.post("/survey/about", data=form).status_code == 422, "without consent nothing is stored"
            assert client.post("/survey/about", data=form | {"agreed": "yes"}).status_code == 422, (
                "ethnicity needs its own"
            )
            assert client.post("/survey/about", data=form | {"agreed": "yes", "age": "7"}).status_code == 422
            done = client.post("/survey/about", data=form | {"agreed": "yes", "sensitive": "yes"})
            assert done.url.path == "/survey/done" and "Erase the data about me" in done.text
            if number == 5:
                client.post("/survey/about", data={"decision": "erase"})
                assert "Erase the data" not in client.get("/survey/done").text
    with seated(base, "skips") as client:
        hand_in(client)
        assert "completion code" in client.get("/survey/done").text.lower(), "the code depends on nothing"
        assert client.post("/survey/about", data={"decision": "skip"}).url.path == "/survey/done"
    with httpx.Client(base_url=base, headers={"Origin": base}, follow_redirects=True) as staff:
        staff.post("/admin/login", data={"name": "admin", "password": PASSWORD})
        page = staff.get("/admin/monitor").text
        assert "<b>7</b> of" in page and "below the minimum" in page, "10 minutes for 1.00 is 6.00 an hour"
        assert "6.00 USD" in page and "Skin tone" in page and "<svg" in page and "style=" not in page
        assert "2, 2, 4" in page and "Where people disagree most" in page
        assert "Kenya" not in page, "five of seven, so the two others would be given away"
        assert MISSING not in page.split("Who rated")[1]
        consents = staff.get("/admin/consent").text
        assert "7 people" in consents and "5 people" in consents, "to take part, and to say who they are"
        assert "No speaker has checked the edit requests in 한국어" in consents
        part = staff.get("/admin/monitor/state").text
        assert "<html" not in part and "Agreement so far" in part


def test_a_decision_that_is_none_is_refused_and_strangers_are_sent_away(site: tuple[str, FastAPI]) -> None:
    base, _ = site
    with httpx.Client(base_url=base) as nobody:
        assert nobody.get("/survey/about").status_code == 303
        assert nobody.post("/survey/about", data={"decision": "send"}).status_code == 401
        assert nobody.get("/admin/monitor").status_code in (303, 401)
    with seated(base, "early") as client:
        assert client.get("/survey/about").url.path == "/survey/task"
        assert client.post("/survey/about", data={"decision": "skip"}).status_code == 409
        assert client.post("/survey/about", data={"decision": "what"}).status_code == 422
