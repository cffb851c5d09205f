"""A rehearsal of the survey: our own server on loopback, and simulated people who fill its seats over HTTP."""

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
from evenedit.survey.simulated_participants import Memory, Person, name_of
from evenedit.web.app import create_app

AT_ONCE = 4
"""People who answer at the same time."""


def rehearse(study: Study) -> str:
    """Let simulated people take every free seat and submit; returns what happened in a line.

    They come one after the other, so that the same study gives the same seats, and then work side by side.
    """
    section = study.file.sections.survey
    if section is None:
        raise EvenEditError("study.toml has no [survey]; add the table to ask people")
    answers = 0
    with serving(study) as (base, desk), ThreadPoolExecutor(AT_ONCE) as pool:
        memory = Memory(study.file, study.store)
        for survey in section.surveys:
            seats = sum(task.seats for task in SurveyAdmin(desk).progress() if task.survey == survey)
            come = section.simulated_people or seats
            busy: list[tuple[Person, httpx.Client]] = []
            for number in range(1, come + 1):
                person = Person(name_of(number), number, memory, section.settings)
                client = httpx.Client(base_url=base, follow_redirects=True, timeout=60)
                link = desk.reception.invitations.link(base, person.name, survey)
                if person.enter(client, link, survey):
                    busy.append((person, client))
                else:
                    client.close()
            with Progress(f"SIMULATED people, survey {survey}", come, come - len(busy)) as progress:
                for given in pool.map(_work, busy):
                    answers += given
                    progress.advance(1)
        filled = sum(task.done for task in SurveyAdmin(desk).progress())
        seats = sum(task.seats for task in SurveyAdmin(desk).progress())
    return f"{filled} of {seats} seats filled by SIMULATED people, who gave {answers:,} answers over HTTP"


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
        yield f"http://127.0.0.1:{socket.getsockname()[1]}", app.state.desk
    finally:
        server.should_exit = True
        thread.join()
        app.state.desk.close()


def _work(busy: tuple[Person, httpx.Client]) -> int:
    person, client = busy
    with closing(client):
        return person.work(client)
