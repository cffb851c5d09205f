"""A backup holds what was acknowledged before it, restores to exactly that, and a study moves with every row."""

import json
import shutil
import stat
import tarfile
import threading
from pathlib import Path
from typing import Any

import fsspec
import pytest
import sqlalchemy as sa

from evenedit.api.study import Study
from evenedit.config.study_file import StudyFile
from evenedit.core.errors import EvenEditError
from evenedit.operations.backup import PICTURES, back_up, restore, verify
from evenedit.storage.store import Store
from evenedit.storage.survey_schema import answers, participants
from evenedit.storage.survey_store import SurveyStore
from evenedit.web.auth import Accounts
from evenedit.web.roles import Role
from tests.support.studies import open_study, write_study
from tests.support.surveys import STUDY, SURVEY, answer, make_study, open_service, seated


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_study(make_study(tmp_path_factory.mktemp("made")), **STUDY, survey=SURVEY)
    loaded = open_study(folder, **STUDY, survey=SURVEY)
    Accounts(loaded.store).add("ada", Role.OWNER, "a quiet morning")
    loaded.store.close()
    return folder


@pytest.fixture
def study(made: Path, tmp_path: Path) -> Study:
    folder = tmp_path / "study"
    shutil.copytree(made, folder)
    return open_study(folder, **STUDY, survey=SURVEY)


def stored(survey: SurveyStore) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in survey.rows(sa.select(answers))}


def test_a_backup_under_load_restores_to_what_was_acknowledged_before_it(study: Study, tmp_path: Path) -> None:
    service = open_service(study)
    tokens = [seated(service, f"person-{n}").token for n in range(4)]
    answer(service, tokens[0], skip=1)
    before = stored(service.database)
    stop = threading.Event()

    def work(token: str) -> None:
        number = 1000
        item = service.items(token)[0]
        while not stop.is_set():
            for asked in item.questions:
                number += 1
                service.save(token, item.id, asked.slot, asked.question.id, number % 3 + 1, number)

    threads = [threading.Thread(target=work, args=(token,)) for token in tokens[1:]]
    for thread in threads:
        thread.start()
    try:
        summary = back_up(study.file, tmp_path / "backup.tar")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    key, after = service.database.key, stored(service.database)
    service.close()
    assert summary.rows["survey.db"]["survey_answers"] >= len(before) > 0
    restore(tmp_path / "backup.tar", tmp_path / "again")
    found = SurveyStore(tmp_path / "again")
    assert before <= stored(found), "every answer that was acknowledged before"
    assert len(stored(found)) <= len(after) and found.key == key
    found.close()
    old, new = study.store, Store(tmp_path / "again")
    assert (new.requests(), new.edits(), new.sources()) == (old.requests(), old.edits(), old.sources())
    assert all(new.images.is_whole(s.image) for s in new.sources().values())
    assert set(Accounts(new).all()) == {"ada"}
    for name in ("survey.db", "secrets.db"):
        assert stat.S_IMODE((tmp_path / "again" / name).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "backup.tar").stat().st_mode) == 0o600
    assert not (tmp_path / "again" / "backup.json").exists()
    new.close()


