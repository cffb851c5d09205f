"""The SIMULATED provider: it cannot pass as real, keeps its limits, and the whole command works against it."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Status
from evenedit.judges.gemini import GeminiJudge
from evenedit.judges.openai import OpenAIJudge
from evenedit.providers.budget import Budget
from evenedit.providers.prices import Prices
from evenedit.run.collecting import COMMIT_EVERY
from evenedit.run.runner import PILOT
from evenedit.storage.store import Store
from tests.support.paths import ROOT
from tests.support.provider.modes import MODES
from tests.support.provider.server import SUCCESS, FakeProvider, ProviderAnswer, Seen, rate_limit
from tests.support.studies import judged_by, open_study, write_study

STATES = {
    **dict.fromkeys(("success", "slow", "null", "missing-axis", "extra-keys"), Status.SCORED),
    **dict.fromkeys(("rate-limit", "rate-limit-told", "server-error", "drop"), Status.FAILED),
    "refusal": Status.REFUSED,
    **dict.fromkeys(("truncated", "prose", "strings", "seven", "half", "huge"), Status.UNPARSEABLE),
}


def test_the_state_of_every_mode_is_listed():
    assert STATES.keys() == MODES.keys()


@pytest.mark.parametrize("kind", ["chat", "responses", "gemini"])
def test_in_a_study_each_mode_ends_in_its_right_state(wire: FakeProvider, tmp_path: Path, kind: str):
    modes = [mode for mode in MODES if mode != "slow"]  # a slow answer is in test_judges
    study = judged_by(wire, kind, prompts={"include": ["O-01", "V-02"]})
    wire.will(*(MODES[mode] for mode in modes))
    loaded = open_study(tmp_path, **study)
    loaded.run()
    (rater,) = loaded.design.judges()
    found = Counter(loaded.store.answered(rater.id, rater.revision).values())
    assert found == Counter(STATES[mode] for mode in modes) + Counter({Status.SCORED: 16 - len(modes)})
    values = [r.value for r in loaded.store.ratings(rater.id, rater.revision)]
    assert set(values) == {3, None}  # what it said, and what it left out
    assert values.count(None) == 2
    loaded.store.close()


def test_a_study_against_it_must_say_that_it_is_simulated(wire: FakeProvider, tmp_path: Path):
    wire.marked = True
    study = judged_by(wire, "chat", "gemini")
    loaded = open_study(tmp_path / "one", **study)
    loaded.run()
    assert {c.model for r in loaded.design.judges() for c in loaded.store.calls(r.id)} == {
        "simulated-chat",
        "simulated-gemini",
    }
    loaded.store.close()
    study["judges"][0]["id"] = "gpt-5-mini"
    with pytest.raises(EvenEditError, match="is simulated, so its id must begin with 'simulated-'"):
        open_study(tmp_path / "two", **study)
    study["judges"][0]["settings"]["model"] = "gpt-5-mini"
    real = open_study(tmp_path / "three", **study)
    summary = real.run()
    assert not summary.complete and "this provider is SIMULATED" in summary.stopped[0]
    real.store.close()


@pytest.mark.parametrize("kind", ["chat", "gemini"])
def test_as_many_calls_as_allowed_are_under_way_at_once(wire: FakeProvider, tmp_path: Path, kind: str):
    four, numbers = threading.Barrier(4), count()

    def answer(seen: Seen) -> ProviderAnswer:
        if PILOT <= next(numbers) < PILOT + 4:
            four.wait(60)  # breaks where fewer than four calls are under way
        return SUCCESS(seen)

    wire.otherwise = answer
    judge: Any = GeminiJudge if kind == "gemini" else OpenAIJudge
    judge(model="x").missing()  # loads the SDK
    study = judged_by(wire, kind, prompts={"include": ["O-01", "V-02"]}, executor={"calls": 4})
    loaded = open_study(tmp_path, **study)
    loaded.run()
    assert wire.most_at_once == 4
    assert wire.asked == 16
    loaded.store.close()


def test_a_judge_under_a_storm_does_not_hold_up_the_other(wire: FakeProvider, tmp_path: Path):
    """Each has calls of its own under way; after the storm every call has its answer."""
    stormy = iter(range(12))

    def storm(seen: Seen) -> ProviderAnswer:
        if seen.provider == "gemini":
            return SUCCESS(seen)
        if next(stormy, None) is not None:
            return rate_limit(0.2)(seen)
        end = time.monotonic() + 60
        while sum(each.provider == "gemini" for each in wire.seen) < 8 and time.monotonic() < end:
            time.sleep(0.01)
        return SUCCESS(seen)

    wire.otherwise = storm
    study = judged_by(wire, "chat", "gemini", executor={"calls": 4})
    study["judges"][0]["settings"]["attempts"] = 8
    loaded = open_study(tmp_path, **study)
    loaded.run()
    order = [seen.provider for seen in wire.seen]
    last = len(order) - 1 - order[::-1].index("gemini")
    assert order[:last].count("openai") < 8 + 12, "all calls of the other were made before the last of this one"
    assert Counter(order) == {"openai": 8 + 12, "gemini": 8}
    for rater in loaded.design.judges():
        assert set(loaded.store.answered(rater.id, rater.revision).values()) == {Status.SCORED}
    loaded.store.close()


def test_a_killed_run_repeats_no_call_whose_reply_was_stored(wire: FakeProvider, tmp_path: Path):
    killed, numbers = threading.Event(), count(1)

    def answer(seen: Seen) -> ProviderAnswer:
        if next(numbers) > 20:  # those under way when the run is killed
            killed.wait(120)
        return SUCCESS(seen)

    wire.otherwise = answer
    wire.latency = 2 * COMMIT_EVERY
    study = judged_by(wire, "chat", "gemini", prompts={"include": ["O-01", "O-02", "V-02", "V-05"]})
    study["executor"] = {"calls": 2}
    folder = write_study(tmp_path, **study)
    made = open_study(folder, **study | {"judges": []})
    made.run()
    command = [sys.executable, "-m", "evenedit", "run", str(folder)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while wire.asked < 24 and time.monotonic() < end:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    killed.set()
    before = wire.asked
    stored = len(made.store.run_of_replies())
    assert 0 < stored <= 20 and before == 24
    subprocess.run(command, check=True, capture_output=True)
    assert len(Store(folder).run_of_replies()) == 64
    assert len({seen.body for seen in wire.seen}) == 64
    assert wire.asked - 64 <= 4  # at most what was in flight: two of each judge
    made.store.close()


def test_a_budget_is_spent_and_not_exceeded_by_calls_that_are_made_at_once(wire: FakeProvider, tmp_path: Path):
    wire.latency = 0.05
    (tmp_path / "prices.toml").write_text(
        'date = "2026-01-01"\n[judges]\n"simulated-chat" = {input = 1000.0, output = 0.0}\n'  # 0.10 dollars a call
    )
    loaded = open_study(tmp_path, **judged_by(wire, "chat", prompts={}, executor={"calls": 6}))
    runner = loaded.runner(Budget(max_cost=2.0), Prices.load(tmp_path / "prices.toml"))
    runner.run()
    assert wire.asked == 20
    assert runner.budget.cost == pytest.approx(wire.asked * 0.1)
    (rater,) = loaded.design.judges()
    assert len(loaded.store.answered(rater.id, rater.revision)) == wire.asked
    loaded.store.close()


def test_a_user_can_try_a_study_against_it(tmp_path: Path, evenedit, monkeypatch: pytest.MonkeyPatch):
    command = [sys.executable, "-m", "tests.support.provider", "--port", "0", "--batch-seconds", "0", "--limit", "4"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT)
    try:
        assert process.stdout
        assert "SIMULATED" in process.stdout.readline()
        found = re.search(r"http://\S+/v1", process.stdout.readline())
        assert found
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        with FakeProvider() as other:  # only its form is used
            study = judged_by(other, "chat")
        study["judges"][0]["settings"]["base_url"] = found[0]
        assert evenedit("run", write_study(tmp_path, **study), "--batch").returncode == 0
        assert len(Store(tmp_path).run_of_replies()) == 8
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == 0
