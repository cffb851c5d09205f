"""A run stops cleanly when its budget is spent, and goes on when there is more."""

import pytest

from conftest import open_study, write_study
from evenedit.core.errors import EvenEditError
from evenedit.providers.budget import Budget
from evenedit.providers.prices import Prices


def test_calls_stop_at_the_limit_and_the_next_run_goes_on(evenedit, tmp_path):
    folder = write_study(tmp_path)
    first = evenedit("run", folder, "--max-calls", 10)
    assert first.returncode == 0
    assert "the budget is spent" in first.stderr
    assert "10 of 16" not in first.stdout
    store = open_study(tmp_path).store
    assert len(store.run_of_replies()) == 10
    second = evenedit("run", folder)
    assert "budget is spent" not in second.stderr
    assert len(store.run_of_replies()) == 32


def test_money_stops_new_calls_and_counts_what_was_begun():
    budget = Budget(max_cost=1.0)
    assert len(list(budget.admit(range(100), each=0.3))) == 4  # the fourth begins at 0.90 dollars
    assert budget.spent
    assert str(budget) == "4 calls, US$ 1.20"


def test_tokens_are_charged_while_they_are_used():
    budget, used = Budget(max_cost=0.5), {"n": 0}
    budget.watch(lambda: used["n"] * 0.1)
    begun = []
    for call in budget.admit(range(100)):
        begun.append(call)
        used["n"] += 1
    assert len(begun) == 5


def test_money_cannot_be_limited_where_a_price_is_not_known(tmp_path):
    editors = [{"id": "mine", "kind": "openai-images", "settings": {"model": "a-model-nobody-priced"}}]
    study = open_study(tmp_path, editors=editors, judges=[])
    with pytest.raises(EvenEditError, match="needs the price of 'mine'"):
        study.runner(Budget(max_cost=1.0)).run()


def test_a_bad_price_file_is_refused(tmp_path):
    (tmp_path / "prices.toml").write_text("[edits")
    with pytest.raises(EvenEditError, match="cannot be read"):
        Prices.load(tmp_path / "prices.toml")
