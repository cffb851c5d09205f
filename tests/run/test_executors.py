"""Where edits run makes no difference to what they are; what dies is tried again, nothing is lost or repeated."""

import json
import subprocess
import sys
import time
from multiprocessing import active_children
from pathlib import Path
from types import SimpleNamespace

import pytest

from evenedit.config.study_file import ExecutorSection
from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.core.images import open_images
from evenedit.core.records import Condition, Experiment, Request
from evenedit.run.executors import EditQueue, Processes, edit
from evenedit.run.worker import EditTask, WorkerSetup, retry
from evenedit.simulation.portraits.drawn import Drawn
from evenedit.storage.store import Store
from tests.support.commands import run_here
from tests.support.studies import write_study

FACES = {"kind": "drawn", "settings": {"seed": 3, "size": 64, "only": {"race": ["White", "Black"]}}}


def call(environment, *arguments, timeout=180):
    command = [sys.executable, "-m", "evenedit", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout)


def results(folder, environment=None) -> str:
    made = call(environment, "report", folder) if environment else run_here("report", folder)
    assert made.returncode == 0, made.stderr
    body = json.loads((folder / "report" / "results.json").read_text())
    del body["provenance"]
    return json.dumps(body)


def test_an_installed_plug_in_is_found_planned_and_audited(plugin, tmp_path):
    folder = write_study(tmp_path, editors=[{"id": "tint", "settings": {"color": "#b0e0ff"}}], judges=[])
    assert "tint" in call(plugin, "doctor").stdout
    done = call(plugin, "run", folder)
    assert done.returncode == 0, done.stderr
    edits = Store(folder).edits().values()
    assert len(edits) == 16 and all(e.image for e in edits)
    page = call(plugin, "report", folder)
    assert page.returncode == 0, page.stderr
    wrong = write_study(tmp_path / "wrong", editors=[{"id": "tint", "settings": {"colour": "red"}}], judges=[])
    assert "unknown setting 'colour'; did you mean 'color'?" in call(plugin, "plan", wrong).stderr


def test_threads_and_processes_give_the_same_results(evenedit_process, tmp_path):
    made = []
    for name, executor in (("threads", {"workers": 3}), ("processes", {"processes": 2})):
        folder = write_study(tmp_path / name, sources=FACES, executor=executor)
        assert evenedit_process("run", folder).returncode == 0
        made.append(results(folder))
    assert made[0] == made[1]


def test_processes_stay_for_the_next_editor(tmp_path):
    images = open_images(str(tmp_path))
    person = next(Drawn(size=64).portraits())[3]
    tasks = [
        EditTask(
            Request(Experiment.DIAGNOSIS, Condition.parse("baseline"), ("a",), "O-01", "Make it so.", "any", {}, seed),
            (images.put(person),),
        )
        for seed in range(3)
    ]
    pool = Processes()
    try:
        made, workers = [], []
        for editor in ("simulated-even", "simulated-null"):
            setup = WorkerSetup(editor, {}, str(tmp_path))
            queue = EditQueue(tasks)
            made.append([e for batch in edit(ExecutorSection(processes=1), setup, queue, pool) for e in batch])
            workers.append([p.pid for p in active_children()])
    finally:
        pool.shutdown()
    assert [len(edits) for edits in made] == [3, 3]
    assert images.open(made[1][0].image).tobytes() == person.tobytes() != images.open(made[0][0].image).tobytes()
    assert len(workers[0]) == 1 and workers[0] == workers[1]
    assert not active_children()


def test_a_worker_gets_edits_of_the_same_portraits_as_before_and_nobody_is_idle():
    portraits = [f"{number:064x}" for number in range(20)]
    tasks = [
        SimpleNamespace(images=(one,), request=SimpleNamespace(id=f"{one}-{n}", prompt_id=f"{n}"))
        for n in range(3)
        for one in portraits
    ]
    shares = []
    for _ in range(2):
        lots = EditQueue(tasks)
        lots.split(2)
        shares.append({task.images[0] for task in [lots.take(0) for _ in range(15)]})
    assert shares[0] == shares[1] and 1 < len(shares[0]) < 20
    rest = [lots.take(0) for _ in range(len(lots))]
    assert {t.images[0] for t in rest} > shares[0], "the others' work when its own is done"
    lots.put_back(rest[0])
    assert len(lots) == 1 and lots.take(1) is rest[0]


def test_a_process_that_dies_once_costs_nothing(plugin, tmp_path):
    marker = tmp_path / "died"
    editors = [{"id": "tint", "settings": {"die_once": str(marker)}}]
    folder = write_study(tmp_path / "study", editors=editors, judges=[], executor={"processes": 2, "retries": 2})
    done = call(plugin, "run", folder)
    assert done.returncode == 0, done.stderr
    assert marker.exists()
    assert [e.outcome for e in Store(folder).edits().values()] == ["edited"] * 16


