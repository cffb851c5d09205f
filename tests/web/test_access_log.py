"""The access log names every request by its route, and nobody."""

import json
from pathlib import Path

import httpx

from evenedit.web.settings import ServerSettings
from tests.support.web_study import PASSWORD, app_of, seated, serving, web_study


def test_every_request_has_a_line_and_no_line_tells_who_made_it(tmp_path: Path) -> None:
    log = tmp_path / "log" / "access.jsonl"
    app = app_of(web_study(tmp_path, surveys=[1]), ServerSettings(password=PASSWORD, access_log=str(log)))
    with serving(app) as base, seated(base, "5f0c1d2e3a4b5c6d7e8f9a0b") as person:
        item = person.get("/survey/items").json()["items"][0]
        question = item["questions"][0]
        answer = {"item": item["id"], "slot": question["slots"][0], "question": question["id"], "value": 1}
        assert person.post("/survey/answers", json={**answer, "sequence": 1}).status_code == 200
        person.get(f"/survey/pictures/{item['pictures'][0]['id']}")
        httpx.get(f"{base}/5f0c1d2e3a4b5c6d7e8f9a0b")
        httpx.post(f"{base}/survey/answers", content=b"x" * 70_000)
        httpx.get(f"{base}/static/style.css")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["route"], line["status"]) for line in lines][-6:] == [
        ("/survey/items", 200),
        ("/survey/answers", 200),
        ("/survey/pictures/{picture}", 200),
        ("other", 404),
        ("/survey", 413),
        ("/static", 200),
    ]
    assert set(lines[0]) == {"time", "method", "route", "status", "ms", "bytes"}
    assert not any(secret in log.read_text() for secret in ("5f0c", "127.0.0.1", person.cookies["visit"], item["id"]))
    assert log.stat().st_mode & 0o007 == 0
