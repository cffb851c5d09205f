"""Editors that fail, hang, crash or cannot be loaded: the run ends by itself, says so, and does all the rest."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections import Counter
from contextlib import closing

import psutil
import pytest
import sqlalchemy as sa

from evenedit.core.errors import IncompleteError
from evenedit.core.images import ImageFolder
from evenedit.core.records import Outcome
from evenedit.run import interruption
from evenedit.run.executors.threads import Lane, run_in_lanes
from evenedit.run.reasons import grouped
from evenedit.simulation.editors import SimulatedEditor
from evenedit.simulation.judges import SimulatedJudge
from evenedit.storage.store import Store
from tests.support.studies import open_study, write_study

EDITS = 16
"""Of each editor in the small study."""


def editor(name, folder, **settings):
    return {"id": name, "kind": "faulty", "settings": {"log": str(folder / f"{name}.log"), **settings}}


def attempts(folder, name):
    log = folder / f"{name}.log"
    return Counter(line.split()[0] for line in log.read_text().splitlines()) if log.exists() else Counter()


def run(folder, environment, timeout=240):
    command = [sys.executable, "-m", "evenedit", "run", str(folder)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout)


def faulty_study(folder, **executor):
    """Editors that fail in every way, and two that work."""
    once = {name: str(folder / f"{name}.once") for name in ("crash", "poison", "hang", "exit")}
    editors = [
        editor("always", folder, mode="raise"),
        editor("unloadable", folder, mode="load"),
        *(editor(name, folder, mode=name) for name in ("load-crash", "load-hang", "make")),
        *(editor(f"{name}s", folder, mode=name, once=path) for name, path in once.items()),
        editor("good", folder),
        {"id": "simulated-even"},
    ]
    limits = {"retries": 1, "max_failures": 3, "timeout": 10, "load_timeout": 20, **executor}
    return write_study(folder, editors=editors, judges=[], executor=limits)


def check(done, folder):
    """What must be true of such a run, wherever the edits were made."""
    assert done.returncode == 4, done.stderr
    assert "Traceback" not in done.stderr
    assert "done." not in done.stdout
    store = Store(folder)
    requests, edits = store.requests(), store.edits()
    made = Counter((requests[i].editor, e.outcome.value, e.detail.get("failure", "")) for i, e in edits.items())
    for name in ("good", "simulated-even", "crashs", "poisons", "exits"):
        assert made[name, "edited", ""] == EDITS, (name, made)
    assert made["hangs", "edited", ""] == EDITS - 1 and made["hangs", "failed", "timeout"] == 1
    assert 3 <= made["always", "failed", "crash"] <= 4, "stopped after three in a row; one more may be under way"
    assert attempts(folder, "always")["edit"] <= 8, "each tried again once"
    assert attempts(folder, "unloadable") == {"load": 1}, "tried once"
    assert made["unloadable", "failed", "crash"] == made["make", "failed", "crash"] == 1
    assert attempts(folder, "load-crash") == {"load": 1} and made["load-crash", "failed", "crash"] == 1
    assert attempts(folder, "load-hang") == {"load": 1} and made["load-hang", "failed", "timeout"] == 1
    assert "editor 'load-crash' was stopped: it cannot be loaded (its process died while it was loading" in done.stdout
    assert "editor 'load-hang' was stopped: it did not load within 20 s" in done.stdout
    assert "editor 'make' was stopped: it cannot be loaded (OSError: it loads its weights too early)" in done.stdout
    assert "editor 'always' was stopped: 3 failures in a row (crash): ValueError: it never works" in done.stdout
    assert (
        "editor 'unloadable' was stopped: it cannot be loaded (RuntimeError: the weights are not there)" in done.stdout
    )
    assert "Rerun the command to resume" in done.stdout
    assert len([line for line in done.stdout.splitlines() if "it never works" in line]) == 2, "alike reasons together"


def test_status_shows_failures_by_reason(tmp_path, monkeypatch):
    def fail(self, *_):
        raise ValueError(f"number {time.time()}")

    with monkeypatch.context() as patch:
        patch.setattr(SimulatedJudge, "judge", fail)
        loaded = open_study(tmp_path, executor={"retries": 0, "max_failures": 0})
        loaded.run()
    assert str(loaded.status()).count("  failed: 16 × ValueError: number ") == 2
    assert str(loaded.status()).endswith(f"32 ratings to do. Try: evenedit run {tmp_path}")


def test_in_processes_every_kind_of_failure_ends_in_words_and_the_rest_is_done(plugin, tmp_path):
    folder = faulty_study(tmp_path, processes=2)
    check(run(folder, plugin), folder)


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
def test_on_ray_who_fails_hangs_or_cannot_be_loaded_is_stopped_or_replaced_and_the_rest_is_done(plugin, tmp_path):
    editors = [
        editor("unloadable", tmp_path, mode="load"),
        editor("always", tmp_path, mode="raise"),
        editor("hangs", tmp_path, mode="hang", once=str(tmp_path / "hang.once")),
        editor("batches", tmp_path, batch=8),
    ]
    executor = {"retries": 0, "max_failures": 3, "timeout": 10, "kind": "ray", "address": "", "processes": 1}
    folder = write_study(tmp_path, editors=editors, judges=[], executor=executor)
    done = run(folder, plugin | {"RAY_USAGE_STATS_ENABLED": "0"}, timeout=600)  # actors are slow to start
    assert done.returncode == 4, done.stderr
    store = Store(folder)
    requests, edits = store.requests(), store.edits()
    made = Counter((requests[i].editor, e.detail.get("failure", "")) for i, e in edits.items())
    assert made == {
        ("unloadable", "crash"): 1,
        ("always", "crash"): 3,
        ("hangs", "timeout"): 1,
        ("hangs", ""): EDITS - 1,
        ("batches", ""): EDITS,
    }
    assert attempts(folder, "batches") == {"load": 1, "batch-8": 2}
    assert attempts(folder, "unloadable") == {"load": 1} and attempts(folder, "always")["edit"] == 3
    assert "editor 'unloadable' was stopped: it cannot be loaded" in done.stdout
    assert "editor 'always' was stopped: 3 failures in a row" in done.stdout


def test_a_plug_in_runs_in_a_process_of_its_own_without_being_asked_to(plugin, tmp_path):
    folder = write_study(tmp_path, editors=[editor("good", tmp_path)], judges=[], prompts={"include": ["O-01"]})
    assert run(folder, plugin).returncode == 0
    assert len({line.split()[1] for line in (tmp_path / "good.log").read_text().splitlines()}) == 1
    assert attempts(tmp_path, "good") == {"load": 1, "edit": 8}


HANGING = """
import sys, time
from evenedit import Study

