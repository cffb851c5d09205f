"""Everybody gets one seat, every acknowledged answer is on disk, on SQLite and on PostgreSQL."""

import io
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from PIL import Image

from evenedit.core.errors import EvenEditError
from evenedit.ratings.table import QUESTION_IDS
from evenedit.storage.survey_schema import answers, displayed, items, participants, slots
from evenedit.storage.survey_store import SurveyStore, note
from evenedit.survey.admin import SurveyAdmin
from evenedit.survey.answers import PeopleRatings, read
from evenedit.survey.questions import checks
from evenedit.survey.sessions import SurveyService
from evenedit.survey.visits import Arrival, IncompleteTaskError, NotAllowedError, VisitEnding, VisitStage
from tests.support.surveys import Clock, answer, copy_study, finish, make_study, open_service, seated


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    return make_study(tmp_path_factory.mktemp("made"))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request) -> str | None:
    return None if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service(made, tmp_path, url, clock):
    opened = open_service(copy_study(made, tmp_path), url, clock)
    yield opened
    opened.close()


def count(service: SurveyService, table: sa.Table) -> int:
    return service.database.rows(sa.select(sa.func.count()).select_from(table))[0][0]


def test_a_participant_goes_from_the_door_to_the_code(service):
    visit = service.arrive(Arrival("panel", "ann", study="S", session="T"))
    assert (visit.stage, visit.survey) == (VisitStage.GUIDE, 1)
    assert service.read_guide(visit.token).stage is VisitStage.CHECK
    right = {check.question.id: check.right for check in checks(1)}
    assert service.check(visit.token, right).stage is VisitStage.CONSENT
    assert service.consent(visit.token, True).stage is VisitStage.TASK
    assert service.completion(visit.token) is None
    answer(service, visit.token)
    done = service.submit(visit.token)
    assert (done.stage, done.ending) == (VisitStage.DONE, VisitEnding.COMPLETED)
    assert len(service.completion(visit.token).code) == 8
    assert service.submit(visit.token) == done, "submitting again changes nothing"


def test_the_database_holds_exactly_the_answers_given(service):
    visit = seated(service, "ann")
    given = {}
    for number, item in enumerate(service.items(visit.token), 1):
        for asked in item.questions:
            value = (number + len(asked.question.id)) % 5 + 1
            service.save(visit.token, item.id, asked.slot, asked.question.id, value, number, 100)
            given[item.id, asked.slot, asked.question.id] = value
    stored = {
        (item.id, slot, question): value
        for item in service.items(visit.token)
        for (slot, question), value in item.answers.items()
    }
    assert stored == given


def test_a_study_copied_shows_its_participants_the_same_pages_in_the_same_order(made, tmp_path):
    orders = []
    for number in range(2):
        service = open_service(copy_study(made, tmp_path / str(number)))
        for name in ("ann", "bob"):
            for survey in (1, 2):
                seated(service, name, survey, task=1)
        orders.append(service.database.rows(sa.select(displayed).order_by(displayed.c.participant, displayed.c.place)))
        service.close()
    assert orders[0] == orders[1]
    by_person = {row.participant: [] for row in orders[0]}
    for row in orders[0]:
        by_person[row.participant].append((row.item, row.swapped))
    ann, ann_again, bob, bob_again = by_person.values()
    assert ann != bob and ann_again != bob_again


def test_the_same_person_comes_back_to_the_same_visit_and_place(service):
    first = seated(service, "ann")
    answer(service, first.token, skip=2)
    again = service.arrive(Arrival("panel", "ann", survey=1))
    assert again == service.visit(first.token)
    assert sum(bool(item.answers) for item in service.items(again.token)) == len(service.items(first.token)) - 2
    assert service.resume(service.resume_code(first.token).lower().replace("-", " ")) == again
    assert service.resume("AAAA-AAAA-AAAA-AAAA") is None
    assert service.arrive(Arrival("prolific", "ann")).token != first.token, "another platform's ann is another person"


