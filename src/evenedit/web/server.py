"""Run the web server: one process per SQLite study."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from evenedit.core.errors import EvenEditError
from evenedit.core.log import log
from evenedit.storage.locks import file_lock
from evenedit.study.study import Study
from evenedit.web.app import create_app
from evenedit.web.settings import Setup

LOCK = "serve.lock"


def run(study: Study, setup: Setup, host: str, port: int, proxy: str | None) -> None:
    """Serve a study until the process is stopped."""
    with _only_server(study):
        app = create_app(study, setup)
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
        if hasattr(app.state, "gallery"):
            app.state.gallery.begin()
        server.run(sockets=[socket])


@contextmanager
def _only_server(study: Study) -> Iterator[None]:
    """Refuse a second server on the same study, since SQLite has one writer. PostgreSQL takes several."""
    if study.file.sections.store.url:
        yield
        return
    refusal = (
        f"another server already serves the study in {study.store.folder}, and SQLite takes one process; "
        "stop the other, or give the study a PostgreSQL [store] url"
    )
    with file_lock(study.store.folder / LOCK, refusal):
        yield
