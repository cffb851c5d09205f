"""Any number of runs share a study on PostgreSQL: everything is made once, and a killed run's work comes back."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
import sqlalchemy as sa

from evenedit.core.errors import EvenEditError
from evenedit.storage import file_systems, leases
from evenedit.storage.leases import Leases
from evenedit.storage.store import Store
from tests.support.studies import judged_by, write_study

FACES = {"kind": "drawn", "settings": {"seed": 3, "size": 64, "only": {"race": ["White", "Black"]}}}
EDITS = 24
RESULTS = """
# without when, how often and by whom, and the hash of a file that names its database
import json, sys
from pathlib import Path
from evenedit.api.study import Study
body = json.loads(Study.load(Path(sys.argv[1])).results().to_json())
for fact in ("time", "command", "first_run", "runs", "study"):
    del body["provenance"][fact]
print(json.dumps(body, sort_keys=True))
"""


def study(wire, log, seconds, **changes):
    editors = [{"id": "slow", "kind": "faulty", "settings": {"log": str(log), "seconds": seconds}}]
    executor = {"retries": 0, "calls": 2, "lease": 10}
    asked = judged_by(wire, "chat", editors=editors, sources=FACES, executor=executor, cache={"use": False})
    return asked | changes


def results(folder, environment):
    command = [sys.executable, "-c", RESULTS, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_four_runs_on_one_database_make_everything_once_though_one_is_killed(wire, plugin, postgres_url, tmp_path):
    environment = {**plugin, **{name: os.environ[name] for name in ("OPENAI_API_KEY", "GEMINI_API_KEY")}}
    log = tmp_path / "edits.log"
    shared = {"store": {"url": postgres_url, "images": f"file://{tmp_path / 'images'}"}}
    folders = [write_study(tmp_path / f"machine-{n}", **study(wire, log, 0.4, **shared)) for n in range(4)]
    command = [sys.executable, "-m", "evenedit", "run"]
    runs = [
        subprocess.Popen([*command, str(folder)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for folder in folders
    ]
    store = Store(tmp_path / "reader", postgres_url)
    _until(lambda: len(set(store.run_of_edits().values())) >= 2, "two runs have stored edits")
    victim = _a_busy_one(log, runs)
    os.kill(victim.pid, signal.SIGKILL)
    for process in runs:
        out, err = process.communicate(timeout=240)
        if process is not victim:
            assert process.returncode == 0, (out, err)
            assert b"done." in out
    made = Counter(log.read_text().split()[::2])["edit"]
    assert EDITS <= made <= EDITS + 2, "no edit twice, but for what the killed run was making and about to store"
    assert len(store.edits()) == len(store.run_of_replies()) == EDITS
    assert wire.asked == EDITS, "no rating was paid for twice"
    assert len(set(store.run_of_edits().values())) >= 3, "the work was shared"
    with store.begin() as db:
        assert db.exec_driver_sql("SELECT count(*) FROM leases").scalar_one() == 0
    store.close()
    alone = write_study(tmp_path / "alone", **study(wire, log, 0.4))
    assert subprocess.run([*command, str(alone)], env=environment, capture_output=True).returncode == 0
    everywhere = [results(folder, environment) for folder in folders]
    assert everywhere == [results(alone, environment)] * 4, "all of results.json, but for when and by whom"


def _a_busy_one(log, runs):
    """The run whose worker wrote the last line of the log."""
    import psutil

    worker = int(log.read_text().split()[-1])
    parents = {parent.pid for parent in psutil.Process(worker).parents()}
    return next(run for run in runs if run.pid in parents)


def _until(condition, what, seconds=120):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError(f"waited {seconds} s for: {what}")


def test_a_lease_is_one_runs_until_it_is_released_or_its_owner_is_silent(postgres_url, tmp_path):
    store = Store(tmp_path, postgres_url)
    first, second = (Leases(store._engine, 30.0) for _ in range(2))
    assert first.claim(["edit a"]) and first.claim(["edit a"]) and not second.claim(["edit a"])
    first.release(["edit a"])
    assert first.claim(["edit c"]) == {"edit c"}
    assert second.claim(["edit a", "edit c"]) == {"edit a"}, "released with the next claim"
    assert not first.claim(["edit a"])
    _expire(store, "edit a")
    assert first.claim(["edit a"]), "the second run's deadline has passed"
    with second.alive():
        assert second.claim(["edit b"])
        until = _until_when(store, "edit b")
        _until(lambda: _until_when(store, "edit b") > until, "its owner moves the deadline on")
        assert not first.claim(["edit b"]), "its owner is alive"
    assert first.claim(["edit b"]), "a run that ends gives back what it holds"
    store.close()


def _until_when(store, key):
    """Return the deadline of a lease."""
    with store._engine.connect() as db:
        return db.execute(sa.select(leases.TABLE.c.until).where(leases.TABLE.c.key == key)).scalar_one()


def _expire(store, *keys):
    """Let the deadlines of leases pass."""
    with store._engine.begin() as db:
        db.execute(leases.TABLE.update().where(leases.TABLE.c.key.in_(keys)).values(until=0.0))


def test_waiting_ends_when_the_others_work_is_done_or_comes_back(postgres_url, tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "LOOK", 0.05)
    store = Store(tmp_path, postgres_url)
    here, there = Leases(store._engine, 60.0), Leases(store._engine, 60.0)
    assert there.claim(["done soon"]) and there.claim(["never done"])
    looks = iter(range(100))

    def left():
        look = next(looks)
        if look == 6:
            _expire(store, "never done")
        return {"never done"} | ({"done soon"} if look < 3 else set())

    assert here.wait(["done soon", "never done"], left) == {"never done"}
    assert here.wait(["done soon"], set) == set()
    done = iter([{"stored", "held"}, {"held"}, {"held"}, {"held"}, set()])  # one is stored and freed between two looks
    assert there.claim(["held"])
    assert here.wait(["stored", "held"], lambda: next(done)) == set()
    assert next(done, None) is None, "it did not go on while another run held the other one"
    long = Leases(store._engine, 60.0)
    assert long.claim(["still held"])
    both = {"free", "still held"}
    assert here.wait(sorted(both), lambda: both) == both, "what is still held must be come back for"
    store.close()


def test_a_check_that_needs_the_study_alone_is_refused_beside_a_run(postgres_url, tmp_path):
    here, there = (Store(tmp_path / name, postgres_url) for name in ("here", "there"))
    refused = pytest.raises(EvenEditError, match="another process is running the study")
    with here.running(60), there.running(60), refused, there.locked():
        pass
    with there.locked(), pytest.raises(EvenEditError, match="has exclusive use of this study"), here.running(60):
        pass
    here.close()
    there.close()


@pytest.mark.parametrize(
    ("kind", "mode"), [("nfs4", "delete"), ("lustre", "delete"), ("fuse.sshfs", "delete"), ("ext4", "wal")]
)
def test_sqlite_keeps_no_write_ahead_log_on_a_network_file_system(tmp_path, monkeypatch, kind, mode):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda1 / ext4 rw 0 0\nserver:/home {tmp_path / 'home'} {kind} rw 0 0\n")
    monkeypatch.setattr(file_systems, "MOUNTS", mounts)
    store = Store(tmp_path / "home" / "study")
    with store.begin() as db:
        assert db.exec_driver_sql("PRAGMA journal_mode").scalar_one() == mode
    store.set_fact("a", "b")
    assert store.fact("a") == "b"
    assert not (tmp_path / "home" / "study" / "study.db-wal").exists() or mode == "wal"
    store.close()


def test_what_an_automounter_mounted_is_seen_behind_its_own_entry(tmp_path, monkeypatch):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"auto.home {tmp_path} autofs rw 0 0\nserver:/home {tmp_path} nfs4 rw 0 0\n")
    monkeypatch.setattr(file_systems, "MOUNTS", mounts)
    assert file_systems.network_file_system(tmp_path / "study") == "nfs4"
