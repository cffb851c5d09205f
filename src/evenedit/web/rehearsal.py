"""Rehearse the survey: simulated participants fill its slots over HTTP, on a local server."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import httpx
import uvicorn

from evenedit.core.errors import EvenEditError
from evenedit.core.progress import Progress
from evenedit.study.study import Study
from evenedit.survey.admin import SurveyAdmin
from evenedit.survey.sessions import SurveyService
from evenedit.survey.simulated_participants import KnownPictures, SimulatedParticipant, name_of
from evenedit.web.app import create_app

AT_ONCE = 4
"""Simulated participants who answer at the same time."""


def rehearse(study: Study) -> str:
    """Let simulated participants take every free slot and submit; returns a summary in one line.

    They arrive one after the other, so that the same study gives the same slots, and then answer in parallel.
    """
    section = study.file.sections.survey
    if section is None:
        raise EvenEditError("study.toml has no [survey]; add the table to ask people")
    answers = 0
    with serving(study) as (base, service), ThreadPoolExecutor(AT_ONCE) as pool:
        known = KnownPictures(study.file, study.store)
        for survey in section.surveys:
            slots = sum(task.slots for task in SurveyAdmin(service).progress() if task.survey == survey)
            arriving = section.simulated_people or slots
            busy: list[tuple[SimulatedParticipant, httpx.Client]] = []
            for number in range(1, arriving + 1):
                person = SimulatedParticipant(name_of(number), number, known, section.settings)
                client = httpx.Client(base_url=base, follow_redirects=True, timeout=60)
                link = service.arrivals.invitations.link(base, person.name, survey)
                if person.enter(client, link, survey):
                    busy.append((person, client))
                else:
                    client.close()
            with Progress(f"SIMULATED people, survey {survey}", arriving, arriving - len(busy)) as progress:
                for given in pool.map(_work, busy):
                    answers += given
                    progress.advance(1)
        filled = sum(task.done for task in SurveyAdmin(service).progress())
        slots = sum(task.slots for task in SurveyAdmin(service).progress())
    return f"{filled} of {slots} slots filled by SIMULATED people, who gave {answers:,} answers over HTTP"


@contextmanager
def serving(study: Study) -> Iterator[tuple[str, SurveyService]]:
    """The study's web app on a free port of this machine, for as long as the block lasts."""
    app = create_app(study)
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level=logging.WARNING, access_log=False)
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, name="rehearsal-server")
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise EvenEditError("the survey's server did not start")
            time.sleep(0.01)
        yield f"http://127.0.0.1:{socket.getsockname()[1]}", app.state.survey
    finally:
        server.should_exit = True
        thread.join()
        app.state.survey.close()


def _work(busy: tuple[SimulatedParticipant, httpx.Client]) -> int:
    person, client = busy
    with closing(client):
        return person.work(client)
