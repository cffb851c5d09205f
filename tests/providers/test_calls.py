"""Call control: what is retried and when, how many calls at once, what a foreign error becomes."""

import gc
import heapq
import io
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image, PngImagePlugin

from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.core.images import encode
from evenedit.providers.calls import (
    PATIENCE,
    RETRIED,
    DeclinedError,
    Gate,
    Provider,
    border,
    call_with_retries,
    to_image,
    to_png,
)
from evenedit.simulation.portraits.drawn import LABELS, sample
from evenedit.simulation.portraits.portrait import render

KEY = "sk-never-to-be-seen"


def fails(*outcomes: Failed | str) -> tuple[Callable[[], str], list[int]]:
    """A call that goes through these outcomes, and how often it was made."""
    left, made = list(outcomes), []

    def call() -> str:
        made.append(1)
        outcome = left.pop(0)
        if isinstance(outcome, Failed):
            raise outcome
        return outcome

    return call, made


# -- retries ---------------------------------------------------------------------------------------------------


def test_waits_double_up_to_a_minute_and_are_spread_over_the_whole_span():
    call, made = fails(*(Failed(Failure.SERVER, "500") for _ in range(9)), "done")
    waits: list[float] = []
    assert call_with_retries(call, attempts=10, sleep=waits.append, draw=lambda: 1.0) == "done"
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert len(made) == 10

    call, _ = fails(Failed(Failure.SERVER, "500"), "done")
    call_with_retries(call, attempts=2, sleep=waits.append, draw=lambda: 0.0)
    assert waits[-1] == 0  # full jitter reaches down to nothing


def test_nobody_comes_back_before_the_time_told():
    call, _ = fails(Failed(Failure.RATE_LIMIT, "429", retry_after=20), "done")
    waits: list[float] = []
    call_with_retries(call, attempts=2, sleep=waits.append)
    assert 20 <= waits[0] <= 21


def test_told_to_wait_for_hours_the_call_gives_up_at_once():
    call, made = fails(Failed(Failure.RATE_LIMIT, "429", retry_after=PATIENCE + 1), "done")
    with pytest.raises(Failed):
        call_with_retries(call, attempts=5, sleep=lambda _: pytest.fail("slept"))
    assert len(made) == 1


@pytest.mark.parametrize("failure", Failure)
def test_only_what_may_pass_by_itself_is_tried_again(failure: Failure):
    call, made = fails(*(Failed(failure, "no") for _ in range(3)))
    with pytest.raises(Failed):
        call_with_retries(call, attempts=3, sleep=lambda _: None)
    assert len(made) == (3 if failure in RETRIED else 1)
    assert {Failure.RATE_LIMIT, Failure.TIMEOUT, Failure.SERVER, Failure.CRASH} == RETRIED


# -- gate ------------------------------------------------------------------------------------------------------


def take_turns(gate: Gate, calls: int, work: Callable[[], None]) -> int:
    """Run calls on many threads; return how many were under way at once at most."""
    busy, most, lock = 0, 0, threading.Lock()

    def one(_: int) -> None:
        nonlocal busy, most
        try:
            with gate.turn():
                with lock:
                    busy += 1
                    most = max(most, busy)
                try:
                    work()
                finally:
                    with lock:
                        busy -= 1
        except Failed:
            pass

    with ThreadPoolExecutor(calls) as pool:
        list(pool.map(one, range(calls)))
    return most


def test_the_gate_lets_through_no_more_than_its_limit_and_uses_all_of_it():
    four = threading.Barrier(4)
    assert take_turns(Gate(4), 20, lambda: four.wait(60)) == 4


def test_a_burst_of_rate_limits_halves_once_and_successes_bring_the_places_back():
    gate, together = Gate(8), threading.Barrier(8)

    def limited() -> None:
        together.wait()
        raise Failed(Failure.RATE_LIMIT, "429")

    take_turns(gate, 8, limited)
    assert gate.limit == 4  # eight answers of one burst, one halving
    back = []
    for _ in range(100):
        with gate.turn():
            pass
        back.append(gate.limit)
    assert back[:2] == [6, 8]
    assert max(back) == 8  # and never more than it began with


def test_rate_limits_after_a_halving_halve_again_down_to_one():
    gate = Gate(8)
    for _ in range(5):
        with pytest.raises(Failed), gate.turn():
            raise Failed(Failure.RATE_LIMIT, "429")
    assert gate.limit == 1
    assert take_turns(gate, 3, lambda: None) == 1


def test_after_a_storm_the_places_are_back_within_a_few_rounds():
    gate, together = Gate(100), threading.Barrier(32)

    def limited() -> None:
        together.wait()
        raise Failed(Failure.RATE_LIMIT, "429")

    take_turns(gate, 32, limited)
    for _ in range(6):  # and it goes on
        with pytest.raises(Failed), gate.turn():
            raise Failed(Failure.RATE_LIMIT, "429")
    assert gate.limit == 4, "an eighth, to find out when it is over"
    rounds = [gate.limit]
    while gate.limit < 0.95 * 32:
        for _ in range(gate.limit):
            with gate.turn():
                pass
        rounds.append(gate.limit)
    assert rounds == [4, 12, 32]  # as many successes as places are one round
    for _ in range(16):
        with gate.turn():
            pass
    assert gate.limit == 32  # from here on one by one


