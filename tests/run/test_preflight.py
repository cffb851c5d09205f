"""What would stop a run is named before its first edit, or after a few edits of each editor."""

import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from evenedit.core.errors import EvenEditError
from evenedit.operations.doctor import examine
from evenedit.operations.plan import make_plan
from evenedit.run.executors.processes import grouped
from evenedit.run.memory import Machine
from evenedit.run.runner import PILOT
from evenedit.simulation.judges import SimulatedJudge
from evenedit.storage.store import Store
from tests.support.calls import KEY
from tests.support.studies import open_study, write_study


@pytest.fixture
def refusing() -> Iterator[str]:
    """The address of an endpoint that accepts no key."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(401)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def do_POST(self) -> None:
            self.do_GET()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def judge(**settings: Any) -> list[dict[str, Any]]:
    return [{"id": "ours", "kind": "openai", "settings": {"model": "m", "attempts": 1} | settings}]


def test_a_missing_key_of_a_judge_is_named_by_plan_and_stops_a_run_before_its_first_edit(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    loaded = open_study(tmp_path, judges=judge())
    (problem,) = make_plan(loaded).problems
    assert "judge 'ours'" in problem and "export OPENAI_API_KEY" in problem
    assert f"a run would stop here: {problem}" in str(make_plan(loaded))
    with pytest.raises(EvenEditError, match="export OPENAI_API_KEY") as stopped:
        loaded.run()
    assert stopped.value.exit_code == 2 and not loaded.store.count_edits()
    loaded.store.close()


def test_a_setting_called_missing_says_nothing_of_what_a_judge_needs(tmp_path):
    simulated = {"id": "simulated-judge", "kind": "simulated", "settings": {"missing": 0.1}}
    loaded = open_study(tmp_path, judges=[simulated])
    assert not make_plan(loaded).problems
    assert not [check.text for check in examine(loaded) if check.good is False and "judge" in check.text]
    loaded.store.close()


def test_a_key_that_the_endpoint_refuses_stops_a_run_before_its_first_edit(refusing, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    loaded = open_study(tmp_path, judges=judge(base_url=refusing))
    with pytest.raises(EvenEditError, match="the API key in OPENAI_API_KEY was not accepted"):
        loaded.run()
    assert not loaded.store.count_edits()
    loaded.store.close()


def test_a_folder_that_cannot_be_written_and_pictures_that_do_not_fit_are_named(tmp_path: Path, monkeypatch):
    loaded = open_study(tmp_path, judges=[])
    monkeypatch.setattr("evenedit.run.preflight.os.access", lambda *_: False)
    monkeypatch.setattr("evenedit.run.preflight.LEAST_DISK", 1e18)
    problems = "\n".join(make_plan(loaded).problems)
    assert f"folder {tmp_path} cannot be written" in problems
    assert "16 pictures need 1000000000.0 GB" in problems
    loaded.store.close()


def test_processes_share_the_main_memory_and_workers_with_several_gpus_share_the_gpus():
    assert Machine(24, 64).shared_by(4).main == 16
    assert str(Machine(24, 64).shared_by(4)) == "24 GB and 16 GB of main memory for each of 4 processes"
    assert grouped(["0", "1", "2", "3", "4"], 2) == ["0,1", "2,3"]
    assert grouped(["0", "1"], 1) == ["0", "1"] and grouped(["0"], 2) == []


def test_a_judge_that_cannot_be_used_ends_the_run_after_a_few_edits_of_each_editor(tmp_path):
    editors = [{"id": name} for name in ("simulated-even", "simulated-null")]

    class Locked(SimulatedJudge):
        revision = "1"
        locked = True

        def judge(self, case: Any, questions: Any) -> Any:
            if self.locked:
                raise EvenEditError("the API key was not accepted")
            return super().judge(case, questions)

    judge, loaded = Locked(), open_study(tmp_path, editors=editors)
    assert not loaded.run(judges={"simulated-locked": judge}).complete
    with pytest.raises(EvenEditError, match="the API key was not accepted"):
        loaded.run(judges={"simulated-locked": judge})
    made = Counter(loaded.store.requests()[ident].editor for ident in loaded.store.edits())
    assert made == {"simulated-even": PILOT, "simulated-null": PILOT}, "the second run made no more"
    judge.locked = False
    summary = loaded.run(judges={"simulated-locked": judge})
    assert summary.complete and summary.edited == 32
    loaded.store.close()


def test_a_run_of_one_stage_leaves_the_others_to_other_runs(tmp_path, evenedit):
    folder = write_study(tmp_path, instruments=[{"id": "change", "kind": "change"}])
    assert evenedit("run", folder, "--stage", "edit").returncode == 0
    store = Store(folder)
    assert not store.raters_used()
    evenedit("run", folder, "--stage", "measure")
    assert store.raters_used() == {"change"}
    assert evenedit("run", folder, "--stage", "rate").returncode == 0
    assert store.raters_used() == {"change", "simulated-judge-a", "simulated-judge-b"}
    store.close()
