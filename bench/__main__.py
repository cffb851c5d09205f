"""Measure what users wait for, and print it beside a plain way of doing the same."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from evenedit import executors, plugins
from evenedit.imports import read_tables
from evenedit.pipeline import Pipeline
from evenedit.protocol import AXES, load_prompts
from evenedit.protocol.grid import cells
from evenedit.stats import AnalysisRules, analyse
from evenedit.store import Store
from evenedit.study import Study
from evenedit.worker import Task, Workshop

DRAWS = 2000
NAIVE_DRAWS = 4
EDITORS = ("flux2-dev", "step1x-edit-v1p2", "qwen-image-edit-2511")


def timed(work) -> tuple[float, object]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


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


def scores(faces_per_cell: int, path: Path) -> Path:
    """A CSV of two judges' made-up scores for a design of 84 × faces × 20 prompts × 3 editors."""
    rng = np.random.default_rng(1)
    faces = pd.DataFrame(
        [
            {"source_id": "_".join(c.values()) + ("" if k == 1 else f"_{k}"), **c}
            for c in cells()
            for k in range(1, faces_per_cell + 1)
        ]
    )
    frame = (
        faces.merge(pd.DataFrame({"prompt_id": [p.id for p in load_prompts("diagnostic")]}), how="cross")
        .merge(pd.DataFrame({"editor": EDITORS}), how="cross")
        .merge(pd.DataFrame({"judge": ("judge-a", "judge-b")}), how="cross")
    )
    frame["experiment"], frame["condition"], frame["status"] = "diagnosis", "baseline", "scored"
    for axis in AXES:
        frame[axis] = rng.integers(1, 6, len(frame))
    frame.to_csv(path, index=False)
    return path


def naive(path: Path) -> float:
    """Seconds per draw of the same two-way bootstrap written as a plain pandas loop, for rates by race and editor."""
    frame = pd.read_csv(path)
    wide = frame.groupby(["editor", "source_id", "prompt_id", "race", "gender", "age"], as_index=False)[
        list(AXES)
    ].mean()
    rng = np.random.default_rng(1)
    faces, prompts = wide["source_id"].unique(), wide["prompt_id"].unique()

    def loop() -> None:
        for _ in range(NAIVE_DRAWS):
            drawn_faces = pd.Series(rng.choice(faces, len(faces))).value_counts().rename("face_weight")
            drawn_prompts = pd.Series(rng.choice(prompts, len(prompts))).value_counts().rename("prompt_weight")
            drawn = wide.join(drawn_faces, on="source_id").join(drawn_prompts, on="prompt_id").dropna()
            weight = drawn["face_weight"] * drawn["prompt_weight"]
            for group in ("race", "gender", "age", ["race", "gender"]):
                keys = ["editor", *([group] if isinstance(group, str) else group)]
                for axis in AXES:
                    hits = (weight * (drawn[axis] >= 4)).groupby([drawn[k] for k in keys]).sum()
                    _ = hits / weight.groupby([drawn[k] for k in keys]).sum()

    seconds, _ = timed(loop)
    return seconds / NAIVE_DRAWS


def analysis(folder: Path) -> None:
    times = {}
    for faces, edits in ((1, 5_040), (100, 504_000)):
        path = scores(faces, folder / f"{edits}.csv")
        read, table = timed(lambda path=path: read_tables([path]))
        compute, _ = timed(lambda table=table: analyse(table, AnalysisRules.default(), {}))
        times[edits] = read + compute
        per_draw = naive(path)
        print(
            f"analyze {edits:,} edits, {DRAWS:,} draws: read {read:.1f} s + statistics {compute:.1f} s; a pandas loop "
            f"would take {per_draw * DRAWS:.0f} s for the bootstrap alone ({per_draw:.2f} s per draw, "
            f"{NAIVE_DRAWS} measured): ratio {compute / (per_draw * DRAWS):.4f}"
        )
    print(f"growth for 100 times the edits: {times[504_000] / times[5_040]:.1f}")


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


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        start_up()
        pipeline_overhead(Path(folder) / "overhead")
        executor_overhead(Path(folder) / "executors")
        resume(Path(folder) / "resume")
        analysis(Path(folder))


main()