def test_a_second_wrong_check_ends_the_visit_and_a_right_one_does_not(service):
    wrong = {check.question.id: check.right % 3 + 1 for check in checks(1)}
    right = {check.question.id: check.right for check in checks(1)}
    bob, eve = (service.read_guide(service.arrive(Arrival("panel", name)).token).token for name in ("bob", "eve"))
    assert service.check(bob, wrong).stage is VisitStage.CHECK
    assert service.tries_left(bob) == 1
    assert service.check(bob, right).stage is VisitStage.CONSENT
    service.check(eve, {})
    assert service.check(eve, wrong).ending is VisitEnding.SCREENED_OUT
    assert service.check(eve, right).ending is VisitEnding.SCREENED_OUT


def test_without_consent_nothing_is_asked(service):
    token = service.arrive(Arrival("panel", "ann")).token
    with pytest.raises(NotAllowedError):
        service.claim(token)
    service.read_guide(token)
    service.check(token, {check.question.id: check.right for check in checks(1)})
    assert service.consent(token, False).ending is VisitEnding.NO_CONSENT
    assert service.consent(token, True).ending is VisitEnding.NO_CONSENT
    with pytest.raises(NotAllowedError):
        service.items(token)


def test_a_task_with_answers_missing_cannot_be_submitted(service):
    token = seated(service, "ann").token
    answer(service, token, skip=2)
    with pytest.raises(IncompleteTaskError) as found:
        service.submit(token)
    last = len(service.items(token))
    assert found.value.items == (last - 1, last)


def test_a_duplicate_and_an_older_answer_change_nothing(service):
    token = seated(service, "ann").token
    item = service.items(token)[0]
    asked = item.questions[0]
    place = (token, item.id, asked.slot, asked.question.id)
    assert service.save(*place, 4, 7) == 7
    assert service.save(*place, 4, 7) == 7, "the same again"
    assert service.save(*place, 2, 5) == 7, "an older one that arrives late"
    assert service.save(*place, 5, 7) == 7, "another answer under a number that is taken"
    assert service.items(token)[0].answers[asked.slot, asked.question.id] == 4
    assert service.save(*place, 1, 8) == 8
    assert service.items(token)[0].answers[asked.slot, asked.question.id] == 1
    assert service.sequence(token) == 8


def test_two_tabs_may_both_save_and_submit_once(service):
    token = seated(service, "ann").token
    orders = [(tab, number) for tab in (1, 2) for number in range(20)]
    random.Random(1).shuffle(orders)
    item = service.items(token)[0]
    asked = item.questions[0]

    def save(order):
        tab, number = order
        return service.save(token, item.id, asked.slot, asked.question.id, tab, 2 * number + tab)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(save, orders))
    assert service.items(token)[0].answers[asked.slot, asked.question.id] == 2, (
        "40 is tab 2's last number, and the highest"
    )
    answer(service, token)
    with ThreadPoolExecutor(4) as pool:
        endings = {visit.ending for visit in pool.map(service.submit, [token] * 4)}
    assert endings == {VisitEnding.COMPLETED}
    with pytest.raises(NotAllowedError, match="submitted"):
        service.save(token, item.id, asked.slot, asked.question.id, 1, 1000)


@pytest.mark.parametrize(
    "change",
    [
        {"item": "x"},
        {"slot": "C"},
        {"question": "skin"},
        {"value": 0},
        {"value": 6},
        {"value": True},
        {"sequence": -1},
        {"sequence": 2**53},
        {"milliseconds": -5},
    ],
    ids=str,
)
def test_impossible_answers_are_refused(service, change):
    token = seated(service, "ann").token
    item = service.items(token)[0]
    asked = item.questions[0]
    good = {"item": item.id, "slot": asked.slot, "question": asked.question.id, "value": 3, "sequence": 1}
    with pytest.raises(NotAllowedError):
        service.save(token, **(good | change))
    assert count(service, answers) == 0
    service.save(token, **good)
    assert count(service, answers) == 1, "without the change it is taken"


