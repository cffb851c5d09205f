"""Rehearse the survey: simulated participants fill its slots over HTTP, on a local server."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from multiprocessing.connection import Connection

import sqlalchemy as sa
import uvicorn

from evenedit.config.study_file import StudyFile
from evenedit.core.errors import EvenEditError
from evenedit.core.processes import WorkerContext
from evenedit.core.progress import Progress
from evenedit.storage.survey_schema import items
from evenedit.study.context import StudyContext
from evenedit.survey.admin import SurveyAdmin
from evenedit.survey.browser import Browser
from evenedit.survey.sessions import SurveyService
from evenedit.survey.simulated_participants import KnownPictures, SimulatedParticipant, name_of
from evenedit.web.app import create_app

AT_ONCE = 16
"""Simulated participants who answer at the same time."""
_CONTEXT = WorkerContext()

Busy = tuple[SimulatedParticipant, Browser]


def rehearse(study: StudyContext, started: Server | None = None) -> str:
    """Let simulated participants take every free slot and submit; returns a summary in one line.

    They arrive one after the other, so that the same study gives the same slots, and then answer in parallel. The
    server may have been started before, since that takes seconds.
    """
    section = study.file.sections.survey
    if section is None:
        raise EvenEditError("study.toml has no [survey]; add this table to collect ratings by people")
    answers = 0
    with started or Server() as server, ThreadPoolExecutor(AT_ONCE) as pool:
        with closing(SurveyService.open(study.file, study.store)) as service:  # lays out the tasks
            links = service.arrivals.invitations
            outputs = {output for row in service.database.rows(sa.select(items.c.outputs)) for output in row.outputs}
            tasks = SurveyAdmin(service).progress()
        server.serve(study.file)
        known = KnownPictures(study.file, study.store, outputs)
        base = server.address()
        for survey in section.surveys:
            arriving = section.simulated_people or sum(task.slots for task in tasks if task.survey == survey)
            busy: list[Busy] = []
            for number in range(1, arriving + 1):
                person = SimulatedParticipant(name_of(number), number, known, section.settings)
                browser = Browser(base)
                with closing(browser):  # it may wait long for its turn to work, and connects again then
                    if person.enter(browser, links.link(base, person.name, survey), survey):
                        busy.append((person, browser))
            with Progress(f"SIMULATED people, survey {survey}", arriving, arriving - len(busy)) as progress:
                for count in pool.map(_work, busy):
                    answers += count
                    progress.advance(1)
    with closing(SurveyService.open(study.file, study.store, write=False)) as service:
        tasks = SurveyAdmin(service).progress()
    filled, slots = sum(task.done for task in tasks), sum(task.slots for task in tasks)
    return f"{filled} of {slots} slots filled by SIMULATED people, who gave {answers:,} answers over HTTP"


class Server:
    """The web app of a study in a process of its own, so that it does not share its time with who asks it."""

    def __init__(self) -> None:
        self._pipe, self._server_end = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_serve, args=(self._server_end,), name="rehearsal-server", daemon=True)

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._process.join()

    def start(self) -> Server:
        """Start the process, if it is not there yet."""
        if self._process.pid is None:
            self._process.start()
            self._server_end.close()  # so that the pipe ends when the process does
        return self

    def serve(self, file: StudyFile) -> None:
        """Begin to serve a study."""
        self._pipe.send(file)

    def address(self) -> str:
        """Return the address of the server; wait until it answers."""
        try:
            received = self._pipe.recv()
        except EOFError:
            raise EvenEditError("the survey's server did not start") from None
        if isinstance(received, EvenEditError):
            raise received
        return f"http://127.0.0.1:{received}"


def _serve(pipe: Connection) -> None:
    """Serve the study that is sent until the pipe is closed; say on it which port is listened on."""
    try:
        app = create_app(StudyContext.of(pipe.recv()))
    except EOFError:
        return
    except EvenEditError as error:
        pipe.send(error)
        return
    config = uvicorn.Config(app, port=0, log_level=logging.WARNING, access_log=False, timeout_keep_alive=65)
    server, socket = uvicorn.Server(config), config.bind_socket()
    socket.listen()  # who connects before the server answers is kept waiting
    pipe.send(socket.getsockname()[1])

    def stop_with_parent() -> None:
        with suppress(EOFError, OSError):
            pipe.recv()
        server.should_exit = True

    threading.Thread(target=stop_with_parent, daemon=True).start()
    server.run(sockets=[socket])


def _work(busy: Busy) -> int:
    person, browser = busy
    with closing(browser):
        return person.work(browser)
