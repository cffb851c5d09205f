"""The survey under load: 300 people at a human pace, and saves per second beside a plain server."""

import asyncio
import json
import random
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from evenedit.api.study import Study
from evenedit.config.study_file import StudyFile
from evenedit.survey.questions import checks
from evenedit.survey.sessions import SurveyService
from evenedit.survey.visits import Arrival

PEOPLE = 300
PACED = 12.0
"""Seconds of the paced load."""
EACH = 3.5
"""Seconds between two answers of one person, on average."""
SATURATED = 5.0
CONNECTIONS = 64
TURNS = 2
"""How often both servers are saturated, in turn: what a busy machine does to one it does to the other."""
STUDY = {
    "study": {"title": "Load"},
    "sources": {
        "kind": "drawn",
        "settings": {"size": 64, "only": {"race": ["White", "Black"], "age": ["20s", "70plus"]}},
    },
    "prompts": {"include": ["O-01", "V-02"]},
    "experiments": {"diagnosis": {}},
    "editors": [{"id": "simulated-even"}],
    "survey": {"cases": 16, "items_per_task": 8, "raters_per_item": 200, "instructed": 0},
}
SERVER = """
import sys, uvicorn
from pathlib import Path
from bench.survey import study_of
from evenedit.web.app import create_app
uvicorn.run(create_app(study_of(Path(sys.argv[1]))), host="127.0.0.1", port=int(sys.argv[2]), log_level="error",
            access_log=False, timeout_keep_alive=65)
"""
PLAIN = """
import sqlite3, sys, threading, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

class Answer(BaseModel):
    item: str
    slot: str
    question: str
    value: int
    sequence: int
    milliseconds: int = 0

app, own = FastAPI(), threading.local()

def connection():
    if not hasattr(own, "db"):
        own.db = sqlite3.connect(sys.argv[1] + "/plain.db", timeout=30)
        own.db.execute("PRAGMA journal_mode=WAL")
        own.db.execute("PRAGMA synchronous=FULL")
    return own.db

connection().execute("CREATE TABLE IF NOT EXISTS a (item, slot, question, value, sequence, "
                     "PRIMARY KEY (item, slot, question))")
connection().commit()

@app.post("/survey/answers")
def save(answer: Answer):
    db = connection()
    db.execute("INSERT OR REPLACE INTO a VALUES (?, ?, ?, ?, ?)",
               (answer.item, answer.slot, answer.question, answer.value, answer.sequence))
    db.commit()
    return {"stored": answer.sequence}

uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="error", access_log=False, timeout_keep_alive=65)
"""


DATABASE_URL = "database.url"
"""A file in the study's folder that names its PostgreSQL database; without it the study is on SQLite."""


def study_of(folder: Path) -> Study:
    url = folder / DATABASE_URL
    store = {"store": {"url": url.read_text("utf-8")}} if url.is_file() else {}
    return Study.of(StudyFile.parse({**STUDY, **store}, folder))


def service_of(study: Study) -> SurveyService:
    return SurveyService.open(study.file, study.store)


def seated(service: SurveyService, name: str) -> str:
    token = service.arrive(Arrival("panel", name)).token
    service.read_guide(token)
    service.check(token, {check.question.id: check.right for check in checks(1)})
    return service.consent(token, True).token