def edit(images, instruction, seed):
    if seed == 42:
        time.sleep(1000)
    return images[0]

study = Study.load(sys.argv[1])
summary = study.run(editors={"mine": edit})
print(summary)
"""


def test_an_object_that_hangs_is_left_and_its_editor_stopped(tmp_path):
    folder = write_study(tmp_path, judges=[], executor={"retries": 0, "timeout": 2})
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(HANGING), str(folder)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "editor 'mine' was stopped: an edit hangs, and its thread cannot be ended" in done.stdout
    edits = Store(folder).edits().values()
    assert [e.detail["failure"] for e in edits] == ["timeout"]


def _children(process):
    return psutil.Process(process.pid).children(recursive=True)


def _until(condition, what, seconds=90):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError(f"waited {seconds} s for: {what}")


@pytest.fixture(params=["hang", "hold"])
def hanging_run(plugin, tmp_path, request):
    """A run whose worker hangs in its first edit, with and without the interpreter in its hands."""
    folder = write_study(tmp_path, editors=[editor("hangs", tmp_path, mode=request.param)], judges=[])
    with (tmp_path / "stderr.txt").open("wb") as errors:
        process = subprocess.Popen([sys.executable, "-m", "evenedit", "run", str(folder)], env=plugin, stderr=errors)
    _until(lambda: attempts(tmp_path, "hangs")["edit"], "the first edit")
    yield process, tmp_path
    if process.poll() is None:
        process.kill()
        process.wait()


def test_a_second_ctrl_c_ends_a_run_that_hangs_at_once(hanging_run):
    process, folder = hanging_run
    children = _children(process)
    os.kill(process.pid, signal.SIGINT)
    _until(lambda: "Ctrl-C again" in (folder / "stderr.txt").read_text(), "the first Ctrl-C is heard")
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(60) == 130
    assert "Traceback" not in (folder / "stderr.txt").read_text()
    _until(lambda: not any(_alive(child) for child in children), "the workers have ended")


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_workers_end_without_a_word_when_their_run_is_killed(hanging_run):
    process, folder = hanging_run
    children = _children(process)
    assert children
    process.kill()
    process.wait()
    psutil.wait_procs(children, timeout=60)
    assert not any(child.is_running() for child in children)
    assert "Traceback" not in (folder / "stderr.txt").read_text()


def test_after_the_first_ctrl_c_what_is_under_way_is_waited_for_only_so_long(monkeypatch):
    monkeypatch.setattr(interruption, "PATIENCE", 0.5)
    begun, came = [], []

    def work(item):
        begun.append(item)
        if item == "hangs":
            time.sleep(1000)
        return item

    batches = run_in_lanes([Lane(["quick", "hangs", "never begun"], 1)], work)
    came += next(batches)
    _until(lambda: "hangs" in begun, "the hanging item")
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        for batch in batches:
            came += batch
    assert came == ["quick"] and begun == ["quick", "hangs"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_difficult_portrait_or_prompt_does_not_stop_an_editor(tmp_path, monkeypatch):
    real = SimulatedEditor.edit

    def difficult(self, images, instruction, seed):
        if "thirty years" in instruction:
            raise ValueError("this prompt is too much")
        return real(self, images, instruction, seed)

    monkeypatch.setattr(SimulatedEditor, "edit", difficult)
    summary = open_study(tmp_path, executor={"retries": 0, "max_failures": 2, "workers": 1}).run()
    assert (summary.edited, summary.failed, summary.stopped) == (8, 8, ()), "the other prompt is tried in between"


def test_a_judge_that_always_fails_is_stopped_and_the_other_goes_on(tmp_path, monkeypatch):
    real, asked = SimulatedJudge.judge, []

    def judge(self, case, questions):
        if self.seed == 2:
            asked.append(case)
            raise ValueError("no")
        return real(self, case, questions)

    monkeypatch.setattr(SimulatedJudge, "judge", judge)
    loaded = open_study(tmp_path)
    summary = loaded.run()
    assert 5 <= len(asked) <= 6
    assert not summary.complete
    assert summary.stopped == (
        "judge 'simulated-judge-b' was stopped: 5 failures in a row (ValueError): ValueError: no",
    )
    first, second = loaded.design.judges()
    assert len(loaded.store.answered(first.id, first.revision)) == EDITS
    assert f"{EDITS - len(asked)} × judge {second.id}: not asked yet" in str(summary)
    page = loaded.report().read_text()
    assert "This study is not complete: 16 of 32 planned ratings are missing" in page


def judge(name, folder, **settings):
    return {"id": name, "kind": "faulty", "settings": {"log": str(folder / f"{name}.log"), **settings}}


def test_judge_plug_ins_that_hang_crash_or_exit_are_replaced_or_stopped_and_the_others_go_on(plugin, tmp_path):
    once = str(tmp_path / "hang.once")
    judges = [
        judge("good", tmp_path),
        *(judge(mode, tmp_path, mode=mode) for mode in ("hang", "crash", "exit")),
        judge("hangs once", tmp_path, mode="hang", once=once),
    ]
    limits = {"retries": 1, "max_failures": 2, "timeout": 10}
    folder = write_study(tmp_path, judges=judges, executor=limits, prompts={"include": ["O-01"]})
    done = run(folder, plugin)
    assert done.returncode == 4 and "Traceback" not in done.stderr
    with closing(sqlite3.connect(folder / "study.db")) as db:
        states = Counter(db.execute("SELECT rater, status FROM replies"))
    assert states == {
        ("good", "scored"): 8,
        ("hangs once", "scored"): 7,
        ("hangs once", "failed"): 1,
        **{(name, "failed"): 2 for name in ("hang", "crash", "exit")},
    }
    assert attempts(folder, "crash") == {"judge": 4}, "each tried again once"
    assert "judge 'hang' was stopped: 2 failures in a row (timeout): Failed: no answer within 10 s" in done.stdout
    assert (
        "judge 'crash' was stopped: 2 failures in a row (crash): Failed: the process of this judge died" in done.stdout
    )
    assert "judge 'exit' was stopped: 2 failures in a row (crash): Failed: SystemExit: somebody called" in done.stdout


def test_a_judge_that_cannot_be_made_is_named_before_anything_begins(plugin, tmp_path):
    folder = write_study(tmp_path, judges=[judge("broken", tmp_path, mode="make")])
    done = run(folder, plugin)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "judges[0] 'broken': it cannot be built (OSError: it loads its weights too early)" in done.stderr


def test_a_store_that_takes_no_picture_ends_in_words(tmp_path, monkeypatch):
    loaded = open_study(tmp_path, judges=[], executor={"retries": 0, "max_failures": 2, "workers": 1})
    with monkeypatch.context() as patch:
        real = ImageFolder.put
        full = lambda self, image, *more: real(self, image, *more) if loaded.store.fact("sources") is None else 1 / 0  # noqa: E731
        patch.setattr(ImageFolder, "put", full)
        summary = loaded.run()
    assert (summary.edited, summary.failed) == (0, 2)
    assert "failures in a row (storage): Failed: the picture could not be stored (ZeroDiv" in str(summary)
    assert "check the free space" in str(summary)
    assert loaded.run().complete


def test_a_database_that_fails_in_the_midst_of_a_run_ends_it_in_words(tmp_path, monkeypatch):
    loaded = open_study(tmp_path, judges=[])

    def full(*_args, **_more):
        raise sa.exc.OperationalError("INSERT …", {}, sqlite3.OperationalError("database or disk is full"))

    with monkeypatch.context() as patch:
        patch.setattr(Store, "save_edits", full)
        with pytest.raises(IncompleteError, match="database failed during the run: database or disk is full"):
            loaded.run()
    assert loaded.run().complete


def test_a_mistake_of_one_editor_lets_the_others_finish(tmp_path, plugin):
    broken = {
        "id": "broken",
        "kind": "command",
        "settings": {"command": ["no-such-program", "{source}", "{instruction}", "{output}"]},
    }
    folder = write_study(tmp_path, editors=[broken, {"id": "simulated-even"}], judges=[])
    done = run(folder, plugin)
    assert done.returncode == 4
    assert "editor 'broken' was stopped: the program 'no-such-program' was not found" in done.stdout
    assert [e.outcome for e in Store(folder).edits().values()] == [Outcome.EDITED] * EDITS
    alone = write_study(tmp_path / "alone", editors=[broken], judges=[])
    done = run(alone, plugin)
    assert done.returncode == 2 and "was not found" in done.stderr, "nothing was begun"


def test_reasons_that_differ_in_numbers_only_are_one():
    reasons = {f"failed: cannot read /tmp/a{n}/x at 0x{n:08x} after {n} s": 1 for n in range(1, 13)}
    assert [count for _, count in grouped(reasons)] == [12]
    many = {f"failed: {letter}": 1 for letter in "abcdefghijk"}
    assert grouped(many)[-1] == ("3 other reasons", 3)
