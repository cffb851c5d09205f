"""The registry of models: facts have dates and sources, retired models are told, the user's file goes on top."""

from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evenedit.core.errors import EvenEditError
from evenedit.operations.plan import make_plan
from evenedit.providers.budget import Budget
from evenedit.providers.prices import VARIABLE, Prices
from evenedit.providers.registry import FACTS, ModelFile
from evenedit.run.models_in_use import model_notices, models_in_use
from tests.support.studies import open_study, write_study

TODAY = date(2026, 11, 17)


def judge(model: str, **settings: Any) -> dict[str, Any]:
    return {"id": f"by-{model}", "kind": "openai", "settings": {"model": model, **settings}}


def told(tmp_path: Path, *judges: dict[str, Any], today: date = TODAY, prices: Prices | None = None) -> list[str]:
    return model_notices(open_study(tmp_path, judges=list(judges)).file, prices or Prices.load(), today)


def test_every_fact_of_ours_has_a_source_and_a_date():
    models = ModelFile.read().models
    assert len(models) >= 15
    for model in models.values():
        assert model.provider and model.use and model.facts, model.id
        for name, fact in model.facts.items():
            assert name in FACTS
            assert fact.source.startswith("https://"), (model.id, name)
            assert date(2026, 1, 1) <= date.fromisoformat(fact.seen) <= date.today()
            assert fact.values


def test_a_current_editor_and_a_current_judge_have_a_price():
    prices = Prices.load()
    living = {m.id for m in prices.models.values() if m.retires is None}
    assert prices.edit("gemini-images", {"model": "gemini-nano-banana-2.1"}) == pytest.approx(0.0336)
    assert prices.edit("openai-images", {"model": "gpt-image-2.5-flare", "quality": "medium"}) == pytest.approx(0.013)
    assert prices.edit("openai-images", {"model": "gpt-image-2.5-sunburst", "quality": "medium"}) is None
    assert prices.tokens("openai", {"model": "gpt-6-luna"}) == pytest.approx({"input": 1e-7, "output": 5e-7})
    assert {"gemini-nano-banana-2.1", "gpt-image-2.5-flare", "gpt-6-luna"} <= living


def test_what_is_retired_and_what_will_be_is_told_with_its_source(tmp_path: Path):
    (soon,) = told(tmp_path, judge("gpt-5-mini"))
    assert "by-gpt-5-mini: model 'gpt-5-mini' will be retired on 2026-12-11, in 24 days" in soon
    assert "replaced by gpt-5.6-terra (https://" in soon and "seen 2026-11-17" in soon
    (gone,) = told(tmp_path, judge("gpt-5-mini"), today=date(2026, 12, 11))
    assert "is retired since 2026-12-11" in gone
    assert not told(tmp_path, judge("gpt-5-mini"), today=date(2026, 10, 11)), "61 days before, nobody is bothered"
    assert told(tmp_path, judge("gpt-5-mini"), today=date(2026, 10, 12))
    assert not told(tmp_path, judge("gpt-6-luna"), judge("never-heard-of"))


def test_a_day_that_is_only_the_earliest_one_is_told_as_such(tmp_path: Path):
    editors = [{"id": "banana", "kind": "gemini-images", "settings": {"model": "gemini-2.5-flash-image"}}]
    (note,) = model_notices(open_study(tmp_path, editors=editors).file, Prices.load(), TODAY)
    assert "may be retired since 2026-10-02" in note


def test_a_price_that_ends_is_told(tmp_path: Path):
    study = open_study(tmp_path, judges=[{"id": "g", "kind": "gemini", "settings": {"model": "gemini-3.8-flash"}}])
    (note,) = model_notices(study.file, Prices.load(), TODAY)
    assert "is valid until 2026-12-31, twice as much from then on" in note


def test_an_endpoint_of_ones_own_is_not_the_providers(tmp_path: Path):
    study = open_study(tmp_path, judges=[judge("gpt-5-mini", base_url="http://localhost:9/v1")])
    assert not list(models_in_use(study.file))


def test_plan_and_run_warn(evenedit, tmp_path: Path):
    folder = write_study(tmp_path, judges=[judge("gpt-5-mini", attempts=1)])
    assert "note: by-gpt-5-mini: model 'gpt-5-mini' " in evenedit("plan", folder).stdout
    said = evenedit("run", folder)
    assert "note: by-gpt-5-mini: model 'gpt-5-mini' " in said.stderr


