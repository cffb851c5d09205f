"""A run killed at any moment and started again gives the same results, and does nothing twice."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from conftest import write_study
from evenedit.storage.store import Store

KILLS = 20
STUDY = {
    "sources": {
        "kind": "drawn",
        "settings": {"seed": 3, "size": 128, "only": {"race": ["White", "Black", "Latino"], "age": ["20s", "70plus"]}},
    },
    "prompts": {"include": ["O-01", "O-06", "V-02", "V-05"]},
    "experiments": {
        "diagnosis": {},
        "mitigation": {"cases": 24, "extractor": {"kind": "simulated"}},
        "stereotype": {"include": ["W-01", "W-26"]},
    },
    "editors": [{"id": "simulated-replacing"}, {"id": "simulated-refusing"}, {"id": "simulated-even"}],
    "survey": {"cases": 24, "simulated_people": 3},
}
COMMAND = [sys.executable, "-m", "evenedit"]


def results(folder: Path) -> str:
    """The study's results.json without its provenance."""
    subprocess.run([*COMMAND, "report", str(folder)], check=True, capture_output=True)
    body = json.loads((folder / "report" / "results.json").read_text())
    del body["provenance"]
    return json.dumps(body)


def test_twenty_kills_lose_nothing_and_repeat_nothing(tmp_path):
    whole = write_study(tmp_path / "whole", **STUDY)
    started = time.monotonic()
    subprocess.run([*COMMAND, "run", str(whole)], check=True, capture_output=True)
    usual = time.monotonic() - started
    wanted = results(whole)
    chance = random.Random(7)
    kills = studies = 0
    while kills < KILLS:
        studies += 1
        folder = write_study(tmp_path / f"killed-{studies}", **STUDY)
        finished = False
        while not finished:
            before = _stored(folder)
            process = subprocess.Popen([*COMMAND, "run", str(folder)], stderr=subprocess.PIPE)
            if kills < KILLS:
                try:
                    process.wait(timeout=chance.uniform(0.2, 1.0) * usual)
                except subprocess.TimeoutExpired:
                    os.kill(process.pid, signal.SIGKILL)
                    kills += 1
            _, errors = process.communicate(timeout=300)
            finished = process.returncode == 0
            assert finished or process.returncode == -signal.SIGKILL, errors.decode()
            after = _stored(folder)
            assert before.items() <= after.items(), "something stored was lost or made again"
        assert results(folder) == wanted
        assert not list(folder.rglob("*.tmp")), "what a killed run left half written is swept up"
    assert kills == KILLS


def _stored(folder: Path) -> dict[object, int]:
    """Which run made each edit and each reply."""
    if not (folder / "study.db").exists():
        return {}
    store = Store(folder)
    return {**store.run_of_edits(), **store.run_of_replies()}
