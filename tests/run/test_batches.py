"""Several edits in one call: fewer calls, the same records, and what goes wrong in a batch is the fault of one."""

import signal
import subprocess
import sys
import time
from collections import Counter
from typing import Any

import pytest
from PIL import Image, ImageOps

from evenedit.core import plugins
from evenedit.core.errors import EvenEditError
from evenedit.core.records import Outcome
from evenedit.storage.store import Store
from tests.support.studies import open_study, write_study

ONLY = {"race": ["White"], "gender": ["Male"], "age": ["20s", "30s"]}
TWO = {"kind": "drawn", "settings": {"size": 64, "only": ONLY}}
SEEDS = [1, 2, 3, 4]
EDITS = len(SEEDS) * 2


def editor(name: str, folder: Any, **settings: Any) -> dict[str, Any]:
    given = {"log": str(folder / f"{name}.log"), **settings}
    return {"id": name, "kind": "faulty", "seeds": SEEDS, "settings": given}


def calls(folder: Any, name: str) -> Counter[str]:
    return Counter(line.split()[0] for line in (folder / f"{name}.log").read_text().splitlines())


def study(folder: Any, editors: list[dict[str, Any]], store: Any = None, **executor: Any) -> Any:
    limits = {"retries": 0, "max_failures": 0, "processes": 1, **executor}
    changes = {"store": store or {}, "sources": TWO, "prompts": {"include": ["O-01"]}, "judges": []}
    return write_study(folder, editors=editors, executor=limits, **changes)


def run(folder: Any, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "evenedit", "run", str(folder)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)


def outcomes(folder: Any, name: str) -> dict[str, Any]:
    store = Store(folder)
    edits = store.edits()
    return {f"{r.source_ids[0]} {r.seed}": edits[i] for i, r in store.requests().items() if r.editor == name}


def test_a_batch_is_one_call_and_a_bad_edit_in_it_fails_alone(plugin, tmp_path):
    folder = study(
        tmp_path,
        [
            editor("alone", tmp_path),
            editor("good", tmp_path, batch=4),
            editor("uneven", tmp_path, batch=3),
            *(editor(mode, tmp_path, batch=4, mode=mode, seed=3) for mode in ("raise", "crash", "hang", "poison")),
            editor("memory", tmp_path, batch=4, mode="memory", seed=0),
        ],
        timeout=5,
    )
    done = run(folder, plugin)
    assert done.returncode == 4 and "Traceback" not in done.stderr, done.stderr
    alone = {key: edit.image for key, edit in outcomes(folder, "alone").items()}
    assert len(alone) == EDITS and calls(tmp_path, "alone")["edit"] == EDITS
    for name, counted in (("good", {"load": 1, "batch-4": 2}), ("uneven", {"load": 1, "batch-3": 2, "batch-2": 1})):
        made = outcomes(folder, name)
        assert {key: edit.image for key, edit in made.items()} == alone
        assert calls(tmp_path, name) == counted, name
    assert {e.detail["batch"] for e in outcomes(folder, "good").values()} == {4}
    for mode, kind in (("raise", "crash"), ("crash", "crash"), ("hang", "timeout"), ("poison", "gpu")):
        made = outcomes(folder, mode)
        bad = {key: edit.detail["failure"] for key, edit in made.items() if edit.outcome is Outcome.FAILED}
        assert bad == {key: kind for key in alone if key.endswith(" 3")}, mode
        assert {key: e.image for key, e in made.items() if e.image} == {k: v for k, v in alone.items() if k not in bad}
        batches = 2 if mode == "poison" else 1
        assert calls(tmp_path, mode)["edit"] == 4 * batches, "of a batch that failed, each by itself, once"
    assert calls(tmp_path, "memory") == {"load": 1, "batch-4": 1, "edit": EDITS}, "too much once is too much again"
    assert {key: e.image for key, e in outcomes(folder, "memory").items()} == alone
    said = "a batch of edits failed (out_of_memory: CUDA out of memory. Tried to allocate 9.00 GiB); they were made one"
    assert done.stderr.count(said) == 1 or done.stdout.count(said) == 1


def test_a_killed_run_goes_on_and_every_edit_is_stored_once(plugin, tmp_path):
    folder = study(tmp_path, [editor("slow", tmp_path, batch=2, seconds=1.5)])
    process = subprocess.Popen([sys.executable, "-m", "evenedit", "run", str(folder)], env=plugin)
    deadline = time.monotonic() + 90
    while not ((folder / "study.db").exists() and Store(folder).edits()) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = Store(folder).run_of_edits()
    assert 2 <= len(before) < EDITS
    assert run(folder, plugin).returncode == 0
    after = Store(folder).run_of_edits()
    assert len(after) == EDITS and {i: after[i] for i in before} == before
    assert EDITS // 2 <= calls(tmp_path, "slow")["batch-2"] <= EDITS // 2 + 1, "but for what was under way"