def test_nobody_reaches_another_participants_items_or_pictures(service):
    ann, bob = (seated(service, name).token for name in ("ann", "bob"))
    item = service.items(ann)[0]
    with pytest.raises(NotAllowedError):
        service.save(bob, item.id, item.questions[0].slot, item.questions[0].question.id, 3, 1)
    assert service.picture(bob, item.pictures["source"]) is None
    with pytest.raises(NotAllowedError):
        service.items("no such token")
    assert service.visit("no such token") is None
    ids = [{p for i in service.items(t) for p in (i.id, *i.pictures.values())} for t in (ann, bob)]
    assert not ids[0] & ids[1]


def test_pictures_carry_no_notes(service):
    token = seated(service, "ann").token
    for slot in ("source", "A"):
        content = service.picture(token, service.items(token)[0].pictures[slot])
        picture = Image.open(io.BytesIO(content))
        assert picture.format == "JPEG"
        assert b"evenedit" not in content.lower() and b"truth" not in content and not picture.getexif()


def test_every_task_holds_every_prompt_its_gold_and_its_checks(service):
    rows = service.database.rows(sa.select(items).where(items.c.survey == 1))
    kinds = Counter((row.task, row.kind) for row in rows)
    tasks = {row.task for row in rows}
    assert len(tasks) == 6, "16 cases at 3 a task beside one gold item"
    assert all(kinds[task, "gold"] == 1 and kinds[task, "instructed"] == 2 for task in tasks)
    assert sum(kinds[task, "case"] for task in tasks) == 16
    cases = [row.outputs[0] for row in rows if row.kind == "case"]
    assert len(set(cases)) == 16, "each case is in one task"
    assert not set(cases) & {row.outputs[0] for row in rows if row.kind == "gold"}


def test_a_and_b_change_places_and_the_order_is_stored(service):
    for number in range(18):
        seated(service, f"p{number}")
    pairs = service.database.rows(
        sa.select(displayed.c.swapped)
        .join(items, items.c.id == displayed.c.item)
        .where(sa.cast(items.c.outputs, sa.String) != "")
    )
    swapped = [row.swapped for row in pairs]
    assert any(swapped) and not all(swapped)
    orders = {tuple(r.item for r in _places(service, p)) for p in range(1, 4)}
    assert len(orders) == 3, "everybody has an order of their own"


def _places(service: SurveyService, participant: int):
    return service.database.rows(
        sa.select(displayed).where(displayed.c.participant == participant).order_by(displayed.c.place)
    )


def test_seats_are_filled_evenly_and_then_there_are_none(service):
    tasks = [service.participant_tasks.of(seated(service, f"p{n}").token) for n in range(6)]
    assert len({page.item for sheet in tasks for page in sheet.pages}) == sum(len(s.pages) for s in tasks)
    for number in range(6, 18):
        assert seated(service, f"p{number}").stage is VisitStage.TASK
    late = service.arrive(Arrival("panel", "late"))
    assert (late.stage, late.ending) == (VisitStage.DONE, VisitEnding.NO_SLOT), "told at the door, not after the guide"
    service.withdraw(service.arrive(Arrival("panel", "p3")).token)
    assert service.arrive(Arrival("panel", "late")).stage is VisitStage.GUIDE, "a seat came back"


def test_a_thousand_arrivals_at_once_take_exactly_the_seats_there_are(made, tmp_path, url):
    loaded = copy_study(made, tmp_path, surveys=[1], items_per_task=3, gold=None, raters_per_item=5, instructed=0)
    service = open_service(loaded, url, time.time)  # 16 cases, three a task: 6 tasks, 30 seats
    free = count(service, slots)
    barrier = threading.Barrier(50)

    def come(worker: int) -> list[VisitStage]:
        barrier.wait()
        return [seated(service, f"p{worker}-{n}").stage for n in range(20)]

    with ThreadPoolExecutor(50) as pool:
        stages = [stage for part in pool.map(come, range(50)) for stage in part]
    assert free == 30
    assert Counter(stages) == {VisitStage.TASK: free, VisitStage.DONE: 1000 - free}
    taken = service.database.rows(sa.select(slots.c.participant))
    assert len({row.participant for row in taken} - {None}) == free
    service.close()


