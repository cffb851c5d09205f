"""Answers take the short way, and are answered as the survey's route would answer them."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from evenedit.web.saving import SavingMiddleware
from web_study import app_of, seated, serving, web_study


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


def test_both_ways_say_the_same(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = {"Content-Type": "application/json"}
    with seated(base, "two-ways") as client:
        answer = good(client)
        client.post("/survey/answers", json=answer)
        bodies = [
            answer,
            answer | {"sequence": 0},
            answer | {"value": 9},
            answer | {"value": "1"},
            answer | {"value": None},
            answer | {"item": "another"},
            answer | {"more": 1},
            {},
        ]
        sent = [json.dumps(body).encode() for body in bodies] + [b"", b"[", b"\xff", b'"x"']

        def said() -> list[tuple[int, Any]]:
            answers = [client.post("/survey/answers", content=content, headers=kind) for content in sent]
            return [(a.status_code, a.json()) for a in answers]

        short = said()
        calls = []

        async def none(self: SavingMiddleware, scope: Any, body: bytes) -> None:
            calls.append(body)

        monkeypatch.setattr(SavingMiddleware, "_save", none)
        assert said() == short and calls == sent
    assert {status for status, _ in short} == {200, 400, 409, 422}


def test_a_good_answer_takes_no_route_and_carries_the_security_headers(base: str, app: FastAPI) -> None:
    with seated(base, "short-way") as client:
        answer = client.post("/survey/answers", json=good(client))
        assert answer.json() == {"stored": 1} and answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"
        foreign = client.post("/survey/answers", json=good(client), headers={"Origin": "https://evil.example"})
        assert foreign.status_code == 403
        for cookie in ("", "visit=", "visit=nobody", "xvisit=" + client.cookies["visit"]):
            alone = httpx.post(base + "/survey/answers", json=good(client), headers={"Cookie": cookie})
            assert alone.status_code == 401, cookie
