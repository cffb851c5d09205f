"""Start-up, the pipeline's share of an edit, executors, resuming."""

import subprocess
import sys
from pathlib import Path

from bench.clock import timed
from evenedit.config.study_file import Study
from evenedit.core import plugins
from evenedit.run import executors
from evenedit.run.runner import Pipeline
from evenedit.run.worker import Task, Workshop
from evenedit.storage.store import Store


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


def pipeline_overhead(folder: Path) -> None:
    """Edits through the pipeline (stored, resumable) against a bare loop over the same editor."""
    parsed = Study.parse(study(["O-01", "V-02"], 256, ["simulated-even"]), folder)
    pipeline = Pipeline(parsed, Store(folder))
    sources = pipeline.load_sources()
    requests = pipeline.request(sources)
    editor = plugins.build("editors", "simulated-even", {})
    images = {s: pipeline.store.images.open(sources[s].image) for s in sources}

    def bare() -> None:
        for r in requests:
            editor.edit([images[s] for s in r.source_ids], r.instruction, r.seed)

    timed(bare)  # warm up
    alone, _ = timed(bare)
    run = pipeline.store.start_run({})
    through, _ = timed(lambda: pipeline.edit(requests, sources, run))
    per = 1000 / len(requests)
    print(
        f"pipeline: {through * per:.1f} ms per stored edit, bare loop {alone * per:.1f} ms: ratio {through / alone:.2f}"
    )


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
        pipeline = Pipeline(Study.parse(base | {"executor": section}, place), Store(place))
        sources = pipeline.load_sources()
        requests = pipeline.request(sources)
        if bare is None:
            editor = plugins.build("editors", "simulated-even", {})
            images = {s: pipeline.store.images.open(sources[s].image) for s in sources}
            bare, _ = timed(
                lambda: [editor.edit([images[r.source_ids[0]]], r.instruction, r.seed) for r in requests]  # noqa: B023
            )
            print(f"bare loop: {1000 * bare / len(requests):.1f} ms per edit")
        tasks = [Task(r, tuple(sources[s].image for s in r.source_ids)) for r in requests]
        workshop = Workshop("simulated-even", {}, pipeline.store.images_url)
        batches = executors.edit(pipeline.study.file.executor, workshop, tasks)
        next(batches)  # workers have started
        seconds, made = timed(lambda: sum(len(b) for b in batches))  # noqa: B023
        per = seconds / made
        print(f"{name}: {1000 * per:.1f} ms per stored edit: ratio to the bare loop {per * len(requests) / bare:.2f}")


def resume(folder: Path) -> None:
    names = ["simulated-even", "simulated-erasing", "simulated-null"]
    parsed = Study.parse(study(None, 64, names), folder)
    pipeline = Pipeline(parsed, Store(folder))
    first, _ = timed(pipeline.run)
    again, _ = timed(Pipeline(parsed, Store(folder)).run)
    done = len(pipeline.store.edits())
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
    pipeline_overhead(folder / "overhead")
    executor_overhead(folder / "executors")
    resume(folder / "resume")
