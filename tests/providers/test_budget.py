"""A run stops cleanly when its budget is spent, and goes on when there is more."""

import random
import time
from threading import Thread

import pytest

from evenedit.core.errors import EvenEditError
from evenedit.providers.budget import CAUTION, Account, Budget, Reservation
from evenedit.providers.prices import Prices
from tests.support.studies import open_study, write_study


def test_calls_stop_at_the_limit_and_the_next_run_goes_on(evenedit, tmp_path):
    folder = write_study(tmp_path)
    first = evenedit("run", folder, "--max-calls", 10)
    assert first.returncode == 4, "incomplete"
    assert "the budget is spent" in first.stdout
    assert "22 missing" in first.stdout and "done." not in first.stdout
    store = open_study(tmp_path).store
    assert len(store.run_of_replies()) == 10
    second = evenedit("run", folder)
    assert second.returncode == 0 and "budget is spent" not in second.stdout
    assert len(store.run_of_replies()) == 32


def test_money_stops_new_calls_and_counts_what_was_begun():
    budget = Budget(max_cost=1.0)
    begun = []
    while (reservation := budget.reserve(0.3)) is not None:
        begun.append(reservation)
        budget.settle(reservation, 0.3)
    assert len(begun) == 3, "a fourth would make it 1.20 dollars"
    assert budget.spent
    assert str(budget) == "3 calls, US$ 0.90"


def test_a_call_waits_while_what_is_under_way_may_leave_room_for_it():
    budget = Budget(max_cost=1.0)
    first = budget.reserve(0.8)
    assert first is not None
    came = []
    waiting = Thread(target=lambda: came.append(budget.reserve(0.5)), daemon=True)
    waiting.start()
    budget.settle(first, 0.2)  # it cost less than was reserved
    waiting.join(30)
    assert came == [Reservation(0.5)]


def test_the_first_call_of_a_model_is_made_alone_and_shows_what_the_others_cost():
    budget = Budget(max_cost=1.0)
    account = Account(budget, {"input": 0.001, "output": 0.0}, expected=0.001)
    first = account.begin()
    came = []
    threads = [Thread(target=lambda: came.append(account.begin()), daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert not came, "nobody knows yet what a call costs"
    account.settle(first, (400, 0))
    for thread in threads:
        thread.join(0.5)
    assert len(came) == 1, "at 0.40 each and 0.60 left there is room for one, alone"
    account.settle(came[0], (500, 0))
    for thread in threads:
        thread.join(30)
    assert came[1:] == [None, None] and budget.cost == pytest.approx(0.9)


def test_random_prices_and_latencies_never_spend_more_than_the_limit_and_one_call():
    draw = random.Random(5)
    over = []
    for _ in range(200):
        price, spread, limit = draw.uniform(0.001, 0.2), draw.uniform(1, CAUTION), draw.uniform(0.01, 3.0)
        budget = Budget(max_cost=limit)
        accounts = [Account(budget, {"input": price / 1000, "output": 0.0}, draw.choice([0.0, price])) for _ in "ab"]
        costs = [[int(1000 * draw.uniform(1, spread)) for _ in range(40)] for _ in accounts]
        dearest = max(max(tokens) for tokens in costs) * price / 1000
        threads = [
            Thread(target=_spend, args=(a, c[n::4], draw.random() / 1000))
            for a, c in zip(accounts, costs, strict=True)
            for n in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        over.append(budget.cost - limit - dearest)
    assert max(over) <= 1e-9


def _spend(account, costs, seconds):
    for tokens in costs:
        reservation = account.begin()
        if reservation is None:
            return
        time.sleep(seconds)
        account.settle(reservation, (tokens, 0))


def test_money_cannot_be_limited_where_a_price_is_not_known(tmp_path):
    editors = [{"id": "mine", "kind": "openai-images", "settings": {"model": "a-model-nobody-priced"}}]
    study = open_study(tmp_path, editors=editors, judges=[])
    with pytest.raises(EvenEditError, match="needs the price of 'mine'"):
        study.runner(Budget(max_cost=1.0)).run()


def test_a_bad_price_file_is_refused(tmp_path):
    (tmp_path / "prices.toml").write_text("[edits")
    with pytest.raises(EvenEditError, match="cannot be read"):
        Prices.load(tmp_path / "prices.toml")