def test_a_picked_task_that_is_full_is_refused_while_another_is_free(made, tmp_path, url):
    service = open_service(copy_study(made, tmp_path, surveys=[1], dashboard=True, raters_per_item=1), url)
    assert [card.open for card in service.tasks()] == [True] * 6
    seated(service, "ann", task=2)
    assert [card.number for card in service.tasks() if not card.open] == [2]
    with pytest.raises(NotAllowedError, match="choose another"):
        seated(service, "bob", task=2)
    assert seated(service, "bob", task=5).stage is VisitStage.TASK
    service.close()


def fill(service: SurveyService, but: int = 0) -> list[str]:
    """Take all 18 seats of survey 1 but some."""
    return [seated(service, f"p{n}").token for n in range(18 - but)]


def test_an_abandoned_seat_comes_back_and_an_answer_keeps_it(service, clock):
    tokens = fill(service)
    clock.minutes(29)
    answer(service, tokens[0], skip=3)
    clock.minutes(2)
    assert service.arrive(Arrival("panel", "new")).stage is VisitStage.GUIDE
    assert SurveyAdmin(service).progress()[0].taken == 1, "who answered two minutes ago still sits"
    assert sum(task.free for task in SurveyAdmin(service).progress() if task.survey == 1) == 17


def test_a_late_finish_of_an_expired_seat_that_nobody_took_counts(service, clock):
    token = seated(service, "ann").token
    answer(service, token)
    clock.minutes(300)
    assert service.submit(token).ending is VisitEnding.COMPLETED
    assert SurveyAdmin(service).people()[0].has_slot


def test_a_late_finish_of_a_seat_that_was_given_on_is_paid_but_not_counted(made, tmp_path, url, clock):
    service = open_service(copy_study(made, tmp_path, surveys=[1], raters_per_item=1), url, clock)
    tokens = [seated(service, f"p{n}").token for n in range(6)]
    answer(service, tokens[0], skip=1)
    clock.minutes(31)
    for number in range(6):
        assert finish(service, f"q{number}").ending is VisitEnding.COMPLETED
    answer(service, tokens[0])
    assert service.submit(tokens[0]).ending is VisitEnding.COMPLETED, "the work was done"
    standing = {person.pseudonym: person for person in SurveyAdmin(service).people()}
    late = standing[service.database.pseudonym(1, "panel", "p0")]
    assert late.submitted and not late.has_slot
    frame = read(service.database)
    raters = frame[frame["counted"]].groupby("item")["rater"].nunique()
    assert set(raters) == {1}, "no item has more raters than the study asks for"
    service.close()


def test_a_released_seat_is_taken_again_by_who_returns_if_it_is_still_free(service):
    token = seated(service, "ann").token
    admin = SurveyAdmin(service)
    pseudonym = service.database.pseudonym(1, "panel", "ann")
    assert admin.release(pseudonym, "chris")
    assert not admin.release(pseudonym, "chris"), "there was none any more"
    assert not admin.people()[0].has_slot
    answer(service, token)
    assert service.submit(token).ending is VisitEnding.COMPLETED
    assert admin.people()[0].has_slot, "returned, then finished after all: seated again, since the task had room"
    assert admin.log()[0]["action"] == "released a slot"


def test_two_failed_checks_end_apart_and_open_the_seat(service):
    assert finish(service, "ann", heed=False).ending is VisitEnding.FAILED_CHECKS
    person = SurveyAdmin(service).people()[0]
    assert (person.has_slot, person.quality.instructed_failed) == (False, 2)
    assert sum(task.free for task in SurveyAdmin(service).progress() if task.survey == 1) == 18
    assert (
        service.completion(service.arrive(Arrival("panel", "ann")).token).code
        != service.farewell(VisitEnding.COMPLETED).code
    )