def test_a_damaged_backup_is_refused_and_nothing_is_restored(study: Study, tmp_path: Path) -> None:
    backup = tmp_path / "backup.tar"
    back_up(study.file, backup)
    with tarfile.open(backup) as archive:
        at = archive.getmember("study.db").offset_data
    content = bytearray(backup.read_bytes())
    content[at + 5000] ^= 0xFF
    (tmp_path / "flipped.tar").write_bytes(content)
    (tmp_path / "cut.tar").write_bytes(backup.read_bytes()[: len(content) // 2])
    (tmp_path / "other.tar").write_text("not a backup")
    for name in ("flipped", "cut", "other", "absent"):
        with pytest.raises(EvenEditError):
            restore(tmp_path / f"{name}.tar", tmp_path / "again")
        assert not (tmp_path / "again").exists()
    verify(backup)


def shown(study: Study) -> dict[str, Any]:
    """All of a study's results, but for when and by which file they were made."""
    body: dict[str, Any] = json.loads(study.results().to_json())
    for fact in ("time", "command", "study"):
        del body["provenance"][fact]
    return body


@pytest.fixture
def pictures(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the pictures lie: another folder, or a bucket."""
    return f"{request.getfixturevalue('bucket')}/kept" if request.param == "bucket" else str(tmp_path / "elsewhere")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pictures", ["folder", "bucket"], indirect=True)
def test_pictures_outside_the_folder_and_rows_on_a_server_are_restored_to_the_same_report(
    pictures: str, postgres: Any, postgres_url: str, tmp_path: Path
) -> None:
    folder = write_study(tmp_path / "study", store={"images": pictures, "url": postgres_url})
    loaded = Study.load(folder)
    assert loaded.run().complete
    before = shown(loaded)
    images = loaded.store.images
    named = {s.image for s in loaded.store.sources().values()} | {e.image or "" for e in loaded.store.edits().values()}
    summary = back_up(loaded.file, tmp_path / "backup.tar")
    assert summary.pictures == len(named) and f"{len(named)} pictures" in str(summary)
    loaded.store.close()
    empty(pictures)
    assert not images.present(named)
    postgres.psql("DROP SCHEMA public CASCADE; CREATE SCHEMA public;")
    assert verify(tmp_path / "backup.tar") == summary, "a check changes nothing"
    assert not images.present(named)
    restore(tmp_path / "backup.tar", tmp_path / "again")
    again = Study.load(tmp_path / "again")
    assert shown(again) == before
    assert all(map(again.store.images.is_whole, named)) and not (tmp_path / "again" / PICTURES).exists()
    empty(pictures)
    with pytest.raises(EvenEditError, match=r"missing or damaged.*--without-pictures"):
        back_up(again.file, tmp_path / "second.tar")
    assert "WITHOUT its pictures" in str(back_up(again.file, tmp_path / "second.tar", pictures=False))
    again.store.close()


def empty(pictures: str) -> None:
    """Delete all pictures of a store."""
    files, root = fsspec.core.url_to_fs(pictures)
    files.rm(root, recursive=True)
    files.invalidate_cache()


def test_nothing_is_overwritten(study: Study, tmp_path: Path) -> None:
    back_up(study.file, tmp_path / "backup.tar")
    with pytest.raises(EvenEditError, match="exists already"):
        back_up(study.file, tmp_path / "backup.tar")
    with pytest.raises(EvenEditError, match="not empty"):
        restore(tmp_path / "backup.tar", study.file.folder)


def test_a_study_moves_to_postgresql_with_every_row_and_goes_on(
    study: Study, tmp_path: Path, postgres_url: str
) -> None:
    service = open_service(study)
    visit = seated(service, "mover")
    answer(service, visit.token, skip=1)
    kept, key = stored(service.database), service.database.key
    service.close()
    requests, edits = study.store.requests(), study.store.edits()
    study.store.close()
    back_up(study.file, tmp_path / "from-sqlite.tar")
    folder = tmp_path / "moved"
    summary = restore(tmp_path / "from-sqlite.tar", folder, postgres_url)
    assert summary.rows["survey.db"]["survey_answers"] == len(kept)
    assert not (folder / "survey.db").exists() and (folder / "study.db.moved").exists()
    assert (study.file.folder / "survey.db").exists(), "the study on SQLite is unchanged"

    moved = Study.load(folder)
    assert moved.file.sections.store.url == postgres_url
    assert (moved.store.requests(), moved.store.edits()) == (requests, edits)
    there = open_service(moved, postgres_url)
    assert stored(there.database) == kept and there.database.key == key
    assert there.items(visit.token), "the participant goes on"
    newcomer = seated(there, "newcomer")
    assert there.items(newcomer.token), "new rows are numbered after the old ones"
    moved.store.start_run({})

    back_up(moved.file, tmp_path / "from-postgres.tar")
    everybody = len(there.database.rows(sa.select(participants)))
    there.close()
    moved.store.close()
    with pytest.raises(EvenEditError, match="already holds a study"):
        restore(tmp_path / "from-postgres.tar", tmp_path / "again")
    assert not (tmp_path / "again").exists(), "no half of a study is left"
    there = SurveyStore(folder, postgres_url)
    assert (folder / "survey.db.moved").exists()
    there.forget_erased()
    there.close()
    assert not (folder / "survey.db.moved").exists(), "who is erased is not left in the former file"
    engine = sa.create_engine(postgres_url.replace("postgresql://", "postgresql+psycopg://", 1))
    with engine.begin() as db:
        db.exec_driver_sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public;")
    engine.dispose()
    trial = postgres_url.replace("/postgres?", "/trial?")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as db:
        db.exec_driver_sql("DROP DATABASE IF EXISTS trial")
        db.exec_driver_sql("CREATE DATABASE trial")
    engine.dispose()
    restore(tmp_path / "from-postgres.tar", tmp_path / "trial", trial)
    assert StudyFile.load(tmp_path / "trial").sections.store.url == trial, "nobody works on the first by mistake"
    elsewhere = SurveyStore(tmp_path / "trial", trial, write=False)
    assert kept <= stored(elsewhere) and elsewhere.key == key
    elsewhere.close()
    restore(tmp_path / "from-postgres.tar", tmp_path / "third")
    loaded = StudyFile.load(tmp_path / "third")
    back = SurveyStore(loaded.folder, postgres_url, write=False)
    assert kept <= stored(back) and len(back.rows(sa.select(participants))) == everybody and back.key == key
    back.close()
