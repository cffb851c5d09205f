"""Answers are saved by one route: status codes, bodies and headers."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tests.support.web_study import app_of, seated, serving, web_study


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    return app_of(web_study(tmp_path_factory.mktemp("saving"), surveys=[1]))


@pytest.fixture(scope="module")
def base(app: FastAPI) -> Iterator[str]:
    with serving(app) as address:
        yield address


def good(client: httpx.Client) -> dict[str, Any]:
    item = client.get("/survey/items").json()["items"][0]
    row = item["questions"][0]
    return {"item": item["id"], "slot": row["slots"][0], "question": row["id"], "value": 1, "sequence": 1}


def test_each_kind_of_answer_has_its_status_and_body(base: str) -> None:
    kind = {"Content-Type": "application/json"}
    with seated(base, "statuses") as client:
        answer = good(client)
        client.post("/survey/answers", json=answer)
        foreign = "this item is not part of your task"
        high = "an answer is a whole number from 1 to"
        cases: list[tuple[bytes, int, Any]] = [
            (json.dumps(answer).encode(), 200, {"stored": 1}),
            (json.dumps(answer | {"sequence": 3}).encode(), 200, {"stored": 3}),
            (json.dumps(answer | {"sequence": 2}).encode(), 200, {"stored": 3}),
            (json.dumps(answer | {"sequence": 0}).encode(), 422, ["body.sequence"]),
            (json.dumps(answer | {"value": 9}).encode(), 409, high),
            (json.dumps(answer | {"value": "1"}).encode(), 200, {"stored": 3}),
            (json.dumps(answer | {"value": None}).encode(), 422, ["body.value"]),
            (json.dumps(answer | {"item": "another"}).encode(), 409, foreign),
            (json.dumps(answer | {"more": 1}).encode(), 422, ["body.more"]),
            (b"{}", 422, [f"body.{name}" for name in ("item", "question", "sequence", "slot", "value")]),
            (b"", 422, ["body"]),
            (b"[", 422, ["body.1"]),
            (b'"x"', 422, ["body"]),
            (b"\xff", 400, None),
        ]
        for content, status, expected in cases:
            reply = client.post("/survey/answers", content=content, headers=kind)
            assert reply.status_code == status, (content, reply.text)
            if status == 200:
                assert reply.json() == expected
            elif status == 409:
                assert reply.json()["error"]["type"] == "conflict"
                assert reply.json()["error"]["message"].startswith(expected)
            else:
                assert reply.json()["error"].get("fields") == expected, content


def test_the_answers_are_in_the_openapi_description(app: FastAPI) -> None:
    entry = app.openapi()["paths"]["/survey/answers"]["post"]
    body = entry["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/AnswerBody"}
    assert entry["responses"]["200"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Stored"}
    assert {"400", "401", "403", "409", "422"} <= entry["responses"].keys()
    paths = [getattr(route, "path", "") for route in app.routes]
    assert paths.count("/survey/answers") <= 1


def test_an_answer_carries_the_security_headers_and_needs_its_visit(base: str, app: FastAPI) -> None:
    with seated(base, "short-way") as client:
        answer = client.post("/survey/answers", json=good(client))
        assert answer.json() == {"stored": 1} and answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"
        foreign = client.post("/survey/answers", json=good(client), headers={"Origin": "https://evil.example"})
        assert foreign.status_code == 403
        for cookie in ("", "visit=", "visit=nobody", "xvisit=" + client.cookies["visit"]):
            alone = httpx.post(base + "/survey/answers", json=good(client), headers={"Cookie": cookie})
            assert alone.status_code == 401, cookie