def test_an_edit_that_always_kills_its_process_is_a_crash_and_the_rest_is_made(plugin, tmp_path):
    editors = [{"id": "tint", "settings": {"die_on": "thirty years later"}}]
    folder = write_study(tmp_path, editors=editors, judges=[], executor={"processes": 2, "retries": 1})
    done = call(plugin, "run", folder)
    assert done.returncode == 4, done.stderr
    assert "8 × failed: Failed: the process that made this edit died" in done.stdout
    store = Store(folder)
    requests, edits = store.requests(), store.edits()
    crashed = {i for i, e in edits.items() if e.outcome == "failed"}
    assert {edits[i].detail["failure"] for i in crashed} == {"crash"}
    assert crashed == {i for i, r in requests.items() if r.prompt_id == "V-05"}
    assert len(edits) == 16


def test_pictures_can_lie_on_a_file_system_that_machines_share(evenedit, tmp_path):
    shared = tmp_path / "shared"
    folder = write_study(tmp_path / "study", store={"images": f"file://{shared}"})
    assert evenedit("run", folder).returncode == 0
    assert results(folder)
    assert not (folder / "images").exists()
    images = open_images(f"file://{shared}")
    assert all(images.is_whole(e.image) for e in Store(folder).edits().values())


def test_a_failure_that_lasts_is_not_tried_twice_and_a_rate_limit_waits_as_told():
    calls = []

    def fail(failure, **details):
        def work():
            calls.append(failure)
            raise Failed(failure, "no", **details)

        return work

    with pytest.raises(Failed):
        retry(fail(Failure.OUT_OF_MEMORY), 3, 60.0)
    assert len(calls) == 1
    started = time.monotonic()
    with pytest.raises(Failed):
        retry(fail(Failure.RATE_LIMIT, retry_after=0.2), 2, 0.01)
    assert len(calls) == 4
    assert time.monotonic() - started >= 0.4


@pytest.mark.ray
def test_ray_without_a_cluster_is_told(tmp_path):
    from evenedit.run.executors.ray import RayActors

    with pytest.raises(EvenEditError, match="no Ray cluster answers"):
        RayActors(WorkerSetup("tint", {}, ""), address="127.0.0.1:1", num_gpus=0, num_cpus=1)


@pytest.fixture(scope="module")
def cluster(plugin):
    """Two Ray nodes on this machine."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", plugin["PYTHONPATH"])
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
        second = made.add_node(num_cpus=2)
        yield made, second
        made.shutdown()


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
def test_a_ray_cluster_gives_the_same_results_and_survives_losing_a_worker_and_a_node(plugin, cluster, tmp_path):
    made, second = cluster
    editors = [{"id": "tint", "settings": {"seconds": 0.05}}]
    prompts = {"include": [f"V-{number:02}" for number in range(1, 11)]}
    same = {"sources": FACES, "editors": editors, "judges": [], "prompts": prompts}
    local = write_study(tmp_path / "local", **same, executor={"processes": 2})
    assert call(plugin, "run", local).returncode == 0
    ray = {"kind": "ray", "address": made.address, "processes": 3, "retries": 3}
    folder = write_study(tmp_path / "ray", **same, executor=ray)
    process = subprocess.Popen(
        [sys.executable, "-m", "evenedit", "run", str(folder)], env=plugin, stderr=subprocess.PIPE, text=True
    )
    _wait_for(folder, 40)
    _kill_one_actor()
    _wait_for(folder, 120)
    made.remove_node(second, allow_graceful=False)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    store = Store(folder)
    edits = store.edits()
    assert {e.outcome for e in edits.values()} == {"edited"}
    assert set(store.run_of_edits().values()) == {1}, "every edit was stored once, by the one run"
    assert results(folder, plugin) == results(local, plugin)
    assert {i: e.image for i, e in edits.items()} == {i: e.image for i, e in Store(local).edits().items()}


def _wait_for(folder: Path, count: int) -> None:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if (folder / "study.db").exists() and len(Store(folder).edits()) >= count:
            return
        time.sleep(0.2)
    raise AssertionError(f"fewer than {count} edits after five minutes")


def _kill_one_actor() -> None:
    import psutil

    family = psutil.Process().children(recursive=True)  # of this test's cluster, not of another test's
    actors = [p for p in family if p.is_running() and "ray::Worker" in " ".join(p.cmdline())]
    assert actors, "no actor to kill"
    actors[0].kill()
