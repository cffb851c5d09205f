"""Batch jobs through the official SDKs: every line ends in its right state, nothing is submitted or paid for twice."""

import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evenedit.api.study import Study
from evenedit.core.errors import EvenEditError
from evenedit.core.records import Status
from evenedit.judges import batch_jobs as batches
from evenedit.judges.gemini import GeminiJudge
from evenedit.judges.openai import OpenAIJudge
from evenedit.judges.prompt import ModelPrompt
from evenedit.operations.plan import make_plan
from evenedit.operations.status import status_of
from evenedit.providers.budget import Budget
from evenedit.providers.prices import Prices
from evenedit.run.runner import Runner
from tests.support.provider import server as provider
from tests.support.provider.jobs import JobEnding
from tests.support.provider.modes import MODES
from tests.support.provider.server import FakeProvider
from tests.support.studies import judged_by, open_study, write_study

KINDS = ["chat", "responses", "gemini"]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch):
    """Looks and tries that follow each other at once."""
    for name in ("FIRST_LOOK", "LAST_LOOK", "LOOK_AGAIN"):
        monkeypatch.setattr(batches, name, 0.01)
    monkeypatch.setattr(batches, "time", SimpleNamespace(sleep=lambda seconds: time.sleep(min(seconds, 0.01))))


def by_batch(loaded: Study, budget: Budget | None = None, prices: Prices | None = None) -> Runner:
    """What runs the study and asks by batch job."""
    runner = loaded.runner(budget, prices)
    runner.batch = True
    return runner


def states(loaded: Study) -> dict[str, Status]:
    (rater,) = loaded.design.judges()
    return loaded.store.answered(rater.id, rater.revision)


def counted(loaded: Study) -> Counter[Status]:
    return Counter(states(loaded).values())


# -- a job's life ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_is_not_rated_goes_in_one_job_and_comes_back_to_its_place(
    wire: FakeProvider, tmp_path: Path, kind: str
):
    scores = iter(range(8))

    def numbered(seen: provider.Seen) -> provider.ProviderAnswer:
        assert seen.schema
        whole = provider.from_schema(seen.schema)
        whole["scores"]["skin_tone"] = 1 + next(scores) % 5
        return provider.says(json.dumps(whole))(seen)

    wire.otherwise = numbered
    loaded = open_study(tmp_path, **judged_by(wire, kind))
    by_batch(loaded).run()
    (job,) = wire.queue.jobs.values()
    lines = [json.loads(line) for line in wire.queue.uploaded[job.input_file].splitlines()]
    asked = [line.get("custom_id") or line["key"] for line in lines]
    (rater,) = loaded.design.judges()
    found = {
        r.request_id: r.value for r in loaded.store.ratings(rater.id, rater.revision) if r.question_id == "skin_tone"
    }
    # Gemini hands results out in another order than it was asked; each came back to the request it was asked for.
    assert [found[ident] for ident in asked] == [1, 2, 3, 4, 5, 1, 2, 3]
    assert {c.via for c in loaded.store.calls(rater.id)} == {"batch"}
    assert {c.job for c in loaded.store.calls(rater.id)} == {job.id if kind != "gemini" else f"batches/{job.id}"}
    assert loaded.store.open_jobs() == []
    assert "  0 from the cache, 8 by batch job" in str(status_of(loaded)).splitlines()
    assert not list(tmp_path.glob(".batch-*"))
    by_batch(loaded).run()
    assert len(wire.queue.jobs) == 1
    loaded.store.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_asks_what_a_call_would_ask(wire: FakeProvider, tmp_path: Path, kind: str):
    by_job = open_study(tmp_path / "job", **judged_by(wire, kind))
    by_call = open_study(tmp_path / "call", **judged_by(wire, kind))
    by_batch(by_job).run()
    by_call.run()
    lines, calls = wire.seen[:8], wire.seen[8:]
    # The SDK writes mime_type where the API's own name is mimeType; the API takes both.
    sent = [json.loads(seen.body.replace(b'"mime_type"', b'"mimeType"')) for seen in calls]
    assert [json.loads(seen.body) for seen in lines] == sent
    for file in wire.queue.uploaded.values():
        words = re.sub(rb"[A-Za-z0-9+/_-]{200,}={0,2}", b"", file)
        assert not re.search(rb"\bblack\b|\bwhite\b|70 ?plus|\d0s\b|\bfemale\b|baseline", words, re.I)
    by_job.store.close()
    by_call.store.close()


