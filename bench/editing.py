"""Start-up, the runner's share of an edit, executors, resuming."""

import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from PIL import Image

from bench.clock import timed
from evenedit.api.study import Study
from evenedit.config.study_file import StudyFile
from evenedit.core import images, plugins
from evenedit.core.images import encode
from evenedit.core.records import Request
from evenedit.run import executors
from evenedit.run.worker import EditTask, WorkerSetup
from evenedit.simulation.portraits import portrait as drawing
from evenedit.simulation.portraits.drawn import Drawn
from evenedit.simulation.portraits.portrait import portrait_of, render
from evenedit.storage.store import Store

TURNS = 7
"""Parts into which edits of 100 ms are divided."""


def study(prompts: list[str] | None, size: int, editors: list[str]) -> dict:
    return {
        "study": {"title": "Benchmark"},
        "sources": {"kind": "drawn", "settings": {"size": size}},
        "prompts": {"include": prompts} if prompts else {},
        "experiments": {"diagnosis": {}},
        "editors": [{"id": name} for name in editors],
        "judges": [{"id": f"simulated-judge-{n}", "kind": "simulated", "settings": {"seed": n}} for n in (1, 2)],
        "executor": {"workers": 1},
    }


def runner_overhead(folder: Path) -> None:
    """Edits through the runner (stored, resumable) against a bare loop over the same editor."""
    parsed = StudyFile.parse(study(["O-01", "V-02"], 256, ["simulated-even"]), folder)
    loaded = Study(parsed, Store(folder))
    sources = loaded.runner().load_sources()
    requests = loaded.runner().request(sources)
    editor = plugins.build("editors", "simulated-even", {})
    images = {s: loaded.store.images.open(sources[s].image) for s in sources}

    def bare() -> None:
        for r in requests:
            editor.edit([images[s] for s in r.source_ids], r.instruction, r.seed)

    timed(bare)  # warm up
    alone, _ = timed(bare)
    run = loaded.store.start_run({})
    through, _ = timed(lambda: loaded.runner().edit(requests, sources, run))
    per = 1000 / len(requests)
    print(
        f"runner: {through * per:.1f} ms per stored edit, bare loop {alone * per:.1f} ms: ratio {through / alone:.2f}"
    )


def slow_edits(folder: Path) -> None:
    """Edits of 100 ms through a run, against a loop that reads the portrait, edits it and saves a PNG; in turns."""
    parsed = StudyFile.parse(study(["O-01", "V-02"], 512, ["simulated-even"]) | {"judges": []}, folder)
    loaded = Study(parsed, Store(folder))

    def edit(images: list[Image.Image], instruction: str, seed: int) -> Image.Image:
        time.sleep(0.1)
        return images[0].rotate(1)

    runner = loaded.runner(editors={"slow": edit})
    sources = runner.load_sources()
    requests = [r for r in runner.request(sources) if r.editor == "slow"]
    run = loaded.store.start_run({})
    portraits = {s: str(loaded.store.images.path(sources[s].image)) for s in sources}
    (folder / "bare").mkdir()

    def bare(part: list[Request]) -> None:
        for r in part:
            with Image.open(portraits[r.source_ids[0]]) as portrait:
                edit([portrait.convert("RGB")], r.instruction, r.seed).save(folder / "bare" / f"{r.id}.png")

    through = alone = 0.0
    for turn in range(TURNS):  # so that whatever else the machine does falls on both
        part = requests[turn::TURNS]
        through += timed(partial(runner.edit, part, sources, run))[0]
        alone += timed(partial(bare, part))[0]
    per = 1000 / len(requests)
    print(
        f"edits of 100 ms, 512 px, {len(requests)}: {through * per:.1f} ms each through a run, "
        f"bare loop that saves them {alone * per:.1f} ms: ratio {through / alone:.3f}"
    )


def drawn_before() -> None:
    """What an editor draws that another one has drawn, against drawing it: both with encoding."""
    people = [portrait for _, _, _, portrait in Drawn(size=256).portraits()][:20]
    portraits = [portrait_of(person) for person in people]

    def draw() -> None:
        for portrait in portraits:
            encode(render(portrait, 256))

    again, _ = timed(draw)
    for memory in (drawing._remembered, images._remembered):
        memory.clear()
    anew, _ = timed(draw)
    per = 1000 / len(portraits)
    print(f"drawn before: {again * per:.1f} ms, drawn anew {anew * per:.1f} ms: ratio {again / anew:.2f}")


def executor_overhead(folder: Path) -> None:
    """The same CPU-bound edits in a bare loop, in threads, in two processes and on two Ray actors, start-up apart."""
    base = study(["O-01", "V-02", "V-09", "O-06"], 256, ["simulated-even"])
    bare = None
    for name, section in (
        ("one thread", {"workers": 1}),
        ("two threads", {"workers": 2}),
        ("one process", {"processes": 1}),
        ("two processes", {"processes": 2}),
        ("two Ray actors", {"kind": "ray", "address": "", "processes": 2}),
    ):
        place = folder / name.replace(" ", "-")
        loaded = Study.of(StudyFile.parse(base | {"executor": section}, place))
        sources = loaded.runner().load_sources()
        requests = loaded.runner().request(sources)
        if bare is None:
            editor = plugins.build("editors", "simulated-even", {})
            images = {s: loaded.store.images.open(sources[s].image) for s in sources}
            bare, _ = timed(
                lambda: [editor.edit([images[r.source_ids[0]]], r.instruction, r.seed) for r in requests]  # noqa: B023
            )
            print(f"bare loop: {1000 * bare / len(requests):.1f} ms per edit")
        tasks = [EditTask(r, tuple(sources[s].image for s in r.source_ids)) for r in requests]
        workshop = WorkerSetup("simulated-even", {}, loaded.store.images_url)
        batches = executors.edit(loaded.file.sections.executor, workshop, executors.EditQueue(tasks))
        next(batches)  # workers have started
        seconds, made = timed(lambda: sum(len(b) for b in batches))  # noqa: B023
        per = seconds / made
        print(f"{name}: {1000 * per:.1f} ms per stored edit: ratio to the bare loop {per * len(requests) / bare:.2f}")


def resume(folder: Path) -> None:
    names = ["simulated-even", "simulated-erasing", "simulated-null"]
    parsed = StudyFile.parse(study(None, 64, names), folder)
    loaded = Study(parsed, Store(folder))
    first, _ = timed(loaded.run)
    again, _ = timed(Study(parsed, Store(folder)).run)
    done = len(loaded.store.edits())
    print(
        f"resume with {done:,} finished: {again:.2f} s (the run itself took {first:.0f} s): ratio {again / first:.4f}"
    )


def start_up() -> None:
    def call(*arguments: str) -> float:
        command = [sys.executable, *arguments]
        return min(timed(lambda: subprocess.run(command, capture_output=True, check=True))[0] for _ in range(5))

    shown, bare = call("-m", "evenedit", "--help"), call("-c", "pass")
    print(f"evenedit --help: {shown:.3f} s, bare Python {bare:.3f} s: ratio {shown / bare:.1f}")


def run(folder: Path) -> None:
    start_up()
    drawn_before()
    runner_overhead(folder / "overhead")
    slow_edits(folder / "slow")
    executor_overhead(folder / "executors")
    resume(folder / "resume")
