"""The doctor says what is damaged, of both databases, and never that a damaged one is whole."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evenedit.api.study import Study
from evenedit.core.errors import EvenEditError
from evenedit.operations.doctor import examine, repair
from tests.support.studies import open_study
from tests.support.surveys import STUDY, SURVEY, make_study, open_service, seated


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_study(tmp_path_factory.mktemp("made"))
    loaded = open_study(folder, **STUDY, survey=SURVEY)
    service = open_service(loaded)
    seated(service, "somebody")
    service.close()
    loaded.store.close()
    return folder


def overwrite_a_page(path: Path) -> None:
    """Put noise over a page in the middle of a database, as a bad disk does."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2 // 4096 * 4096)
        file.write(bytes(range(256)) * 16)


def examined(folder: Path, **survey: object) -> list[str]:
    loaded = open_study(folder, **STUDY, survey=SURVEY | survey)
    try:
        return [found.text for found in examine(loaded) if found.good is False]
    finally:
        loaded.store.close()


def test_a_whole_study_has_no_problem(made: Path) -> None:
    assert examined(made) == []


@pytest.mark.parametrize("name", ["study", "survey"])
def test_a_damaged_database_is_told(made: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(made, folder)
    overwrite_a_page(folder / f"{name}.db")
    try:
        told = examined(folder)
    except EvenEditError as error:  # too damaged to be opened at all, which the command tells in the same way
        told = list(error.problems)
    assert any(f"the {name}'s database" in text and "backup" in text for text in told)


def test_an_empty_survey_is_told(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(made, folder)
    (folder / "survey.db").write_bytes(b"")
    assert any("empty (0 bytes)" in text for text in examined(folder))


def test_a_sample_that_the_study_file_no_longer_asks_for_is_told(made: Path) -> None:
    told = " ".join(examined(made, cases=12))
    assert "were drawn with cases = 16 (now 12)" in told and "sample STUDY --again" in told


def test_rows_that_belong_to_nothing_are_counted(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(made, folder)
    loaded = open_study(folder, **STUDY, survey=SURVEY)
    with loaded.store.begin() as db:
        db.exec_driver_sql("DELETE FROM requests WHERE id IN (SELECT request_id FROM edits LIMIT 3)")
    loaded.store.close()
    assert any("3 rows of edits belong to no request" in text for text in examined(folder))


def test_repair_does_what_is_safe_and_says_it(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(made, folder)
    (folder / "staff-log.jsonl").touch(0o644)
    loaded = open_study(folder, **STUDY, survey=SURVEY)
    picture = loaded.store.images.path(next(edit.image for edit in loaded.store.edits().values() if edit.image))
    picture.write_bytes(b"no picture")
    before = {found.text for found in examine(loaded) if found.good is False}
    assert any("images are intact" in text for text in before) and any("read by others" in text for text in before)
    done = list(repair(loaded))
    assert any("owner only" in text for text in done) and any("set aside" in text for text in done)
    assert picture.with_name(f"{picture.name}.damaged").read_bytes() == b"no picture" and not picture.exists()
    assert list(repair(loaded)) == []
    loaded.store.close()


@pytest.mark.parametrize("content", [b"", b"garbage" * 1000])
def test_accounts_that_cannot_be_read_are_told(made: Path, tmp_path: Path, content: bytes) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(made, folder)
    (folder / "secrets.db").write_bytes(content)
    (folder / "secrets.db").chmod(0o600)
    (told,) = examined(folder)
    assert "the file of accounts" in told and "backup" in told


def test_a_survey_about_outputs_of_another_backup_is_told(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(made, folder)
    with closing(sqlite3.connect(folder / "survey.db")) as db, db:
        db.execute("UPDATE survey_items SET outputs = '[\"elsewhere\"]' WHERE id = 1")
    (told,) = examined(folder)
    assert "shows 1 outputs that the study does not have (elsewhere)" in told


def test_the_papers_study_is_checked_before_its_portraits_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    study = Study.new(tmp_path / "s", template="paper")
    said = [check.text for check in examine(study) if check.good is False]
    assert any(text.startswith("portraits: no label file at") for text in said), said
    flux = next(text for text in said if text.startswith("editor 'flux2-dev'"))
    assert "to read the instructions, then 22 GB of GPU memory" in flux
    assert sum(text.startswith("extractor 'vlm': model 'g") for text in said) == 2  # the stand-in's key as well
