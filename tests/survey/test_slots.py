"""Slots one by one: which is free, who gets which, how long it is held, on SQLite and on PostgreSQL."""

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from evenedit.storage.survey_schema import metadata, participants, slots
from evenedit.survey.slots import Slots
from tests.support.surveys import Clock

MINUTES = 30
NOW = Clock().now
LASTS = MINUTES * 60


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[sa.Engine]:
    """Survey 1: tasks 1 and 2 of two seats each; survey 2: one seat of task 1. Twelve people, none seated."""
    url = f"sqlite:///{tmp_path}/survey.db"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_url").replace("postgresql://", "postgresql+psycopg://", 1)
    opened = sa.create_engine(url)
    metadata.create_all(opened)
    with opened.begin() as db:
        same = {"survey": 1, "platform": "panel", "study": "", "session": "", "stage": "task", "tries": 0, "arrived": 0}
        db.execute(sa.insert(participants), [same | {"id": n} for n in range(1, 13)])
        places = [(1, 2, 2), (1, 1, 2), (1, 2, 1), (1, 1, 1), (2, 1, 1)]  # not in the order they are to be taken
        db.execute(sa.insert(slots), [{"survey": s, "task": t, "number": n} for s, t, n in places])
    yield opened
    opened.dispose()


@pytest.fixture
def db(engine: sa.Engine) -> Iterator[sa.Connection]:
    with engine.begin() as connection:
        yield connection


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def held(clock: Clock) -> Slots:
    return Slots(MINUTES, clock)


def seat_of(db: sa.Connection, person: int) -> tuple[int, int, int, float | None] | None:
    """Survey, task, number and expiry of the seat that somebody holds."""
    query = sa.select(slots.c.survey, slots.c.task, slots.c.number, slots.c.expires)
    row = db.execute(query.where(slots.c.participant == person)).one_or_none()
    return None if row is None else (row.survey, row.task, row.number, row.expires)


def holder(db: sa.Connection, person: int, task: int = 1) -> Any:
    """Who answers, as the service knows them."""
    row = db.execute(sa.select(slots).where(slots.c.participant == person)).one_or_none()
    seat, expires = (None, None) if row is None else (row.id, row.expires)
    return SimpleNamespace(id=person, survey=1, task=task, slot_id=seat, expires=expires)


# -- which are free, and who gets which ------------------------------------------------------------------------


def test_free_seats_are_counted_by_survey_and_by_task(db, held):
    assert (held.free(db, 1), held.free(db, 1, 1), held.free(db, 1, 2)) == (4, 2, 2)
    assert (held.free(db, 2), held.free(db, 2, 1), held.free(db, 2, 2)) == (1, 1, 0)
    held.take(db, 1, 1, 2)
    assert (held.free(db, 1), held.free(db, 1, 1), held.free(db, 1, 2)) == (3, 2, 1)
    assert held.free(db, 2) == 1


def test_seats_are_taken_by_number_then_task_and_then_there_are_none(db, held):
    taken = [held.take(db, person, 1, None) for person in range(1, 6)]
    assert taken == [1, 2, 1, 2, None]
    assert [seat_of(db, person) for person in range(1, 6)] == [
        (1, 1, 1, NOW + LASTS),
        (1, 2, 1, NOW + LASTS),
        (1, 1, 2, NOW + LASTS),
        (1, 2, 2, NOW + LASTS),
        None,
    ]
    assert held.free(db, 2) == 1, "the other survey's seat is not theirs"


def test_a_picked_task_gives_its_own_seats_alone(db, held):
    assert [held.take(db, person, 1, 2) for person in range(1, 4)] == [2, 2, None]
    assert [seat_of(db, person)[1:3] for person in (1, 2)] == [(2, 1), (2, 2)]
    assert held.free(db, 1, 1) == 2


def test_a_seat_is_held_to_the_last_second_and_free_after_it(db, held, clock):
    held.take(db, 1, 1, None)
    clock.now += LASTS
    assert held.free(db, 1) == 3
    clock.now += 1
    assert held.free(db, 1) == 4


def test_abandoned_seats_are_given_on_after_those_nobody_had(db, held, clock):
    held.take(db, 1, 1, None)
    clock.minutes(MINUTES + 1)
    assert [held.take(db, person, 1, None) for person in range(2, 7)] == [2, 1, 2, 1, None]
    assert seat_of(db, 1) is None
    assert seat_of(db, 5) == (1, 1, 1, clock.now + LASTS)


