"""Run the web server: one process per SQLite study."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from queue import Queue
from socket import gethostname

import uvicorn

from evenedit.core.errors import EvenEditError
from evenedit.core.log import log
from evenedit.storage.locks import file_lock
from evenedit.study.context import StudyContext
from evenedit.survey.sample import stale
from evenedit.web.app import create_app
from evenedit.web.auth import Accounts
from evenedit.web.settings import ServerSettings, host_of

LOCK = "serve.lock"


@dataclass(frozen=True, slots=True)
class BackgroundServer:
    """A web app that runs in a thread of this process."""

    url: str
    password: str | None
    """The temporary password of staff, whose name is 'admin'; None where passwords are set."""
    _server: uvicorn.Server
    _thread: threading.Thread

    def stop(self) -> None:
        """Stop it and wait until it has ended."""
        self._server.should_exit = True
        self._thread.join()


def serve(study: StudyContext, host: str, port: int, *, background: bool = False) -> BackgroundServer | None:
    """Serve a study from Python: until Ctrl-C, or in a thread of this process."""
    setup = development(study)
    if not background:
        run(study, setup, host, port, None)
        return None
    ready: Queue[tuple[uvicorn.Server, str] | BaseException] = Queue()

    def work() -> None:
        try:
            run(study, setup, host, port, None, started=ready.put)
        except BaseException as error:  # passed on to the thread that waits
            ready.put(error)

    thread = threading.Thread(target=work, name="evenedit-serve", daemon=True)
    thread.start()
    outcome = ready.get()
    if isinstance(outcome, BaseException):
        raise outcome
    return BackgroundServer(outcome[1], setup.password, outcome[0], thread)


def development(study: StudyContext) -> ServerSettings:
    """Return the settings of a server that is not in production, with a temporary password if none is set."""
    return ServerSettings(password=None if Accounts(study.store).all() else secrets.token_urlsafe(9))


def hosts(listens: str, address: str) -> frozenset[str]:
    """Return the names under which a server accepts requests."""
    if address:
        return frozenset({host_of(address)})
    return frozenset({"localhost", listens.lower(), gethostname().lower()})


def run(
    study: StudyContext,
    setup: ServerSettings,
    host: str,
    port: int,
    proxy: str | None,
    started: Callable[[tuple[uvicorn.Server, str]], None] | None = None,
) -> None:
    """Serve a study until the process is stopped; `started` is told the server and its address."""
    with _only_server(study):
        app = create_app(study, replace(setup, hosts=hosts(host, setup.address)))
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            proxy_headers=proxy is not None,
            forwarded_allow_ips=proxy or [],
            server_header=False,
            date_header=True,
            access_log=False,  # it would store participants' addresses and platform ids
            log_level=logging.WARNING,
            timeout_keep_alive=65,
        )
        server = uvicorn.Server(config)
        try:
            socket = config.bind_socket()
        except SystemExit:
            raise EvenEditError(f"port {port} of {host} is in use or not allowed; choose another with --port") from None
        address = f"http://{host}:{socket.getsockname()[1]}/"
        log.info(f"{address}  (staff: /admin; participants need a link: evenedit survey invite); stop with Ctrl+C")
        if hasattr(app.state, "survey") and not setup.production:
            log.info(f"take part in a preview, which never counts: {app.state.survey.arrivals.previews.link(address)}")
        for survey in app.state.survey.section.surveys if hasattr(app.state, "survey") else ():
            if message := stale(study.file, study.store, survey):
                log.warning(message)
        if hasattr(app.state, "gallery"):
            app.state.gallery.begin()
        if started is not None:
            started((server, f"http://{host}:{socket.getsockname()[1]}/"))
        server.run(sockets=[socket])


@contextmanager
def _only_server(study: StudyContext) -> Iterator[None]:
    """Refuse a second server on the same study, since SQLite has one writer. PostgreSQL takes several."""
    if study.file.sections.store.url:
        yield
        return
    refusal = (
        f"another server already serves the study in {study.store.folder}, and SQLite allows one process; "
        "stop the other, or set [store] url to a PostgreSQL database"
    )
    with file_lock(study.store.folder / LOCK, refusal):
        yield
