"""A preview goes the whole way without a seat and leaves no trace in what is counted, on SQLite and on PostgreSQL."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from evenedit.api.study import Study
from evenedit.storage.survey_schema import answers, displayed, participants, profile_consents, profiles, slots
from evenedit.survey import export
from evenedit.survey.admin import SurveyAdmin
from evenedit.survey.answers import people_frame
from evenedit.survey.consent import ConsentText
from evenedit.survey.previews import DAYS, HOURS, PLACES
from evenedit.survey.questionnaire import has_profile, keep_profile
from evenedit.survey.questions import checks
from evenedit.survey.sessions import SurveyService
from evenedit.survey.visits import Arrival, NotAllowedError, VisitEnding, VisitStage
from evenedit.web.app import create_app
from evenedit.web.settings import ServerSettings
from tests.support.surveys import Clock, answer, copy_study, finish, make_study, open_service
from tests.support.web_study import PASSWORD, serving

SEATS = 12
"""Six tasks, two people each."""


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
def study(made, tmp_path) -> Study:
    return copy_study(made, tmp_path, surveys=[1], raters_per_item=2)


@pytest.fixture
def service(study, url, clock) -> Iterator[SurveyService]:
    opened = open_service(study, url, clock)
    yield opened
    opened.close()


def previewed(service: SurveyService) -> str:
    """The token of a preview that has its task."""
    query = httpx.URL(service.arrivals.previews.link("http://here")).params
    token = service.arrive(service.arrivals.arrive(query)).token
    service.read_guide(token)
    service.check(token, {check.question.id: check.right for check in checks(1)})
    assert service.consent(token, True).stage is VisitStage.TASK
    return token


def counted(study: Study, service: SurveyService) -> list[object]:
    """Everything that is counted, exported or shown about participants."""
    admin = SurveyAdmin(service)
    frame, quality = people_frame(study.file, service.database)
    held = service.database.rows(sa.select(slots).order_by(slots.c.id))
    tables = export.files(study.file, study.store, service.database)
    return [tables, frame.to_csv(), quality, admin.progress(), admin.people(), admin.endings(), held]


def test_a_preview_changes_nothing_that_counts(study, service):
    for number in range(SEATS):
        finish(service, f"p{number}")
    assert service.arrive(Arrival("panel", "late")).ending is VisitEnding.NO_SLOT
    before = counted(study, service)
    token = previewed(service)
    answer(service, token)
    done = service.submit(token)
    assert (done.ending, done.preview) == (VisitEnding.COMPLETED, True)
    assert service.completion(token).code == "" and service.completion(token).redirect is None
    assert counted(study, service) == before
    (preview,) = SurveyAdmin(service).previews()
    assert preview.pseudonym.startswith("preview-") and preview.answers > 0 and not preview.has_slot


def test_a_preview_takes_no_free_seat_either(study, service):
    before = counted(study, service)
    answer(service, previewed(service), skip=1)
    assert counted(study, service) == before
    assert sum(task.free for task in SurveyAdmin(service).progress()) == SEATS


def test_a_careless_preview_awaits_nobodys_decision(study, service):
    token = previewed(service)
    answer(service, token, heed=False)
    assert service.submit(token).ending is VisitEnding.FAILED_CHECKS
    assert SurveyAdmin(service).endings() == {}


def test_a_preview_can_be_deleted(service):
    answer(service, previewed(service))
    admin = SurveyAdmin(service)
    admin.withdraw(admin.previews()[0].pseudonym, "chris")
    assert admin.previews() == []
    for table in (participants, answers, displayed):
        assert service.database.rows(sa.select(sa.func.count()).select_from(table))[0][0] == 0
    assert admin.log()[0]["action"] == "deleted a preview"


def test_places_for_previews_are_few_and_come_back_after_a_day(service, clock):
    tokens = [previewed(service) for _ in range(PLACES)]
    with pytest.raises(NotAllowedError, match="taken"):
        previewed(service)
    clock.minutes(60 * HOURS + 1)
    token = previewed(service)
    assert [service.visit(old) for old in tokens] == [None] * PLACES
    assert service.visit(token).stage is VisitStage.TASK


def test_a_preview_that_answered_the_questionnaire_gives_way_like_any_other(made, tmp_path, url, clock):
    asked = copy_study(made, tmp_path, surveys=[1], raters_per_item=2, questionnaire={"ask": ["age", "ethnicity"]})
    text, said = ConsentText("en", "May we?"), {"age": "44", "ethnicity": "Mixed"}
    with closing(open_service(asked, url, clock)) as service:
        token = previewed(service)
        answer(service, token)
        service.submit(token)
        keep_profile(service.database, service.section, token, said, text, clock(), agreed=True, sensitive=True)
        assert has_profile(service.database, token)
        clock.minutes(60 * HOURS + 1)
        previewed(service)
        assert service.visit(token) is None
        left = sa.select(sa.func.count())
        assert service.database.rows(left.select_from(profiles))[0][0] == 0
        assert service.database.rows(left.select_from(profile_consents))[0][0] == 0


def test_a_link_that_is_forged_damaged_or_old_opens_nothing(service, clock):
    token = httpx.URL(service.arrivals.previews.link("")).params["preview"]
    survey, until, signature = token.split("~")
    for forged in ("", "x", f"{survey}~{until}", f"2~{until}~{signature}", f"{survey}~{int(until) + 1}~{signature}"):
        with pytest.raises(NotAllowedError):
            service.arrivals.arrive({"preview": forged})
    assert service.arrivals.arrive({"preview": token}).platform == "preview"
    clock.minutes(60 * 24 * DAYS + 1)
    with pytest.raises(NotAllowedError, match="expired"):
        service.arrivals.arrive({"preview": token})


def test_tasks_can_be_laid_out_anew_after_a_preview_but_not_after_a_participant(made, tmp_path, url):
    service = open_service(copy_study(made, tmp_path, surveys=[1], items_per_task=4), url)
    answer(service, previewed(service))
    assert len(service.tasks()) == 6
    service.close()
    service = open_service(copy_study(made, tmp_path, surveys=[1], items_per_task=9), url)
    assert len(service.tasks()) == 2 and SurveyAdmin(service).previews() == []
    finish(service, "ann")
    service.close()
    service = open_service(copy_study(made, tmp_path, surveys=[1], items_per_task=4), url)
    assert len(service.tasks()) == 2
    service.close()


def take_part(client: httpx.Client, link: str) -> httpx.Response:
    """Go from the link to the last page, as a browser does."""
    assert client.get(link).url.path == "/survey/guide"
    client.post("/survey/guide")
    client.post("/survey/check", data={check.question.id: str(check.right) for check in checks(1)})
    page = client.post("/survey/consent", data={"decision": "agree", "adult": "yes", "agreed": "yes"})
    assert page.url.path == "/survey/task" and "your answers do not count" in page.text
    number = 0
    for item in client.get("/survey/items").json()["items"]:
        assert all(client.get(f"/survey/pictures/{p['id']}").status_code == 200 for p in item["pictures"])
        for row in item["questions"]:
            for slot in row["slots"]:
                number += 1
                value = int(item["instruction"].split("number ")[1][0]) if item["instructed"] else 1
                body = {"item": item["id"], "slot": slot, "question": row["id"], "value": value, "sequence": number}
                assert client.post("/survey/answers", json=body).json() == {"stored": number}
    assert client.post("/survey/submit").json() == {"next": "/survey/done"}
    return client.get("/survey/done")


def test_a_newcomer_takes_part_over_http_when_every_seat_is_taken_and_staff_delete_the_preview(study, url):
    app = create_app(study, ServerSettings(password=PASSWORD))
    if url:
        app.state.survey.close()
        app.state.survey = open_service(study, url, app.state.survey.clock)
    service = app.state.survey
    for number in range(SEATS):
        finish(service, f"p{number}")
    before, table = counted(study, service), study.table()
    with serving(app) as base, httpx.Client(base_url=base, follow_redirects=True) as client:
        first = client.get("/")
        link = first.text.split('href="/survey?preview=')[1].split('"')[0]
        done = take_part(client, f"/survey?preview={link}")
        assert "Preview: your answers do not count" in done.text and "completion code" not in done.text
        assert counted(study, service) == before
        assert (study.table().values == table.values).all()
        signed_in = client.post("/admin/login", data={"name": "admin", "password": PASSWORD})
        assert "/survey?preview=" in signed_in.text
        client.headers["Origin"] = base
        people = client.get("/admin/people").text
        name = SurveyAdmin(service).previews()[0].pseudonym
        assert name in people and "1 of 20 places" in people
        assert "The preview was deleted" in client.post("/admin/previews/delete", data={"pseudonym": name}).text
        assert client.post("/admin/previews/delete", data={"pseudonym": name}).status_code == 404
        person = SurveyAdmin(service).people()[0].pseudonym
        assert client.post("/admin/previews/delete", data={"pseudonym": person}).status_code == 404
        assert counted(study, service) == before


def told(study: Study) -> dict[str, object]:
    """results.json but for when and how it was made."""
    return {key: value for key, value in json.loads(study.results().to_json()).items() if key != "provenance"}


def test_results_are_the_same_to_the_last_digit_after_a_preview(study):
    service = SurveyService.open(study.file, study.store)
    for number in range(SEATS):
        finish(service, f"p{number}")
    before = told(study)
    token = previewed(service)
    answer(service, token, value=5)
    service.submit(token)
    service.close()
    assert told(study) == before


def test_one_browser_goes_on_with_its_preview_and_cannot_begin_without_end(study):
    app = create_app(study, ServerSettings(password=PASSWORD))
    with serving(app) as base:
        link = app.state.survey.arrivals.previews.link(base)
        with httpx.Client(follow_redirects=True) as client:
            for _ in range(3):
                client.get(link)
        assert len(SurveyAdmin(app.state.survey).previews()) == 1
        said = [httpx.get(link, follow_redirects=False).status_code for _ in range(PLACES)]
        assert said == [303] * (PLACES - 1) + [429]


def test_a_server_in_the_open_offers_previews_to_staff_only(study):
    app = create_app(study, ServerSettings(production=True))
    with serving(app) as base:
        headers = {"X-Forwarded-Proto": "https"}
        page = httpx.get(base + "/survey", headers=headers)
        assert page.status_code == 200 and "preview=" not in page.text