# -- how long ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "renewed"), [(59, False), (60, False), (61, True), (LASTS + 99, True)])
def test_an_answer_moves_the_expiry_at_most_once_a_minute(db, held, clock, seconds, renewed):
    held.take(db, 1, 1, None)
    held.take(db, 2, 1, None)
    clock.now += seconds
    held.renew(db, holder(db, 1))
    assert seat_of(db, 1) == (1, 1, 1, NOW + LASTS + (seconds if renewed else 0))
    assert seat_of(db, 2) == (1, 2, 1, NOW + LASTS), "nobody else's"


def test_an_answer_after_the_end_leaves_a_kept_seat_kept(db, held, clock):
    held.take(db, 1, 1, None)
    held.keep(db, 1, 1, 1)
    clock.minutes(10)
    held.renew(db, holder(db, 1))
    assert seat_of(db, 1) == (1, 1, 1, None)


def test_an_answer_does_not_renew_a_seat_that_was_given_on_meanwhile(db, held, clock):
    held.take(db, 1, 1, 1)
    before = holder(db, 1)
    held.leave(db, 1)
    held.take(db, 2, 1, 1)
    clock.minutes(5)
    held.renew(db, before)
    assert seat_of(db, 1) is None
    assert seat_of(db, 2) == (1, 1, 1, NOW + LASTS)


def test_who_answers_without_a_seat_gets_one_of_the_same_task_if_there_is_one(db, held):
    held.renew(db, holder(db, 1, task=2))
    assert seat_of(db, 1) == (1, 2, 1, NOW + LASTS)
    held.take(db, 2, 1, 2)
    held.renew(db, holder(db, 3, task=2))
    assert seat_of(db, 3) is None, "task 1 has seats, but is not theirs"


def test_who_submits_keeps_the_seat_for_good(db, held, clock):
    held.take(db, 1, 1, None)
    held.take(db, 2, 1, None)
    assert held.keep(db, 1, 1, 1) is True
    assert seat_of(db, 1) == (1, 1, 1, None)
    assert seat_of(db, 2) == (1, 2, 1, NOW + LASTS), "nobody else's"
    clock.minutes(10_000)
    assert held.free(db, 1) == 3


def test_who_submits_without_a_seat_keeps_a_free_one_of_the_same_task(db, held, clock):
    assert held.keep(db, 1, 1, 2) is True
    assert seat_of(db, 1) == (1, 2, 1, None)
    clock.minutes(10_000)
    assert held.free(db, 1, 2) == 1


def test_who_submits_when_the_task_is_full_keeps_none(db, held):
    for person in (1, 2):
        held.take(db, person, 1, 2)
    assert held.keep(db, 3, 1, 2) is False
    assert seat_of(db, 3) is None
    assert held.free(db, 1, 1) == 2


@pytest.mark.parametrize("kept", [False, True])
def test_a_seat_given_back_is_as_if_nobody_had_had_it(db, held, kept):
    held.take(db, 1, 1, None)
    held.take(db, 2, 1, None)
    if kept:
        held.keep(db, 1, 1, 1)
    assert held.leave(db, 1) is True
    assert held.leave(db, 1) is False, "there was none any more"
    assert seat_of(db, 2) == (1, 2, 1, NOW + LASTS), "nobody else's"
    row = db.execute(sa.select(slots).where(slots.c.task == 1, slots.c.number == 1, slots.c.survey == 1)).one()
    assert (row.participant, row.expires) == (None, None)


# -- two at once, on PostgreSQL ----------------------------------------------------------------------------------

on_postgresql = pytest.mark.parametrize("engine", ["postgresql"], indirect=True)


def waiting(engine: sa.Engine) -> None:
    """Return once some connection waits for a row."""
    for _ in range(1200):
        with engine.connect() as db:
            if db.execute(sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")).scalar_one():
                return
        threading.Event().wait(0.05)
    raise AssertionError("nobody waited")


@on_postgresql
def test_who_comes_second_takes_the_next_seat_without_waiting(engine, held):
    with engine.begin() as first, engine.begin() as second:
        second.execute(sa.text("SET LOCAL lock_timeout = '10s'"))
        assert held.take(first, 1, 1, None) == 1
        assert held.take(second, 2, 1, None) == 2


@on_postgresql
@pytest.mark.parametrize(("settled", "task"), [("commit", None), ("rollback", 1)])
def test_who_wants_the_last_seat_waits_until_it_is_settled(engine, held, settled, task):
    found: list[int | None] = []

    def come() -> None:
        with engine.begin() as second:
            second.execute(sa.text("SET LOCAL lock_timeout = '60s'"))
            found.append(held.take(second, 2, 2, None))

    with engine.connect() as first:
        assert held.take(first, 1, 2, None) == 1
        other = threading.Thread(target=come)
        other.start()
        waiting(engine)
        getattr(first, settled)()
    other.join(60)
    assert found == [task]