class Calls:
    """Calls through a gate in simulated time: a new one starts whenever there is a place."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, servers: int) -> None:
        self.now = 0.0
        self.free = [0.0] * servers
        """When each of the provider's servers is free; a call takes 20 ms of one of them."""
        monkeypatch.setattr("evenedit.providers.calls.time", SimpleNamespace(monotonic=lambda: self.now))

    def run(self, gate: Gate, calls: int) -> None:
        running: list[tuple[float, int, AbstractContextManager[None]]] = []
        number = 0
        while number < calls or running:
            if number < calls and len(running) < gate.limit:
                turn = gate.turn()
                turn.__enter__()
                end = max(self.now, heapq.heappop(self.free)) + 0.02
                heapq.heappush(self.free, end)
                heapq.heappush(running, (end, number, turn))
                number += 1
            else:
                self.now, _, turn = heapq.heappop(running)
                turn.__exit__(None, None, None)


def test_places_are_added_while_all_are_used_and_answers_come_as_fast(monkeypatch):
    gate = Gate(start=16)
    Calls(monkeypatch, servers=1000).run(gate, 400)
    assert gate.limit > 40
    idle = Gate(start=16)
    for _ in range(200):
        with idle.turn():
            pass
    assert idle.limit == 16, "one call at a time needs no more places"


def test_places_are_not_added_where_more_calls_only_take_longer(monkeypatch):
    gate = Gate(start=16)
    Calls(monkeypatch, servers=20).run(gate, 600)
    assert gate.limit < 100


def test_who_waits_is_woken_when_the_storm_is_over_but_not_before_the_time_that_was_asked_for():
    gate, woken = Gate(4), []
    began = time.monotonic()
    with pytest.raises(Failed), gate.turn():
        raise Failed(Failure.RATE_LIMIT, "429", retry_after=0.5)

    def rest() -> None:
        gate.rest(60)
        woken.append(time.monotonic() - began)

    threads = [threading.Thread(target=rest, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    while len(gate._changed._waiters) < 3:
        time.sleep(0.01)
    with gate.turn():
        pass
    for thread in threads:
        thread.join(50)
    assert len(woken) == 3 and min(woken) >= 0.5


def test_calls_turned_away_leave_as_many_places_as_the_provider_has():
    gate, together, taken = Gate(100), threading.Barrier(24), threading.Semaphore(16)

    def crowded() -> None:
        together.wait()
        if not taken.acquire(blocking=False):
            raise Failed(Failure.RATE_LIMIT, "429")
        while gate.limit > 16:  # the others are being turned away
            time.sleep(0.01)

    take_turns(gate, 24, crowded)
    assert gate.limit == 16


@pytest.mark.parametrize("error", [Failed(Failure.SERVER, "500"), ValueError("bug"), DeclinedError("no")])
def test_other_errors_leave_the_limit_alone_and_free_their_place(error: Exception):
    gate = Gate(1)
    for _ in range(3):
        with pytest.raises(type(error)), gate.turn():
            raise error
    assert gate.limit == 1


# -- border (the real SDKs' errors are tested in test_api_editors) ---------------------------------------------


class Foreign(Exception):
    """An SDK's error as both SDKs shape it."""

    def __init__(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        super().__init__(f"{status} {body}")
        self.status_code, self.body, self.response = status, body, SimpleNamespace(headers=headers or {})


def crossed(error: Exception) -> Exception:
    with pytest.raises(Exception) as caught, border(model="some-model", key_env="SOME_KEY"):
        raise error
    return caught.value


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (408, Failure.TIMEOUT),
        (409, Failure.SERVER),
        (429, Failure.RATE_LIMIT),
        (500, Failure.SERVER),
        (502, Failure.SERVER),
        (503, Failure.SERVER),
        (504, Failure.TIMEOUT),
        (529, Failure.SERVER),
    ],
)
def test_statuses_that_may_pass_are_failures(status: int, failure: Failure):
    for body in ({"message": "no"}, {"error": {"message": "no"}}, None, "<html>", ["odd"], {"error": "text"}):
        error = crossed(Foreign(status, body))
        assert isinstance(error, Failed)
        assert error.failure is failure


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
def test_statuses_that_the_user_must_mend_stop_the_run(status: int):
    error = crossed(Foreign(status, {"message": "details from the provider"}))
    assert isinstance(error, EvenEditError)
    assert "some-model" in str(error)


def test_a_date_is_understood_as_well_as_seconds():
    error = crossed(Foreign(429, {}, {"retry-after": formatdate(time.time() + 30, usegmt=True)}))
    assert isinstance(error, Failed)
    assert error.retry_after == pytest.approx(30, abs=2)
    for text, seconds in [("12", 12.0), ("0.5", 0.5), ("-3", 0.0), ("soon", None), ("", None)]:
        error = crossed(Foreign(503, {}, {"retry-after": text}))
        assert isinstance(error, Failed)
        assert error.retry_after == seconds


def test_our_own_mistakes_pass_unchanged():
    bug = KeyError("a bug")
    assert crossed(bug) is bug
    refused = DeclinedError("no")
    assert crossed(refused) is refused


def test_the_most_specific_name_decides_what_is_a_refusal():
    refused = crossed(Foreign(400, {"code": None, "type": "image_generation_user_error", "message": "no"}))
    assert isinstance(refused, DeclinedError)
    other = crossed(Foreign(400, {"code": "invalid_value", "type": "image_generation_user_error", "message": "size"}))
    assert isinstance(other, EvenEditError)
    broken = crossed(Foreign(500, {"code": "content_filter", "message": "the filter crashed"}))
    assert isinstance(broken, Failed)


# -- provider --------------------------------------------------------------------------------------------------


def provider(connect: Callable[[str], Any] = lambda key: key, **changes: Any) -> Provider[Any]:
    return Provider(connect, **{"model": "some-model", "key_env": "SOME_KEY", "attempts": 3, **changes})


def test_the_client_is_made_once_on_first_use(monkeypatch: pytest.MonkeyPatch):
    made: list[str] = []
    closed: list[bool] = []
    client = SimpleNamespace(close=lambda: closed.append(True))
    lines = [provider(lambda key: made.append(key) or client)]
    assert made == []
    monkeypatch.setenv("SOME_KEY", f" {KEY}\n")
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda _: lines[0].call(lambda given: given is client), range(8)))
    assert made == [KEY] and not closed
    lines.clear()
    gc.collect()
    assert closed == [True], "its connections end with the provider"


