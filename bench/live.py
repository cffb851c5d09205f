"""What the page that follows a run takes from it: one run, whose page is open for half of the time, in turns."""

import multiprocessing
import threading
import time
from dataclasses import replace
from pathlib import Path

import httpx
import psutil
from PIL import Image

from bench.editing import study
from evenedit.api.study import Study
from evenedit.config.study_file import StudyFile
from evenedit.storage.store import Store

TURN = 12.0
"""Seconds with the page open, and then as many without."""
LOOK = 4.0
"""Seconds between two looks of an open page."""
TURNS = 5
"""Of each kind."""
PASSWORD = "a quiet morning"


def serve(folder: Path, told: dict, port: int) -> None:
    """The web app, in a process of its own."""
    import uvicorn

    from evenedit.web.app import create_app
    from evenedit.web.settings import ServerSettings

    app = create_app(Study(StudyFile.parse(told, folder), Store(folder)), ServerSettings(password=PASSWORD))
    uvicorn.run(app, port=port, log_level="error")


def free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def run(folder: Path) -> None:
    told = study(["O-01", "O-02", "V-02"], 64, ["simulated-even"])
    Study.of(StudyFile.parse(told, folder)).run()  # rated, so that there are interim rates to compute
    loaded = Study(StudyFile.parse(told, folder), Store(folder))
    done: list[float] = []
    over = threading.Event()

    def slow(images: list[Image.Image], instruction: str, seed: int) -> Image.Image:
        time.sleep(0.1)
        done.append(time.perf_counter())
        if over.is_set():
            raise KeyboardInterrupt
        return images[0]

    port = free_port()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(folder, told, port), daemon=True)
    server.start()
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", follow_redirects=True, timeout=30) as page:
        for _ in range(200):
            try:
                page.get("/ready")
                break
            except httpx.TransportError:
                time.sleep(0.2)
        page.post("/admin/login", data={"name": "admin", "password": PASSWORD}).raise_for_status()
        runner = loaded.runner(editors={"slow": slow})
        sources = runner.load_sources()
        requests = [r for r in runner.request(sources) if r.editor == "slow"]
        requests = [replace(r, seed=seed) for seed in range(1, 12) for r in requests]
        loaded.store.save_requests(requests)
        work = threading.Thread(target=lambda: _quietly(runner, requests, sources, loaded), daemon=True)
        work.start()
        time.sleep(3)
        counts, busy = {True: 0, False: 0}, 0.0
        watcher = psutil.Process(server.pid)
        for turn in range(2 * TURNS):
            watched = turn % 4 in (1, 2)  # not always the later of two
            began, cpu = time.perf_counter(), sum(watcher.cpu_times()[:2])
            while (now := time.perf_counter()) - began < TURN:
                if watched:
                    page.get("/run/state").raise_for_status()
                time.sleep(max(0.0, min(LOOK, began + TURN - now)))
            counts[watched] += sum(began <= at < began + TURN for at in done)
            busy += (sum(watcher.cpu_times()[:2]) - cpu) if watched else 0.0
        over.set()
        work.join(30)
    server.terminate()
    server.join()
    rate = {watched: count / TURN / TURNS for watched, count in counts.items()}
    print(
        f"edits of 100 ms, page open every other {TURN:g} s: {rate[True]:.2f}/s with it, {rate[False]:.2f}/s without: "
        f"ratio {rate[True] / rate[False]:.3f}; the server took {busy / TURN / TURNS:.1%} of one core"
    )


def _quietly(runner, requests, sources, loaded) -> None:
    try:
        runner.edit(requests, sources, loaded.store.start_run({}))
    except (KeyboardInterrupt, Exception):
        return