def requests_of(service: SurveyService, token: str) -> list[bytes]:
    """The bytes of every answer one person can give."""
    sent = []
    for item in service.items(token):
        for asked in item.questions:
            body = {"item": item.id, "slot": asked.slot, "question": asked.question.id, "value": 3}
            sent.append(json.dumps(body | {"sequence": len(sent) + 1, "milliseconds": 1000}).encode())
    head = f"POST /survey/answers HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nCookie: visit={token}\r\n"
    return [f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body for body in sent]


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> int:
    """One request on a kept connection; returns the status."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    await reader.readexactly(length)
    return int(head.split(b" ", 2)[1])


async def person(port: int, requests: list[bytes], until: float, pace: float) -> list[tuple[float, int]]:
    """Answers until the time is up, at a pace or as fast as it goes; returns (seconds, status) of each."""
    chance = random.Random(requests[0])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    taken = []
    if pace:
        await asyncio.sleep(chance.uniform(0, pace))
    number = 0
    while time.perf_counter() < until:
        started = time.perf_counter()
        status = await ask(reader, writer, requests[number % len(requests)])
        taken.append((time.perf_counter() - started, status))
        number += 1
        if pace:
            await asyncio.sleep(chance.expovariate(1 / pace))
    writer.close()
    return taken


def load(port: int, people: list[list[bytes]], seconds: float, pace: float) -> tuple[np.ndarray, int]:
    """Latencies in milliseconds, and how many answers were not kept."""

    async def all_of_them() -> list[list[tuple[float, int]]]:
        until = time.perf_counter() + seconds
        return await asyncio.gather(*(person(port, requests, until, pace) for requests in people))

    taken = [one for part in asyncio.run(all_of_them()) for one in part]
    return np.array([1000 * t for t, _ in taken]), sum(status != 200 for _, status in taken)


class Serving:
    """A server process of its own, up before the block begins."""

    def __init__(self, script: str, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._command = [sys.executable, "-c", script, str(folder), str(self.port)]

    def __enter__(self) -> int:
        self._process = subprocess.Popen(self._command)
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self.port
            if self._process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError("the server did not start")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()


def throughput(folder: Path, people: list[list[bytes]]) -> None:
    """300 people at a human pace, then as many saves as it takes, beside a commit per request."""
    with Serving(SERVER, folder) as port:
        load(port, people[:20], 1.0, 0)  # warm up
        paced, errors = load(port, people, PACED, EACH)
        print(
            f"{PEOPLE} people, an answer every {EACH} s each: {len(paced)} saves in {PACED:.0f} s, "
            f"p50 {np.median(paced):.1f} ms, p99 {np.quantile(paced, 0.99):.1f} ms, {errors} errors"
        )
    ratios = [_turn(folder, people[:CONNECTIONS], number) for number in range(1, TURNS + 1)]
    told = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(f"ratio of saves/s, ours with every check to the plain server, by turn: {told}")


def _turn(folder: Path, people: list[list[bytes]], number: int) -> float:
    """Both servers saturated, one after the other; how many times as many saves ours takes."""
    counts = []
    for name, script in (("ours", SERVER), ("commit per request", PLAIN)):
        with Serving(script, folder) as port:
            load(port, people[:20], 1.0, 0)  # warm up
            taken, lost = load(port, people, SATURATED, 0)
        counts.append(len(taken))
        print(
            f"turn {number}, saturated, {CONNECTIONS} connections, {name}: {len(taken) / SATURATED:.0f} saves/s, "
            f"p50 {np.median(taken):.0f} ms, p99 {np.quantile(taken, 0.99):.0f} ms, {lost} errors"
        )
    return counts[0] / counts[1]


def service_alone(folder: Path) -> None:
    """What group commit brings by itself: the service's saves by 64 threads against a commit for each."""
    import sqlite3

    service = service_of(study_of(folder))
    tokens = [seated(service, f"p{n}") for n in range(CONNECTIONS)]
    places = [(item.id, a.slot, a.question.id) for item in service.items(tokens[0]) for a in item.questions]
    sheets = [[(i.id, a.slot, a.question.id) for i in service.items(t) for a in i.questions] for t in tokens]
    rounds = 30
    started = time.perf_counter()

    def save(worker: int) -> None:
        for number in range(rounds):
            service.save(tokens[worker], *sheets[worker][number % len(places)], 3, 10**6 + number)

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(save, range(CONNECTIONS)))
    ours = CONNECTIONS * rounds / (time.perf_counter() - started)
    service.close()
    db = sqlite3.connect(folder / "alone.db")
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("CREATE TABLE a (key PRIMARY KEY, value)")
    started = time.perf_counter()
    for number in range(500):
        db.execute("INSERT OR REPLACE INTO a VALUES (?, 3)", (number % 50,))
        db.commit()
    alone = 500 / (time.perf_counter() - started)
    db.close()
    print(f"without HTTP: {ours:.0f} saves/s by group commit, {alone:.0f} bare commits/s: ratio {ours / alone:.2f}")


def run(folder: Path) -> None:
    study = study_of(folder)
    study.run()
    service_alone(folder)
    service = service_of(study)
    people = [requests_of(service, seated(service, f"p{number}")) for number in range(PEOPLE)]
    service.close()
    throughput(folder, people)