def test_the_plan_says_what_a_price_leaves_out(tmp_path: Path):
    editors = [{"id": "flare", "kind": "openai-images", "settings": {"model": "gpt-image-2.5-flare", "quality": "low"}}]
    notes = make_plan(open_study(tmp_path, editors=editors)).notes
    assert any("input pictures (8 dollars per million tokens) and words come on top" in note for note in notes)


MINE = """date = "2026-11-01"
[models."gpt-6-luna".price]
input = 7.0
output = 9.0
[models."gpt-6-luna".retires]
on = "2026-11-30"
replaced_by = "mine"
[models."my-model"]
provider = "me"
use = ["judge"]
[edits]
"gpt-image-1" = 1.0
"""


def test_the_users_file_goes_on_top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "mine.toml").write_text(MINE)
    for prices in (Prices.load(tmp_path / "mine.toml"), _by_variable(tmp_path, monkeypatch)):
        assert prices.tokens("openai", {"model": "gpt-6-luna"}) == pytest.approx({"input": 7e-6, "output": 9e-6})
        assert prices.tokens("openai", {"model": "gpt-6-luna"}, batch=True) is None, "their price is taken as a whole"
        assert prices.models["gpt-6-luna"].get("context", "input") == 1_050_000, "what it does not say is ours"
        assert prices.edit("openai-images", {"model": "gpt-image-1", "quality": "high"}) == 1.0
        assert prices.edit("gemini-images", {"model": "gemini-nano-banana-2.1"}) == pytest.approx(0.0336)
        assert prices.date == "2026-11-01, for other models of 2026-11-17"
        (note,) = told(tmp_path, judge("gpt-6-luna"), prices=prices)
        assert "2026-11-30" in note and "mine.toml, seen 2026-11-01" in note


def _by_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prices:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "mine.toml"))
    return Prices.load()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[models.x]\n", "needs a date"),
        ('date = "2026-01-01"\n[models.x]\nprise = 1\n', "unknown keys: prise"),
        ('date = "2026-01-01"\n[models.x.price]\nimput = 1\n', "x, price: unknown keys: imput"),
        ('date = "2026-01-01"\n[models.x.retires]\non = "soon"\n', "soon"),
        ('date = "2026-01-01"\nmodels = 3\n', "needs a date, and tables"),
        ("date = ", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_problem(tmp_path: Path, text: str, problem: str):
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(EvenEditError, match=r"mine\.toml") as caught:
        Prices.load(tmp_path / "mine.toml")
    assert problem in str(caught.value)


def test_a_tier_has_its_own_price_and_a_server_without_a_key_costs_nothing():
    prices = Prices.load()
    assert prices.tokens("openai", {"model": "gpt-6-luna", "service_tier": "flex"}) == pytest.approx(
        {"input": 5e-8, "output": 2.5e-7}
    )
    assert prices.tokens("openai", {"model": "gpt-6-luna", "service_tier": "priority"}) is None
    assert prices.tokens("openai", {"model": "my-vlm", "server": "vllm"}) == {"input": 0.0, "output": 0.0}
    assert prices.tokens("openai", {"model": "my-vlm", "server": "vllm", "api_key_env": "PAID"}) is None
    assert prices.tokens("openai", {"model": "my-vlm", "base_url": "http://elsewhere/v1"}) is None
    assert prices.describing({"model": "my-vlm", "api_key_env": ""}) == {"input": 0.0, "output": 0.0}
    assert prices.describing({"model": "my-vlm"}) is None


def test_money_is_not_limited_where_a_price_is_not_known(tmp_path: Path):
    study = open_study(tmp_path, judges=[judge("never-heard-of")])
    runner = study.runner(Budget(max_cost=1.0))
    with pytest.raises(EvenEditError, match="--max-cost needs the price of 'by-never-heard-of'"):
        runner.open_budgets([SimpleNamespace(id="by-never-heard-of")])  # type: ignore[list-item]
    study.store.close()


def test_models_are_listed_with_their_sources(evenedit):
    listed = evenedit("plugins", "--models").stdout
    assert "gpt-5-mini" in listed and "2026-12-11, use gpt-5.6-terra" in listed
    facts = evenedit("plugins", "openai", "--models").stdout
    assert "retires  on = 2026-10-23" in facts and facts.count("seen 2026-11-17") >= 15
    one = evenedit("plugins", "gpt-5-mini", "--models").stdout
    assert one.startswith("gpt-5-mini\n") and one.count("seen 2026-11-17") < facts.count("seen 2026-11-17")
    unknown = evenedit("plugins", "gpt-9", "--models")
    assert unknown.returncode == 2 and "no model or provider is called 'gpt-9'" in unknown.stderr