def test_withdrawal_erases_answers_and_ids_and_opens_the_seat(service, tmp_path, url):
    token = seated(service, "a-very-secret-person").token
    answer(service, token)
    service.submit(token)
    SurveyAdmin(service).release(service.database.pseudonym(1, "panel", "a-very-secret-person"), "chris")
    service.withdraw(token)
    assert service.visit(token) is None
    assert [count(service, table) for table in (participants, answers, displayed)] == [0, 0, 0]
    assert sum(task.free for task in SurveyAdmin(service).progress() if task.survey == 1) == 18
    assert service.database.pseudonym(1, "panel", "a-very-secret-person") not in str(SurveyAdmin(service).log())
    if url is None:
        for path in tmp_path.glob("survey.db*"):
            assert b"a-very-secret-person" not in path.read_bytes(), path.name
    assert service.arrive(Arrival("panel", "a-very-secret-person")).token != token


def test_survey_two_asks_about_pairs_and_survey_three_about_roles(service):
    two = service.items(seated(service, "ann", survey=2).token)
    assert all(set(item.pictures) == {"source", "A", "B"} for item in two)
    assert {asked.question.id for item in two for asked in item.questions} == {"preference", "appropriate"}
    three = service.items(seated(service, "ann", survey=3).token)
    assert all(set(item.pictures) == {"source_1", "source_2", "A"} for item in three)
    assert {asked.question.id for item in three for asked in item.questions} == {"stereotype", "target_role"}
    assert all(item.role and item.coded for item in three)


def test_a_preference_is_stored_by_output_not_by_place(service):
    token = seated(service, "ann", survey=2).token
    for item in service.items(token):
        for asked in item.questions:
            service.save(token, item.id, asked.slot, asked.question.id, 1, 1)
    frame = read(service.database, 2)
    frame = frame[frame["kind"] == "case"]
    swapped = {row.item: row.swapped for row in _places(service, 1)}
    assert all(value == (2 if swapped[item] else 1) for item, value in zip(frame["item"], frame["value"], strict=True))


def test_submitted_ratings_are_part_of_the_studys_table(made, tmp_path):
    loaded = copy_study(made, tmp_path, surveys=[1], gold=None)
    service = SurveyService.open(loaded.file, loaded.store)
    finish(service, "ann")
    answer(service, seated(service, "bob").token)  # never submits
    finish(service, "simulated-carl", seconds=1.0)  # far too fast
    service.close()
    table, people = loaded.table(), PeopleRatings(loaded.file)
    assert [r for r, k in zip(table.raters, table.kinds, strict=True) if k == "human"] == [*people.raters]
    (ann,) = people.raters
    row, given = table.raters.index(ann), list(people.ratings())
    assert {rating.rater for rating in given} == {ann}
    assert (table.values[row] > 0).sum() == len(given)
    at = {ident: number for number, ident in enumerate(table.edits["request_id"])}
    for rating in given:
        assert table.values[row, at[rating.request_id], QUESTION_IDS.index(rating.question_id)] == rating.value


def test_a_second_process_on_sqlite_is_turned_away(made, tmp_path):
    loaded = copy_study(made, tmp_path)
    first = SurveyService.open(loaded.file, loaded.store)
    with pytest.raises(EvenEditError, match="another process"):
        SurveyStore(tmp_path)
    assert SurveyStore(tmp_path, write=False).fact("key"), "reading is free"
    first.close()
    SurveyService.open(loaded.file, loaded.store).close()


def test_one_bad_piece_of_work_does_not_spoil_its_group(service):
    def bad(db: sa.Connection) -> None:
        db.execute(sa.insert(participants).values(survey=1, platform="x", study="", session="", tries=0, arrived=0.0))

    def broken(db: sa.Connection) -> None:
        note(db, 0.0, "nobody", "half done", {})
        raise RuntimeError("in the middle")

    futures = [service.database.later(work) for work in (broken, bad) for _ in range(5)]
    token = seated(service, "ann").token
    assert all(future.exception() is not None for future in futures)
    assert service.visit(token).stage is VisitStage.TASK
    assert SurveyAdmin(service).log() == []