STATES = {
    "success": "scored",
    "rate-limit": "failed",
    "server-error": "failed",
    "drop": "failed",
    "refusal": "refused",
    "truncated": "unparseable",
    "prose": "unparseable",
    "strings": "unparseable",
    "seven": "unparseable",
    "half": "unparseable",
    "null": "scored",
    "missing-axis": "scored",
    "extra-keys": "scored",
    "huge": "unparseable",
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_line_of_a_job_ends_in_its_right_state(wire: FakeProvider, tmp_path: Path, kind: str):
    study = judged_by(wire, kind, prompts={"include": ["O-01", "V-02"]})
    wire.will(*(MODES[mode] for mode in STATES), provider.not_json, provider.error(400, "no", code="content_filter"))
    loaded = open_study(tmp_path, **study)
    by_batch(loaded).run()
    (job,) = wire.queue.jobs.values()
    lines = [json.loads(line) for line in wire.queue.uploaded[job.input_file].splitlines()]
    found = states(loaded)
    ended = [found[line.get("custom_id") or line["key"]] for line in lines]
    last = "failed" if kind == "gemini" else "refused"  # Google has no such code
    assert ended == [*STATES.values(), "failed", last]
    by_batch(loaded).run()  # what failed is asked again, and nothing else
    assert Status.FAILED not in states(loaded).values()
    assert wire.asked == 16 + ended.count(Status.FAILED)
    loaded.store.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", ["expired", "cancelled", "failed"])
def test_what_a_job_did_not_answer_failed_and_is_asked_again(
    wire: FakeProvider, tmp_path: Path, kind: str, ending: str
):
    wire.queue.endings.append(JobEnding(ending, answered=3))
    loaded = open_study(tmp_path, **judged_by(wire, kind))
    by_batch(loaded).run()
    there = 0 if ending == "failed" else 3
    assert counted(loaded) == Counter({Status.SCORED: there, Status.FAILED: 8 - there}) - Counter()
    assert len(wire.queue.jobs) == 1  # not at once, which could go on for ever
    by_batch(loaded).run()
    assert counted(loaded) == {Status.SCORED: 8}
    assert wire.asked == 8
    loaded.store.close()


def test_a_job_is_cut_where_it_grows_too_large(wire: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(batches, "MOST_LINES", 3)
    loaded = open_study(tmp_path, **judged_by(wire, "chat"))
    by_batch(loaded).run()
    sizes = [len(wire.queue.uploaded[j.input_file].splitlines()) for j in wire.queue.jobs.values()]
    assert sizes == [3, 3, 2]
    assert counted(loaded) == {Status.SCORED: 8}
    loaded.store.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_that_is_turned_away_for_a_quota_is_sent_again_smaller_until_all_is_rated(
    wire: FakeProvider, tmp_path: Path, kind: str, capsys
):
    wire.queue.most_lines = 3
    loaded = open_study(tmp_path, **judged_by(wire, kind))
    runner = by_batch(loaded, Budget(max_calls=8))
    runner.run()
    assert counted(loaded) == {Status.SCORED: 8}
    assert wire.asked == 8 and runner.budget.calls == 8, "what was turned away is neither asked nor counted twice"
    assert "were rejected" in capsys.readouterr().err
    assert wire.queue.files == {} and wire.queue.deleted, "no picture stays at the provider"
    loaded.store.close()


def test_a_quota_that_takes_nothing_at_all_fails_in_words_and_ends(wire: FakeProvider, tmp_path: Path):
    wire.queue.most_lines = 0
    loaded = open_study(tmp_path, **judged_by(wire, "chat"))
    by_batch(loaded).run()
    (rater,) = loaded.design.judges()
    assert counted(loaded) == {Status.FAILED: 8}
    assert all("Enqueued token limit" in why for why in loaded.store.failures(rater.id, rater.revision).values())
    loaded.store.close()


def test_judges_that_share_a_quota_wait_for_one_another(wire: FakeProvider, tmp_path: Path):
    wire.queue.most_lines, wire.queue.seconds = 4, 0.1
    loaded = open_study(tmp_path, **judged_by(wire, "chat", "gemini"))
    assert by_batch(loaded).run().complete and wire.asked == 2 * 8
    loaded.store.close()


@pytest.mark.parametrize("by_job", [True, False])
def test_what_was_turned_away_from_a_killed_run_is_asked_by_the_next(wire: FakeProvider, tmp_path: Path, by_job: bool):
    wire.queue.most_lines = 3
    loaded = open_study(tmp_path, **judged_by(wire, "chat"))
    stop_waiting(loaded)
    assert len(loaded.store.open_jobs()) == 1
    (by_batch(loaded) if by_job else loaded).run()
    assert counted(loaded) == {Status.SCORED: 8} and wire.asked == 8
    loaded.store.close()


def test_few_jobs_are_open_at_a_time(wire: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(batches, "MOST_LINES", 1)
    monkeypatch.setattr(batches, "MOST_OPEN", 2)
    wire.queue.seconds = 0.05
    loaded = open_study(tmp_path, **judged_by(wire, "chat"))
    by_batch(loaded).run()
    assert counted(loaded) == {Status.SCORED: 8}
    assert len(wire.queue.jobs) == 8 and wire.queue.busiest == 2
    loaded.store.close()


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_killed_run_left_at_the_provider_is_deleted_by_the_next(wire: FakeProvider, tmp_path: Path, kind: str):
    loaded = open_study(tmp_path, **judged_by(wire, kind))
    judge: Any = GeminiJudge if kind == "gemini" else OpenAIJudge

    def killed(*_: object) -> None:
        raise SystemExit

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "clean", killed)
        with pytest.raises(SystemExit):
            by_batch(loaded).run()
    assert counted(loaded) == {Status.SCORED: 8} and wire.queue.files
    loaded.run()  # no job is asked for any more
    assert wire.queue.files == {} and loaded.store.collected_jobs() == []
    loaded.store.close()


def test_openai_is_told_not_to_keep_what_it_is_shown() -> None:
    ask = ModelPrompt("", ("words", b"picture"), {})
    for api in ("chat", "responses"):
        assert OpenAIJudge(model="m", api=api).body(ask)["store"] is False
    assert "store" not in OpenAIJudge(model="m", base_url="http://localhost:1/v1").body(ask)


def stop_waiting(loaded: Study) -> None:
    """Run until the job is submitted; then the user stops it."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches.Batches, "wait", stop)
        with pytest.raises(KeyboardInterrupt):
            by_batch(loaded).run()


# -- interrupted -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["chat", "gemini"])
def test_an_open_job_is_waited_for_by_later_runs_of_either_kind(wire: FakeProvider, tmp_path: Path, kind: str, capsys):
    wire.queue.seconds = 3600
    study = judged_by(wire, kind)
    loaded = open_study(tmp_path, **study)
    stop_waiting(loaded)
    assert len(loaded.store.open_jobs()) == 1
    plain = open_study(tmp_path, **study)
    plain.run()
    assert "8 ratings are in open batch jobs" in capsys.readouterr().err
    assert (wire.asked, len(wire.queue.jobs), states(plain)) == (0, 1, {})
    wire.queue.seconds = 0  # a day later
    plain.run()
    assert counted(plain) == {Status.SCORED: 8}
    assert (wire.asked, len(wire.queue.jobs)) == (8, 1)
    loaded.store.close()
    plain.store.close()


@pytest.mark.parametrize("kind", ["chat", "gemini"])
@pytest.mark.parametrize("begun", [True, False])
def test_a_kill_between_submitting_and_noting_pays_once(wire: FakeProvider, tmp_path: Path, kind: str, begun: bool):
    wire.queue.page = 2  # the job is looked for beyond the first page
    loaded = open_study(tmp_path, **judged_by(wire, kind))
    judge: Any = GeminiJudge if kind == "gemini" else OpenAIJudge
    submit = judge.submit

    def killed(self: Any, lines: Path, tag: str) -> str:
        if begun:
            submit(self, lines, tag)
            for _ in range(3):  # others' jobs since then
                submit(self, lines, "somebody-else's")
        raise SystemExit  # as a kill: no answer is noted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "submit", killed)
        with pytest.raises(SystemExit):
            by_batch(loaded).run()
    (job,) = loaded.store.open_jobs()
    assert job.remote is None
    by_batch(loaded).run()
    mine = [j for j in wire.queue.jobs.values() if j.tag.startswith("evenedit-")]
    assert len(mine) == 1
    assert (mine[0].tag == job.tag) is begun
    assert counted(loaded) == {Status.SCORED: 8}
    loaded.store.close()


def test_a_submission_whose_answer_was_lost_is_found_before_it_is_tried_again(wire: FakeProvider, tmp_path: Path):
    lost = {"n": 0}
    serve = wire.queue.serve

    def deaf(method: str, path: str, *rest: Any) -> Any:
        answer = serve(method, path, *rest)
        if (method, path) == ("POST", "/v1/batches"):
            lost["n"] += 1
            return 500, b'{"error": {"message": "lost"}}', {}
        return answer

    wire.queue.serve = deaf  # type: ignore[method-assign]
    loaded = open_study(tmp_path, **judged_by(wire, "chat"))
    by_batch(loaded).run()
    assert lost["n"] == len(wire.queue.jobs) == 1
    assert counted(loaded) == {Status.SCORED: 8}
    loaded.store.close()


@pytest.mark.parametrize("kind", ["chat", "gemini"])
def test_trouble_while_looking_leaves_the_job_open(wire: FakeProvider, tmp_path: Path, kind: str):
    study = judged_by(wire, kind)
    looks = iter([provider.server_error, provider.drop, provider.rate_limit()])
    judge: Any = GeminiJudge if kind == "gemini" else OpenAIJudge
    look = judge.look

    def troubled(self: Any, job: str) -> Any:
        wire.queue_will(*(b for b in [next(looks, None)] if b))
        return look(self, job)

    loaded = open_study(tmp_path, **study)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "look", troubled)
        by_batch(loaded).run()
    assert counted(loaded) == {Status.SCORED: 8}
    assert (wire.asked, len(wire.queue.jobs)) == (8, 1)
    loaded.store.close()


KILLED = """
import sys, os, signal
from pathlib import Path
from types import SimpleNamespace
from evenedit.cli.base import open_study
from evenedit.judges.openai import OpenAIJudge
from evenedit.judges.prompt import ModelPrompt
submit = OpenAIJudge.submit
def then_die(self, lines, tag):
    submit(self, lines, tag)
    os.kill(os.getpid(), signal.SIGKILL)
OpenAIJudge.submit = then_die
loaded = open_study(Path(sys.argv[1])); runner = loaded.runner(); runner.batch = True; runner.run()
"""


def test_a_real_sigkill_after_submission_pays_once(wire: FakeProvider, tmp_path: Path, evenedit):
    folder = write_study(tmp_path, **judged_by(wire, "chat"))
    killed = subprocess.run([sys.executable, "-c", KILLED, str(folder)], capture_output=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert len(wire.queue.jobs) == 1
    done = evenedit("run", folder, "--batch")
    assert done.returncode == 0, done.stderr
    assert "found the batch job" in done.stderr
    assert (len(wire.queue.jobs), wire.asked) == (1, 8)
    assert not list(folder.glob(".batch-*"))


@pytest.mark.parametrize("kind", KINDS)
def test_results_of_a_strange_form_fail_line_by_line(wire: FakeProvider, tmp_path: Path, kind: str):
    """Whatever stands in the file: no crash, no invented value, no lost rating."""
    keep = wire.queue._keep

    def strange(content: bytes) -> str:
        lines = content.splitlines()
        if not lines or (b"status_code" not in lines[0] and b'"response"' not in lines[0]):
            return keep(content)  # the input
        idents = [json.loads(line).get("custom_id") or json.loads(line)["key"] for line in lines]
        name = "key" if kind == "gemini" else "custom_id"
        odd: list[Any] = [{"error": "no"}, {"response": None}, {"response": 7}, {"response": {"body": []}}, {}]
        made = [json.dumps({name: ident, **say}).encode() for ident, say in zip(idents, odd, strict=False)]
        return keep(b"\n".join([*made, b"[1]", b"{", b"", json.dumps({name: "stranger"}).encode(), *lines[5:]]))

    wire.queue._keep = strange  # type: ignore[method-assign]
    loaded = open_study(tmp_path, **judged_by(wire, kind))
    by_batch(loaded).run()
    assert counted(loaded) == {Status.FAILED: 5, Status.SCORED: 3}
    loaded.store.close()


# -- money -----------------------------------------------------------------------------------------------------

PRICES = """date = "2026-01-01"
[judges]
"simulated-chat" = {input = 1000.0, output = 1000.0, batch_input = 500.0, batch_output = 500.0}
[tokens]
input = 150
output = 50
"""  # a call: 123 tokens used, 200 assumed; a dollar per thousand tokens, half by batch job


def priced(folder: Path) -> Prices:
    folder.mkdir(exist_ok=True)
    (folder / "prices.toml").write_text(PRICES)
    return Prices.load(folder / "prices.toml")


def test_the_budget_is_reserved_when_a_job_is_submitted(wire: FakeProvider, tmp_path: Path):
    loaded = open_study(tmp_path, **judged_by(wire, "chat"))
    runner = by_batch(loaded, Budget(max_cost=0.35), priced(tmp_path))  # 0.10 a line, reserved
    runner.run()
    assert counted(loaded) == {Status.SCORED: 3}
    assert runner.budget.spent
    assert runner.budget.cost == pytest.approx(3 * 123 * 0.0005)  # what was used, now that it is known
    by_batch(loaded, Budget(max_calls=4)).run()
    assert counted(loaded) == {Status.SCORED: 7}
    assert loaded.store.tokens("simulated-chat") == (100, 23)
    loaded.store.close()


def test_money_cannot_be_limited_where_the_batch_price_is_not_known(wire: FakeProvider, tmp_path: Path):
    loaded = open_study(tmp_path, **judged_by(wire, "chat"))
    with pytest.raises(EvenEditError, match="needs the price of 'simulated-chat'"):
        by_batch(loaded, Budget(max_cost=1)).run()
    loaded.store.close()


def test_judges_without_batch_jobs_are_asked_as_usual(wire: FakeProvider, tmp_path: Path):
    study = judged_by(wire, "chat", "gemini")
    del study["judges"][0]["settings"]["batch"]  # an endpoint of one's own has none unless it is said
    loaded = open_study(tmp_path, **study)
    by_batch(loaded).run()
    ways = {r.id: {c.via for c in loaded.store.calls(r.id)} for r in loaded.design.judges()}
    assert ways == {"simulated-chat": {"call"}, "simulated-gemini": {"batch"}}
    loaded.store.close()


def test_what_the_cache_knows_is_not_submitted(wire: FakeProvider, tmp_path: Path):
    study = judged_by(wire, "chat")
    first = open_study(tmp_path, **study)
    first.runner(Budget(max_calls=5)).run()
    study["judges"][0]["settings"]["timeout"] = 60
    second = open_study(tmp_path, **study)
    by_batch(second).run()
    (job,) = wire.queue.jobs.values()
    assert len(wire.queue.uploaded[job.input_file].splitlines()) == 3
    assert wire.asked == 8
    first.store.close()
    second.store.close()


def test_plan_prices_judges_both_ways(wire: FakeProvider, tmp_path: Path, evenedit):
    study = judged_by(wire, "chat", "gemini")
    folder = write_study(tmp_path / "study", **study)
    priced(tmp_path)
    shown = evenedit("plan", folder, "--prices", tmp_path / "prices.toml").stdout
    # 8 calls of 200 assumed tokens at a dollar per thousand
    assert re.search(r"simulated-chat +8 +150, 50 ASSUMED +1\.60 +0\.80\n", shown), shown
    assert re.search(r"simulated-gemini +8 +150, 50 ASSUMED +not known +not known\n", shown), shown
    loaded = open_study(folder, **study)
    loaded.runner(Budget(max_calls=4)).run()
    line = make_plan(loaded, tmp_path / "prices.toml").judges[0]
    left = 8 - sum(seen.provider == "openai" for seen in wire.seen)
    assert (line.calls, line.tokens, line.measured) == (left, (100, 23), True)
    assert (line.usd, line.usd_batch) == (pytest.approx(left * 0.123), pytest.approx(left * 0.123 / 2))
    loaded.store.close()


def test_tokens_and_cost_are_in_the_progress_line(wire: FakeProvider, tmp_path: Path, capsys):
    loaded = open_study(tmp_path, **judged_by(wire, "chat"))
    loaded.runner(prices=priced(tmp_path)).run()
    shown = capsys.readouterr().err
    assert re.search(r"rate: 8/8, [\d.]+/s · 800 tokens in, 184 out · US\$ 0\.98\n", shown), shown
    loaded.store.close()


def test_a_job_the_provider_forgot_is_named_and_can_be_given_up(wire: FakeProvider, tmp_path: Path, evenedit):
    wire.queue.seconds = 3600
    study = judged_by(wire, "chat")
    loaded = open_study(write_study(tmp_path, **study), **study)
    stop_waiting(loaded)
    (name,) = wire.queue.jobs
    assert any(
        f"batch job {name}: 8 ratings of simulated-chat, open since" in line
        for line in str(status_of(loaded)).splitlines()
    )
    wire.queue.jobs.clear()
    with pytest.raises(EvenEditError, match=f"--give-up {name}"):
        by_batch(loaded).run()
    runner = by_batch(loaded)
    runner.give_up = ["x"]
    with pytest.raises(EvenEditError, match="no open batch job is called 'x'"):
        runner.run()
    assert evenedit("run", tmp_path, "--give-up", name).returncode == 0
    assert wire.asked == 8
    loaded.store.close()
