"""A small study with all three surveys, and its web app on a real port."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from evenedit.api.study import Study
from evenedit.survey.questions import checks
from evenedit.web.app import create_app
from evenedit.web.settings import ServerSettings
from tests.support.studies import open_study

PASSWORD = "a quiet morning"
SURVEY: dict[str, Any] = {
    "surveys": [1, 2, 3],
    "cases": 4,
    "population": "mitigation",
    "items_per_task": 2,
    "instructed": 1,
    "raters_per_item": 40,
    "platform": {"kind": "prolific"},
}


def web_study(folder: Path, url: str | None = None, **survey: Any) -> Study:
    """Edited, so that there is something to rate; tasks of two items and one instructed check."""
    study = open_study(
        folder,
        **({"store": {"url": url}} if url else {}),
        experiments={
            "diagnosis": {},
            "mitigation": {"cases": 4, "extractor": {"kind": "simulated"}},
            "stereotype": {"include": ["W-01", "W-26"]},
        },
        judges=[],
        survey=SURVEY | survey,
    )
    if not study.store.edits():
        study.run()
    return study


def app_of(study: Study, setup: ServerSettings | None = None) -> FastAPI:
    """The app; its service is closed when it stops serving."""
    return create_app(study, setup or ServerSettings(password=PASSWORD))


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """The app's address on loopback."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def link(base: str, participant: str, survey: int = 1) -> str:
    """The link by which a participant arrives."""
    return f"{base}/survey?PROLIFIC_PID={participant}&STUDY_ID=s1&SESSION_ID=x1&survey={survey}"


@contextmanager
def seated(base: str, participant: str, survey: int = 1, stage: str = "task") -> Iterator[httpx.Client]:
    """A participant who has gone through guide, check and consent and sits at a task, or has come as far as `stage`."""
    right = {check.question.id: str(check.right) for check in checks(survey)}
    forms = {"check": {}, "consent": right, "task": {"decision": "agree", "adult": "yes", "agreed": "yes"}}
    with httpx.Client(base_url=base, follow_redirects=True) as client:
        answer = client.get(link(base, participant, survey))
        for before, form in zip(("guide", "check", "consent"), forms.values(), strict=True):
            if not answer.url.path.endswith(f"/{stage}"):
                answer = client.post(f"/survey/{before}", data=form)
        assert answer.url.path == f"/survey/{stage}", answer.text
        yield client