def test_a_missing_key_or_sdk_says_what_to_do(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SOME_KEY", " ")
    with pytest.raises(EvenEditError, match="SOME_KEY"):
        provider().call(lambda client: client)

    def without(_: str) -> None:
        raise ModuleNotFoundError("No module named 'openai'")

    monkeypatch.setenv("SOME_KEY", KEY)
    with pytest.raises(EvenEditError, match=r"needs the 'api' extra. Try: pip install 'evenedit\[api\]'"):
        provider(without).call(lambda client: client)


@pytest.mark.parametrize("name", ["sk-proj-abc", "AIzaSyAbc_def", "", "MY KEY"])
def test_a_key_given_for_its_name_is_not_repeated(name: str):
    with pytest.raises(EvenEditError, match="api_key_env") as caught:
        provider(key_env=name)
    assert not name or name not in str(caught.value)


def test_attempts_below_one_are_refused():
    with pytest.raises(EvenEditError, match="attempts"):
        provider(attempts=0)


# -- pictures --------------------------------------------------------------------------------------------------


def test_a_picture_leaves_without_its_notes():
    image = render(sample({"race": "Black", "gender": "Female", "age": "30s"}, 1), 64)
    notes = PngImagePlugin.PngInfo()
    notes.add_text(LABELS, '{"race": "Black", "gender": "Female"}')
    notes.add_text("Comment", "Black_Female_30s.png")
    stored = io.BytesIO()
    image.save(stored, "PNG", pnginfo=notes, exif=b"Exif\0\0Black", dpi=(72, 72))
    opened = Image.open(io.BytesIO(stored.getvalue()))
    assert "Black" in str(opened.info)

    sent = to_png(opened)
    assert b"Black" not in sent
    assert b"Female" not in sent
    assert Image.open(io.BytesIO(sent)).info == {}
    assert Image.open(io.BytesIO(sent)).tobytes() == image.convert("RGB").tobytes()
    assert "Black" in str(opened.info)  # the stored one is left as it is


def test_a_stored_picture_is_sent_without_being_encoded_again_and_without_its_notes():
    image = render(sample({"race": "Black", "gender": "Female", "age": "30s"}, 1), 64)
    image.info[LABELS] = '{"race": "Black"}'
    stored = encode(image)
    assert b"Black" in stored
    sent = to_png(Image.open(io.BytesIO(stored)))
    assert b"Black" not in sent
    assert sent[33:-12] in stored  # its pixels, byte for byte
    assert Image.open(io.BytesIO(sent)).tobytes() == image.convert("RGB").tobytes()
    damaged = stored[:-60] + b"\0" * 20 + stored[-40:]
    with pytest.raises((OSError, SyntaxError)):  # found before it is sent
        to_png(Image.open(io.BytesIO(damaged)))
    grey = io.BytesIO()
    image.convert("L").save(grey, "PNG")
    assert Image.open(io.BytesIO(to_png(Image.open(grey)))).mode == "RGB"


def test_damaged_pictures_are_found_when_they_arrive():
    buffer = io.BytesIO()
    Image.effect_noise((64, 64), 50).save(buffer, "PNG")
    whole = buffer.getvalue()
    assert to_image(whole).mode == "RGB"
    for content in (b"", b"no image", whole[:20], whole[: len(whole) // 2], whole[:60] + b"\0" * 40 + whole[100:]):
        with pytest.raises(Failed) as caught:
            to_image(content)
        assert caught.value.failure is Failure.BAD_IMAGE