def test_runs_that_share_a_study_lease_every_edit_of_a_batch(plugin, postgres_url, tmp_path):
    shared = {"store": {"url": postgres_url, "images": f"file://{tmp_path / 'images'}"}}
    given = editor("slow", tmp_path, batch=2, seconds=1.0)
    folders = [study(tmp_path / name, [given], lease=10, **shared) for name in ("first", "second")]
    command = [sys.executable, "-m", "evenedit", "run"]
    first, second = [subprocess.Popen([*command, str(folder)], env=plugin) for folder in folders]
    store = Store(tmp_path / "reader", postgres_url)
    deadline = time.monotonic() + 120
    while len(set(store.run_of_edits().values())) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    first.kill()
    first.wait()
    assert second.wait(120) == 0
    assert len(store.edits()) == EDITS and {e.outcome for e in store.edits().values()} == {Outcome.EDITED}
    done = calls(tmp_path, "slow")
    edited = 2 * done["batch-2"] + done["edit"]
    assert EDITS <= edited <= EDITS + 2, "only the batch of the killed run is made again"
    with store.begin() as db:
        assert db.exec_driver_sql("SELECT count(*) FROM leases").scalar_one() == 0
    store.close()


class Mirror:
    """An object that mirrors, several pictures at a time."""

    batch = 4
    revision = "1"

    def __init__(self, bad: int = 0) -> None:
        self.bad = bad
        self.calls: list[int] = []

    def edit(self, images: list[Image.Image], instruction: str, seed: int) -> Image.Image:
        return self.edit_many([images], [instruction], [seed])[0]

    def edit_many(self, images: Any, instructions: Any, seeds: Any) -> list[Image.Image]:
        self.calls.append(len(seeds))
        if self.bad in seeds:
            raise ValueError("not this one")
        return [ImageOps.mirror(one) for (one,) in images]


def test_an_object_gets_batches_in_a_thread_and_the_requests_say_so(tmp_path):
    editors = [{"id": "mine", "kind": "python", "seeds": SEEDS}]
    changes = {"editors": editors, "sources": TWO, "judges": [], "prompts": {"include": ["O-01"]}}
    good, bad = Mirror(), Mirror(bad=3)
    first = open_study(tmp_path / "good", **changes)
    assert first.run(editors={"mine": good}).complete and good.calls == [4, 4]
    assert {r.settings["batch"] for r in first.store.requests().values()} == {4}
    second = open_study(tmp_path / "bad", executor={"retries": 0, "max_failures": 0}, **changes)
    summary = second.run(editors={"mine": bad})
    assert (summary.edited, summary.failed) == (EDITS - 2, 2)
    assert Counter(bad.calls) == {4: 2, 1: 4}, "one batch had a bad one in it"
    failed = [e for e in second.store.edits().values() if e.outcome is Outcome.FAILED]
    assert {second.store.requests()[e.request_id].seed for e in failed} == {3}


def test_pictures_of_different_sizes_are_in_different_calls(tmp_path):
    from evenedit.core.images import open_images
    from evenedit.core.records import Condition, Experiment, Request
    from evenedit.run.worker import EditTask, Worker, WorkerSetup

    images = open_images(str(tmp_path))
    seen = []

    class Looking(Mirror):
        def edit_many(self, images: Any, instructions: Any, seeds: Any) -> list[Image.Image]:
            seen.append({one.size for (one,) in images})
            return super().edit_many(images, instructions, seeds)

    tasks = [
        EditTask(
            Request(
                Experiment.DIAGNOSIS, Condition.parse("baseline"), (f"{size}",), "O-01", "Make it so.", "any", {}, seed
            ),
            (images.put(Image.new("RGB", (size, 64), (seed, 9, 9))),),
        )
        for seed in (1, 2)
        for size in (64, 96)
    ]
    made = Worker(WorkerSetup("any", {}, str(tmp_path)), Looking()).edit_batch(tasks)
    assert [edit.request_id for edit in made] == [task.request.id for task in tasks]
    assert seen == [{(64, 64)}, {(96, 64)}]


def test_a_batch_that_is_no_number_is_named():
    with pytest.raises(EvenEditError, match="setting 'batch' is '4'; it must be a whole number, 1 or more"):
        plugins.batch_of("diffusers", {"model": "x", "batch": "4"})
    assert plugins.batch_of("diffusers", {"model": "x"}) == plugins.batch_of("simulated-even", {}) == 1
