"""What an ethics board asks for: the consent page, its versions, the contact, the date, requests for removal."""

import re
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from fastapi.testclient import TestClient

from evenedit.core.errors import EvenEditError
from evenedit.storage.survey_schema import consents, participants
from evenedit.survey import retention
from evenedit.survey.consent import missing, versions
from evenedit.web.settings import check_production
from tests.support.web_study import PASSWORD, app_of, link, seated, serving, web_study

OWN = {"sec-fetch-site": "same-origin"}
ETHICS: dict[str, Any] = {
    "purpose": "We study whether picture editors treat every face the same.",
    "institution": "University of Example",
    "investigator": "Dr. A. Example",
    "contact": "study@example.org",
    "protocol": "IRB 2026-117",
    "risks": "You may tire.",
    "data": "Your age, if you tell us.",
    "support": "If you are upset, call 116 123.",
    "keep_until": "2099-12-31",
    "translations": {
        "ko": {"purpose": "사진 편집기가 모든 얼굴을 똑같이 다루는지 연구합니다.", "support": "도움: 1393"}
    },
}
PAY = {"per_task": 3.0, "minutes_per_task": 15.0}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, FastAPI]]:
    url = None
    if request.param == "postgresql":
        server = request.getfixturevalue("postgres")
        server.psql("DROP SCHEMA public CASCADE; CREATE SCHEMA public;")
        url = str(server.get_uri())
    study = web_study(tmp_path_factory.mktemp("consent"), url, ethics=ETHICS, pay=PAY)
    app = app_of(study)
    with serving(app) as base:
        yield base, app
    study.store.close()


def test_the_printable_page_has_every_field_in_both_languages(site: tuple[str, FastAPI]) -> None:
    base, _ = site
    page = httpx.get(base + "/survey/information", headers={"accept-language": "en"}).text
    for text in (*(v for k, v in ETHICS.items() if isinstance(v, str)), "15 minutes", "3.00 USD", "12.00 USD per hour"):
        assert text in page, text
    assert "3 pages" in page and "stop at any time" in page and "distress" in page
    korean = httpx.get(base + "/survey/information", headers={"accept-language": "ko"}).text
    for text in (
        "모든 얼굴을",
        "도움: 1393",
        "IRB 2026-117",
        "University of Example",
        "study@example.org",
        "12.00 USD",
    ):
        assert text in korean, text
    assert "We study whether" not in korean and "You may tire" not in korean, "nothing is left in another language"


@pytest.mark.parametrize(
    ("pay", "told", "untold"),
    [
        ({}, (), ("minutes", "not paid", "You receive")),
        ({"per_task": 0.0}, ("not paid",), ("minutes",)),
        ({"minutes_per_task": 12.0}, ("12 minutes",), ("not paid", "You receive")),
    ],
)
def test_time_and_pay_are_told_only_where_the_study_says_them(tmp_path, pay, told, untold) -> None:
    study = web_study(tmp_path, None, pay=pay)
    with serving(app_of(study)) as base:
        page = httpx.get(base + "/survey/information", headers={"accept-language": "en"}).text
    assert all(text in page for text in told) and not any(text in page for text in untold), page
    study.store.close()


def test_the_contact_is_on_every_page(site: tuple[str, FastAPI]) -> None:
    base, _ = site
    with seated(base, "reader", stage="consent") as client:
        for path in ("guide", "consent", "information", "removal", "withdraw"):
            assert 'href="mailto:study@example.org"' in client.get(f"/survey/{path}").text, path
    with seated(base, "worker") as client:
        assert "study@example.org" in client.get("/survey/task").text


def test_each_consent_names_the_version_that_was_shown(site: tuple[str, FastAPI]) -> None:
    base, app = site
    database = app.state.survey.database
    before = {v.version: v.people for v in versions(database)}
    with seated(base, "agrees", stage="consent") as client:
        shown = re.search(r'name="version" value="(\w+)"', client.get("/survey/consent").text)
        form = {"decision": "agree", "adult": "yes", "agreed": "yes", "version": "an older one"}
        changed = client.post("/survey/consent", data=form)
        assert changed.status_code == 409 and "has changed" in changed.text
        assert shown is not None
        client.post("/survey/consent", data=form | {"version": shown[1]})
        token = client.cookies["visit"]
    known = {v.version: v for v in versions(database)}[shown[1]]
    assert known.people == before.get(shown[1], 0) + 1
    assert "IRB 2026-117" in known.text and "12.00 USD per hour" in known.text and "18 years" in known.text
    app.state.survey.withdraw(token)
    assert {v.version: v.people for v in versions(database)}[shown[1]] == known.people - 1, "erased with the person"


def test_staff_see_the_versions_and_settle_requests_of_pictured_people(site: tuple[str, FastAPI]) -> None:
    base, _ = site
    with httpx.Client(base_url=base, headers=OWN, follow_redirects=True) as client:
        form = {"about": "The <b>third</b> picture is me.", "reply": "me@example.org"}
        assert "We have received your request" in client.post("/survey/removal", data=form).text
        assert client.post("/survey/removal", data={"about": ""}).status_code == 422
        assert client.get("/admin/consent").status_code == 401
        client.post("/admin/login", data={"name": "admin", "password": PASSWORD})
        page = client.get("/admin/consent").text
        assert "The &lt;b&gt;third&lt;/b&gt; picture is me." in page and "me@example.org" in page
        ident = re.search(r'name="ident" value="(\d+)"', page)
        assert ident is not None
        settled = client.post("/admin/removals", data={"ident": ident[1], "note": "Removed from the set."}).text
        assert "me@example.org" not in settled and "Removed from the set." in settled and "settled by admin" in settled
        assert client.post("/admin/removals", data={"ident": ident[1], "note": "again"}).status_code == 404


