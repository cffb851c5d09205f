"""Feature prompts are asked for within the run's budget and cache, many at once, and a plan prices them."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from evenedit.core.errors import EvenEditError
from evenedit.operations import run_view as live_run
from evenedit.operations.plan import make_plan
from evenedit.providers.budget import Budget
from evenedit.providers.prices import Prices
from tests.support.provider import server as spoken
from tests.support.provider.server import FakeProvider
from tests.support.studies import open_study

FACES = 8
GOOD = {
    "skin_tone": "deep brown",
    "face_shape": "oval",
    "eyes": "dark",
    "nose": "straight",
    "lips": "full",
    "hair": "short",
    "distinctive_features": "none",
    "identity_prompt": "Maintain the person's deep brown skin and short hair.",
}
PRICES = """
date = "2026-01-01"
[judges]
"simulated-vlm" = {input = 1000.0, output = 0.0}
[tokens]
input = 100
output = 20
"""
"""A tenth of a dollar for a call of 100 tokens."""


def described(wire: FakeProvider, **changes):
    wire.otherwise = spoken.says(json.dumps(GOOD))
    settings = {
        "provider": "openai",
        "model": "simulated-vlm",
        "base_url": wire.openai,
        "image_size": 32,
        "attempts": 1,
    }
    extractor = {"kind": "vlm", "settings": settings}
    experiments = {"diagnosis": {}, "mitigation": {"cases": 16, "extractor": extractor, "placebo": False}}
    return {"experiments": experiments, "judges": [], "executor": {"retries": 0, "calls": 4}} | changes


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    (tmp_path / "prices.toml").write_text(PRICES)
    return tmp_path / "prices.toml"


def test_no_call_is_made_without_a_budget_for_it(wire, tmp_path):
    loaded = open_study(tmp_path / "study", **described(wire))
    summary = loaded.runner(Budget(max_calls=0)).run()
    assert not wire.seen
    assert not summary.complete and summary.budget_spent
    assert summary.reasons["no feature prompt: the budget is spent"] == FACES
    assert loaded.run().complete


def test_a_limit_of_money_needs_every_price_before_anything_is_begun(wire, tmp_path, prices):
    images = {"id": "simulated-api", "kind": "openai-images"}
    editors = [{**images, "settings": {"model": "simulated-image", "base_url": wire.openai}}]
    loaded = open_study(tmp_path / "study", **described(wire, editors=editors))
    with pytest.raises(EvenEditError, match="--max-cost needs the price of 'simulated-api'"):
        loaded.runner(Budget(max_cost=5.0), Prices.load(prices)).run()
    assert not wire.seen and not loaded.store.sources() and not loaded.store.runs()
    prices.write_text(PRICES + '[editors]\n"simulated-image" = 0.05\n')
    with pytest.raises(EvenEditError, match=r"has unknown keys: editors; it may have date, \[models\], \[edits\]"):
        Prices.load(prices)


def test_money_limits_descriptions_too_and_the_plan_prices_them(wire, tmp_path, prices):
    loaded = open_study(tmp_path / "study", **described(wire))
    plan = make_plan(loaded, prices)
    assert [(line.judge, line.calls) for line in plan.extractors] == [("describe: simulated-vlm", FACES)]
    assert plan.usd == pytest.approx(0.8) and "describe: simulated-vlm" in str(plan)
    runner = loaded.runner(Budget(max_cost=0.5), Prices.load(prices))
    summary = runner.run()
    assert len(wire.seen) == 5 and runner.budget.cost == pytest.approx(0.5)
    assert summary.missing == 3 and "3 × no feature prompt: the budget is spent" in str(summary)
    assert make_plan(loaded, prices).usd == pytest.approx(0.3)
    with pytest.raises(EvenEditError, match="needs the price of"):
        loaded.runner(Budget(max_cost=0.5)).run()


def test_the_page_of_the_run_counts_what_descriptions_cost(wire, tmp_path, prices, monkeypatch):
    monkeypatch.setattr(live_run, "Prices", SimpleNamespace(load=lambda: Prices.load(prices)))
    loaded = open_study(tmp_path / "study", **described(wire))
    loaded.run()
    used = live_run.RunView(loaded).now().cost
    assert len(wire.seen) == FACES and used.startswith(
        "8 calls to services, about US$ 0.80 by the prices of 2026-01-01"
    )


def test_descriptions_are_made_many_at_once_and_never_paid_for_twice(wire, tmp_path):
    wire.latency = 0.3
    loaded = open_study(tmp_path / "study", **described(wire, cache={"folder": str(tmp_path / "cache")}))
    loaded.run()
    assert len(wire.seen) == FACES and wire.most_at_once > 1
    open_study(tmp_path / "again", **described(wire, cache={"folder": str(tmp_path / "cache")})).run()
    assert len(wire.seen) == FACES, "another study has the answers from the cache"


def test_an_extractor_that_fails_is_stopped_and_the_diagnosis_is_made(wire, tmp_path):
    loaded = open_study(tmp_path / "study", **described(wire))
    wire.otherwise = spoken.server_error
    summary = loaded.run()
    assert 5 <= len(wire.seen) <= FACES
    assert summary.edited == 16 and not summary.complete
    assert "was stopped: 5 failures in a row (server)" in summary.stopped[0]
    assert sum(n for reason, n in summary.reasons.items() if reason.startswith("no feature prompt")) == FACES