def test_requests_for_removal_are_limited_by_address(site: tuple[str, FastAPI]) -> None:
    base, _ = site
    statuses = [httpx.post(base + "/survey/removal", data={"about": "me"}).status_code for _ in range(7)]
    assert statuses[-1] == 429


def test_a_markdown_file_takes_the_place_of_the_texts(tmp_path: Path) -> None:
    (tmp_path / "consent.md").write_text(
        "# Dear reader\n\nIt takes **{minutes}** minutes; ask {contact}.\n\n<script>alert(1)</script>\n"
    )
    ethics = ETHICS | {"pages": {"en": "consent.md"}}
    with TestClient(app_of(web_study(tmp_path, ethics=ethics, pay=PAY))) as client:
        page = client.get("/survey/information", headers={"accept-language": "en"}).text
        assert "<h1>Dear reader</h1>" in page and "<strong>15</strong> minutes; ask study@example.org" in page
        assert "<script>alert" not in page and "IRB 2026-117" in page and "12.00 USD per hour" in page
        assert "We study whether" not in page and "kept until 2099-12-31" in page
        (tmp_path / "consent.md").unlink()
        with pytest.raises(EvenEditError, match="cannot be read"):
            client.get("/survey/information", headers={"accept-language": "en"})


def test_a_page_that_is_not_there_is_told_when_the_server_starts(tmp_path: Path) -> None:
    study = web_study(tmp_path, ethics=ETHICS | {"pages": {"ko": "nowhere.md"}}, pay=PAY)
    with pytest.raises(EvenEditError, match="pages cannot be read"):
        app_of(study)


def test_production_refuses_a_survey_that_a_board_would_refuse(tmp_path: Path) -> None:
    bare = web_study(tmp_path / "bare", platform={"kind": "invitation"}).file
    with pytest.raises(EvenEditError) as refused:
        check_production(bare, "127.0.0.1", "https://survey.example", has_accounts=True)
    named = " ".join(refused.value.problems)
    for key in (
        "institution",
        "investigator",
        "contact",
        "protocol",
        "keep_until",
        "purpose",
        "translations.ko.purpose",
    ):
        assert f"survey.ethics.{key}" in named
    assert "survey.pay.per_task" in named and "survey.pay.minutes_per_task" in named
    half = web_study(tmp_path / "half", platform={"kind": "invitation"}, ethics=ETHICS, pay=PAY).file.sections.survey
    assert half is not None and missing(half) == [f"survey.ethics.translations.ko.{name}" for name in ("risks", "data")]
    korean = ETHICS["translations"]["ko"] | {"risks": "피곤할 수 있습니다.", "data": "알려 주신다면 나이."}
    ethics = ETHICS | {"translations": {"ko": korean}}
    full = web_study(tmp_path / "full", platform={"kind": "invitation"}, ethics=ethics, pay=PAY).file
    check_production(full, "127.0.0.1", "https://survey.example", has_accounts=True)
    assert full.sections.survey is not None and missing(full.sections.survey) == []


def test_after_the_date_ids_are_gone_and_answers_stay(site: tuple[str, FastAPI]) -> None:
    base, app = site
    service = app.state.survey
    with seated(base, "will-be-forgotten") as client:
        item = client.get("/survey/items").json()["items"][0]
        row = item["questions"][0]
        body = {"item": item["id"], "slot": row["slots"][0], "question": row["id"], "value": 1, "sequence": 1}
        client.post("/survey/answers", json=body)
        late = datetime(2100, 1, 1, tzinfo=UTC).timestamp()
        assert retention.enforce(service.database, service.section, late - 1) == 0, "the day itself is not over"
        key = service.database.key
        assert retention.enforce(service.database, service.section, late) > 0
        assert retention.enforce(service.database, service.section, late) == 0
        assert client.get("/survey/items").status_code == 401
    rows = service.database.rows(sa.select(participants))
    assert rows and all((r.external, r.token, r.resume, r.session, r.study) == (None, None, None, "", "") for r in rows)
    assert all(r.pseudonym for r in rows) and service.database.key != key
    assert service.database.rows(sa.select(consents)), "what was agreed to stays"
    folder = app.state.study.file.folder
    for name in ("survey.db", "survey.db-wal"):
        if (folder / name).exists():
            assert b"will-be-forgotten" not in (folder / name).read_bytes()


def test_a_survey_whose_date_has_passed_takes_nobody(tmp_path: Path) -> None:
    study = web_study(tmp_path, ethics=ETHICS | {"keep_until": "2020-01-01"}, pay=PAY)
    with TestClient(app_of(study), follow_redirects=False) as client:
        assert client.get(link("", "late")).status_code == 403
    with sqlite3.connect(tmp_path / "survey.db") as db:
        assert db.execute("SELECT count(*) FROM survey_participants").fetchone() == (0,)
    db.close()


def test_a_day_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvenEditError, match="keep_until is '2026-02-30', which is not a date"):
        web_study(tmp_path, ethics={"keep_until": "2026-02-30"})
